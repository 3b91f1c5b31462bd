"""PRIME's transforms against their definitions, value by value."""

import math

import numpy as np
import pytest
import torch

from dign.augment import primitives
from dign.augment.chains import dirichlet
from dign.augment.primitives import (
    MODES,
    _arcsine,
    _draw_jobs,
    color_randomly,
    deform_randomly,
    displacements,
    filter_randomly,
    mix_primitives,
    visible_modes,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def x():
    return torch.rand(3, 3, 8, 8, generator=generator())


def test_a_filter_is_a_convolution_with_one_kernel_for_all_channels(x):
    noise, sigma = torch.randn(3, 3, 3, generator=generator()), torch.tensor([0.0, 0.1, 3.0])
    made = filter_randomly(x, sigma, noise)
    for i in range(3):
        kernel = sigma[i] * noise[i]
        kernel[1, 1] += 1
        plain = torch.nn.functional.conv2d(x[i][:, None], kernel[None, None], padding=1)[:, 0].clamp(0, 1)
        torch.testing.assert_close(made[i], plain)


def test_the_spectrum_of_a_filtered_image_is_the_product_of_the_spectra(x):
    """Away from the edges and from clipping: a weak filter on an image with a black border."""
    image = torch.zeros(1, 3, 12, 12)
    image[..., 3:9, 3:9] = 0.4 + 0.2 * x[:1, :, :6, :6]
    noise = torch.randn(1, 3, 3, generator=generator()).abs()
    made = filter_randomly(image, torch.tensor([0.03]), noise)
    kernel = torch.zeros(12, 12)
    for row in range(3):
        for column in range(3):  # the convolution of networks: the kernel turned by half a turn
            kernel[1 - row, 1 - column] = 0.03 * noise[0, row, column] + (row == column == 1)
    torch.testing.assert_close(
        torch.fft.fft2(made), torch.fft.fft2(image) * torch.fft.fft2(kernel), atol=1e-4, rtol=1e-4
    )


def test_displacements_are_the_sum_of_their_modes():
    noise, size = torch.randn(2, 2, 6, 6, generator=generator()), 8
    cut, warmth = torch.tensor([2.0, 5.0]), torch.tensor([0.3, 0.9])
    made = displacements((size, size), cut, warmth, noise)
    for image in range(2):
        most = int(cut[image])
        lowest = 1 / (math.pi * size**2 * math.log(most))
        highest = max(lowest, 4 / (math.pi**3 * most**2 * math.log(most)))
        temperature = lowest + warmth[image].item() * (highest - lowest)
        for row, column in ((0, 3), (3, 4), (6, 1)):
            y, x = row / (size - 1), column / (size - 1)
            for axis in range(2):
                total = 0.0
                for i in range(1, most + 1):
                    for j in range(1, most + 1):
                        if math.hypot(i, j) < most + 0.5:
                            c = noise[image, axis, i - 1, j - 1].item() / math.hypot(i, j)
                            total += c * math.sin(math.pi * i * y) * math.sin(math.pi * j * x)
                expected = math.sqrt(temperature) * size * total
                assert made[image, axis, row, column].item() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("size", "cut"), [((5, 9), 100), ((8, 8), 20), ((6, 6), 4), ((3, 102), 100), ((2, 4), 3)])
def test_modes_that_look_alike_are_drawn_together_and_the_distribution_is_the_same(size, cut):
    """Displacements are linear in normal numbers: all is said by how those of two pixels vary together."""
    shape = visible_modes(size)
    basis = torch.eye(math.prod(shape), dtype=torch.float64).view(-1, 1, *shape).expand(-1, 2, -1, -1)
    count = len(basis)
    made = displacements(size, torch.full((count,), float(cut), dtype=torch.float64), torch.zeros(count), basis)[:, 0]
    found = torch.einsum("nhw,nk->hwk", made, made[:, size[0] // 2, :])  # with every pixel of a row
    temperature = 1 / (math.pi * max(size) ** 2 * math.log(cut + 1e-6))
    modes = torch.arange(1, MODES + 1, dtype=torch.float64)
    down, across = (torch.sin(math.pi * torch.linspace(0, 1, n, dtype=torch.float64)[:, None] * modes) for n in size)
    radius = (modes[:, None].square() + modes.square()).sqrt()
    variance = torch.where(radius < cut + 0.5, radius**-2, 0.0)
    fixed = down[size[0] // 2]
    expected = torch.einsum("hi,i,ij,wj,kj->hwk", down, fixed, variance, across, across)
    torch.testing.assert_close(found, temperature * max(size) ** 2 * expected, atol=1e-9, rtol=1e-6)


def test_a_deformed_image_is_the_image_at_the_displaced_positions(x):
    noise = torch.randn(3, 2, 6, 6, generator=generator())
    cut, warmth = torch.tensor([2.0, 4.0, 50.0]), torch.tensor([1.0, 0.5, 0.0])
    made, moves = deform_randomly(x, cut, warmth, noise), displacements((8, 8), cut, warmth, noise)
    for i, row, column in ((0, 2, 3), (1, 5, 5), (2, 7, 0), (0, 4, 4)):
        across = min(max(column - moves[i, 0, row, column].item(), 0), 7)
        down = min(max(row - moves[i, 1, row, column].item(), 0), 7)
        left, top = min(int(across), 6), min(int(down), 6)
        u, v = across - left, down - top
        corner = x[i, :, top : top + 2, left : left + 2]
        expected = (1 - v) * ((1 - u) * corner[:, 0, 0] + u * corner[:, 0, 1]) + v * (
            (1 - u) * corner[:, 1, 0] + u * corner[:, 1, 1]
        )
        torch.testing.assert_close(made[i, :, row, column], expected, atol=1e-4, rtol=1e-4)


def test_a_color_curve_is_the_sum_of_its_sines(x):
    noise, cut = torch.randn(3, 3, MODES, generator=generator()), torch.tensor([1.0, 7.0, 100.0])
    temperature = torch.tensor([0.001, 0.0002, 0.00002])  # weak: nothing is clipped that the formula does not
    made = color_randomly(x, cut, temperature, noise)
    for i in range(3):
        modes = torch.arange(1, int(cut[i]) + 1, dtype=torch.float64)
        sines = torch.sin(math.pi * x[i].double()[..., None] * modes)
        added = (noise[i, :, : len(modes)].double()[:, None, None] * sines).sum(-1)
        expected = (x[i].double() + temperature[i].double().sqrt() * added).clamp(0, 1)
        torch.testing.assert_close(made[i].double(), expected, atol=2e-4, rtol=0)


def test_chains_are_one_to_three_transforms_each_as_likely():
    counts, rows = torch.zeros(3), torch.zeros(2000 * 3)
    for kind, job in _draw_jobs(2000, 3, None, torch.device("cpu"), generator()):
        counts[kind] += len(job.place)
        rows[job.place] += 1
        assert job.total == len(job.place) and torch.equal(job.own, torch.arange(job.total))
    assert (counts / counts.sum() - 1 / 3).abs().max() < 0.01
    assert [(rows == n).float().mean().item() for n in (1, 2, 3)] == pytest.approx([1 / 3] * 3, abs=0.02)


def test_the_arcsine_distribution():
    drawn = _arcsine(torch.rand(50_000, generator=generator()))
    assert drawn.mean().item() == pytest.approx(0.5, abs=0.01)
    assert drawn.var().item() == pytest.approx(1 / 8, abs=0.005)  # that of Beta(1/2, 1/2)


def test_mixtures_differ_stay_in_range_and_leave_the_batch_alone(x):
    before = x.clone()
    first, second = mix_primitives(x, 2, generator=generator())
    assert torch.equal(x, before) and not torch.allclose(first, second)
    for view in (first, second):
        assert view.shape == x.shape and view.min() >= -1e-6 and view.max() <= 1 + 1e-6
        assert all((view[i] - x[i]).abs().max() > 1e-3 for i in range(3))
    assert torch.equal(mix_primitives(x, 2, generator=generator())[0], first)


def test_a_mixture_is_the_sum_of_its_own_chains_with_their_weights(x, monkeypatch):
    """Transforms write the number of their row: chain w of view v of image n is row (n * views + v) * width + w."""
    views, width, drawn = 2, 3, []

    def number(rows, job):
        return torch.zeros_like(rows) + job.place.view(-1, 1, 1, 1) / 100

    def record(*arguments):
        drawn.append(dirichlet(*arguments))
        return drawn[-1]

    monkeypatch.setattr(primitives, "_TRANSFORMS", (number,) * 3)
    monkeypatch.setattr(primitives, "dirichlet", record)
    made = mix_primitives(x, views, width=width, generator=generator())
    weights, shares = drawn[:views], [each[:, 0] for each in drawn[views:]]
    assert [tuple(each.shape) for each in drawn] == [(3, width)] * views + [(3, 2)] * views
    for view in range(views):
        for image in range(3):
            mixture = sum(
                weights[view][image, chain].item() * ((image * views + view) * width + chain) / 100
                for chain in range(width)
            )
            share = shares[view][image].item()
            torch.testing.assert_close(made[view, image], (1 - share) * x[image] + share * mixture)


def test_strengths_are_drawn_as_published(monkeypatch):
    """Filters up to SIGMA, and color curves of 1 to 100 waves up to TEMPERATURE, evenly; displacements of 2 to 100."""
    seen = {}
    for name in ("filter_randomly", "deform_randomly", "color_randomly"):
        monkeypatch.setattr(primitives, name, lambda rows, *drawn, name=name: seen.setdefault(name, drawn))
    count = 20_000
    job = primitives._Job(torch.arange(count), count, torch.arange(count), generator())
    for transform in primitives._TRANSFORMS:
        transform(torch.zeros(count, 1, 3, 3), job)
    sigma = seen["filter_randomly"][0]
    assert sigma.max() < 4 and sigma.mean().item() == pytest.approx(2, abs=0.05)
    assert sigma.std().item() == pytest.approx(4 / math.sqrt(12), rel=0.03)
    cut, temperature = seen["color_randomly"][:2]
    assert torch.equal(cut.unique(), torch.arange(1, 101).float())
    assert cut.mean().item() == pytest.approx(50.5, abs=1) and temperature.max() < 0.01
    assert temperature.mean().item() == pytest.approx(0.005, rel=0.03)
    cut, warmth = seen["deform_randomly"][:2]
    assert (cut.min().item(), cut.max().item()) == (2, 100) and torch.equal(cut, cut.floor())
    numbers = np.random.default_rng(0)
    most = numbers.integers(3, 101, count)  # its bound
    plain = np.minimum(np.floor(2 + (most + 1 - 2) * numbers.beta(0.5, 0.5, count)), most)
    assert cut.mean().item() == pytest.approx(plain.mean().item(), abs=0.8)
    assert cut.std().item() == pytest.approx(plain.std().item(), rel=0.04)
    assert warmth.mean().item() == pytest.approx(0.5, abs=0.01) and warmth.var().item() == pytest.approx(
        1 / 8, abs=0.005
    )
