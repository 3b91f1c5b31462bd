"""Large photographs, shrunk once to the size that random crops are cut out of: decoding them costs too much every time.

The crops are the same, bit for bit, whether they come out of the files or out of what is kept here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path
from statistics import median

import numpy as np

from dign.core.errors import UserError
from dign.core.files import map_array, replace_file, write_json
from dign.core.locks import wait_for_lock
from dign.core.progress import ProgressCallback
from dign.data.cache import explain_disk_errors, mark_used
from dign.data.crops import RandomCrop
from dign.data.decoding import map_in_parallel, open_upright, read_upright_size, replace_unprintable
from dign.data.picture_source import MOST_OF_DISK
from dign.data.pictures import Pictures

COPIES = "shrunk-"
"""How the names of shrunk pictures begin in the cache."""
LARGE = 2.0
"""Times the side that crops are cut out of, from which on a picture is worth shrinking."""
LOOKED_AT = 32
"""Pictures that decide whether the others are large."""


def shrink_pictures(
    pictures: Pictures, crop: RandomCrop, root: Path, report: ProgressCallback, *, cache: str = "auto"
) -> Pictures:
    """The pictures as they are before a crop is cut out, kept in the cache; or as they are, where that is cheaper.

    Args:
        pictures: The encoded pictures.
        crop: What is cut out of them.
        root: The cache folder.
        report: Told how many are done.
        cache: "auto" shrinks where half of the pictures are large and the result takes at most a quarter of the free
            disk, "on" where half of them are large, "off" never.

    Raises:
        UserError: A picture cannot be read.
    """
    if cache == "off" or not _are_large(pictures, crop) or (cache == "auto" and _fill_disk(pictures, crop, root)):
        return pictures
    target = root / f"{COPIES}{_hash(pictures, crop)}.bin"
    index = target.with_suffix(".npy")
    with explain_disk_errors(root), wait_for_lock(target, report):
        ends = _read_index(target, index)
        if ends is None:
            ends = _write(pictures, crop, target, index, report)
        mark_used(index)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    return Pictures.from_parts([target], np.zeros(len(ends), np.int64), starts, ends - starts)


def _are_large(pictures: Pictures, crop: RandomCrop) -> bool:
    sides = []
    for number in np.unique(np.linspace(0, len(pictures) - 1, LOOKED_AT).astype(int)).tolist():
        with suppress(UserError):  # what cannot be read is named later
            sides.append(min(read_upright_size(pictures.read(number))))
    return bool(sides) and median(sides) > LARGE * crop.enough


def _fill_disk(pictures: Pictures, crop: RandomCrop, root: Path) -> bool:
    existing = next(parent for parent in (root, *root.absolute().parents) if parent.exists())
    return len(pictures) * 3 * crop.enough**2 * 4 / 3 > MOST_OF_DISK * shutil.disk_usage(existing).free


def _hash(pictures: Pictures, crop: RandomCrop) -> str:
    """Changes with the pictures' files, and with how they are shrunk."""
    framing = crop.framing
    sha = hashlib.sha256(f"{crop.enough}/{framing.fit == 'pad'}/{framing.interpolation}".encode())
    for array in (pictures.letters, pictures.ends, pictures.file, pictures.start, pictures.size):
        sha.update(np.ascontiguousarray(array).data)
    for file in np.unique(pictures.file, return_index=True)[1].tolist():
        with suppress(OSError):
            state = os.stat(pictures.path(file))
            sha.update(b"%d\0%d\0" % (state.st_size, state.st_mtime_ns))
    return sha.hexdigest()[:16]


def _read_index(target: Path, index: Path) -> np.ndarray | None:
    with suppress(OSError, ValueError):
        ends = np.array(map_array(index))
        if ends.dtype == np.int64 and ends.ndim == 1 and len(ends) and target.stat().st_size == ends[-1]:
            return ends
    return None


def _write(pictures: Pictures, crop: RandomCrop, target: Path, index: Path, report: ProgressCallback) -> np.ndarray:
    def shrink(number: int) -> bytes:
        try:
            picture = crop.shrink(open_upright(pictures.read(number), crop.enough))
        except UserError as error:
            name = replace_unprintable(pictures.name(number))
            raise UserError(
                f"The image {name} cannot be read ({error}): fix it or remove it, or set `skip_unreadable`."
            ) from error
        return b"P6\n%d %d\n255\n" % picture.size + picture.tobytes()

    sizes = np.zeros(len(pictures), np.int64)
    with replace_file(target) as partial, open(partial, "wb") as file:
        for number, data in enumerate(map_in_parallel(shrink, range(len(pictures)))):
            file.write(data)
            sizes[number] = len(data)
            report("Shrinking photographs", number + 1, len(pictures))
    place = os.path.commonpath([pictures.path(0).parent, pictures.path(len(pictures) - 1).parent])
    write_json(target.with_suffix(".json"), {"origin": replace_unprintable(place)})
    ends = np.cumsum(sizes)
    with replace_file(index) as partial, open(partial, "wb") as file:
        np.save(file, ends, allow_pickle=False)
    return ends
