import math

import pytest
import torch

from dign.augment import chains as chains_module
from dign.augment.chains import NINE, OPERATIONS, chains, dirichlet, mix
from dign.core.errors import UserError
from dign.methods import AugMix

CPU = torch.device("cpu")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def x():
    return torch.rand(32, 3, 16, 16, generator=generator())


def only(name, x, **settings):
    settings = {"depth": 1, "severity": 10.0, "generator": generator(1)} | settings
    return chains(x, 4, operations=(name,), **settings)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_changes_images_and_gives_each_chain_its_own_level(name):
    x = 0.2 + 0.7 * torch.rand(32, 3, 32, 32, generator=generator())
    changed = only(name, x)
    assert changed.shape == (32, 4, 3, 32, 32) and changed.dtype == torch.uint8
    assert (changed != (255 * x).round()[:, None]).flatten(2).any(2).float().mean() > 0.7
    if name not in ("autocontrast", "equalize"):  # these two have no level
        assert len(torch.unique(changed[0].flatten(1), dim=0)) > 1


@pytest.mark.parametrize("name", ["rotate", "shear-x", "shear-y", "translate-x", "translate-y"])
def test_geometric_operations_go_both_ways(name):
    x = torch.zeros(64, 3, 15, 15)
    x[:, :, 3, 11] = 1
    changed = only(name, x).flatten(0, 1)[:, 0].float()
    weight = changed.sum((1, 2))
    seen = weight > 0
    axis = 1 if name in ("shear-y", "translate-y", "rotate") else 2
    center = (changed.sum(3 - axis) * torch.arange(15)).sum(1)[seen] / weight[seen]
    start = 3 if axis == 1 else 11
    assert (center > start + 0.3).any() and (center < start - 0.3).any()


def test_levels_are_those_of_augmix_s_authors():
    """Solarize at level l inverts values of at least 256 - int(25.6 l), l ~ U(0.1, severity)."""
    x = torch.arange(256).div(255).view(1, 1, 16, 16).expand(500, 3, 16, 16)
    changed = chains(x, 1, depth=1, severity=5.0, operations=("solarize",), generator=generator())[:, 0, 0]
    inverted = (changed.flatten(1) != torch.arange(256)).sum(1)
    assert inverted.max() <= 128
    assert inverted.max() > 120 and inverted.min() <= 8
    assert abs(inverted.float().mean() - 25.6 * 2.55) < 6  # the mean of U(0.1, 5) is 2.55


def test_severity_may_differ_between_images():
    x = torch.full((2, 3, 16, 16), 1.0)
    severity = torch.tensor([0.2, 10.0])
    changed = chains(x, 400, depth=1, severity=severity, operations=("translate-x",), generator=generator())
    black = (changed == 0).float().mean((2, 3, 4))
    assert black[0].max() == 0
    assert black[1].max() == pytest.approx(5 / 16)  # int(10 * 16 / 3 / 10) columns


def test_severity_may_differ_between_the_chains_of_an_image():
    x = torch.full((400, 3, 16, 16), 1.0)
    severity = torch.tensor([0.2, 10.0, 0.2]).expand(400, 3)
    changed = chains(x, 3, depth=1, severity=severity, operations=("translate-x",), generator=generator())
    black = (changed == 0).float().mean((2, 3, 4))
    assert black.amax(0).tolist() == pytest.approx([0, 5 / 16, 0])


def test_the_default_type_of_torch_does_not_matter(x):
    expected = chains(x, 2, operations=OPERATIONS, generator=generator())
    weights = dirichlet(32, 2, 1.0, CPU, generator())
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(chains(x, 2, operations=OPERATIONS, generator=generator()), expected)
        assert torch.equal(dirichlet(32, 2, 1.0, CPU, generator()), weights)
        assert mix(x.double(), expected, weights, weights[:, 0]).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_depth_is_one_to_three_or_as_given(monkeypatch):
    monkeypatch.setattr(chains_module, "_apply", lambda group, images, job: images + 1)  # counts
    x = torch.zeros(300, 3, 4, 4)
    counted = chains(x, 5, generator=generator())[..., 0, 0, 0].flatten()
    assert [round((counted == n).float().mean().item(), 1) for n in range(5)] == [0, 0.3, 0.3, 0.3, 0]
    assert (chains(x, 5, depth=5, generator=generator()) == 5).all()


def test_chains_repeat_with_their_generator_and_leave_the_images_alone(x):
    before = x.clone()
    first, again, other = (chains(x, 3, operations=OPERATIONS, generator=generator(s)) for s in (5, 5, 6))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(x, before)


def test_an_odd_image_size_and_an_empty_batch_work():
    assert chains(torch.rand(3, 3, 7, 5), 2, generator=generator()).shape == (3, 2, 3, 7, 5)
    assert chains(torch.rand(0, 3, 8, 8), 2, generator=generator()).shape == (0, 2, 3, 8, 8)


def test_one_image_and_any_layout_are_changed_like_others(x):
    equalized = [chains(batch, 3, depth=1, operations=("equalize",), generator=generator()) for batch in (x[:2], x[:1])]
    assert torch.equal(equalized[0][:1], equalized[1])
    columns = x.to(memory_format=torch.channels_last)
    assert torch.equal(chains(columns, 1, generator=generator()), chains(x, 1, generator=generator()))
    assert not torch.equal(chains(columns, 1, generator=generator())[:, 0], x.mul(255).round().to(torch.uint8))


def test_an_unknown_operation_is_named():
    with pytest.raises(UserError, match=r"rotat.*rotate"):
        AugMix(operations=("rotat",))


def test_mix_is_the_weighted_sum_image_by_image(x):
    chained = torch.randint(0, 256, (32, 3, 3, 16, 16), dtype=torch.uint8, generator=generator())
    weights, share = dirichlet(32, 3, 1.0, x.device, generator()), torch.rand(32, generator=generator(2))
    mixed = mix(x, chained, weights, share)
    for i in range(32):
        blend = sum(weights[i, k] * chained[i, k] / 255 for k in range(3))
        torch.testing.assert_close(mixed[i], (1 - share[i]) * x[i] + share[i] * blend, atol=1e-6, rtol=0)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_dirichlet_has_its_mean_and_variance(alpha):
    drawn = dirichlet(20_000, 3, alpha, CPU, generator())
    torch.testing.assert_close(drawn.sum(1), torch.ones(20_000))
    torch.testing.assert_close(drawn.mean(0), torch.full((3,), 1 / 3), atol=0.01, rtol=0)
    variance = (1 / 3) * (2 / 3) / (3 * alpha + 1)
    assert drawn[:, 0].var().item() == pytest.approx(variance, rel=0.05)
    beta = dirichlet(20_000, 2, alpha, CPU, generator(1))[:, 0]
    assert beta.std().item() == pytest.approx(1 / math.sqrt(4 * (2 * alpha + 1)), rel=0.03)


def test_the_nine_operations_are_drawn_equally_often():
    """At severity 0.1 only autocontrast and equalize change a picture with a narrow histogram visibly."""
    x = (0.4 + 0.2 * torch.rand(900, 3, 32, 32, generator=generator())).clamp(0, 1)
    once = chains(x, 1, depth=1, severity=0.1, operations=NINE, generator=generator(3))[:, 0]
    spread = once.flatten(1).amax(1).int() - once.flatten(1).amin(1).int()
    assert (spread > 200).float().mean() == pytest.approx(2 / 9, abs=0.05)
