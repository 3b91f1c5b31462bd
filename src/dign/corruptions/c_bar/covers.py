"""Four corruptions that cover parts of the picture: gray squares, gray lines, and bright stars."""

import math

import torch
from torch import Tensor

from dign.corruptions.c_bar.grids import draw_uniform, pixel_places
from dign.corruptions.streams import Streams

_GRAY = 128
_WHITE = 255
_FEWEST_RAYS, _MOST_RAYS = 50, 199
_STARS = 5


def checkerboard_cutout(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Gray out a share of 0.1 level of the black squares of a checkerboard, which is turned and scaled at random.

    Images and result (N,C,H,W) uint8, as everywhere below; `level` is the severity on the authors' scale, 0 to 10.
    """
    height, width = images.shape[-2:]
    angle, scale = draw_uniform(streams, 2)
    angle, side = angle * 2 * math.pi, ((0.1 + 0.15 * scale) * min(height, width)).clamp_(min=1)
    rows, columns = pixel_places(images)
    u = (angle.cos() * rows + angle.sin() * columns) / side
    v = (angle.cos() * columns - angle.sin() * rows) / side
    most = 2 * math.ceil(math.hypot(height, width) / max(0.1 * min(height, width), 1)) + 1  # squares in a row
    grayed = streams.uniform(most * most) < 0.1 * level
    square = u.to(torch.int64).remainder_(most) * most + v.to(torch.int64).remainder_(most)
    black = u.floor().remainder_(2) == v.floor().remainder_(2)
    covered = black & grayed.gather(1, square.flatten(1)).view(square.shape)
    return images.masked_fill(covered[:, None], _GRAY)


def lines(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Draw int(0.1 level side) gray, anti-aliased lines, two sides long, through random points.

    A line covers the pixels at less than one pixel from it, by one minus their distance.
    """
    height, width = images.shape[-2:]
    side = min(height, width)
    count = int(0.1 * level * side)
    if count == 0:
        return images
    base, variation = (part.view(-1, 1) for part in streams.uniform(2).to(torch.float64).unbind(1))
    down, across, turn = streams.uniform(3 * count).to(torch.float64).view(-1, 3, count).unbind(1)
    angle = 2 * math.pi * (base + (0.1 + 0.9 * variation) * (turn - 0.5))
    middle, reach = (down * height, across * width), (angle.cos() * side, angle.sin() * side)
    ends = [(at + sign * length).trunc_() for sign in (-1, 1) for at, length in zip(middle, reach, strict=True)]
    top, left, bottom, right = (end.to(torch.float32).unsqueeze(-1).unsqueeze(-1) for end in ends)
    rows, columns = (part.to(torch.float32) for part in pixel_places(images))
    out = images.to(torch.float32)
    for line in range(count):
        y, x, run, rise = rows - top[:, line], columns - left[:, line], right - left, bottom - top
        run, rise = run[:, line], rise[:, line]
        length = torch.hypot(run, rise).clamp_(min=1)
        cover = (1 - (x * rise - y * run).abs_().div_(length)).clamp_(min=0)
        along = torch.where(rise.abs() > run.abs(), y * rise.sign(), x * run.sign())
        cover = cover.mul_((along >= 0) & (along <= torch.maximum(rise.abs(), run.abs())))[:, None]
        out = out.mul_(1 - cover).add_(cover.mul_(_GRAY)).floor_()
    return out.to(torch.uint8)


def sparkles(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Draw five white stars with rays of random lengths, on average 0.01 level sides."""
    height, width = images.shape[-2:]
    radius = 0.01 * level * min(height, width)
    draws = streams.uniform(3 * _STARS).to(torch.float64)
    lengths = streams.normal(_STARS * _MOST_RAYS).view(-1, _STARS, _MOST_RAYS).to(torch.float64)
    lengths = lengths.mul_(0.25 * radius).add_(radius).clamp_(min=1)
    out = images.to(torch.float64)
    for star in range(_STARS):
        center = (draws[:, star] * height, draws[:, _STARS + star] * width)
        weight = _star(images, center, draws[:, 2 * _STARS + star], lengths[:, star], 1.0)
        out.add_(weight.mul(_WHITE - out))
    return out.clamp_(0, 255).to(torch.uint8)


def inverse_sparkles(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Leave only a star-shaped window of the picture, with rays of a quarter side, and white around it."""
    height, width = images.shape[-2:]
    radius = 0.25 * min(height, width)
    draws = streams.uniform(3).to(torch.float64)
    lengths = streams.normal(_MOST_RAYS).to(torch.float64).mul_(0.25 * radius).add_(radius)
    center = ((0.25 + 0.5 * draws[:, 0]) * height, (0.25 + 0.5 * draws[:, 1]) * width)
    weight = _star(images, center, draws[:, 2], lengths, 0.13 * level)
    return weight.mul(images.to(torch.float64) - _WHITE).add_(_WHITE).clamp_(0, 255).to(torch.uint8)


def _star(images: Tensor, center: tuple[Tensor, Tensor], rays: Tensor, lengths: Tensor, exponent: float) -> Tensor:
    """(N,1,H,W) float64 in [0,1]: the light of a star, brightest along its rays.

    Args:
        images: (N,C,H,W), for their size.
        center: Row and column (N,).
        rays: (N,) in (0,1), for 50 to 199 of them.
        lengths: (N,199) of the rays in pixels; between two rays the length goes from one to the other.
        exponent: Of the decrease with the squared distance.
    """
    rows, columns = pixel_places(images)
    down, across = rows - center[0].view(-1, 1, 1), columns - center[1].view(-1, 1, 1)
    count = (rays * (_MOST_RAYS - _FEWEST_RAYS + 1)).floor_().add_(_FEWEST_RAYS).view(-1, 1, 1)
    ray = torch.atan2(across, down).add_(math.pi).mul_(count * (0.5 / math.pi))
    first = ray.floor()
    fraction = ray.sub_(first)
    here, there = (lengths.gather(1, (first + step).remainder_(count).to(torch.int64).flatten(1)) for step in (0, 1))
    length = (here + fraction.flatten(1) * (there - here)).view(fraction.shape)
    light = length.square_().div_(down.square() + across.square() + 1e-4)
    light = light if exponent == 1 else light.pow_(exponent)
    return light.mul_(1 - (fraction - 0.5).square_()).clamp_(0, 1)[:, None]
