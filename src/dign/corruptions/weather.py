"""The five weather corruptions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dign.core.pixels import divide, to_float, truncate_to_uint8, whole_to_uint8
from dign.corruptions import edges, linear
from dign.corruptions.blur import blur_along_lines
from dign.corruptions.color import luma, paint, recolor
from dign.corruptions.frost import random_pieces
from dign.corruptions.streams import Streams

_WATER = (175 / 255, 238 / 255, 238 / 255)
_MUD = (63 / 255, 42 / 255, 20 / 255)
_FARTHEST = 20  # pixels; distances to an edge of the water count no further


def brightness(images: Tensor, amount: float, streams: Streams) -> Tensor:
    """HSV value + amount. Images and result (N,C,H,W) uint8, as everywhere below."""
    if images.shape[1] == 1:
        return truncate_to_uint8(to_float(images, torch.float64).add_(amount))
    return recolor(images, value=amount)


def frost(images: Tensor, setting: tuple[float, float, float], streams: Streams) -> Tensor:
    """kept * image + added * a random piece of a frost picture; setting: (kept, added, scale of the pictures)."""
    kept, added, scale = setting
    pieces = random_pieces(images.shape[1:], scale, streams).to(torch.float64)
    return whole_to_uint8(images.to(torch.float64).mul_(kept).add_(pieces.mul_(added)).clamp_(0, 255))


def fog(images: Tensor, setting: tuple[float, float], streams: Streams) -> Tensor:
    """x + thickness * a plasma fractal, scaled so that the brightest value stays about where it was."""
    thickness, decay = setting
    x = to_float(images, torch.float32)
    brightest = x.amax(dim=(1, 2, 3), keepdim=True)
    mist = plasma_fractal(images.shape[-2:], decay, streams)[:, None].mul_(thickness)
    return truncate_to_uint8(x.add(mist).mul_(brightest / (brightest + thickness)))


def plasma_fractal(size: Sequence[int], decay: float, streams: Streams) -> Tensor:
    """(N,H,W) float32 in [0,1]: a diamond-square fractal on a torus, whose side is a power of two, cut to size.

    Every new point is the mean of its four neighbors plus wobble^2 * U(-1,1); the wobble starts at 100 and is
    divided by `decay` each time the grid gets twice as fine.
    """
    side = 1 << (max(size) - 1).bit_length()
    grid = torch.zeros((len(streams), side, side), dtype=torch.float32, device=streams.device)
    changes = streams.uniform(side * side - 1).mul_(2).sub_(1)
    step, wobble = side, 100.0
    while step >= 2:
        half = step // 2
        count = (side // step) ** 2
        for_centers, for_tops, for_sides = (
            part.mul(wobble**2).view(-1, side // step, side // step)
            for part in changes[:, count - 1 : 4 * count - 1].split(count, dim=1)
        )
        corners = grid[:, ::step, ::step].contiguous()
        right, below = corners + corners.roll(-1, 2), corners + corners.roll(-1, 1)
        centers = (below + below.roll(-1, 2)).div_(4).add_(for_centers)
        grid[:, half::step, half::step] = centers
        grid[:, ::step, half::step] = right.add_(centers).add_(centers.roll(1, 1)).div_(4).add_(for_tops)
        grid[:, half::step, ::step] = below.add_(centers).add_(centers.roll(1, 2)).div_(4).add_(for_sides)
        step, wobble = half, wobble / decay
    grid -= grid.amin(dim=(1, 2), keepdim=True)
    return (grid / grid.amax(dim=(1, 2), keepdim=True))[:, : size[0], : size[1]]


def snow(images: Tensor, setting: tuple[float, ...], streams: Streams) -> Tensor:
    """Pale the image and add flakes driven by wind, once as they are and once rotated by half a turn.

    setting: (mean, std, zoom, threshold, radius, sigma, mix).
    """
    mean, std, factor, threshold, radius, sigma, mix = setting
    height, width = images.shape[-2:]
    layer = streams.normal(height * width).view(-1, 1, height, width)
    degrees = streams.uniform(1)[:, 0] * 90 - 135
    layer = linear.zoom(layer, factor) if factor != 1 else layer.to(torch.float64)
    layer = layer.mul_(std).add_(mean)
    layer = truncate_to_uint8(layer.masked_fill_(layer < threshold, 0))
    flakes = to_float(blur_along_lines(layer, radius, sigma, degrees), torch.float32)
    x = to_float(images, torch.float32)
    pale = torch.maximum(x, luma(x).mul(1.5).add_(0.5))
    x = x.mul_(mix).add_(pale.mul_(1 - mix))
    return truncate_to_uint8(x.add_(flakes).add_(flakes.flip(2, 3)))


def spatter(images: Tensor, setting: tuple[float, ...], streams: Streams) -> Tensor:
    """Drops of water (kind 0) or mud (kind 1) from a blurred, thresholded layer of noise.

    setting: (mean, std, sigma, threshold, strength, kind).
    """
    mean, std, sigma, threshold, strength, kind = setting
    height, width = images.shape[-2:]
    noise = streams.normal(height * width).view(-1, height, width)
    liquid = linear.gaussian_filter(noise, sigma).mul_(std).add_(mean)
    x = to_float(images, torch.float32)
    if kind == 0:
        drops = _water(liquid.masked_fill_(liquid < threshold, 0)).mul_(strength)[:, None]
        x = x.add_(drops * paint(_WATER, x))
    else:
        drops = linear.gaussian_filter((liquid > threshold).to(torch.float32), strength)
        drops = drops.masked_fill_(drops < 0.8, 0).to(torch.float32)[:, None]
        x = x.mul_(1 - drops).add_(drops * paint(_MUD, x))
    return truncate_to_uint8(x)


def _water(liquid: Tensor) -> Tensor:
    """The light on drops (N,H,W) float32, largest value 1: brightest where the relief of distances to edges rises."""
    layer = whole_to_uint8(liquid.mul_(255).clamp_(0, 255))
    distances = edges.distance(edges.canny(layer), _FARTHEST)
    depth = edges.box_sum(distances).div(9 * 65536, rounding_mode="floor")
    relief = edges.emboss(edges.equalize(depth, _FARTHEST + 1))
    relief = divide(edges.box_sum(relief).to(torch.float32), 9).round_()
    light = relief.mul_(layer.to(torch.float32))
    return light.div_(light.amax(dim=(1, 2), keepdim=True).clamp(min=1))
