"""`load`: a name in, a data set with three splits out."""

from __future__ import annotations

from pathlib import Path

from dign.core.errors import UserError, unknown_name
from dign.core.progress import ProgressCallback, TerminalBar
from dign.data.cache import cache_root
from dign.data.dataset import DataSet, Source
from dign.data.names import FOLDER_PREFIX
from dign.data.sources.cifar import CIFAR10, CIFAR100
from dign.data.sources.digits import Digits
from dign.data.sources.folder import Folder
from dign.data.sources.tiny_imagenet import TinyImageNet
from dign.data.splits import cut_split
from dign.parallel.launching import local_rank

SOURCES: dict[str, Source] = {
    "digits": Digits(),
    "cifar10": CIFAR10,
    "cifar100": CIFAR100,
    "tiny-imagenet": TinyImageNet(),
}
"""The named sources; `folder:PATH` is made by `find_source`."""

LARGEST_SIZE = 4096


def find_source(name: str) -> Source:
    """The source of a name, or of `folder:PATH`."""
    if name.startswith(FOLDER_PREFIX):
        return Folder(name.removeprefix(FOLDER_PREFIX))
    if name not in SOURCES:
        if Path(name).is_dir():
            raise UserError(
                f"There is no data set '{name}'; for the images in the folder of that name say folder:{name}."
            )
        raise unknown_name("data set", name, [*SOURCES, f"{FOLDER_PREFIX}PATH"])
    return SOURCES[name]


def load(
    name: str,
    *,
    size: int | None = None,
    validation: float = 0.1,
    validation_seed: int = 0,
    root: Path | str | None = None,
    progress: ProgressCallback | None = None,
) -> DataSet:
    """The data set `name`, with `validation` (a fraction) of its training images cut off, the same for a same seed.

    `size` resizes every image to size x size, once. `root` is the cache folder (default: `cache_root()`).
    `progress` is told (what, done, total); by default a bar is drawn where standard error is a terminal.

    A source with a validation split of its own (`folder:` with val/ beside test/) keeps it, and nothing is cut.
    """
    _check(size, validation)
    source = find_source(name)
    with TerminalBar(visible=local_rank() == 0) as bar:
        official = source.read(Path(root) if root else cache_root(), size, progress or bar)
    if official.validation is not None:
        train, held_out = official.train, official.validation
    else:
        train, held_out = cut_split(official.train, validation, validation_seed, "validation split")
    if len(official.test) == 0 or (validation > 0 and len(held_out) == 0):
        raise UserError(f"{name} has too few images: each split takes at least one from a class, of two or more.")
    return DataSet(name, official.classes, train, held_out, official.test, official.location)


def _check(size: int | None, validation: float) -> None:
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST_SIZE):
        raise UserError(f"size must be a whole number of pixels from 1 to {LARGEST_SIZE}, not {size!r}.")
    if isinstance(validation, bool) or not isinstance(validation, int | float) or not 0 <= validation < 1:
        raise UserError(f"validation must be a fraction of at least 0 and below 1, not {validation!r}.")
