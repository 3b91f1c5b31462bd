"""Amplitudes, phases, and low and high frequencies of images."""

import math

import torch
from torch import Tensor
from torch.nn import functional

SIGMA = 0.5
"""Of the Gaussian that separates low from high frequencies, 3x3 pixels."""


def recombine(phases: Tensor, amplitudes: Tensor) -> Tensor:
    """The images that have the phases of some and the amplitudes of others, each (N,C,H,W).

    The Fourier transform goes over channels, rows and columns, as published. Where an image has no amplitude it has no
    phase either, and the result has no amplitude. It is not clipped.

    >>> x = torch.rand(2, 3, 4, 4)
    >>> bool(torch.allclose(recombine(x, x), x, atol=1e-6))
    True
    """
    axes = (1, 2, 3)
    phase = torch.fft.rfftn(phases.float(), dim=axes).sgn()
    amplitude = torch.fft.rfftn(amplitudes.float(), dim=axes).abs()
    mixed: Tensor = torch.fft.irfftn(phase * amplitude, s=phases.shape[1:], dim=axes)
    return mixed.to(phases.dtype)


def low_frequencies(x: Tensor) -> Tensor:
    """Images after a Gaussian blur of 3x3 pixels, mirrored at the edges; what it takes away are the high frequencies.

    >>> low_frequencies(torch.full((1, 1, 4, 4), 0.5)).unique()
    tensor([0.5000])
    """
    side = math.exp(-0.5 / SIGMA**2)
    outer, inner = side / (1 + 2 * side), 1 / (1 + 2 * side)
    padded = functional.pad(x, (1, 1, 1, 1), mode="reflect")
    across = outer * (padded[..., :-2] + padded[..., 2:]) + inner * padded[..., 1:-1]
    return outer * (across[..., :-2, :] + across[..., 2:, :]) + inner * across[..., 1:-1, :]
