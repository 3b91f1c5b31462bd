"""Write a benchmark in one of the published layouts: streaming, resumable, and always the same bytes."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError, unknown_name
from dign.core.files import replace_file
from dign.core.locks import lock_folder
from dign.core.version import __version__
from dign.corruptions.benchmark.manifest import (
    FOLDERS,
    LABELS,
    NPY,
    SCHEMA,
    hash_file,
    part_name,
    read_manifest,
    write_manifest,
)
from dign.corruptions.engine import corrupt
from dign.corruptions.frost import frost_source
from dign.corruptions.sets import ALL_NAMES
from dign.corruptions.settings import NAMES, SEVERITIES, profile_for
from dign.corruptions.storage import FILE_QUALITY, Jpeg, choose_quality
from dign.parallel.workers import open_workers

_TASK_VALUES = 256 * 3 * 32 * 32

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Job:
    """Everything that determines the contents of a benchmark."""

    images: Tensor
    labels: Tensor
    severities: tuple[int, ...]
    layout: str
    profile: str
    seed: int
    classes: tuple[str, ...]
    quality: int | None


_worker = threading.local()  # in a worker: its job


def write_benchmark(
    images: Tensor,
    labels: Tensor,
    folder: Path | str,
    *,
    classes: Sequence[str],
    names: Iterable[str] = NAMES,
    severities: Sequence[int] = SEVERITIES,
    layout: str = NPY,
    profile: str | None = None,
    seed: int = 0,
    jpeg: Jpeg = "profile",
    data: str = "",
    workers: int | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Write a benchmark of corrupted images; an interrupted one is resumed.

    What an earlier call has finished and its checksum confirms is kept.

    Args:
        images: The clean images, (N,3,H,W) uint8.
        labels: (N,).
        folder: Where to write; one that holds anything else is refused.
        classes: Names of the classes, in the order of the labels.
        names: Which corruptions, by default the nineteen common ones; `dign.corruptions.SETS` has more.
        severities: Which of 1 to 5, by default all.
        layout: "npy" as CIFAR-10-C: `NAME.npy` (S*N,H,W,3) uint8, severity by severity, and `labels.npy` (S*N,).
            "folders" as Tiny-ImageNet-C: `NAME/SEVERITY/CLASS/*.JPEG`.
        profile: The image size that the parameters were published for; by default as the images are (`profile_for`).
        seed: Of the random numbers.
        jpeg: JPEG of this quality after the corruption, in both layouts; by default what the published benchmark of the
            profile has (quality 85 at 64 and 224 pixels), and 85 for files of other profiles. None: arrays as they
            are, and PNG files.
        data: Name of the data set, for the manifest.
        workers: Processes (threads, where the system is not Linux), by default as many as cores, with one of torch's
            threads each.
        progress: Called with the number of corrupted images that are done, and of all.

    Returns:
        The manifest, as it is in the folder: settings, and the SHA-256 of every part.

    Raises:
        UserError: The images cannot be corrupted, the folder holds a benchmark of other images or settings, or another
            process is writing to it.

    >>> import tempfile
    >>> images, labels = torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write_benchmark(images, labels, folder, classes=["cat", "dog"], names=["fog"], severities=[1])
    >>> list(made["parts"])
    ['fog.npy', 'labels.npy']
    """
    folder = Path(folder)
    job = _check_job(images, labels, severities, layout, profile, seed, classes, jpeg)
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in ALL_NAMES:
            raise unknown_name("corruption", name, ALL_NAMES)
    if read_manifest(folder) is None:
        _refuse_foreign(folder)
    total, done = len(chosen) * len(job.severities) * len(images), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    # Two writers would take each other's unfinished files away.
    count, fork = workers or os.cpu_count() or 1, images.device.type == "cpu"
    with lock_folder(folder, "writing to"), open_workers(count, _adopt_job, job, fork=fork) as pool:
        manifest = _begin(folder, job, data, chosen)
        if layout == NPY:
            _write_labels(folder, job, manifest)
        write = _write_array if layout == NPY else _write_folders
        for name in chosen:
            write(folder, job, name, manifest, pool, advance)
    return manifest


def _check_job(
    images: Tensor,
    labels: Tensor,
    severities: Sequence[int],
    layout: str,
    profile: str | None,
    seed: int,
    classes: Sequence[str],
    jpeg: Jpeg,
) -> _Job:
    if images.dtype != torch.uint8 or images.dim() != 4 or images.shape[1] != 3 or len(images) != len(labels):
        raise UserError(
            f"A benchmark is made of uint8 images (N,3,H,W) and N labels, not of {images.dtype} "
            f"{tuple(images.shape)} and {len(labels)}."
        )
    if not len(images):
        raise UserError("There are no images to corrupt.")
    if layout not in (NPY, FOLDERS):
        raise unknown_name("layout", layout, (NPY, FOLDERS))
    if not severities or any(severity not in SEVERITIES for severity in severities):
        raise UserError(f"invalid severities {list(severities)}: expected whole numbers from 1 to 5.")
    height, width = images.shape[-2:]
    corrupt(images[:1], NAMES[0], 0, profile=profile)  # checks image and profile before any file is made
    profile = profile or profile_for(height, width)
    folders = tuple(name.replace("/", "_").replace("\\", "_") for name in classes)
    quality = choose_quality(jpeg, profile)
    if layout == FOLDERS and jpeg == "profile":
        quality = quality or FILE_QUALITY
    return _Job(images, labels, tuple(sorted(set(severities))), layout, profile, seed, folders, quality)


def _begin(folder: Path, job: _Job, data: str, names: Sequence[str]) -> dict[str, Any]:
    """Write the manifest to start from: a new one, or that of an earlier call without the parts that are damaged.

    It is written before any part and names all that is wanted, so that half a benchmark is not taken for a whole one.
    """
    settings = {
        "schema": SCHEMA,
        "layout": job.layout,
        "data": data,
        "images": len(job.images),
        "image_size": list(job.images.shape[-2:]),
        "images_sha256": _hash_images(job),
        "profile": job.profile,
        "seed": job.seed,
        "severities": list(job.severities),
        "classes": list(job.classes),
        "jpeg_quality": job.quality,
        "frost": frost_source(),
        "dign": __version__,
    }
    earlier = read_manifest(folder) or {**settings, "names": [], "parts": {}}
    for key, value in settings.items():
        if earlier.get(key) != value:
            shown = "" if key in ("images_sha256", "classes") else f" ({earlier.get(key)}, not {value})"
            raise UserError(f"{folder} contains a benchmark with another {key}{shown}: choose another folder.")
    wanted = [name for name in ALL_NAMES if name in names or name in earlier.get("names", ())]
    intact = {part: entry for part, entry in earlier["parts"].items() if _is_intact(folder / part, entry)}
    manifest = {**settings, "names": wanted, "parts": intact}
    write_manifest(folder, manifest)
    return manifest


def _refuse_foreign(folder: Path) -> None:
    """A published benchmark has no manifest, and must not be overwritten."""
    for part in (LABELS, *ALL_NAMES, *(part_name(NPY, name) for name in ALL_NAMES)):
        if (folder / part).exists():
            raise UserError(f"{folder} contains {part}, which dign did not write: choose another folder.")


def _hash_images(job: _Job) -> str:
    total = hashlib.sha256(job.labels.to("cpu", torch.int64).numpy().tobytes())
    for start in range(0, len(job.images), 1000):
        total.update(job.images[start : start + 1000].cpu().contiguous().numpy().data)
    return total.hexdigest()


def _is_intact(path: Path, entry: dict[str, str]) -> bool:
    return path.exists() and hash_file(path) == entry["sha256"]


def _adopt_job(job: _Job) -> None:
    _worker.job = job


def _corrupt_batch(name: str, severity: int, start: int) -> np.ndarray:
    """The images of a worker's job from `start` on, as many as there are in a task, (n,H,W,3)."""
    job = _worker.job
    batch = job.images[start : start + _batch_size(job)].contiguous()
    quality = job.quality if job.layout == NPY else None  # files are encoded when they are written
    made = corrupt(batch, name, severity, profile=job.profile, seed=job.seed, first=start, jpeg=quality)
    return made.permute(0, 2, 3, 1).contiguous().cpu().numpy()


def _batch_size(job: _Job) -> int:
    return max(1, _TASK_VALUES // job.images[0].numel())


def _do_tasks(
    pool: Executor,
    task: Callable[[Path, str, int, int], int],
    path: Path,
    job: _Job,
    name: str,
    severities: Iterable[int],
) -> Iterator[int]:
    """Yield the number of images of each task, in order, when it is done."""
    starts = range(0, len(job.images), _batch_size(job))
    try:
        places = [(severity, start) for severity in severities for start in starts]
        yield from pool.map(task, repeat(path), repeat(name), *zip(*places, strict=True))
    except BrokenExecutor as error:
        raise UserError("A process that made corrupted images died, perhaps out of memory.") from error


def _write_labels(folder: Path, job: _Job, manifest: dict[str, Any]) -> None:
    labels = job.labels.to("cpu", torch.int64).numpy()
    with replace_file(folder / LABELS) as partial, open(partial, "wb") as file:
        np.save(file, np.tile(labels, len(job.severities)))
    _record(folder, manifest, LABELS, hash_file(folder / LABELS))


def _write_array(
    folder: Path, job: _Job, name: str, manifest: dict[str, Any], pool: Executor, advance: Callable[[int], None]
) -> None:
    part = part_name(NPY, name)
    if part in manifest["parts"]:
        return advance(len(job.severities) * len(job.images))
    checksum = hashlib.sha256()
    with replace_file(folder / part) as partial, open(partial, "rb+", buffering=0) as file:
        header = _npy_header(job)
        checksum.update(header)
        file.write(header)
        for count in _do_tasks(pool, _fill_array, partial, job, name, job.severities):
            place, size = file.tell(), count * job.images[0].numel()
            checksum.update(file.read(size))
            if hasattr(os, "posix_fadvise"):  # it goes to the disk now, so that nobody waits for it at the end
                os.posix_fadvise(file.fileno(), place, size, os.POSIX_FADV_DONTNEED)
            advance(count)
    _record(folder, manifest, part, checksum.hexdigest())


def _fill_array(path: Path, name: str, severity: int, start: int) -> int:
    """A worker's task: write a batch to its place in the array."""
    job = _worker.job
    batch = _corrupt_batch(name, severity, start)
    place = job.severities.index(severity) * len(job.images) + start
    with open(path, "rb+") as file:
        file.seek(len(_npy_header(job)) + place * job.images[0].numel())
        file.write(batch.data)
    return len(batch)


def _npy_header(job: _Job) -> bytes:
    shape = (len(job.severities) * len(job.images), *job.images.shape[-2:], 3)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return header.getvalue()


def _write_folders(
    folder: Path, job: _Job, name: str, manifest: dict[str, Any], pool: Executor, advance: Callable[[int], None]
) -> None:
    for severity in job.severities:
        part = part_name(FOLDERS, name, severity)
        if part in manifest["parts"]:
            advance(len(job.images))
            continue
        partial = folder / name / f".{severity}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        try:
            for class_name in job.classes:
                (partial / class_name).mkdir(parents=True)
            for count in _do_tasks(pool, _save_pictures, partial, job, name, [severity]):
                advance(count)
            shutil.rmtree(folder / part, ignore_errors=True)
            partial.rename(folder / part)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # a worker may be writing to the folder
            shutil.rmtree(partial, ignore_errors=True)
            raise
        _record(folder, manifest, part, hash_file(folder / part))


def _save_pictures(folder: Path, name: str, severity: int, start: int) -> int:
    """A worker's task: write a batch as files."""
    job = _worker.job
    batch = _corrupt_batch(name, severity, start)
    digits, ending = len(str(len(job.images) - 1)), "JPEG" if job.quality else "png"
    for number, image in enumerate(batch, start):
        path = folder / job.classes[int(job.labels[number])] / f"{number:0{digits}d}.{ending}"
        _save_picture(path, image, job.quality)
    return len(batch)


def _save_picture(path: Path, image: np.ndarray, quality: int | None) -> None:
    from PIL import Image

    if quality:
        Image.fromarray(image).save(path, "JPEG", quality=quality, optimize=True)
    else:
        Image.fromarray(image).save(path, "PNG")


def _record(folder: Path, manifest: dict[str, Any], part: str, sha256: str) -> None:
    """Parts are listed in the order of their names, whatever order they were made in."""
    manifest["parts"] = dict(sorted({**manifest["parts"], part: {"sha256": sha256}}.items()))
    write_manifest(folder, manifest)
