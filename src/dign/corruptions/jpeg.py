"""JPEG at a given quality and back, for a whole batch with tensor operations.

Only the lossy steps of a JPEG codec are carried out: color conversion, halving of the chroma, the discrete cosine
transform, quantization, and their inverses. They follow the integer arithmetic of the common codec (accurate integer
DCT, triangle-filtered chroma), so that the result equals what a file written and read back gives, bit for bit. The
sums are whole numbers below 2^24 in float32 and below 2^53 in float64, hence exact.

On a CPU a large image goes through the codec itself instead, which has instructions of the processor for all of this.
The two agree bit for bit, so this is a question of speed alone.
"""

import io
from functools import lru_cache

import numpy as np
import torch
from PIL import Image, features
from torch import Tensor

from dign.core.pixels import whole_to_uint8
from dign.core.placement import copy_to_device
from dign.corruptions import linear

_LARGE = 96 * 96  # pixels from which on the codec is faster

_LUMINANCE = """
16 11 10 16 24 40 51 61  12 12 14 19 26 58 60 55  14 13 16 24 40 57 69 56  14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77  24 35 55 64 81 104 113 92  49 64 78 87 103 121 120 101  72 92 95 98 112 100 103 99"""
_CHROMINANCE = """
17 18 24 47 99 99 99 99  18 21 26 66 99 99 99 99  24 26 56 99 99 99 99 99  47 66 99 99 99 99 99 99
99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99"""

_TO_YCC = ((19595, 38470, 7471), (-11059, -21709, 32768), (32768, -27439, -5329))
_TO_YCC_BIAS = (32768, 128 * 65536 + 32767, 128 * 65536 + 32767)
_CHROMA_TO_RGB = ((0, 91881), (-22554, -46802), (116130, 0))


def jpeg(images: Tensor, quality: int) -> Tensor:
    """(N,C,H,W) uint8 through JPEG: three channels with halved chroma (4:2:0), one channel as grayscale."""
    pixels = images.shape[-2] * images.shape[-1]
    if images.device.type == "cpu" and pixels >= _LARGE and features.check_feature("libjpeg_turbo"):
        return torch.from_numpy(np.stack([_through_codec(image, quality) for image in images.numpy()]))
    return jpeg_arithmetic(images, quality)


def _through_codec(image: np.ndarray, quality: int) -> np.ndarray:
    """(C,H,W) uint8 written as a file in memory and read again, channel by channel at either end."""
    planes = [Image.fromarray(plane) for plane in image]
    picture = planes[0] if len(planes) == 1 else Image.merge("RGB", planes)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    read = Image.open(file, formats=("JPEG",))
    data = b"".join(read.tobytes("raw", band) for band in read.getbands())
    return np.frombuffer(data, dtype=np.uint8).reshape(image.shape)


def jpeg_arithmetic(images: Tensor, quality: int) -> Tensor:
    """The same on any device, for a batch at once."""
    x = images.to(torch.float32)
    if x.shape[1] == 1:
        return whole_to_uint8(_through_blocks(x, quality, _LUMINANCE))
    ycc = _floor_shift(_mix_channels(_TO_YCC, x) + _column(_TO_YCC_BIAS, x), 16)
    luma = _through_blocks(ycc[:, :1], quality, _LUMINANCE)
    chroma = _through_blocks(_halve(ycc[:, 1:]), quality, _CHROMINANCE)
    height, width = x.shape[-2:]
    chroma = _double(chroma[..., : (width + 1) // 2])[:, :, :height, :width]
    change = _floor_shift(_mix_channels(_CHROMA_TO_RGB, chroma - 128) + 32768, 16)
    return whole_to_uint8((change + luma).clamp_(0, 255))


def _mix_channels(matrix: tuple[tuple[int, ...], ...], x: Tensor) -> Tensor:
    """Multiply the channels of (N,C,H,W) by a matrix (D,C); not by matmul, which a GPU may be set to round."""
    channels = x.unbind(1)
    rows = [[weight * channel for weight, channel in zip(row, channels, strict=True) if weight] for row in matrix]
    return torch.stack([sum(row[1:], start=row[0]) for row in rows], dim=1)


def _column(values: tuple[int, ...], x: Tensor) -> Tensor:
    return copy_to_device(torch.tensor(values, dtype=x.dtype), x.device).view(1, -1, 1, 1)


def _floor_shift(x: Tensor, bits: int) -> Tensor:
    """x >> bits for whole numbers held as floats."""
    return x.mul_(0.5**bits).floor_()


def _halve(chroma: Tensor) -> Tensor:
    """Means of 2x2 values; ties are rounded down and up in turn along a row.

    Columns are repeated up to whole blocks before halving, rows only up to an even number, as the codec does.
    """
    height, width = chroma.shape[-2:]
    chroma = linear.pad(chroma, (0, height % 2, 0, -width % 16), "nearest")
    pairs = chroma[:, :, ::2] + chroma[:, :, 1::2]
    bias = torch.arange(pairs.shape[-1] // 2, device=chroma.device) % 2 + 1
    return _floor_shift(pairs[..., ::2] + pairs[..., 1::2] + bias, 2)


def _double(chroma: Tensor) -> Tensor:
    """Twice the size: each new value is 3/4 of the nearest old one and 1/4 of the next, along both axes."""
    before, after = _neighbors(chroma, -2)
    three = chroma * 3
    tall = torch.stack([three + before, three + after], dim=3).flatten(2, 3)
    before, after = _neighbors(tall, -1)
    three = tall * 3
    left, right = three + before + 8, three + after + 7
    return _floor_shift(torch.stack([left, right], dim=4).flatten(3, 4), 4)


def _neighbors(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The values before and after each one along a dimension; the ends are their own neighbors."""
    size = x.shape[dim]
    first, last = x.narrow(dim, 0, 1), x.narrow(dim, size - 1, 1)
    before = torch.cat([first, x.narrow(dim, 0, size - 1)], dim)
    after = torch.cat([x.narrow(dim, 1, size - 1), last], dim)
    return before, after


def _through_blocks(x: Tensor, quality: int, table: str) -> Tensor:
    """Transform, quantize and restore the 8x8 blocks of (N,C,H,W) whole numbers in 0..255.

    The forward transform takes rows first and the inverse columns first, so two transpositions of the blocks do.
    """
    height, width = x.shape[-2:]
    blocks = _blocks(linear.pad(x, (0, -height % 8, 0, -width % 8), "nearest"))
    transform = _cosines(x.device)
    blocks = _descale(blocks.to(torch.float64).sub_(128) @ transform.T, 11)
    blocks = _descale(blocks.transpose(-1, -2).contiguous() @ transform.T, 15)
    blocks = _quantize(blocks, _steps(quality, table, x.device).T.contiguous())
    blocks = _descale(blocks @ transform, 11)
    blocks = _descale(blocks.transpose(-1, -2).contiguous() @ transform, 18)
    restored = blocks.add_(128).clamp_(0, 255).to(torch.float32)
    return _unblock(restored)[:, :, :height, :width]


def _blocks(x: Tensor) -> Tensor:
    """(N,C,H,W) -> (N,C,H/8,W/8,8,8)"""
    blocks: Tensor = x.unflatten(3, (-1, 8)).unflatten(2, (-1, 8)).transpose(3, 4)
    return blocks


def _unblock(blocks: Tensor) -> Tensor:
    return blocks.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def _descale(x: Tensor, bits: int) -> Tensor:
    """Divide by 2^bits and round to the nearest whole number, ties upwards."""
    return _floor_shift(x.add_(2.0 ** (bits - 1)), bits)


def _quantize(coefficients: Tensor, steps: Tensor) -> Tensor:
    """The nearest multiples of `steps`, ties away from zero. The forward transform is 8 times too large."""
    divisor = steps * 8
    size = coefficients.abs().add_((divisor / 2).floor_()).div_(divisor).floor_()
    return size.mul_(steps).copysign_(coefficients)


@lru_cache(maxsize=32)
def _steps(quality: int, table: str, device: torch.device) -> Tensor:
    """The quantization table (8,8) of a quality: the standard's example tables, scaled and limited to 1..255."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    base = np.array(table.split(), dtype=np.int64).reshape(8, 8)
    steps = ((base * percent + 50) // 100).clip(1, 255)
    return torch.from_numpy(steps).to(device, torch.float64)


@lru_cache(maxsize=4)
def _cosines(device: torch.device) -> Tensor:
    """(8,8) whole numbers: the cosine transform of Loeffler, Ligtenberg and Moschytz with 13-bit constants.

    Its constants are rounded one by one, so sums of them differ a little from rounded cosines.
    """
    x = np.eye(8, dtype=np.int64)
    s, d = x[:4] + x[:3:-1], x[:4] - x[:3:-1]  # sums and differences of mirrored inputs, as rows over the inputs
    out = np.zeros((8, 8), dtype=np.int64)
    out[0] = (s[0] + s[3] + s[1] + s[2]) * 8192
    out[4] = (s[0] + s[3] - s[1] - s[2]) * 8192
    outer, inner = s[0] - s[3], s[1] - s[2]
    shared = (outer + inner) * 4433
    out[2], out[6] = shared + outer * 6270, shared - inner * 15137
    z1, z2 = (d[3] + d[0]) * -7373, (d[2] + d[1]) * -20995
    z5 = (d[3] + d[1] + d[2] + d[0]) * 9633
    z3, z4 = (d[3] + d[1]) * -16069 + z5, (d[2] + d[0]) * -3196 + z5
    out[7], out[5] = d[3] * 2446 + z1 + z3, d[2] * 16819 + z2 + z4
    out[3], out[1] = d[1] * 25172 + z2 + z3, d[0] * 12299 + z1 + z4
    return torch.from_numpy(out).to(device, torch.float64)
