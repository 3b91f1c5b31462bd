import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.core.image_rng import make_shared_generator
from dign.methods import AT, CURE, LLR, AugMix, DiGN, MixUp, NoisyMix
from dign.methods.labels import mix_with_partners
from dign.methods.noisymix import draw_beta_2_5, find_stages, own_share
from dign.models import build


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def quiet(**settings):
    """Without noise, so that mixing alone is left."""
    return NoisyMix(additive=0.0, multiplicative=0.0, **settings)


def test_features_and_labels_are_mixed_alike_at_the_depth_that_was_drawn(network, x, y):
    """Against the plainest code: at each of two depths, whichever the seed draws."""
    depths = set()
    for seed in range(6):
        seen = []
        method = quiet(layers=("2",))
        made = method.prepare(network, x, y, generator(seed))
        outcome = method(network, x, y, generator=generator(seed))
        share = made.y.shares[:, :1]
        other = torch.arange(6).roll(-3)
        for depth, (before, after) in {0: (network[:0], network), 2: (network[:2], network[2:])}.items():
            logits = []
            for batch in (x, *made.views[0]):
                h = before(batch)
                m = share.view(-1, 1, 1, 1)
                logits.append(after(m * h + (1 - m) * h[other]))
            log_p = [each.log_softmax(1) for each in logits]
            mean = torch.stack(log_p).exp().mean(0)
            js = sum((p.exp() * (p - mean.log())).sum(1).mean() for p in log_p) / 3
            losses = -(
                share[:, 0] * log_p[0][torch.arange(6), y] + (1 - share[:, 0]) * log_p[0][torch.arange(6), y[other]]
            )
            seen.append((depth, (losses.mean() + 12 * js).item()))
        matching = [depth for depth, loss in seen if outcome.loss.item() == pytest.approx(loss, rel=1e-4)]
        assert len(matching) == 1, seen
        depths.add(matching[0])
    assert depths == {0, 2}


def test_noise_has_the_published_distribution():
    method = NoisyMix(additive=0.4, multiplicative=0.0, sparsity=0.65)
    noise = method._add_noise(torch.zeros(4000, 50), 1.0, generator())
    kept = (noise != 0).float().mean().item()
    assert kept == pytest.approx(0.35, abs=0.01)
    # E b^2 = var + mean^2 of Beta(2, 5) = 10 / (49 * 8) + 4 / 49
    expected = 0.4**2 * 0.35 * (10 / 392 + 4 / 49)
    assert noise.var().item() == pytest.approx(expected, rel=0.05)
    assert method._add_noise(torch.zeros(4000, 50), 3.0, generator()).var().item() == pytest.approx(
        9 * expected, rel=0.05
    )
    factors = NoisyMix(additive=0.0, multiplicative=0.5)._add_noise(torch.ones(4000, 50), 1.0, generator())
    assert (factors != 1).float().mean().item() == pytest.approx(0.35, abs=0.01) and 0.5 <= factors.min() < 1


def test_strengths_are_beta():
    drawn = draw_beta_2_5(50_000, 1, generator(), torch.zeros(1))
    assert drawn.mean().item() == pytest.approx(2 / 7, abs=5e-3)
    assert drawn.var().item() == pytest.approx(10 / (49 * 8), rel=0.03)


def test_no_noise_and_shares_of_one_are_augmix(recorder, x, y, monkeypatch):
    itself = torch.tensor([[1.0, 0.0]])
    monkeypatch.setitem(NoisyMix.augment.__globals__, "dirichlet", lambda count, *more: itself.expand(count, 2))
    outcome = quiet()(recorder, x, y, generator=generator())
    expected = AugMix(severity=3.0)(recorder, x, y, generator=generator())
    torch.testing.assert_close(outcome.loss, expected.loss)


@pytest.mark.parametrize("together", [True, False])
def test_all_passes_of_a_step_are_mixed_at_one_depth(network, x, y, together):
    outcome = quiet(layers=("2",), together=together)(network, x, y, generator=generator())
    expected = quiet(layers=("2",))(network, x, y, generator=generator())
    torch.testing.assert_close(outcome.loss, expected.loss)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("dign_first", [True, False])
def test_later_views_get_more_noise_and_those_of_other_methods_as_little_as_the_clean_batch(
    network, x, y, together, dign_first, monkeypatch
):
    levels, plain = [], NoisyMix._add_noise

    def spy(method, rows, level, draws):
        levels.append(level)
        return plain(method, rows, level, draws)

    monkeypatch.setattr(NoisyMix, "_add_noise", spy)
    parts = (DiGN(samples=2, together=together), NoisyMix(layers=("2",), together=together))
    both = parts[0] + parts[1] if dign_first else parts[1] + parts[0]
    both(network, x, y, generator=generator())
    views = [1, 1, 1, 2, 3] if dign_first else [1, 2, 3, 1, 1]  # the clean batch, then each method's
    found = levels if together else sorted(levels)
    expected = [0.5 * each for each in views] + [float(each) for each in views]  # the images, then layer 2
    assert found == (expected if together else sorted(expected))


def test_in_a_sum_every_view_is_mixed_alike(network, x, y):
    """DiGN's copies without noise are the mixtures themselves: they agree with the clean pass."""
    both = DiGN(sigma_max=0.0) + quiet(layers=("2",))
    assert both(network, x, y, generator=generator()).terms["consistency"].item() == pytest.approx(0, abs=1e-6)


def test_it_comes_last_where_others_mix_too(network, x, y):
    (MixUp() + quiet(layers=("2",)))(network, x, y, generator=generator()).loss.backward()
    with pytest.raises(UserError, match="write NoisyMix last"):
        NoisyMix() + MixUp()
    twice = mix_with_partners(mix_with_partners(y, torch.full((6,), 0.3)), torch.full((6,), 0.8))
    torch.testing.assert_close(own_share(twice), torch.full((6,), 0.8))


def test_the_model_is_left_as_it_was(network, x, y):
    NoisyMix()(network, x, y).loss.backward()
    for layer in network.modules():
        assert not layer._forward_pre_hooks


@pytest.mark.parametrize(("name", "stages"), [("resnet18", 5), ("fastnet", 4), ("densenet121", None)])
def test_stages_are_found(name, stages):
    model = build(name, classes=10, image_size=(32, 32))
    found = find_stages(model)
    assert len(found) >= 3 and stages in (None, len(found))
    assert find_stages(nn.Linear(2, 2)) == []


def test_stages_are_found_in_a_wrapper_that_holds_the_network_twice():
    model = build("fastnet", classes=10, image_size=(32, 32))
    wrapper = nn.Module()
    wrapper.shared, wrapper.original = nn.ModuleDict({"module": model}), model
    assert find_stages(wrapper) == find_stages(model)


def test_several_processes_draw_what_one_draws(network):
    draws = torch.Generator().manual_seed(1)
    x, y = torch.rand(8, 3, 8, 8, generator=draws), torch.randint(0, 5, (8,), generator=draws)
    device, method = torch.device("cpu"), NoisyMix(layers=("2",))
    alone = method(network, x, y, generator=make_shared_generator(0, "m", 1, device, 0, 1)).loss
    shares = [
        method(network, x[rank::2], y[rank::2], generator=make_shared_generator(0, "m", 1, device, rank, 2)).loss
        for rank in range(2)
    ]
    torch.testing.assert_close(sum(shares) / 2, alone)


@pytest.mark.parametrize("method", [CURE(step=0.5), LLR(steps=2)])
def test_penalties_of_other_methods_are_those_of_images_that_are_not_mixed(network, x, y, method):
    """They make passes of their own, in which nothing is mixed inside: labels must not be either."""
    alone = method(network, x, y, generator=generator(3)).terms
    method_draws = generator(3)
    made = (method + NoisyMix(layers=("2",))).prepare(network, x, y, generator())
    assert torch.equal(made.y_of_x, y) and made.y is not made.y_of_x
    penalties = method.penalties(network, made.x, made.y_of_x, None, method_draws)
    summed = (method + NoisyMix(layers=("2",)))(network, x, y, generator=generator()).terms
    for name, value in penalties.items():
        torch.testing.assert_close(value.detach(), alone[name])
        if not isinstance(method, LLR):  # which draws where it starts after NoisyMix has drawn
            torch.testing.assert_close(summed[name], alone[name])


def test_an_attack_in_a_sum_is_of_images_and_labels_that_are_not_mixed(network, x, y, monkeypatch):
    given = []
    plain = AT.views
    monkeypatch.setattr(AT, "views", lambda self, model, x, y, draw: given.append(y) or plain(self, model, x, y, draw))
    (AT(steps=1) + NoisyMix(layers=("2",)))(network, x, y, generator=generator())
    (MixUp() + AT(steps=1) + NoisyMix(layers=("2",)))(network, x, y, generator=generator())
    assert torch.equal(given[0], y)
    assert given[1].shares.shape == (6, 2), "mixed by MixUp, which changes the images, and not by NoisyMix"
