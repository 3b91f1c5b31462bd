"""Tiny-ImageNet in its official layout: a folder, or the archive it comes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback
from dign.data.archives import is_archive, read_members
from dign.data.bulk_decoding import Picture, write_pictures
from dign.data.cache import create_store
from dign.data.cached_source import CachedSource
from dign.data.decoding import replace_unprintable
from dign.data.download import Download, download_file

FOLDER = "tiny-imagenet-200"
ARCHIVE = Download(
    url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
    file="tiny-imagenet-200.zip",
    sha256="6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
)
IMAGE_SIZE = (64, 64)
_LISTS = ("wnids.txt", "words.txt", "val/val_annotations.txt")


@dataclass(frozen=True)
class TinyImageNet(CachedSource):
    """200 classes of 64x64 photographs. The official test images have no labels: the official validation images,
    as is usual, are the test split, and the validation split is cut from the training images.

    Classes are in the order of their WordNet ids, which the store keeps as `wnids`.
    """

    name: str = "tiny-imagenet"
    title: str = "Tiny-ImageNet"
    placing: str = f"{FOLDER}.zip or the folder {FOLDER}"
    download_files: tuple[str, ...] = (ARCHIVE.file,)
    archive: Download = ARCHIVE

    def candidates(self, root: Path) -> list[Path]:
        return [root / FOLDER, *(path for path in sorted(root.glob(f"{FOLDER}*")) if is_archive(path))]

    def download(self, root: Path, target: Path, report: ProgressCallback) -> str:
        try:
            with download_file(self.archive, root, report) as file:
                self.build(file, target, report, self.archive.url)
        except UserError as error:
            raise UserError(f"{error} Put {self.placing} into {root} by hand.") from error
        return self.archive.url

    def build(self, origin: Path, target: Path, report: ProgressCallback, taken_from: str) -> None:
        lists, pictures = _read_layout(origin, report)
        wnids = tuple(sorted(set(_lines(lists, "wnids.txt", origin))))
        if not wnids:
            raise UserError(f"{origin}: wnids.txt names no classes.")
        splits = {
            "train": _find_training(pictures, wnids, origin),
            "test": _find_validation(pictures, _lines(lists, "val/val_annotations.txt", origin), wnids, origin),
        }
        classes = _class_names(wnids, _lines(lists, "words.txt", origin))
        with create_store(target, name=self.name, classes=classes, origin=taken_from, wnids=wnids) as writer:
            write_pictures(writer, splits, IMAGE_SIZE, None, report)


Files = dict[str, "bytes | Path"]


def _read_layout(origin: Path, report: ProgressCallback) -> tuple[Mapping[str, bytes], Files]:
    """The lists and the pictures by their place in the layout: 'train/n01443537/images/n01443537_0.JPEG'."""
    lists: dict[str, bytes] = {}
    pictures: Files = {}
    for place, file in _files(origin):
        if place in _LISTS:
            lists[place] = file.read_bytes() if isinstance(file, Path) else file
        elif place.endswith(".JPEG"):
            pictures[place] = file
            if len(pictures) % 1000 == 0:
                report(f"Reading {origin.name}", len(pictures), None)
    return lists, pictures


def _files(origin: Path) -> Iterator[tuple[str, bytes | Path]]:
    if origin.is_dir():
        for name in _LISTS:
            if (origin / name).is_file():
                yield name, origin / name
        for pattern in ("train/*/images/*.JPEG", "val/images/*.JPEG"):
            for path in sorted(origin.glob(pattern)):
                yield path.relative_to(origin).as_posix(), path
    elif is_archive(origin):
        for name, data in read_members(origin, lambda name: _place(name) is not None):
            yield _place(name) or name, data
    else:
        raise UserError(f"{origin} is neither a folder nor a .zip, .tar.gz, .tgz or .tar archive.")


def _place(member: str) -> str | None:
    """Where a member of the archive belongs in the layout; None for the test images and what else is not needed."""
    parts = PurePosixPath(member).parts
    if FOLDER in parts:
        parts = parts[parts.index(FOLDER) + 1 :]
    place = "/".join(parts)
    is_training = len(parts) == 4 and parts[0] == "train" and parts[2] == "images"
    is_validation = len(parts) == 3 and parts[:2] == ("val", "images")
    return place if place in _LISTS or is_training or is_validation else None


def _lines(lists: Mapping[str, bytes], name: str, origin: Path) -> list[str]:
    if name not in lists:
        raise UserError(f"{origin} is not Tiny-ImageNet, or incomplete: it lacks {name}.")
    return [line for line in lists[name].decode("utf-8", "replace").splitlines() if line.strip()]


def _find_training(pictures: Files, wnids: tuple[str, ...], origin: Path) -> list[Picture]:
    label_of = {wnid: label for label, wnid in enumerate(wnids)}
    found: list[list[Picture]] = [[] for _ in wnids]
    for place in sorted(pictures):
        if place.startswith("train/"):
            wnid = place.split("/")[1]
            if wnid not in label_of:
                raise UserError(f"{origin}: train/{replace_unprintable(wnid)} is not one of the classes in wnids.txt.")
            found[label_of[wnid]].append(Picture(f"{origin}/{place}", pictures[place], label_of[wnid]))
    for wnid, members in zip(wnids, found, strict=True):
        if not members:
            raise UserError(f"{origin}: the class folder train/{replace_unprintable(wnid)} contains no images.")
    return [picture for members in found for picture in members]


def _find_validation(pictures: Files, lines: list[str], wnids: tuple[str, ...], origin: Path) -> list[Picture]:
    """In the order of val_annotations.txt: 'val_0.JPEG<tab>n03444034<tab>x<tab>y<tab>...'."""
    label_of = {wnid: label for label, wnid in enumerate(wnids)}
    found = []
    for line in lines:
        file, _, rest = line.partition("\t")
        wnid, place = rest.partition("\t")[0].strip(), f"val/images/{file}"
        if wnid not in label_of:
            raise UserError(
                f"{origin}: val_annotations.txt gives {replace_unprintable(file)} a class outside wnids.txt."
            )
        if place not in pictures:
            raise UserError(f"{origin}: the image {replace_unprintable(place)} of val_annotations.txt is missing.")
        found.append(Picture(f"{origin}/{place}", pictures[place], label_of[wnid]))
    if not found:
        raise UserError(f"{origin}: val_annotations.txt names no images.")
    return found


def _class_names(wnids: tuple[str, ...], lines: list[str]) -> list[str]:
    """The first word for each class, with its id where two classes would be called the same."""
    words = {wnid: rest.strip() for wnid, _, rest in (line.partition("\t") for line in lines)}
    short = [replace_unprintable(words.get(wnid, wnid).split(",")[0]) for wnid in wnids]
    uses = Counter(short)
    return [name if uses[name] == 1 else f"{name} ({wnid})" for name, wnid in zip(short, wnids, strict=True)]
