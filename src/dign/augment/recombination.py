"""Images put together from the amplitudes and phases, or the low and high frequencies, of two.

Of one image and its own augmented copy (single), or of two images of a batch (paired): APR (Chen et al., 2021) and
HybridAugment++ (Yucel et al., 2023). All take and return images (N,3,H,W) in [0,1]; `generator` is the source of all
random numbers, on the device of `x`.
"""

import torch
from torch import Tensor

from dign.augment.chains import chains
from dign.augment.pairs import partners
from dign.augment.spectra import low_frequencies, recombine
from dign.core.image_rng import uniform
from dign.core.pixels import to_float


def apply_one_operation(x: Tensor, severity: float, generator: torch.Generator | None) -> Tensor:
    """Each image after one of AugMix's nine operations.

    >>> apply_one_operation(torch.rand(2, 3, 8, 8), 3.0, None).shape
    torch.Size([2, 3, 8, 8])
    """
    return to_float(chains(x, 1, depth=1, severity=severity, generator=generator)[:, 0], x.dtype)


def recombine_single(
    x: Tensor, probability: float, severity: float = 3.0, generator: torch.Generator | None = None
) -> Tensor:
    """Each image after one operation; some with the amplitudes, or the phases, of a copy after a second one.

    Args:
        x: Images.
        probability: How many of the images exchange amplitudes or phases with their copy.
        severity: Bound of the operations' levels.
        generator: The source of all random numbers.

    >>> recombine_single(torch.rand(2, 3, 8, 8), 0.5).shape
    torch.Size([2, 3, 8, 8])
    """
    first = apply_one_operation(x, severity, generator)
    second = apply_one_operation(first, severity, generator)
    chosen, keeps_phase = _draw(x, probability, 0.5, generator=generator)
    mixed = recombine(torch.where(keeps_phase, first, second), torch.where(keeps_phase, second, first))
    return torch.where(chosen, mixed.clamp_(0, 1), first)


def recombine_paired(
    x: Tensor, probability: float, generator: torch.Generator | None = None, *, turn: float = 0.5
) -> Tensor:
    """Each image, or some with the amplitudes of their partner; not clipped.

    >>> recombine_paired(torch.rand(2, 3, 8, 8), 0.6).shape
    torch.Size([2, 3, 8, 8])
    """
    (chosen,) = _draw(x, probability, generator=generator)
    return torch.where(chosen, recombine(x, partners(x, turn)), x)


def hybrid_single(
    x: Tensor, probability: float, severity: float = 3.0, generator: torch.Generator | None = None
) -> Tensor:
    """Each image after one operation; some with the low frequencies of a copy after a second one, or the high ones.

    The low frequencies go through `recombine_single` before.

    >>> hybrid_single(torch.rand(2, 3, 8, 8), 0.5).shape
    torch.Size([2, 3, 8, 8])
    """
    first = apply_one_operation(x, severity, generator)
    second = apply_one_operation(first, severity, generator)
    chosen, of_first = _draw(x, probability, 0.5, generator=generator)
    low = low_frequencies(torch.where(of_first, first, second))
    other = torch.where(of_first, second, first)
    low = recombine_single(low, 0.5, severity, generator)  # that of the other image would not be used
    return torch.where(chosen, (low + other - low_frequencies(other)).clamp_(0, 1), first)


def hybrid_paired(x: Tensor, probability: float, generator: torch.Generator | None = None) -> Tensor:
    """Each image, or some with the high frequencies of their partner, and low ones after `recombine_paired`.

    The amplitudes are those of another partner, a quarter of the batch on. The result is not clipped.

    >>> hybrid_paired(torch.rand(4, 3, 8, 8), 0.6).shape
    torch.Size([4, 3, 8, 8])
    """
    (chosen,) = _draw(x, probability, generator=generator)
    low = low_frequencies(x)
    mixed = recombine_paired(low, probability, generator, turn=0.25) + partners(x - low)
    return torch.where(chosen, mixed, x)


def _draw(x: Tensor, *probabilities: float, generator: torch.Generator | None) -> list[Tensor]:
    """For each probability one bool per image, (N,1,1,1)."""
    draw = uniform(len(x), len(probabilities), generator=generator, device=x.device, dtype=torch.float32)
    return [(draw[:, i] < share).view(-1, 1, 1, 1) for i, share in enumerate(probabilities)]
