import math

import pytest
import torch

from dign.augment.waves import add_waves, waves


def test_a_wave_pixel_by_pixel():
    size, frequency, angle, strength = 8, 3.0, -0.7, 6.4
    made = waves(torch.tensor([[frequency]]), torch.tensor([[angle]]), torch.tensor([[strength]]), (size, size))[0, 0]
    plain = torch.zeros(size, size, dtype=torch.float64)
    for row in range(size):
        for column in range(size):
            r, c = (-size / 2 + place * size / (size - 1) for place in (row, column))  # as published
            turn = 2 * math.pi * frequency / size * (r * math.cos(angle) + c * math.sin(angle))
            plain[row, column] = math.sin(turn - math.pi / 4)
    expected = plain / plain.norm() * strength * size / 32
    torch.testing.assert_close(made.double(), expected, atol=1e-5, rtol=1e-4)


def test_the_spectrum_of_a_wave_is_one_frequency():
    """That of its direction, up to half a cycle per pixel; the rest is leakage, as the wave does not close."""
    spectrum = torch.fft.fft2(waves(torch.full((1, 1), 6.0), torch.zeros(1, 1), torch.ones(1, 1), (32, 32)))[0, 0]
    energy = spectrum.abs().square()
    assert energy[:, 1:].sum() < 1e-6 * energy.sum(), "it does not change along the columns"
    assert energy[6, 0] + energy[-6, 0] > 0.8 * energy.sum()


def test_waves_are_drawn_for_each_channel_and_their_strength_is_exponential():
    gray = torch.full((3000, 3, 8, 8), 0.5)
    added = add_waves(gray, 0.5, torch.Generator().manual_seed(0)) - 0.5
    strength = 32 * added.square().mean((-2, -1)).sqrt()
    assert strength.mean().item() == pytest.approx(0.5, rel=0.03)
    assert strength.std().item() == pytest.approx(0.5, rel=0.05)  # an exponential's is its mean
    assert (strength < 0.5 * math.log(2)).float().mean().item() == pytest.approx(0.5, abs=0.02)
    assert not torch.allclose(added[:, 0], added[:, 1])
    strong = add_waves(gray, 50.0)
    assert strong.min() >= 0 and strong.max() <= 1


def test_frequencies_and_directions_are_drawn_evenly(monkeypatch):
    """1 to the longer side in cycles per image, and 448 directions from -pi to 0."""
    seen = {}

    def record(frequency, angle, strength, image_size):
        seen.update(frequency=frequency, angle=angle)
        return torch.zeros(1)

    monkeypatch.setattr("dign.augment.waves.waves", record)
    add_waves(torch.zeros(40_000, 1, 4, 6), 1.0, torch.Generator().manual_seed(0))
    values, counts = seen["frequency"].unique(return_counts=True)
    assert values.tolist() == [1, 2, 3, 4, 5, 6]
    assert (counts / 40_000 - 1 / 6).abs().max() < 0.01
    steps = seen["angle"] / -math.pi * 447
    torch.testing.assert_close(steps, steps.round(), atol=1e-3, rtol=0)
    counts = steps.round().long().flatten().bincount()
    assert len(counts) == 448 and counts.min() > 45 and counts.max() < 145, "about 89 each"
