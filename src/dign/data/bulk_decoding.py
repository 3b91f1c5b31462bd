"""Many image files into a store: in parallel, in order, with progress; unreadable ones are listed together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback, ignore_progress
from dign.data.cache import StoreWriter
from dign.data.decoding import Result, decode, map_in_parallel, read_upright_size, replace_unprintable
from dign.data.framing import Framing

MAX_LISTED = 20
"""Names in a message about images that cannot be read."""
MAX_REASON = 54
"""Letters of what is wrong with one of several."""


class Encoded(Protocol):
    """An image still to be decoded, and the class it belongs to."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> int: ...

    def read(self) -> bytes | Path:
        """The contents of an image file, or its path."""
        ...


class EncodedImages(Protocol):
    """Images still to be decoded, which may be gone through several times."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Encoded]: ...


@dataclass(frozen=True)
class Picture:
    """An image file still to be decoded: its path or its contents, and the class it belongs to."""

    name: str
    file: bytes | Path
    label: int

    def read(self) -> bytes | Path:
        return self.file


class UnreadableImages(UserError):
    """Image files that cannot be read, all of them at once.

    Args:
        reasons: Name of each file to what is wrong with it.
        advice: What to do, besides fixing or removing them.
    """

    def __init__(self, reasons: Mapping[str, str], advice: str = "") -> None:
        self.reasons = dict(reasons)
        listed = [f"{replace_unprintable(name)} cannot be read ({reason})" for name, reason in self.reasons.items()]
        if len(listed) == 1:
            super().__init__(f"The image {listed[0]}: fix it or remove it{advice}.")
            return
        names = [
            f"{_shorten(replace_unprintable(name))} ({reason[:MAX_REASON]})" for name, reason in self.reasons.items()
        ]
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        shown = ", ".join(names[:MAX_LISTED]) + more
        super().__init__(f"{len(names)} images cannot be read: {shown}: fix them or remove them{advice}.")


def _shorten(name: str, most: int = 60) -> str:
    """The end of a long path: a message has room for twenty."""
    return name if len(name) <= most else f"...{name[-most:]}"


def map_pictures(
    work: Callable[[Encoded], Result], pictures: EncodedImages, reasons: dict[str, str]
) -> Iterator[Result | None]:
    """Yield work(picture) for all of them, in parallel; None for one that cannot be read, and `reasons` gets why."""

    def attempt(picture: Encoded) -> Result | UserError:
        try:
            return work(picture)
        except UserError as error:
            return error

    for picture, outcome in zip(pictures, map_in_parallel(attempt, pictures), strict=True):
        if isinstance(outcome, UserError):
            reasons[picture.name] = str(outcome)
            yield None
        else:
            yield outcome


def find_unreadable(pictures: EncodedImages, report: ProgressCallback = ignore_progress) -> dict[str, str]:
    """Decode all pictures; returns what is wrong with those that cannot be read, by name."""
    reasons: dict[str, str] = {}
    shapes = map_pictures(lambda picture: decode(picture.read()).shape, pictures, reasons)
    for done, _ in enumerate(shapes, 1):
        report("Checking images", done, len(pictures))
    return reasons


def write_pictures(
    writer: StoreWriter,
    splits: Mapping[str, EncodedImages],
    image_size: tuple[int, int],
    framing: Framing | None,
    report: ProgressCallback,
) -> None:
    """Decode every picture of every split into the store, brought to `image_size` by `framing` where that is given.

    The store's fact `enlarged` counts those that were smaller.

    Raises:
        UnreadableImages: After the last picture, if some cannot be read; the store is then not to be used.
    """
    total, done = sum(map(len, splits.values())), 0
    reasons: dict[str, str] = {}
    small: list[Encoded] = []

    def decode_one(picture: Encoded) -> np.ndarray:
        file = picture.read()
        if framing is None:
            return decode(file)
        if min(read_upright_size(file)) < min(image_size):
            small.append(picture)
        return decode(file, image_size, framing)

    def decode_all(pictures: EncodedImages) -> Iterator[np.ndarray]:
        nonlocal done
        images = map_pictures(decode_one, pictures, reasons)
        for picture, pixels in zip(pictures, images, strict=True):
            if pixels is not None and pixels.shape[1:] != image_size:
                reasons[picture.name] = f"it is {_size(pixels.shape[1:])}, not {_size(image_size)}"
            done += 1
            report("Decoding images", done, total)
            yield np.zeros((3, *image_size), np.uint8) if pixels is None or picture.name in reasons else pixels

    for name, pictures in splits.items():
        labels = np.array([picture.label for picture in pictures], dtype=np.int64)
        writer.write_split(name, decode_all(pictures), labels, image_size)
    if reasons:
        raise UnreadableImages(reasons)
    writer.facts["enlarged"] = len(small)


def _size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))
