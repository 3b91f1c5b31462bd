"""Noise made in the frequency domain, against the published definition in plain NumPy."""

import numpy as np
import pytest
import torch

from dign.corruptions.c_bar.spectra import blue, blue_noise_sample, brownish, brownish_noise, noise_fields
from dign.corruptions.streams import Streams


def field_of(phases: np.ndarray, amplitude) -> np.ndarray:
    """The field that phases (N,N/2) give."""
    side = len(phases)
    y, x = np.mgrid[:side, :side] - side / 2
    phases = np.concatenate([phases, phases[::-1, ::-1]], axis=1)
    spectrum = np.roll(amplitude(np.hypot(x, y)) * np.exp(1j * phases), (side // 2, side // 2), axis=(0, 1))
    field = np.real(np.fft.ifft2(spectrum))
    return field / field.std()


@pytest.mark.parametrize("amplitude", [blue, brownish])
def test_a_field_is_the_inverse_transform_of_its_spectrum(recorder, amplitude):
    field = noise_fields((14, 14), 2, amplitude, recorder)[0]
    phases = 2 * np.pi * np.array(recorder.uniforms).reshape(2, 14, 7)
    for channel in range(2):
        np.testing.assert_allclose(field[channel].numpy(), field_of(phases[channel], amplitude), atol=1e-6)


def test_pixels_below_the_threshold_are_black(picture, recorder):
    made = blue_noise_sample(picture, 4.2, recorder)
    field = field_of(2 * np.pi * np.array(recorder.uniforms).reshape(14, 7), blue)
    assert torch.equal(made[0], picture[0] * torch.from_numpy(field > 0.3 * 4.2 - 2.5))


def test_brownish_noise_is_added_to_every_channel_anew(picture, array, recorder, check):
    made = brownish_noise(picture, 2.5, recorder)
    phases = 2 * np.pi * np.array(recorder.uniforms).reshape(3, 14, 7)
    fields = np.stack([field_of(part, brownish) for part in phases], axis=-1)
    check(made, array + 16.0 * fields)


@pytest.mark.parametrize("size", [(15, 15), (8, 21), (20, 9)])
def test_odd_and_oblong_sizes_have_fields_of_deviation_one(size):
    fields = noise_fields(size, 1, blue, Streams(0, "test", torch.arange(4)))
    assert fields.shape == (4, 1, *size)
    torch.testing.assert_close(fields.std((-2, -1), unbiased=False), torch.ones(4, 1, dtype=torch.float64))
