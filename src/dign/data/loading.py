"""`load`: a name in, a data set with three splits out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dign.core.checks import check_value
from dign.core.errors import UserError, unknown_name
from dign.core.progress import ProgressCallback, TerminalBar
from dign.data.cache import cache_root
from dign.data.dataset import DataSet, Source
from dign.data.framing import MIDDLE, Framing
from dign.data.names import FOLDER_PREFIX, HUGGING_FACE_PREFIX, PICTURES, SHARDS_PREFIX, split_prefix
from dign.data.picture_source import CACHES
from dign.data.sources.cifar import CIFAR10, CIFAR100
from dign.data.sources.digits import Digits
from dign.data.sources.folder import Folder
from dign.data.sources.hugging_face import HuggingFace
from dign.data.sources.shards import Shards
from dign.data.sources.tiny_imagenet import TinyImageNet
from dign.data.splits import cut_split
from dign.parallel.launching import local_rank

SOURCES: dict[str, Source] = {
    "digits": Digits(),
    "cifar10": CIFAR10,
    "cifar100": CIFAR100,
    "tiny-imagenet": TinyImageNet(),
}
"""The named sources; those of the user's own pictures are made by `find_source`."""
PICTURE_SOURCES: dict[str, Callable[[str, bool, Framing, str], Source]] = {
    FOLDER_PREFIX: Folder,
    SHARDS_PREFIX: Shards,
    HUGGING_FACE_PREFIX: HuggingFace,
}

MAX_SIZE = 4096


def find_source(name: str, *, skip_unreadable: bool = False, framing: Framing = MIDDLE, cache: str = "auto") -> Source:
    """Return the source of a data set.

    Args:
        name: One of `SOURCES`, or `folder:PATH`, `wds:PATTERN`, `hf:PATH`.
        skip_unreadable: Leave out images of a folder that cannot be read.
        framing: How pictures of a folder are brought to one size.
        cache: Whether decoded images of a folder are kept, "on", "off" or "auto" (`load`).

    Raises:
        UserError: There is no such source.
    """
    prefix, place = split_prefix(name)
    if prefix:
        return PICTURE_SOURCES[prefix](place, skip_unreadable, framing, cache)
    if name not in SOURCES:
        if Path(name).is_dir():
            raise UserError(
                f"There is no data set '{name}': for the images in the folder of that name use 'folder:{name}'."
            )
        raise unknown_name("data set", name, [*SOURCES, *PICTURES])
    return SOURCES[name]


def load(
    name: str,
    *,
    size: int | None = None,
    validation: float = 0.1,
    validation_seed: int = 0,
    skip_unreadable: bool = False,
    framing: Framing = MIDDLE,
    cache: str = "auto",
    root: Path | str | None = None,
    progress: ProgressCallback | None = None,
) -> DataSet:
    """Load a data set.

    Args:
        name: "digits", "cifar10", "cifar100", "tiny-imagenet"; or, for images of your own, "folder:PATH", "wds:PATTERN"
            (tar shards) or "hf:PATH" (a Hugging Face data set on disk).
        size: Resize every image to size x size pixels; the result is cached.
        validation: Fraction of the training images to cut off as the validation split. A source with a validation
            split of its own (a folder with val/ beside test/) keeps that instead.
        validation_seed: Decides which images are cut off.
        skip_unreadable: Leave out the images of a folder that cannot be read, and name them in `skipped` of the
            result; by default they are an error that lists them.
        framing: How the pictures of a folder are brought to `size`: by default the largest square in their middle.
        cache: Whether the decoded images of a folder are kept: "on"; "off", which decodes them whenever they are asked
            for; or "auto", which keeps them where they take at most a quarter of the free disk.
        root: The cache folder, by default `cache_root()`.
        progress: Called with (what, done, total). By default a bar is drawn if standard error is a terminal.

    Returns:
        The three splits as uint8 images, mapped from the cache where that is possible.

    Raises:
        UserError: The name is unknown, the data are not in the cache, or an argument is invalid.

    >>> digits = load("digits", size=8)
    >>> len(digits.train), len(digits.validation), len(digits.test)
    (1293, 145, 359)
    """
    _check(size, validation)
    check_value("cache", cache, CACHES, None)
    source = find_source(name, skip_unreadable=skip_unreadable, framing=framing, cache=cache)
    with TerminalBar(visible=local_rank() == 0) as bar:
        official = source.read(Path(root) if root else cache_root(), size, progress or bar)
    if official.validation is not None:
        train, held_out = official.train, official.validation
    else:
        train, held_out = cut_split(official.train, validation, validation_seed, "validation split")
    if len(official.test) == 0 or (validation > 0 and len(held_out) == 0):
        raise UserError(f"{name} has too few images: a class needs at least two, of which each split takes one.")
    return DataSet(
        name,
        official.classes,
        train,
        held_out,
        official.test,
        official.location,
        official.skipped,
        official.enlarged,
    )


def _check(size: int | None, validation: float) -> None:
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_SIZE):
        raise UserError(f"invalid size {size!r}: expected a whole number of pixels from 1 to {MAX_SIZE}.")
    if isinstance(validation, bool) or not isinstance(validation, int | float) or not 0 <= validation < 1:
        raise UserError(f"invalid validation {validation!r}: expected a fraction of at least 0 and below 1.")
