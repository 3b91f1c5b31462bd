"""3x3 convolutions on a CPU with a quarter of the multiplications: Winograd's F(4x4, 3x3), forwards and backwards.

The output is cut into tiles of 4x4 pixels, each of which comes from 6x6 pixels of the input. Tiles and kernels are
transformed by small constant matrices; there 36 products do what a convolution needs 144 for, and the sums over
channels are products of matrices, which processors are best at (Lavin and Gray, 2016). GPUs' libraries have this. On a
CPU PyTorch convolves directly, and that is most of the time of training.

Outcomes differ from those of a direct convolution by rounding, some 1e-5 of the largest.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional

# The transforms of Lavin and Gray for one dimension: of six pixels, of three weights (times 24), to four outputs.
INPUT = (
    (4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0), (0, 4, 0, -5, 0, 1),
)  # fmt: skip
KERNEL = ((6, 0, 0), (-4, -4, -4), (-4, 4, -4), (1, 2, 4), (1, -2, 4), (0, 0, 24))
OUTPUT = ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1))

FEWEST_CHANNELS, MOST_CHANNELS = 48, 1024
"""With fewer, the transforms take longer than the products that they save; with more, kernels fill the memory."""
FEWEST_TILES = 32
"""With fewer in a batch, it does not pay to transform the kernels."""
AT_ONCE = 120_000
"""Tiles times channels, for each thread: enough for fast products of matrices, few enough for the caches."""
TILES_PER_CHANNEL = 2
"""At most so many at once: more do not make the products faster, and fewer stay in the caches from step to step."""


def use_winograd(model: nn.Module) -> nn.Module:
    """Replace the model's 3x3 convolutions by Winograd's where it pays, in place; parameters and their names stay.

    This applies to those with stride 1, padding 1 and 48 to 1024 channels, and has an effect in float32 on a CPU.
    Derivatives of any order are there, but not `torch.func.vmap` and `torch.func.jvp`.

    Args:
        model: Any module. Its convolutions may already be used by an optimizer: the parameters are the same objects.

    Returns:
        The model; if it is itself a suitable convolution, the layer that takes its place.

    >>> model = use_winograd(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1)))
    >>> type(model[0]).__name__, list(model.state_dict())
    ('WinogradConv2d', ['0.weight', '0.bias'])
    """
    if _is_suitable(model):
        return _replace(model)
    replaced: dict[nn.Module, nn.Module] = {}  # a layer that is used twice stays one layer
    for parent in list(model.modules()):
        for name, layer in list(parent._modules.items()):
            if _is_suitable(layer):
                parent.register_module(name, replaced.setdefault(layer, _replace(layer)))
    return model


def _is_suitable(layer: nn.Module | None) -> TypeGuard[nn.Conv2d]:
    if type(layer) is not nn.Conv2d:
        return False
    shape = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
    plain = layer.groups == 1 and layer.padding_mode == "zeros"
    enough = min(layer.weight.shape[:2]) >= FEWEST_CHANNELS and max(layer.weight.shape[:2]) <= MOST_CHANNELS
    return plain and enough and shape == ((3, 3), (1, 1), (1, 1), (1, 1))


def _replace(layer: nn.Conv2d) -> WinogradConv2d:
    """A layer with the same parameters, hooks and mode."""
    made = WinogradConv2d(layer.in_channels, layer.out_channels, 3, padding=1, device="meta")  # draws no random numbers
    made.__dict__.update(layer.__dict__)
    return made


class WinogradConv2d(nn.Conv2d):
    """A 3x3 convolution that uses Winograd's algorithm where it applies and pays, else torch's."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        applies = x.device.type == "cpu" and x.dtype == weight.dtype == torch.float32
        if not applies or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling() or not _pays(x, weight):
            direct: Tensor = super()._conv_forward(x, weight, bias)
            return direct
        out = convolve(x, weight)
        return out if bias is None else out + bias.view(-1, 1, 1)


def _pays(x: Tensor, weight: Tensor) -> bool:
    """Whether there are enough tiles, and not too much of them lies beyond the image (measured)."""
    if x.dim() != 4 or x.shape[1] != weight.shape[1] or not x.numel():
        return False
    rows, columns = _tiles(x)
    filled = x.shape[2] * x.shape[3] / (16 * rows * columns)
    return len(x) * rows * columns >= FEWEST_TILES and filled >= 0.5 and filled * min(weight.shape[:2]) >= 40


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    """`functional.conv2d(x, weight, padding=1)` for kernels (K,C,3,3), as a tensor in channels-last."""
    out: Tensor = _Convolution.apply(x, weight)  # type: ignore[no-untyped-call]
    return out.permute(0, 3, 1, 2)


class _Convolution(torch.autograd.Function):
    """From images (N,C,H,W) to (N,H,W,K).

    Transformed, tiles are (36,tiles,C), kernels (36,C,K) and outputs (36,tiles,K).
    """

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        images, kernels, of = _channels_last(x), _transformed_kernels(weight), _transforms()
        (height, width), (rows, columns) = x.shape[2:], _tiles(x)
        out = x.new_empty(len(x), height, width, len(weight))
        for part in _parts(x, weight):
            products = torch.bmm(_transformed_tiles(images[part], rows, columns), kernels)
            tiles = _transform(of.output, products).view(4, 4, -1, rows, columns, len(weight))
            _write(out[part], tiles)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        (above,) = gradients
        wanted = ctx.needs_input_grad
        if torch.is_grad_enabled():  # this will be differentiated again
            return _differentiable_backward(above.permute(0, 3, 1, 2), x, weight, wanted)
        above, images, kernels, of = above.contiguous(), _channels_last(x), _transformed_kernels(weight), _transforms()
        (height, width), (rows, columns) = x.shape[2:], _tiles(x)
        for_x = x.new_empty(len(x), height, width, x.shape[1]) if wanted[0] else None
        for_kernels = torch.zeros_like(kernels) if wanted[1] else None
        for part in _parts(x, weight):
            tiles = functional.pad(above[part], (0, 0, 0, 4 * columns - width, 0, 4 * rows - height))
            tiles = tiles.view(-1, rows, 4, columns, 4, len(weight)).permute(2, 4, 0, 1, 3, 5)
            products = _transform(of.output.T, tiles).view(36, -1, len(weight))
            if for_kernels is not None:
                for_kernels.baddbmm_(_transformed_tiles(images[part], rows, columns).mT, products)
            if for_x is not None:
                _write(for_x[part], _overlaid(torch.bmm(products, kernels.mT), rows, columns))
        return (
            None if for_x is None else for_x.permute(0, 3, 1, 2),
            None if for_kernels is None else _kernels_back(for_kernels),
        )


def _differentiable_backward(
    above: Tensor, x: Tensor, weight: Tensor, wanted: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    ones = (1, 1)
    for_x, for_weight, _ = torch.ops.aten.convolution_backward(
        above, x, weight, None, ones, ones, ones, False, (0, 0), 1, (*wanted, False)
    )
    return for_x, for_weight


class _Transforms(NamedTuple):
    """The matrices for rows and columns in one: of 36 pixels, of 9 weights, to 16 outputs.

    One product with 36 columns has two to three times the operations of two with 6, and takes less time.
    """

    input: Tensor
    kernel: Tensor
    output: Tensor


@cache
def _transforms() -> _Transforms:
    matrices = [torch.tensor(rows, dtype=torch.float64, device="cpu") for rows in (INPUT, KERNEL, OUTPUT)]
    matrices[1] /= 24
    return _Transforms(*(torch.kron(matrix, matrix).float() for matrix in matrices))


def _transform(matrix: Tensor, squares: Tensor) -> Tensor:
    """A matrix (b,a) on squares of a numbers, the first two dimensions of `squares`: (b,the rest)."""
    return matrix @ squares.reshape(matrix.shape[1], -1)


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous()


def _tiles(x: Tensor) -> tuple[int, int]:
    """Rows and columns of tiles; the last ones may reach beyond the image."""
    return -(-x.shape[2] // 4), -(-x.shape[3] // 4)


def _parts(x: Tensor, weight: Tensor) -> list[slice]:
    """So many images at a time that the transformed ones stay in the caches."""
    (rows, columns), channels = _tiles(x), max(weight.shape[:2])
    tiles = min(AT_ONCE // channels, TILES_PER_CHANNEL * channels) * torch.get_num_threads()
    size = max(1, tiles // (rows * columns))
    return [slice(first, first + size) for first in range(0, len(x), size)]


def _transformed_tiles(images: Tensor, rows: int, columns: int) -> Tensor:
    height, width, channels = images.shape[1:]
    padded = functional.pad(images, (0, 0, 1, 4 * columns + 1 - width, 1, 4 * rows + 1 - height))
    image, row, column, channel = padded.stride()
    around = (6, 6, len(images), rows, columns, channels)
    pixels = padded.as_strided(around, (row, column, image, 4 * row, 4 * column, channel))
    return _transform(_transforms().input, pixels).view(36, -1, channels)


def _overlaid(transformed: Tensor, rows: int, columns: int) -> Tensor:
    """The transpose of `_transformed_tiles`: tiles go back into the image, where each overlaps its neighbors."""
    channels = transformed.shape[2]
    pixels = _transform(_transforms().input.T, transformed).view(6, 6, -1, rows, columns, channels)
    pixels[4, :, :, :-1] += pixels[0, :, :, 1:]
    pixels[1, :, :, 1:] += pixels[5, :, :, :-1]
    pixels[:, 4, :, :, :-1] += pixels[:, 0, :, :, 1:]
    pixels[:, 1, :, :, 1:] += pixels[:, 5, :, :, :-1]
    return pixels[1:5, 1:5]


def _write(images: Tensor, tiles: Tensor) -> None:
    """Tiles (4,4,N,rows,columns,C) to their places in images (N,H,W,C), without what reaches beyond them."""
    _, _, n, rows, columns, channels = tiles.shape
    (height, width), whole = images.shape[1:3], (4 * rows, 4 * columns)
    placed = images if (height, width) == whole else images.new_empty(n, *whole, channels)  # it stays in the caches
    placed.view(n, rows, 4, columns, 4, channels).copy_(tiles.permute(2, 3, 0, 4, 1, 5))
    if placed is not images:
        images.copy_(placed[:, :height, :width])


def _transformed_kernels(weight: Tensor) -> Tensor:
    outputs, inputs = weight.shape[:2]
    return _transform(_transforms().kernel, weight.permute(2, 3, 1, 0)).view(36, inputs, outputs)


def _kernels_back(transformed: Tensor) -> Tensor:
    """The transpose of `_transformed_kernels`."""
    weights = _transform(_transforms().kernel.T, transformed).view(3, 3, *transformed.shape[1:])
    return weights.permute(3, 2, 0, 1)
