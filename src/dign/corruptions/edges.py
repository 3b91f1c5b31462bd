"""What the water of `spatter` is made from: edges, distances to them, and equalized gray values.

All of it is whole-number arithmetic on batches (N,H,W), and runs on any device.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dign.corruptions.linear import pad

_LOW, _HIGH = 50, 150
_TANGENT = 13573  # tan(22.5 degrees) * 2^15
_STRAIGHT, _DIAGONAL, _KNIGHT = 65536, 91750, 143976  # 1, 1.4 and 2.1969 times 2^16: lengths of chess moves
_MOVES = (
    *((down, across, _KNIGHT) for down, across in ((1, 2), (1, -2), (2, 1), (2, -1))),
    *((1, across, _DIAGONAL) for across in (1, -1)),
    (1, 0, _STRAIGHT),
    (0, 1, _STRAIGHT),
)
_LONGEST_CHAIN = 64


def canny(layer: Tensor) -> Tensor:
    """Canny edges (thresholds 50 and 150, 3x3 Sobel, |gx| + |gy|) of (N,H,W) uint8, as booleans."""
    across, down = _sobel(layer)
    strength = across.abs() + down.abs()
    candidate = (strength > _LOW) & _is_ridge(strength, across, down)
    return _connected(candidate & (strength > _HIGH), candidate)


def _sobel(layer: Tensor) -> tuple[Tensor, Tensor]:
    x = pad(layer.to(torch.int16), (1, 1, 1, 1), "nearest")
    smooth_down = x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]
    smooth_across = x[:, :, :-2] + 2 * x[:, :, 1:-1] + x[:, :, 2:]
    return smooth_down[:, :, 2:] - smooth_down[:, :, :-2], smooth_across[:, 2:] - smooth_across[:, :-2]


def _is_ridge(strength: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Whether the gradient is largest along its own direction, in steps of 45 degrees; beyond the image it is 0."""
    s = F.pad(strength, (1, 1, 1, 1))
    height, width = strength.shape[-2:]

    def beside(rows: int, columns: int) -> Tensor:
        return s[:, 1 + rows : 1 + rows + height, 1 + columns : 1 + columns + width]

    rise, run = down.abs().to(torch.int32) << 15, across.abs().to(torch.int32)
    flat = run * _TANGENT
    horizontal = rise < flat
    vertical = rise > flat.add_(run.bitwise_left_shift_(16))
    falling = (across ^ down) < 0
    on_row = (strength > beside(0, -1)) & (strength >= beside(0, 1))
    on_column = (strength > beside(-1, 0)) & (strength >= beside(1, 0))
    on_rising = (strength > beside(-1, -1)) & (strength > beside(1, 1))
    on_falling = (strength > beside(-1, 1)) & (strength > beside(1, -1))
    on_diagonal = (falling & on_falling) | (~falling & on_rising)
    return (horizontal & on_row) | (vertical & on_column) | (~(horizontal | vertical) & on_diagonal)


def _connected(strong: Tensor, candidate: Tensor) -> Tensor:
    """The candidates that touch, over up to `_LONGEST_CHAIN` others, a strong edge.

    Drops are cut off sharply, so nearly all of their edges are strong, and chains are short: 9 pixels is the longest
    among those of 180 images. Where asking costs nothing, on the CPU, the search ends when nothing more is found.
    """
    reached = strong
    for _ in range(_LONGEST_CHAIN):
        around = F.pad(reached, (1, 1, 1, 1))
        column = around[:, :-2] | around[:, 1:-1] | around[:, 2:]
        grown = (column[:, :, :-2] | column[:, :, 1:-1] | column[:, :, 2:]) & candidate
        if grown.device.type == "cpu" and torch.equal(grown, reached):
            break
        reached = grown
    return reached


def distance(edges: Tensor, limit: int) -> Tensor:
    """The length in 1/65536 pixel (N,H,W) int32 of the shortest way to an edge, at most `limit` pixels.

    A way consists of straight, diagonal and knight's moves (the 5x5 chamfer). A shortest one needs two kinds of moves,
    and may make all of one kind before those of the other. So the kinds are taken one after the other; up to n
    moves of a kind are up to n/2 of them after up to n/2, which takes as many steps as n has binary digits.
    """
    top = limit * 65536
    length = torch.full(edges.shape, top, dtype=torch.int32, device=edges.device).masked_fill_(edges, 0)
    moved = torch.empty_like(length)
    for down, across, cost in _MOVES:
        remaining = (top - 1) // cost
        step = 1
        while remaining:
            step = min(step, remaining)
            torch.add(length, cost * step, out=moved)
            _shorten(length, moved, down * step, across * step)
            remaining -= step
            step *= 2
    return length


def _shorten(length: Tensor, moved: Tensor, down: int, across: int) -> None:
    """Shorten the ways (N,H,W) where one that begins with a move, or with its opposite, is shorter; in place."""
    if down < length.shape[1] and abs(across) < length.shape[2]:
        for sign in (1, -1):
            here = _overlap(length, sign * down, sign * across)
            torch.minimum(here, _overlap(moved, -sign * down, -sign * across), out=here)


def _overlap(x: Tensor, down: int, across: int) -> Tensor:
    """The part of (N,H,W) that an image moved by (down, across) covers."""
    height, width = x.shape[-2:]
    return x[:, max(down, 0) : height + min(down, 0), max(across, 0) : width + min(across, 0)]


def box_sum(x: Tensor) -> Tensor:
    """Sums over 3x3 windows of (N,H,W), mirrored at the edges."""
    x = pad(x, (1, 1, 1, 1), "mirror")
    x = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    return x[:, :, :-2] + x[:, :, 1:-1] + x[:, :, 2:]


def emboss(x: Tensor) -> Tensor:
    """Correlate (N,H,W) with [[-2,-1,0],[-1,1,1],[0,1,2]], mirrored at the edges, limited to 0..255."""
    x = pad(x, (1, 1, 1, 1), "mirror")
    height, width = x.shape[1] - 2, x.shape[2] - 2
    total = torch.zeros_like(x[:, 1:-1, 1:-1])
    for down, across, weight in ((0, 0, -2), (0, 1, -1), (1, 0, -1), (1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 2)):
        total.add_(x[:, down : down + height, across : across + width], alpha=weight)
    return total.clamp_(0, 255)


def equalize(x: Tensor, levels: int) -> Tensor:
    """Spread the gray values of each image of (N,H,W), whole numbers below `levels`, evenly over 0..255."""
    flat = x.flatten(1).to(torch.int64)
    pixels = flat.shape[1]
    counts = torch.zeros((len(x), levels), dtype=torch.int64, device=x.device)
    counts.scatter_add_(1, flat, torch.ones_like(flat))
    first = (counts > 0).to(torch.uint8).argmax(dim=1, keepdim=True)
    lowest = counts.gather(1, first)
    scale = 255.0 / (pixels - lowest).clamp(min=1).to(torch.float32)
    spread = ((counts.cumsum(1) - lowest).clamp(min=0) * scale).round_().to(x.dtype)
    spread = torch.where(lowest == pixels, first.to(x.dtype), spread)  # a uniform image stays as it is
    return spread.gather(1, flat).view_as(x)
