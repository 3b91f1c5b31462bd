"""The outputs of the published generator: equal where no chance is involved, alike in every statistic where it is."""

import itertools

import pytest
import torch
from torch import Tensor

from dign.corruptions import NAMES, SEVERITIES, corrupt, frost_source
from dign.corruptions.blur import blur_along_lines
from dign.corruptions.frosting import _resize, frost_pictures
from dign.corruptions.settings import get_parameters

CERTAIN = (
    "gaussian_blur",
    "defocus_blur",
    "zoom_blur",
    "contrast",
    "brightness",
    "saturate",
    "jpeg_compression",
    "pixelate",
)
RANDOM = tuple(name for name in NAMES if name not in CERTAIN)
DRAWS = 60
needs_photographs = pytest.mark.skipif(frost_source() != "photographs", reason="needs imagecorruptions' photographs")


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_corruptions_without_chance_equal_the_published_ones(reference, name: str, severity: int) -> None:
    expected = reference[name][severity - 1]
    made = corrupt(reference["clean"][: len(expected)], name, severity, profile="cifar")
    off = (made.int() - expected.int()).abs()
    assert int(off.max()) <= 1
    assert float((off == 0).float().mean()) > 0.98  # the rest: a float64 rounding error right at a whole number


@pytest.mark.parametrize("severity", SEVERITIES)
def test_some_angle_gives_each_published_motion_blur(reference, severity: int) -> None:
    angles = torch.arange(-45, 45.01, 0.25, dtype=torch.float64)
    for clean, expected in zip(reference["clean"][:4], reference["motion_blur"][severity - 1], strict=False):
        copies = clean.expand(len(angles), -1, -1, -1).contiguous()
        made = blur_along_lines(copies, *get_parameters("motion_blur", severity, "cifar"), angles)
        within = ((made.int() - expected.int()).abs() <= 1).float().mean(dim=(1, 2, 3))
        assert float(within.max()) > 0.99


@needs_photographs
def test_some_piece_of_a_photograph_gives_each_published_frost(reference) -> None:
    kept, added, scale = get_parameters("frost", 3, "cifar")
    for clean, expected in zip(reference["clean"][:2], reference["frost"][2], strict=False):
        best = 0.0
        for photograph in frost_pictures("photographs"):
            pieces = _resize(photograph, scale, 32, 32).double().unfold(1, 32, 1).unfold(2, 32, 1)[..., ::5, ::5]
            pieces = pieces.permute(1, 2, 0, 3, 4).flatten(0, 1)
            made = (clean[:, ::5, ::5] * kept + pieces * added).clamp(0, 255).floor()
            within = ((made - expected[:, ::5, ::5]).abs() <= 1).float().mean(dim=(1, 2, 3))
            best = max(best, float(within.max()))
        assert best > 0.99


def statistics(clean: Tensor, corrupted: Tensor) -> Tensor:
    """Mean, deviation, share of changed values, channel correlations and radial spectrum of the change.

    clean (n,3,32,32), corrupted (...,n,3,32,32) -> (...,12)
    """
    change = corrupted.double() - clean.double()
    over = (-4, -3, -2, -1)
    rows = change.movedim(-3, -4).flatten(-3)
    rows = rows - rows.mean(-1, keepdim=True)
    covariance = rows @ rows.mT
    scale = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
    correlation = covariance / (scale[..., None] * scale[..., None, :]).clamp(min=1e-9)
    power = torch.fft.fft2(change).abs().square().mean(dim=(-4, -3))
    frequency = torch.hypot(torch.fft.fftfreq(32)[:, None], torch.fft.fftfreq(32))
    edges = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.71)
    bands = [
        power[..., (frequency >= low) & (frequency < high)].mean(-1).log() for low, high in itertools.pairwise(edges)
    ]
    pairs = [correlation[..., 0, 1], correlation[..., 0, 2], correlation[..., 1, 2]]
    return torch.stack([change.mean(over), change.std(over), (change != 0).double().mean(over), *pairs, *bands], dim=-1)


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs_photographs if n == "frost" else ()) for n in RANDOM])
def test_random_corruptions_have_the_published_statistics(reference, name: str) -> None:
    """The reference is one draw; ours are many. In units of the spread of draws, its statistics must be a draw's."""
    clean = reference["clean"]
    scores = []
    for severity in SEVERITIES:
        copies = clean.repeat(DRAWS, 1, 1, 1)
        ours = statistics(clean, corrupt(copies, name, severity, profile="cifar").unflatten(0, (DRAWS, -1)))
        theirs = statistics(clean, reference[name][severity - 1])
        spread = ours.std(dim=0)
        same = (theirs - ours.mean(dim=0)).abs() < 1e-9
        scores.append(torch.where(same, 0.0, (theirs - ours.mean(dim=0)) / spread.clamp(min=1e-9)))
    scores = torch.stack(scores)
    assert float(scores.abs().max()) < 5, scores
    assert float(scores.square().mean()) < 2.5, scores  # 1 if nothing but chance is at work
