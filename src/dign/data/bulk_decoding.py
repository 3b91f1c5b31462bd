"""Many image files into a store: in parallel, in order, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback
from dign.data.cache import StoreWriter
from dign.data.decoding import Result, decode, map_in_parallel, replace_unprintable


@dataclass(frozen=True)
class Picture:
    """An image file still to be decoded: its path or its contents, and the class it belongs to."""

    name: str
    file: bytes | Path
    label: int


def make_read_error(picture: Picture, error: UserError) -> UserError:
    return UserError(f"The image {replace_unprintable(picture.name)} cannot be read ({error}): fix it or remove it.")


def map_pictures(work: Callable[[Picture], Result], pictures: Sequence[Picture]) -> Iterator[Result]:
    """Yield work(picture) for all of them, in parallel; an error names the file."""

    def attempt(picture: Picture) -> Result:
        try:
            return work(picture)
        except UserError as error:
            raise make_read_error(picture, error) from error

    return map_in_parallel(attempt, pictures)


def write_pictures(
    writer: StoreWriter,
    splits: Mapping[str, Sequence[Picture]],
    image_size: tuple[int, int],
    resize_to: int | None,
    report: ProgressCallback,
) -> None:
    """Decode every picture of every split into the store, resized to `resize_to` squares where that is given."""
    total, done = sum(map(len, splits.values())), 0

    def decode_all(pictures: Sequence[Picture]) -> Iterator[np.ndarray]:
        nonlocal done
        images = map_pictures(lambda picture: decode(picture.file, resize_to), pictures)
        for picture, pixels in zip(pictures, images, strict=True):
            if pixels.shape[1:] != image_size:
                raise make_read_error(picture, UserError(f"it is {_size(pixels.shape[1:])}, not {_size(image_size)}"))
            done += 1
            report("Decoding images", done, total)
            yield pixels

    for name, pictures in splits.items():
        labels = np.array([picture.label for picture in pictures], dtype=np.int64)
        writer.write_split(name, decode_all(pictures), labels, image_size)


def _size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))
