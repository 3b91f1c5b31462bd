"""Read a benchmark, published or written by dign, without loading it: images are mapped or decoded on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError, unknown_name
from dign.core.files import map_array
from dign.corruptions.benchmark.manifest import FOLDERS, LABELS, NPY, check_parts, part_name, read_manifest
from dign.corruptions.sets import ALL_NAMES, C_BAR, IMAGENET_C_BAR
from dign.corruptions.settings import FAMILIES, NAMES, SEVERITIES
from dign.corruptions.storage import FILE_QUALITY

TINY_IMAGENET_C: tuple[str, ...] = tuple(
    name for name in NAMES if name not in ("speckle_noise", "gaussian_blur", "spatter", "saturate")
)
"""The fifteen corruptions of the published Tiny-ImageNet-C."""


class LazyImages(Protocol):
    """Images of one condition: `images[a:b]` is a uint8 tensor (b-a,3,H,W), read on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice) -> Tensor: ...


@dataclass(frozen=True)
class Condition:
    """The images of one corruption at one severity, and their labels (N,) int64."""

    name: str
    severity: int
    images: LazyImages
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark folder: iterate over it for its conditions, or get one with `condition`."""

    folder: Path
    layout: str
    names: tuple[str, ...]
    severities: tuple[int, ...]
    stored_severities: tuple[int, ...]
    classes: tuple[str, ...] | None
    manifest: dict[str, Any] | None

    @property
    def frost(self) -> str | None:
        """The source of its frost pictures, if frost is part of it: the published ones used photographs."""
        if "frost" not in self.names:
            return None
        return self.manifest["frost"] if self.manifest else "photographs"

    @property
    def jpeg_quality(self) -> int | None:
        """Quality of the JPEG that its images went through; published files have 85, arrays none."""
        if self.manifest:
            return self.manifest.get("jpeg_quality")
        return FILE_QUALITY if self.layout == FOLDERS else None

    @property
    def profile(self) -> str | None:
        return self.manifest["profile"] if self.manifest else None

    @property
    def seed(self) -> int | None:
        return self.manifest["seed"] if self.manifest else None

    def __len__(self) -> int:
        return len(self.names) * len(self.severities)

    def __iter__(self) -> Iterator[Condition]:
        return (self.condition(name, severity) for name in self.names for severity in self.severities)

    def condition(self, name: str, severity: int) -> Condition:
        """Return the images and labels of one corruption at one severity."""
        if name not in self.names or severity not in self.severities:
            raise UserError(f"{self.folder} was not opened for {name} at severity {severity}.")
        read = _array_condition if self.layout == NPY else _folder_condition
        return read(self, name, severity)


def open_benchmark(
    folder: Path | str,
    *,
    names: Iterable[str] | None = None,
    severities: Sequence[int] | None = None,
    labels: Tensor | None = None,
    classes: Sequence[str] | None = None,
    verify: bool = False,
) -> Benchmark:
    """Open a folder in the layout of CIFAR-10-C or of Tiny-ImageNet-C and check that it is complete.

    Args:
        folder: Written by `write_benchmark`, or a published one.
        names: Corruptions to read. By default all that the manifest lists; in a published folder, which has no
            manifest, those of the published benchmark: the nineteen (.npy) or fifteen (folders) common ones, or the
            ten of CIFAR-10-C-bar or ImageNet-C-bar.
        severities: By default all that are stored.
        labels: Of the clean images, in order: if given, those of the benchmark must agree.
        classes: Names of the class folders in the order of the labels; by default the manifest's, else sorted.
        verify: Compare every part with the manifest's checksum, which reads everything once.

    Returns:
        The conditions, by name and severity; images are read on demand.

    Raises:
        UserError: It is not a benchmark, or a part is missing, damaged, or belongs to other images.

    >>> import tempfile
    >>> from dign.corruptions import write_benchmark
    >>> images, labels = torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_benchmark(images, labels, folder, classes=["cat", "dog"], names=["fog"], severities=[1, 2])
    ...     condition = open_benchmark(folder).condition("fog", 2)
    ...     condition.images[0:2].shape
    torch.Size([2, 3, 8, 8])
    """
    folder = Path(folder)
    manifest, layout = _identify(folder)
    stored = _stored_severities(manifest)
    benchmark = Benchmark(
        folder,
        layout,
        _choose_names(folder, layout, manifest, names),
        _choose_severities(folder, stored, severities),
        stored,
        tuple(classes or (manifest["classes"] if manifest else ())) or None,
        manifest,
    )
    if verify and manifest:
        check_parts(folder, manifest)
    _check_conditions(benchmark, labels)
    return benchmark


def find_names(folder: Path | str) -> tuple[str, ...]:
    """Return the corruptions that `open_benchmark` reads from a folder by default."""
    manifest, layout = _identify(Path(folder))
    return _choose_names(Path(folder), layout, manifest, None)


def find_severities(folder: Path | str) -> tuple[int, ...]:
    """Return the severities that `open_benchmark` reads from a folder by default."""
    manifest, _ = _identify(Path(folder))
    return _stored_severities(manifest)


def check_contains(folder: Path | str, names: Iterable[str] | None, severities: Sequence[int]) -> None:
    """Raise a `UserError` if a folder lacks one of these corruptions (None: its default ones) or severities."""
    folder = Path(folder)
    manifest, layout = _identify(folder)
    _choose_names(folder, layout, manifest, names)
    _choose_severities(folder, _stored_severities(manifest), severities)


def _identify(folder: Path) -> tuple[dict[str, Any] | None, str]:
    """The manifest of a benchmark, where it has one, and its layout."""
    if not folder.is_dir():
        raise UserError(f"There is no benchmark folder {folder}.")
    manifest = read_manifest(folder)
    return manifest, manifest["layout"] if manifest else _guess_layout(folder)


def _stored_severities(manifest: dict[str, Any] | None) -> tuple[int, ...]:
    return tuple(manifest["severities"]) if manifest else SEVERITIES


def _guess_layout(folder: Path) -> str:
    if (folder / LABELS).exists() or any((folder / part_name(NPY, name)).exists() for name in ALL_NAMES):
        return NPY
    if any(_find_corruption(folder, name).is_dir() for name in ALL_NAMES):
        return FOLDERS
    raise UserError(
        f"{folder} is not a benchmark: it has neither {LABELS} and files such as fog.npy nor folders such as fog/1."
    )


def _choose_names(
    folder: Path, layout: str, manifest: dict[str, Any] | None, names: Iterable[str] | None
) -> tuple[str, ...]:
    if names is not None:
        chosen = tuple(dict.fromkeys(names))
        for name in chosen:
            if name not in ALL_NAMES:
                raise unknown_name("corruption", name, ALL_NAMES)
    elif manifest is not None:
        wanted = manifest.get("names", ())
        chosen = tuple(name for name in ALL_NAMES if name in wanted or _is_listed(manifest, layout, name))
    else:
        chosen = _published_names(folder, layout)
    missing = [name for name in chosen if not _is_stored(folder, layout, name)]
    if missing or not chosen:
        raise UserError(f"{folder} lacks {', '.join(missing) or 'any corruption'}: add it, or read only the others.")
    return chosen


def _published_names(folder: Path, layout: str) -> tuple[str, ...]:
    """The corruptions of the published benchmark that a folder without a manifest holds, whole or in part."""
    further = [name for name in ALL_NAMES if name not in NAMES and _is_stored(folder, layout, name)]
    if further and not any(_is_stored(folder, layout, name) for name in NAMES):
        return max((C_BAR, IMAGENET_C_BAR), key=lambda names: len({*names} & {*further}))
    return NAMES if layout == NPY else TINY_IMAGENET_C


def _is_stored(folder: Path, layout: str, name: str) -> bool:
    return (folder / part_name(NPY, name) if layout == NPY else _find_corruption(folder, name)).exists()


def _find_corruption(folder: Path, name: str) -> Path:
    """The folder of a corruption; ImageNet-C as it is downloaded has one more level, as in noise/shot_noise."""
    places = (folder / name, *(folder / family / name for family in (*FAMILIES, "extra")))
    return next((place for place in places if place.is_dir()), places[0])


def _is_listed(manifest: dict[str, Any], layout: str, name: str) -> bool:
    return any(part_name(layout, name, severity) in manifest["parts"] for severity in manifest["severities"])


def _choose_severities(folder: Path, stored: tuple[int, ...], severities: Sequence[int] | None) -> tuple[int, ...]:
    chosen = tuple(severities) if severities is not None else stored
    absent = [severity for severity in chosen if severity not in stored]
    if absent or not chosen:
        raise UserError(f"{folder} holds the severities {list(stored)}, not {list(absent or chosen)}.")
    return chosen


def _check_conditions(benchmark: Benchmark, labels: Tensor | None) -> None:
    """Open every condition once, which checks its files, and compare its labels with the others'."""
    if benchmark.layout == NPY:
        _check_labels(benchmark, labels)
        for name in benchmark.names:
            _open_array(benchmark, name)
        return
    expected: Tensor | None = None
    for condition in benchmark:
        if labels is not None and not torch.equal(condition.labels.sort().values, labels.to("cpu").sort().values):
            raise UserError(
                f"{benchmark.folder / condition.name / str(condition.severity)} holds {len(condition.labels)} images "
                f"that do not agree, class by class, with the {len(labels)} clean ones: it belongs to other images."
            )
        expected = condition.labels if expected is None else expected
        if not torch.equal(condition.labels, expected):
            raise UserError(
                f"{benchmark.folder / condition.name / str(condition.severity)} holds other images per class than "
                f"{benchmark.folder / benchmark.names[0] / str(benchmark.severities[0])}: files are missing in one."
            )


def _check_labels(benchmark: Benchmark, expected: Tensor | None) -> None:
    """Each severity holds the same images, so it must have the same labels."""
    labels = _all_labels(benchmark)
    rows = labels.view(len(benchmark.stored_severities), -1)
    where = benchmark.folder / LABELS
    if not bool((rows == rows[0]).all()):
        raise UserError(f"{where} does not repeat the same labels for each severity: it belongs to something else.")
    if int(rows.min()) < 0:
        raise UserError(f"{where} holds negative labels: it belongs to something else.")
    if expected is not None and not torch.equal(rows[0], expected.to("cpu", torch.int64)):
        raise UserError(f"{where} does not agree with the labels of the clean images: it belongs to another data set.")


def _load(path: Path) -> np.ndarray:
    """Map an array into memory. Nothing is unpickled."""
    try:
        return map_array(path)
    except FileNotFoundError:
        raise UserError(f"{path} is missing.") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{path} is truncated or not a .npy file: fetch or make it again.") from error


def _all_labels(benchmark: Benchmark) -> Tensor:
    path = benchmark.folder / LABELS
    labels = _load(path)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels):
        raise UserError(f"{path} must hold whole numbers (N,), not {labels.dtype} {labels.shape}.")
    if len(labels) % len(benchmark.stored_severities):
        raise UserError(
            f"{path} has {len(labels)} labels, which is not a multiple of the {len(benchmark.stored_severities)} "
            f"severities."
        )
    return torch.from_numpy(labels.astype(np.int64))


def _open_array(benchmark: Benchmark, name: str) -> np.ndarray:
    path = benchmark.folder / part_name(NPY, name)
    images = _load(path)
    count = len(_all_labels(benchmark))
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
        raise UserError(f"{path} must hold uint8 images (N,H,W,3), not {images.dtype} {images.shape}.")
    if len(images) != count:
        raise UserError(f"{path} holds {len(images)} images, but {LABELS} {count} labels: one of them is incomplete.")
    return images


@dataclass(frozen=True)
class _Rows:
    """Rows `first` to `first + count` of a mapped array (N,H,W,3)."""

    array: np.ndarray
    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, part: slice) -> Tensor:
        start, stop, step = part.indices(self.count)
        rows = np.array(self.array[self.first + start : self.first + stop : step])
        return torch.from_numpy(rows).permute(0, 3, 1, 2).contiguous()


def _array_condition(benchmark: Benchmark, name: str, severity: int) -> Condition:
    images, labels = _open_array(benchmark, name), _all_labels(benchmark)
    count = len(labels) // len(benchmark.stored_severities)
    return Condition(
        name, severity, _Rows(images, benchmark.stored_severities.index(severity) * count, count), labels[:count]
    )


@dataclass(frozen=True)
class _Files:
    """Image files, decoded when asked for."""

    paths: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, part: slice) -> Tensor:
        from dign.data.decoding import map_in_parallel

        images = list(map_in_parallel(_decode, self.paths[part]))
        if len({image.shape for image in images}) > 1:
            raise UserError(f"The images in {self.paths[0].parents[1]} are not all of one size.")
        return torch.from_numpy(np.stack(images)) if images else torch.empty((0, 3, 0, 0), dtype=torch.uint8)


def _decode(path: Path) -> np.ndarray:
    from dign.data.decoding import decode

    try:
        return decode(path)
    except UserError as error:
        raise UserError(f"The image {path} cannot be read ({error}): fetch or make it again.") from error


def _folder_condition(benchmark: Benchmark, name: str, severity: int) -> Condition:
    """Files in the order of their class folders, and of their names inside."""
    folder = _find_corruption(benchmark.folder, name) / str(severity)
    if not folder.is_dir():
        raise UserError(f"{folder} is missing: fetch or make it again, or evaluate only the other severities.")
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    classes = benchmark.classes or tuple(found)
    strange = [class_name for class_name in found if class_name not in classes]
    if strange:
        raise UserError(f"{folder / strange[0]} is not one of the classes: the folder belongs to another data set.")
    paths: list[Path] = []
    labels: list[int] = []
    for label, class_name in enumerate(classes):
        files = sorted((folder / class_name).glob("*.*")) if class_name in found else []
        paths += files
        labels += [label] * len(files)
    if not paths:
        raise UserError(f"{folder} contains no images.")
    return Condition(name, severity, _Files(tuple(paths)), torch.tensor(labels))
