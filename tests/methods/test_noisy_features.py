import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.core.image_rng import make_shared_generator
from dign.methods import DiGN, NoisyFeatures


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_against_the_plainest_code(network, x, y):
    method = NoisyFeatures(sigma=0.3, inner_sigma=0.2)
    outcome = method(network, x, y, generator=generator())
    draws = generator()
    features = network[:2](x + 0.3 * torch.randn(x.shape, generator=draws))
    logits = network[2:](features + 0.2 * torch.randn(features.shape, generator=draws))
    torch.testing.assert_close(outcome.loss, nn.functional.cross_entropy(logits, y))
    assert list(outcome.terms) == ["noisy_features_cross_entropy"]


def test_layers_may_be_named(network, x, y):
    method = NoisyFeatures(sigma=0.0, inner_sigma=0.2, layers=("4",))
    outcome = method(network, x, y, generator=generator())
    draws = generator()
    torch.randn(x.shape, generator=draws)
    features = network[:4](x)
    logits = network[4](features + 0.2 * torch.randn(features.shape, generator=draws))
    torch.testing.assert_close(outcome.loss, nn.functional.cross_entropy(logits, y))
    with pytest.raises(UserError, match="has no layer 'nowhere'"):
        NoisyFeatures(layers=("nowhere",))(network, x, y)


def test_the_model_stays_as_it_was_also_when_a_step_fails(network, x, y):
    names = list(network.state_dict())
    NoisyFeatures()(network, x, y).loss.backward()
    with pytest.raises(UserError):
        NoisyFeatures()(network, x, y + 9)
    assert list(network.state_dict()) == names
    for layer in network.modules():
        assert not layer._forward_pre_hooks and not layer._forward_hooks


@pytest.mark.parametrize("together", [True, False])
def test_in_a_sum_its_own_view_alone_is_noisy_inside(network, x, y, together):
    both = DiGN(together=together) + NoisyFeatures(together=together)
    outcome = both(network, x, y, generator=generator())
    alone = DiGN(together=together)(network, x, y, generator=generator())
    for name in alone.terms:
        torch.testing.assert_close(outcome.terms[name], alone.terms[name])


def test_predictions_are_the_mean_over_noisy_passes(network, x):
    network.eval()
    predicted = NoisyFeatures(sigma=0.3, inner_sigma=0.2, ensemble=3).predict(network, x, generator())
    draws, found = generator(), []
    for _ in range(3):
        features = network[:2](x + 0.3 * torch.randn(x.shape, generator=draws))
        logits = network[2:](features + 0.2 * torch.randn(features.shape, generator=draws))
        found.append(logits.softmax(1))
    torch.testing.assert_close(predicted, torch.stack(found).mean(0))
    assert not network[2]._forward_pre_hooks


def test_several_processes_draw_what_one_draws(network, x, y):
    """Each process has every second image, and the mean of their losses is that of the whole batch."""
    device, method = torch.device("cpu"), NoisyFeatures()
    alone = method(network, x, y, generator=make_shared_generator(0, "m", 1, device, 0, 1)).loss
    shares = [
        method(network, x[rank::2], y[rank::2], generator=make_shared_generator(0, "m", 1, device, rank, 2)).loss
        for rank in range(2)
    ]
    torch.testing.assert_close(sum(shares) / 2, alone)


def test_a_model_without_further_convolutions_asks_for_layers(x, y, monkeypatch):
    monkeypatch.setattr("dign.methods.batch_checks._looks.warned_of_no_layers", False)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(5))
    model(x)
    with pytest.warns(UserWarning, match=r"no convolution beside the first.*Name layers of the model with `layers`"):
        NoisyFeatures()(model, x, y)
    NoisyFeatures(layers="2")(model, x, y).loss.backward()


def test_what_is_not_tensors_of_images_is_one_sentence(x, y):
    class Pooling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3)

        def forward(self, x):
            return self.second(self.first(x).mean(0, keepdim=True)).mean((2, 3)).expand(len(x), -1)

    with pytest.raises(UserError, match="name layers, with `layers`"):
        NoisyFeatures()(Pooling(), x, y)
