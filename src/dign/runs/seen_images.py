"""Which images a model was trained, calibrated and tested on: a digest of each is kept, to know them again anywhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.files import read_limited, write_text
from dign.core.progress import TerminalBar
from dign.data.dataset import DataSet, Split, join_splits
from dign.parallel.launching import local_rank

SEEN_FILE = "training_images.txt"
CALIBRATION_IMAGES_FILE = "calibration_images.txt"
DIGITS = 16
"""Hexadecimal digits of a SHA-256 that are kept: two of a million images agree by chance once in 10^7 runs."""
MAX_SIZE = 2**30
PART = 256
"""Images that are read at once."""


@dataclass(frozen=True)
class SeenImages:
    """Digests of the images that a run was trained on, of those that it was validated on, and of those for testing it,
    which are not known of older runs."""

    train: frozenset[str]
    validation: frozenset[str]
    test: frozenset[str] = frozenset()


def digest_images(images: Tensor) -> list[str]:
    """A digest of every image (N,3,H,W): of its pixels, so that neither its name nor its folder matters.

    >>> digest_images(torch.zeros(1, 3, 8, 8, dtype=torch.uint8))
    ['5d89f056865052bc']
    """
    return [hashlib.sha256(image.contiguous().numpy().tobytes()).hexdigest()[:DIGITS] for image in images]


def digest_split(split: Split) -> Iterator[str]:
    """The digest of every image of a split."""
    for images in _read_parts(split):
        yield from digest_images(images)


def hash_split(split: Split) -> str:
    """The SHA-256 of a split's images and labels."""
    sha = hashlib.sha256()
    for images in _read_parts(split):
        sha.update(images.contiguous().numpy().tobytes())
    sha.update(split.labels.contiguous().numpy().tobytes())
    return sha.hexdigest()


def _read_parts(split: Split) -> Iterator[Tensor]:
    """The images, some at a time: all at once may need more memory than there is. Where they are not cached each is
    decoded, and a bar tells how far it is."""
    with TerminalBar(visible=local_rank() == 0, delay=2.0) as report:
        for start in range(0, len(split), PART):
            yield split.take(slice(start, start + PART))
            report("Reading images", min(start + PART, len(split)), len(split))


def digest_seen(data: DataSet) -> SeenImages:
    """The digests of a data set's images."""
    return SeenImages(*(frozenset(digest_split(split)) for split in (data.train, data.validation, data.test)))


def write_seen(folder: Path, data: DataSet, earlier: frozenset[str] = frozenset()) -> str:
    """Write the digests of training, validation and test images into a run folder, one line for each.

    Args:
        folder: The run's folder.
        data: Its data.
        earlier: Digests of images that the model it starts from was trained on.

    Returns:
        `hash_split` of the training images, which are read but once: it may take long where they must be decoded.
    """
    sha, lines = hashlib.sha256(), []
    for images in _read_parts(data.train):
        sha.update(images.contiguous().numpy().tobytes())
        lines += [f"train {digest}\n" for digest in digest_images(images)]
    sha.update(data.train.labels.contiguous().numpy().tobytes())
    lines += [f"validation {digest}\n" for digest in digest_split(data.validation)]
    lines += [f"test {digest}\n" for digest in digest_split(data.test)]
    lines += [f"train {digest}\n" for digest in sorted(earlier)]
    write_text(folder / SEEN_FILE, "".join(lines))
    return sha.hexdigest()


def add_calibration_images(folder: Path, split: Split) -> None:
    """Remember images that the model of a run folder or hub folder is calibrated on, and must not be measured on."""
    known = read_calibration_images(folder)
    digests = known.union(digest_split(split))
    if digests != known:
        write_text(folder / CALIBRATION_IMAGES_FILE, "".join(f"{digest}\n" for digest in sorted(digests)))


def read_calibration_images(folder: Path) -> frozenset[str]:
    """The digests that `add_calibration_images` wrote; none where it wrote none.

    Raises:
        UserError: The file is damaged.
    """
    file = folder / CALIBRATION_IMAGES_FILE
    return frozenset(digest for _, digest in _read_digests(file, "()")) if file.is_file() else frozenset()


def read_seen(folder: Path) -> SeenImages | None:
    """Read what `write_seen` wrote; None where a run folder has none.

    Raises:
        UserError: The file is damaged.
    """
    file = folder / SEEN_FILE
    if not file.is_file():
        return None
    found: dict[str, set[str]] = {"train": set(), "validation": set(), "test": set()}
    for kind, digest in _read_digests(file, "(train|validation|test) "):
        found[kind].add(digest)
    return SeenImages(**{kind: frozenset(digests) for kind, digests in found.items()})


def _read_digests(file: Path, prefix: str) -> list[tuple[str, str]]:
    """What stands before the digest in each line, by a pattern with one group, and the digest."""
    pattern = re.compile(rf"{prefix}([0-9a-f]{{{DIGITS}}})")
    try:
        matches = [pattern.fullmatch(line) for line in read_limited(file, MAX_SIZE).decode().splitlines()]
        if not all(matches):
            raise ValueError("a line is not a digest")
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be used ({error}): the run folder is damaged.") from error
    return [(match[1], match[2]) for match in matches if match]


def select_unseen(split: Split, seen: frozenset[str]) -> Split:
    """The images of a split that are not among those with these digests."""
    if not seen:
        return split
    kept = [index for index, digest in enumerate(digest_split(split)) if digest not in seen]
    return split.select(torch.tensor(kept, dtype=torch.long))


def separate_seen(
    data: DataSet, seen: SeenImages, calibrated: frozenset[str] = frozenset(), *, is_cut: bool
) -> tuple[DataSet, int]:
    """Put every image into the split that a run had it in; what the run has not seen is the test split.

    Args:
        data: Other images than the run's, or the run's and more.
        seen: What the run has seen.
        calibrated: Digests of further images, which it was calibrated on: they are in no split.
        is_cut: Whether the test split of `data` was cut by dign, from images that may all be measured; otherwise new
            images are measured only where they are in the test split.

    Returns:
        The data set, and how many images were left out of the test split because the run has seen them.
    """
    pool = join_splits([data.test, data.train, data.validation])
    digests = list(digest_split(pool))
    candidates = len(pool) if is_cut else len(data.test)
    places: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for index, digest in enumerate(digests):
        if digest in seen.train:
            places["train"].append(index)
        elif digest in seen.validation:
            places["validation"].append(index)
        elif digest not in calibrated and index < candidates:
            places["test"].append(index)
    splits = {name: pool.select(torch.tensor(sorted(found), dtype=torch.long)) for name, found in places.items()}
    left_out = candidates - len(places["test"])
    train, validation, test = (splits[name] for name in ("train", "validation", "test"))
    sorted_data = DataSet(
        data.name, data.classes, train, validation, test, location=data.location, skipped=data.skipped
    )
    return sorted_data, left_out
