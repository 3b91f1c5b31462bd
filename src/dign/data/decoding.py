"""Image files to uint8 arrays, and one way to change their size."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from dign.core.errors import UserError
from dign.data.framing import MIDDLE, Framing

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM", "JPEG2000", "AVIF", "MPO", "HEIF")
HEIF_EXTENSIONS = frozenset((".heic", ".heif"))
"""Photographs of some telephones, which the library pillow-heif decodes."""
UNREADABLE_EXTENSIONS = HEIF_EXTENSIONS | frozenset(
    f".{name}" for name in ["jxl", "psd", "svg", "dng", "cr2", "cr3", "nef", "arw", "orf", "rw2"]
)
"""Pictures that cannot be decoded without further libraries, or at all."""

BOMB_PIXELS = 2**24
MAX_PIXELS_PER_BYTE = 500
"""A larger picture with more pixels per byte is a decompression bomb (photographs have about 5)."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def resize(images: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield each image of (N,3,H,W) as (3,size,size)."""
    for image in images:
        picture = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
        yield to_channels_first(MIDDLE.apply(picture, (size, size)))


def decode(file: bytes | Path, size: tuple[int, int] | None = None, framing: Framing = MIDDLE) -> np.ndarray:
    """Decode an image file to uint8 (3,H,W): turned upright, converted to RGB, transparency on white.

    Args:
        file: A path, or the contents of a file.
        size: Height and width of the result; None leaves the image as it is.
        framing: How the image is brought to that size.

    Raises:
        UserError: It cannot be decoded. The message gives the reason; the caller adds the name of the file.
    """
    if size is None:
        return to_channels_first(open_upright(file))
    return to_channels_first(framing.apply(open_upright(file, framing.decoded_side(max(size))), size))


def open_upright(file: bytes | Path, enough: int | None = None) -> Image.Image:
    """Decode an image file to RGB, turned upright.

    Args:
        file: A path, or the contents of a file.
        enough: Pixels on the shorter side that are enough: a much larger JPEG is decoded at a half, a quarter...

    Raises:
        UserError: It cannot be decoded; as for `decode`.
    """
    try:
        with _open(file) as image:
            if enough is not None:
                image.draft(None, (enough, enough))
            return to_rgb(ImageOps.exif_transpose(image))
    except Exception as error:  # parsers raise anything for a damaged file
        raise UserError(_reason(error)) from error


def read_upright_size(file: bytes | Path) -> tuple[int, int]:
    """Read height and width, as `decode` would return them, from the file's header."""
    try:
        with _open(file) as image:
            width, height = image.size
            sideways = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
            return (width, height) if sideways else (height, width)
    except Exception as error:
        raise UserError(_reason(error)) from error


@cache
def _formats() -> tuple[str, ...]:
    """The formats that are tried: pictures only, none that would start another program (as EPS does)."""
    Image.init()
    load_heif()
    return tuple(name for name in FORMATS if name in Image.OPEN)


@cache
def load_heif() -> bool:
    """Register the decoder of HEIC files, if pillow-heif is installed; returns whether it is."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def is_decodable(name: str) -> bool:
    """Whether an image file of this name is of a kind that can be decoded here.

    >>> is_decodable("cat.jpg"), is_decodable("cat.cr2")
    (True, False)
    """
    extension = os.path.splitext(name)[1].lower()
    return extension not in UNREADABLE_EXTENSIONS or (extension in HEIF_EXTENSIONS and load_heif())


def explain_undecodable(name: str) -> str:
    """What to do about an image file that is not decodable."""
    is_heif = os.path.splitext(name)[1].lower() in HEIF_EXTENSIONS
    return "install the library pillow-heif, or convert it to JPEG" if is_heif else "convert it to JPEG"


def _open(file: bytes | Path) -> Image.Image:
    if isinstance(file, Path) and not is_decodable(file.name):
        raise UserError(explain_undecodable(file.name))
    image = Image.open(io.BytesIO(file) if isinstance(file, bytes) else file, formats=_formats())
    size = len(file) if isinstance(file, bytes) else file.stat().st_size
    pixels = image.size[0] * image.size[1]
    if pixels > BOMB_PIXELS and pixels > MAX_PIXELS_PER_BYTE * size:
        raise UserError(f"it is a decompression bomb: {pixels} pixels in {size} bytes")
    return image


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert any mode to RGB: gray of more than 8 bits is scaled to 8, transparency is put on white."""
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray(_scale_to_uint8(np.asarray(image, dtype=np.float64), image.mode))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert("RGB")


def _scale_to_uint8(gray: np.ndarray, mode: str) -> np.ndarray:
    """Gray levels of 16 or 32 bits, or real numbers in [0,1] or [0,255], as uint8."""
    if not np.isfinite(gray).all():
        raise UserError("it contains pixels that are not finite")
    most, least = gray.max(initial=0), gray.min(initial=0)
    top = 255 if mode == "F" else 65535
    if least < 0 or most > top:
        raise UserError(f"its pixels range from {least:g} to {most:g}, outside 0 to {top}")
    if mode == "F":
        gray = gray * 255 if most <= 1 else gray
    elif mode != "I" or most > 255:  # 32 bits may hold 8-bit levels
        gray = gray / 257
    levels: np.ndarray = np.rint(gray).astype(np.uint8)
    return levels


def map_in_parallel(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield work(item) for each item, in order, from threads (Pillow releases the interpreter lock).

    Items are handed out in rounds, so that memory does not grow with their number.
    """
    workers = os.cpu_count() or 1
    remaining = iter(items)
    with ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(remaining, 64 * workers)):
            yield from pool.map(work, batch)


def replace_unprintable(text: object) -> str:
    """Make a name from a file system safe to display: every unprintable character becomes U+FFFD."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(text))


def find_common_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the size that all have in common, or None."""
    return sizes[0] if len(set(sizes)) == 1 else None


def to_channels_first(image: Image.Image) -> np.ndarray:
    """An RGB image as uint8 (3,H,W)."""
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "it is not an image in a known format"
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    return replace_unprintable(str(error).rstrip(".")) or type(error).__name__
