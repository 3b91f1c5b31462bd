import numpy as np
import torch
from real_torchvision import need

from dign.augment.spectra import low_frequencies, recombine


def images(seed):
    return torch.rand(4, 3, 8, 6, generator=torch.Generator().manual_seed(seed))


def test_amplitudes_of_one_and_phases_of_the_other_by_numpy():
    first, second = images(0).double().numpy(), images(1).double().numpy()
    spectra = [np.fft.fftn(each, axes=(1, 2, 3)) for each in (first, second)]
    expected = np.fft.ifftn(np.abs(spectra[1]) * np.exp(1j * np.angle(spectra[0])), axes=(1, 2, 3))
    assert np.abs(expected.imag).max() < 1e-12
    np.testing.assert_allclose(recombine(images(0), images(1)).numpy(), expected.real, atol=1e-5)


def test_the_spectrum_of_the_result_is_what_it_was_made_of():
    mixed = recombine(images(0), images(1))
    found, phases, amplitudes = (torch.fft.fftn(each, dim=(1, 2, 3)) for each in (mixed, images(0), images(1)))
    torch.testing.assert_close(found.abs(), amplitudes.abs(), atol=1e-4, rtol=1e-4)
    strong = amplitudes.abs() > 0.1
    turn = (found * phases.conj()).angle().abs()[strong]  # between the two phases
    assert turn.max() < 1e-2


def test_an_image_without_waves_gets_no_others():
    flat = torch.full((1, 3, 8, 8), 0.5)
    assert torch.allclose(recombine(flat, images(0)[:1, :, :, :1].expand(1, 3, 8, 8)).std(), torch.zeros(()), atol=1e-5)


def test_low_frequencies_are_torchvision_s_gaussian_blur():
    functional = need("torchvision.transforms.functional", "torchvision")
    expected = functional.gaussian_blur(images(0), [3, 3], [0.5, 0.5])
    torch.testing.assert_close(low_frequencies(images(0)), expected, atol=1e-6, rtol=1e-5)
