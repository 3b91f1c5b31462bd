"""What is left in the convolutions of a step in bfloat16: each layer's rate, and two ways to need less.

python results/allout-cifar10/convolutions.py        one thread; milliseconds of processor time, medians of seven
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from dign.core.allocator import reuse_memory

# Channels in and out, and side, of the 3x3 layers; wide_fastnet's of 256 to 256 channels and side 8 is there twice.
FASTNET = ((24, 16, 31), (16, 16, 16), (16, 64, 16), (64, 64, 8), (64, 128, 8), (128, 128, 4))
WIDE_FASTNET = ((24, 64, 31), (64, 64, 16), (64, 256, 16), (256, 256, 8), (256, 256, 4))
STEPS = ((1000, FASTNET), (500, WIDE_FASTNET))
"""Images and as many noisy ones, together."""

# Winograd's F(2x2, 3x3) for one dimension, exact in bfloat16 but for the sums: of four pixels, of three weights (times
# 2), to two outputs.
INPUT = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
KERNEL = ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2))
OUTPUT = ((1, 1, 1, 0), (0, 1, -1, -1))
IMAGES_AT_ONCE = (8, 16, 32, 64)

HEAD = (
    "images",
    "channels",
    "pixels",
    "forwards",
    "gradient of the input",
    "gradient of the kernels",
    "the same, unfolded",
    "forwards by F(2x2,3x3)",
    "RMS error, relative to direct",
)


def main() -> None:
    torch.set_num_threads(1)
    reuse_memory()
    print(f"| {' | '.join(HEAD)} |")
    print("|---" * len(HEAD) + "|")
    for images, layers in STEPS:
        for layer in layers:
            print(f"| {' | '.join(measure(images, *layer))} |", flush=True)


def measure(images: int, inputs: int, outputs: int, side: int) -> list[str]:
    torch.manual_seed(0)
    x = draw(images, inputs, side, side)
    weight = draw(outputs, inputs, 3, 3) / (9 * inputs) ** 0.5
    above = draw(images, outputs, side, side)
    operations = 2 * 9 * images * inputs * outputs * side**2
    direct = [
        milliseconds(lambda: functional.conv2d(x, weight, padding=1)),
        milliseconds(lambda: backward(above, x, weight, of=0)),
        milliseconds(lambda: backward(above, x, weight, of=1)),
    ]
    unfolding = milliseconds(lambda: kernels_by_unfolding(above, x))
    if side % 2:
        fewer, error = "–", "–"  # its tiles are of two pixels
    else:
        fewer = f"{min(milliseconds(lambda part=part: by_winograd(x, weight, part)) for part in IMAGES_AT_ONCE):.1f}"
        error = f"{compare_errors(x[:32], weight):.1f}"
    rates = [f"{each:.1f} ({operations / each / 1e6:.0f} GFLOP/s)" for each in direct]
    return [str(images), f"{inputs} to {outputs}", f"{side}x{side}", *rates, f"{unfolding:.1f}", fewer, error]


def draw(*shape: int) -> Tensor:
    return torch.randn(shape).bfloat16().to(memory_format=torch.channels_last)


def milliseconds(run: Callable[[], object]) -> float:
    took = []
    for _ in range(9):  # the first two do not count: memory settles
        started = time.process_time()
        run()
        took.append(time.process_time() - started)
    return 1000 * statistics.median(took[2:])


def backward(above: Tensor, x: Tensor, weight: Tensor, of: int) -> object:
    ones, wanted = (1, 1), [each == of for each in range(3)]
    return torch.ops.aten.convolution_backward(above, x, weight, None, ones, ones, ones, False, (0, 0), 1, wanted)


def kernels_by_unfolding(above: Tensor, x: Tensor) -> Tensor:
    """The kernels' gradient (9 C, K) as products of matrices, of as many images at once as stay in the caches."""
    side, part = x.shape[2], max(1, 1600 // x.shape[2] ** 2)
    total = x.new_zeros(9 * x.shape[1], above.shape[1], dtype=torch.float32)
    for images, gradients in zip(x.permute(0, 2, 3, 1).split(part), above.permute(0, 2, 3, 1).split(part), strict=True):
        patches = windows(images, (3, 3), side, step=1).permute(2, 3, 4, 0, 1, 5).reshape(-1, 9 * x.shape[1])
        total += patches.T @ gradients.reshape(-1, above.shape[1])
    return total


def by_winograd(x: Tensor, weight: Tensor, part: int) -> Tensor:
    """`conv2d(x, weight, padding=1)` with 16 products instead of 36, in bfloat16 throughout."""
    to_tiles, to_kernels, to_outputs = (square(matrix, x.dtype) for matrix in (INPUT, KERNEL, OUTPUT))
    outputs, inputs = weight.shape[:2]
    kernels = (to_kernels @ weight.permute(2, 3, 1, 0).reshape(9, -1) / 4).view(16, inputs, outputs)
    images, side = x.permute(0, 2, 3, 1), x.shape[2]
    out = x.new_empty(len(x), side, side, outputs)
    for first in range(0, len(x), part):
        tiles = windows(images[first : first + part], (4, 4), side // 2, step=2).reshape(16, -1)
        products = torch.bmm((to_tiles @ tiles).view(16, -1, inputs), kernels)
        pixels = (to_outputs @ products.view(16, -1)).view(2, 2, -1, side // 2, side // 2, outputs)
        place = out[first : first + part].view(-1, side // 2, 2, side // 2, 2, outputs)
        place.copy_(pixels.permute(2, 3, 0, 4, 1, 5))
    return out.permute(0, 3, 1, 2)


def windows(images: Tensor, size: tuple[int, int], count: int, step: int) -> Tensor:
    """Views of padded images (N,H,W,C): (rows, columns of a window, N, windows down, windows across, C)."""
    padded = functional.pad(images, (0, 0, 1, 1, 1, 1))
    image, row, column, channel = padded.stride()
    shape = (*size, len(images), count, count, images.shape[3])
    return padded.as_strided(shape, (row, column, image, step * row, step * column, channel))


def square(matrix: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> Tensor:
    """The two-dimensional transform as one matrix."""
    one = torch.tensor(matrix, dtype=dtype)
    return torch.kron(one, one)


def compare_errors(x: Tensor, weight: Tensor) -> float:
    """Root mean squared errors against float64: Winograd's, as a multiple of the direct convolution's."""
    exact = functional.conv2d(x.double(), weight.double(), padding=1)
    ways = (by_winograd(x, weight, len(x)), functional.conv2d(x, weight, padding=1))
    winograd, direct = ((way.double() - exact).square().mean().sqrt().item() for way in ways)
    return winograd / direct


if __name__ == "__main__":
    main()
