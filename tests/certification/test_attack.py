"""The smallest change found against a smoothed classifier: never below the truth, and near it where it is known."""

import math

import pytest
import torch
from torch import nn

from dign.certification import certify
from dign.certification.attack import smallest_change
from dign.core.errors import UserError


class Plane(nn.Module):
    """Class 1 where the mean of the image is above one half; the distance to the border is known."""

    def forward(self, x):
        side = x.flatten(1).mean(1) - 0.5
        return 20 * torch.stack([-side, side], dim=1)


@pytest.mark.parametrize("brightness", [0.3, 0.45, 0.6, 0.9])
def test_on_a_plane_it_finds_the_distance(brightness):
    image = torch.full((3, 4, 4), brightness)
    truth = abs(brightness - 0.5) * math.sqrt(48)
    found = smallest_change(Plane(), image, int(brightness > 0.5), sigma=0.25)
    assert truth <= found <= 1.1 * truth + 0.05


@pytest.fixture(scope="module")
def trained():
    """A network that tells three blobs of images apart under noise, and images of the blobs."""
    torch.manual_seed(0)
    y = torch.arange(300) % 3
    x = ((torch.rand(3, 3, 5, 5) * 0.4 + 0.3)[y] + 0.1 * torch.randn(300, 3, 5, 5)).clamp(0, 1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(75, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(80):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x + 0.25 * torch.randn_like(x)), y).backward()
        optimizer.step()
    return model, x, y


@pytest.mark.slow
def test_no_certificate_is_beyond_what_the_attack_finds(trained):
    model, x, y = trained
    found = certify(model, x[:40], sigma=0.25, n=2000)
    sure = (found.classes == y[:40]).nonzero().flatten().tolist()
    assert len(sure) > 25
    norms = {i: smallest_change(model, x[i], int(y[i]), sigma=0.25, number=i, votes=400) for i in sure}
    assert all(norms[i] >= found.radii[i] for i in sure)
    gaps = sorted(norms[i] / float(found.radii[i]) for i in sure)
    assert gaps[len(gaps) // 2] < 1.6, "on a network this small the attack comes near to the certificates"


def test_it_is_repeatable_and_leaves_model_and_image_as_they_were(trained):
    model, x, y = trained
    model.train()
    before = x[0].clone()
    twice = [smallest_change(model, x[0], int(y[0]), sigma=0.25, votes=200) for _ in range(2)]
    assert twice[0] == twice[1] and model.training and torch.equal(x[0], before)
    assert all(parameter.grad is None or parameter.requires_grad for parameter in model.parameters())


def test_a_model_that_always_says_the_same_is_never_changed():
    class Same(nn.Module):
        def forward(self, x):
            return x.flatten(1)[:, :1] * 0 + torch.tensor([[1.0, 0.0]])

    assert smallest_change(Same(), torch.rand(3, 2, 2), 0, sigma=0.25, votes=100) == math.inf


def test_settings_are_checked():
    with pytest.raises(UserError, match="`sigma` must be a number above 0"):
        smallest_change(Plane(), torch.rand(3, 2, 2), 0, sigma=0)
    with pytest.raises(UserError, match="steps"):
        smallest_change(Plane(), torch.rand(3, 2, 2), 0, sigma=0.1, steps=0)
