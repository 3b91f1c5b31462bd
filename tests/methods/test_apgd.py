import pytest
import torch
from torch import nn
from torch.nn import functional

from dign.methods.apgd import apgd, targeted_dlr
from dign.methods.attacks import cross_entropy_of, pgd


@pytest.fixture(scope="module")
def trained():
    """A small network that separates four blobs of images, and images that are near the borders."""
    torch.manual_seed(0)
    centers = torch.rand(4, 3, 6, 6) * 0.3 + 0.35
    y = torch.arange(400) % 4
    x = (centers[y] + 0.15 * torch.randn(400, 3, 6, 6)).clamp(0, 1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, x, y


def size(delta, norm):
    return delta.flatten(1).abs().amax(1) if norm == "linf" else delta.flatten(1).norm(dim=1)


@pytest.mark.parametrize(("norm", "radius"), [("linf", 0.05), ("l2", 0.4)])
def test_it_is_about_as_strong_as_pgd_and_stays_in_the_ball(trained, norm, radius):
    model, x, y = trained
    generator = torch.Generator().manual_seed(0)
    ours = apgd(model, x, cross_entropy_of(y), norm=norm, radius=radius, generator=generator)
    theirs = pgd(model, x, cross_entropy_of(y), norm=norm, radius=radius, steps=20)
    assert (size(ours - x, norm) <= radius + 1e-6).all() and ours.min() >= 0 and ours.max() <= 1
    with torch.no_grad():
        losses = [functional.cross_entropy(model(images), y).item() for images in (x, theirs, ours)]
        right = [(model(images).argmax(1) == y).float().mean().item() for images in (x, theirs, ours)]
    assert losses[0] < losses[1] and losses[2] > losses[1] * 0.98, losses
    assert right[0] > 0.95 and abs(right[2] - right[1]) < 0.01 < right[0] - right[1], right


def test_it_keeps_the_best_point_that_it_saw(trained):
    """More steps never give less, from the same start: the best of a longer walk includes that of a shorter one."""
    model, x, y = trained

    def reached(steps):
        seen = []

        def remember(logits):
            seen.append(cross_entropy_of(y)(logits).detach())
            return cross_entropy_of(y)(logits)

        attacked = apgd(model, x, remember, radius=0.05, steps=steps, start=torch.zeros_like(x))
        assert len(seen) == steps + 1, "a forward pass for the start, and one for every step"
        with torch.no_grad():
            values = cross_entropy_of(y)(model(attacked))
        torch.testing.assert_close(values, torch.stack(seen).amax(0), rtol=1e-3, atol=1e-4)

    reached(1)
    reached(11)


def test_on_a_linear_model_it_reaches_the_corner():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    x = torch.full((3, 3, 4, 4), 0.5)
    y = torch.tensor([0, 1, 0])
    attacked = apgd(model, x, cross_entropy_of(y), radius=0.1)
    weight = model[1].weight
    rise = torch.stack([(weight[1 - label] - weight[label]).view(3, 4, 4) for label in y.tolist()])
    torch.testing.assert_close(attacked, x + 0.1 * rise.sign())


def test_the_model_is_left_as_it_was(trained):
    model, x, y = trained
    model.train()
    before = [parameter.clone() for parameter in model.parameters()]
    image, given = x[:2].clone(), x[:2].clone()
    apgd(model, given, cross_entropy_of(y[:2]), steps=2)
    assert model.training and all(parameter.requires_grad for parameter in model.parameters())
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert torch.equal(image, given)


def test_the_ratio_is_blind_to_shift_and_scale_and_follows_its_definition():
    logits = torch.tensor([[3.0, -1.0, 0.5, 2.0, 0.0], [0.0, 4.0, 1.0, -2.0, 2.5]])
    y, target = torch.tensor([0, 2]), torch.tensor([3, 1])
    expected = torch.tensor([(2 - 3) / (3 - (0.5 + 0) / 2), (4 - 1) / (4 - (1 + 0) / 2)])
    torch.testing.assert_close(targeted_dlr(y, target)(logits), expected)
    torch.testing.assert_close(targeted_dlr(y, target)(7 * logits - 3), expected)


def test_the_ratio_with_three_and_two_classes():
    three = targeted_dlr(torch.tensor([0]), torch.tensor([1]))(torch.tensor([[3.0, 2.0, 1.0]]))
    assert three.item() == pytest.approx(-0.5)
    assert targeted_dlr(torch.tensor([0]), torch.tensor([1]))(torch.tensor([[3.0, 2.0]])).item() == -1
