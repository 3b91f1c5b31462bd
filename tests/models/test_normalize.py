import torch
from torch import nn

from dign.models.normalize import Normalize, Normalized

MEAN, STD = [0.1, 0.2, 0.3], [0.5, 0.25, 0.2]


def test_a_normalized_model_sees_what_its_own_pipeline_would_show_it():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    x = torch.rand(2, 3, 4, 4)
    shown = torch.stack([(x[:, i] - MEAN[i]) / STD[i] for i in range(3)], dim=1)
    torch.testing.assert_close(Normalized(model, MEAN, STD)(x), model(shown))


def test_its_statistics_travel_with_the_weights_and_nothing_is_written_to_the_images():
    first, second = Normalized(nn.Flatten(), MEAN, STD), Normalized(nn.Flatten(), [0] * 3, [1] * 3)
    second.load_state_dict(first.state_dict())
    x = torch.rand(2, 3, 4, 4)
    before = x.clone()
    assert torch.equal(first(x), second(x)) and torch.equal(x, before)


def test_whatever_the_model_returns_is_returned():
    class Tagged(nn.Module):
        def forward(self, x):
            return {"logits": x, "tag": 7}

    x = torch.rand(1, 3, 2, 2)
    output = Normalized(Tagged(), MEAN, STD)(x)
    assert output["tag"] == 7 and torch.equal(output["logits"], Normalize(MEAN, STD)(x))
