"""Sequences of frames as in CIFAR-10-P: a picture that is perturbed a little more, or anew, from frame to frame.

They ask whether a model keeps to its answer, right or wrong, while the picture hardly changes. Lengths in pixels are
those published for a side of 32, and go with the side.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError, unknown_name
from dign.corruptions import linear, noise, weather
from dign.corruptions.blur import blur_along_lines
from dign.corruptions.c_bar.warps import bilinear_taps
from dign.corruptions.color import luma, paint
from dign.corruptions.streams import Streams

Frames = Iterator[Tensor]
FRAMES: dict[str, int] = {
    "gaussian_noise": 31,
    "shot_noise": 31,
    "motion_blur": 21,
    "zoom_blur": 31,
    "spatter": 31,
    "brightness": 31,
    "translate": 16,
    "rotate": 31,
    "tilt": 31,
    "scale": 31,
    "snow": 31,
}
"""Perturbation to the number of its frames."""
PERTURBATIONS: tuple[str, ...] = tuple(name for name in FRAMES if name != "snow")
"""The ten of the released CIFAR-10-P evaluation, which has spatter in the place of the paper's snow."""
NOISES: tuple[str, ...] = ("gaussian_noise", "shot_noise")
"""Frames of these are drawn anew: each is compared with the first, not with the one before."""
_SIDE = 32
_MIDDLE = 15


def make_frames(images: Tensor, name: str, *, seed: int = 0, first: int = 0) -> Frames:
    """Yield the frames of a perturbation, each a batch like `images`.

    Args:
        images: (N,3,H,W) or (N,1,H,W) uint8.
        name: One of `PERTURBATIONS`, or "snow".
        seed: Of the random numbers.
        first: Number of the first image in its data set, as of `dign.corrupt`.

    Raises:
        UserError: There is no such perturbation, or the images are not uint8.

    >>> frames = list(make_frames(torch.full((2, 3, 32, 32), 128, dtype=torch.uint8), "translate"))
    >>> len(frames), frames[0].shape
    (16, torch.Size([2, 3, 32, 32]))
    """
    if name not in FRAMES:
        raise unknown_name("perturbation", name, FRAMES)
    if images.dtype != torch.uint8 or images.dim() != 4:
        raise UserError(f"Frames are made of uint8 images (N,C,H,W), not of {images.dtype} {tuple(images.shape)}.")
    indices = torch.arange(first, first + len(images), device=images.device)
    return _MAKERS[name](images, Streams(seed, f"sequence/{name}", indices))


def _draws(function: Callable[[Tensor, float, Streams], Tensor], setting: float) -> Callable[[Tensor, Streams], Frames]:
    def make(images: Tensor, streams: Streams) -> Frames:
        yield images
        for _ in range(30):
            yield function(images, setting, streams)

    return make


def _motion_blur(images: Tensor, streams: Streams) -> Frames:
    scale = _scale(images)
    for frame in range(21):
        degrees = torch.full((len(images),), (frame - 20) * 9.0, device=images.device)
        yield blur_along_lines(images, 6 * scale, 1.8 * scale, degrees)


def _zoom_blur(images: Tensor, streams: Streams) -> Frames:
    total = images.to(torch.float32)
    yield images
    for frame in range(1, 31):
        total = total + _warp(images, _scaling(_size(images), 1 + 0.004 * frame))
        yield (total * (1 / (frame + 1)) + 1e-3).to(torch.uint8)


def _snow(images: Tensor, streams: Streams) -> Frames:
    height, width = images.shape[-2:]
    scale = _scale(images)
    layer = linear.zoom(streams.normal(height * width).view(-1, 1, height, width), 2.0).mul_(0.3).add_(0.05)
    layer = layer.mul_(layer >= 0.5).clamp_(0, 1).mul_(255).to(torch.uint8)
    x = images.to(torch.float32) * (1 / 255)
    pale = x * 0.85 + torch.maximum(x, luma(x) * 1.5 + 0.5) * 0.15
    for frame in range(31):
        degrees = torch.full((len(images),), frame * 4.0 - 150, device=images.device)
        flakes = blur_along_lines(layer, 10 * scale, 2 * scale, degrees).to(torch.float32) * (1 / 255)
        yield (pale + flakes + flakes.flip(2, 3)).clamp_(0, 1).mul_(255).to(torch.uint8)


def _spatter(images: Tensor, streams: Streams) -> Frames:
    """Drops of water that run down by 0.8 pixels a frame, and wash out."""
    height, width = images.shape[-2:]
    draws = streams.normal(height * width).view(-1, height, width)
    liquid = linear.gaussian_filter(draws, 1.75 * _scale(images)).mul_(0.265).add_(0.6)
    liquid = liquid * (liquid >= 0.7)
    x = images.to(torch.float32) * (1 / 255)
    color = _water_color(images.shape[1], images.device)
    for _ in range(31):
        drops = weather._water(liquid.clone()).mul_(0.6)[:, None]
        yield (x + drops * color).clamp_(0, 1).mul_(255).to(torch.uint8)
        above = torch.cat([torch.zeros_like(liquid[:, :1]), liquid[:, :-1]], dim=1)
        liquid = 0.2 * liquid + 0.8 * above


@lru_cache(maxsize=4)
def _water_color(channels: int, device: torch.device) -> Tensor:
    return paint((175 / 255, 238 / 255, 238 / 255), torch.empty((1, channels, 1, 1), device=device))


def _brightness(images: Tensor, streams: Streams) -> Frames:
    for frame in range(31):
        yield weather.brightness(images, (frame - _MIDDLE) * 0.015, streams)


def _translate(images: Tensor, streams: Streams) -> Frames:
    width = images.shape[-1]
    for frame in range(16):
        shift = round((frame - 7) * _scale(images))
        moved = torch.zeros_like(images)
        moved[..., max(shift, 0) : width + min(shift, 0)] = images[..., max(-shift, 0) : width - max(shift, 0)]
        yield moved


def _rotate(images: Tensor, streams: Streams) -> Frames:
    for frame in range(31):
        yield _round(_warp(images, _rotation(_size(images), frame - _MIDDLE)))


def _resize(images: Tensor, streams: Streams) -> Frames:
    for frame in range(31):
        yield _round(_warp(images, _scaling(_size(images), (70 + 2 * frame) / 100)))


def _tilt(images: Tensor, streams: Streams) -> Frames:
    for frame in range(31):
        yield _round(_warp(images, _perspective(_size(images), 0.75 * (frame - _MIDDLE))))


_MAKERS: dict[str, Callable[[Tensor, Streams], Frames]] = {
    "gaussian_noise": _draws(noise.gaussian_noise, 0.02),
    "shot_noise": _draws(noise.shot_noise, 700),
    "motion_blur": _motion_blur,
    "zoom_blur": _zoom_blur,
    "spatter": _spatter,
    "brightness": _brightness,
    "translate": _translate,
    "rotate": _rotate,
    "tilt": _tilt,
    "scale": _resize,
    "snow": _snow,
}


def _scale(images: Tensor) -> float:
    return min(images.shape[-2:]) / _SIDE


def _size(images: Tensor) -> tuple[int, int]:
    return images.shape[-2], images.shape[-1]


def _round(x: Tensor) -> Tensor:
    return x.round_().clamp_(0, 255).to(torch.uint8)


Places = tuple[np.ndarray, np.ndarray]
"""Row and column (H,W) at which each pixel is read."""


def _warp(images: Tensor, places: Places) -> Tensor:
    """Read (N,C,H,W) at places, linearly, black beyond the edges; float32."""
    height, width = images.shape[-2:]
    index, weights = _taps(places[0].tobytes(), places[1].tobytes(), height, width, images.device)
    flat = images.flatten(2)
    total = torch.zeros(flat.shape, dtype=torch.float32, device=images.device)
    for tap in range(4):
        total.add_(flat.index_select(2, index[tap]).to(torch.float32).mul_(weights[tap]))
    return total.view(images.shape)


@lru_cache(maxsize=512)
def _taps(rows: bytes, columns: bytes, height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(4,H*W): the pixels that each place reads, and their weights."""
    down, across = (torch.from_numpy(np.frombuffer(part).reshape(height, width).copy()) for part in (rows, columns))
    index, weights = bilinear_taps(down, across, height, width)
    flat = index.flatten(0, 1).T.contiguous(), weights.flatten(0, 1).T.contiguous().to(torch.float32)
    return flat[0].to(device), flat[1].to(device)


def _centered(size: tuple[int, int]) -> Places:
    height, width = size
    rows, columns = np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2
    return np.broadcast_to(rows[:, None], (height, width)), np.broadcast_to(columns, (height, width))


def _from_center(rows: np.ndarray, columns: np.ndarray) -> Places:
    height, width = rows.shape
    return rows + (height - 1) / 2, columns + (width - 1) / 2


def _scaling(size: tuple[int, int], factor: float) -> Places:
    rows, columns = _centered(size)
    return _from_center(rows / factor, columns / factor)


def _rotation(size: tuple[int, int], degrees: float) -> Places:
    """Clockwise, as seen."""
    rows, columns = _centered(size)
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return _from_center(cosine * rows - sine * columns, cosine * columns + sine * rows)


def _perspective(size: tuple[int, int], degrees: float) -> Places:
    """Turn the picture's plane about both of its axes, seen from a distance of its diagonal f.

    As published, the plane lies one pixel farther away: everything is smaller by f / (f + 1).
    """
    height, width = size
    angle, distance = math.radians(degrees), math.hypot(height, width)
    sine, cosine = math.sin(angle), math.cos(angle)
    to_space = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1], [0, 0, 1]])
    about_x = np.array([[1, 0, 0, 0], [0, cosine, -sine, 0], [0, sine, cosine, 0], [0, 0, 0, 1]])
    about_y = np.array([[cosine, 0, -sine, 0], [0, 1, 0, 0], [sine, 0, cosine, 0], [0, 0, 0, 1]])
    away = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, distance], [0, 0, 0, 1]])
    to_plane = np.array([[distance, 0, width / 2, 0], [0, distance, height / 2, 0], [0, 0, 1, 0]])
    back = np.linalg.inv(to_plane @ away @ about_x @ about_y @ to_space)
    rows, columns = np.mgrid[:height, :width]
    x, y, w = np.tensordot(back, np.stack([columns, rows, np.ones_like(rows)]), 1)
    return y / w, x / w
