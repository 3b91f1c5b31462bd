"""Data sets, pictures and benchmarks: small valid ones, and how they are read. See fuzz.py."""

from __future__ import annotations

import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from fuzz_samples import cifar_pickle, picture, tiny_imagenet

from dign.core.progress import ignore_progress
from dign.corruptions.benchmark.read import open_benchmark
from dign.corruptions.benchmark.write import write_benchmark
from dign.data.cache import create_store, open_store
from dign.data.dataset import DataSet, Split
from dign.data.decoding import decode, read_upright_size
from dign.data.sources.cifar import CIFAR10_CLASSES, Cifar, _read_npm
from dign.data.sources.folder import Folder
from dign.data.sources.tiny_imagenet import TinyImageNet


def check_data(classes: tuple[str, ...], train: Split, test: Split) -> None:
    DataSet("mutated", classes, train, test, test)  # which checks shapes, types and labels itself
    assert all(isinstance(name, str) for name in classes)


def make_cifar10(folder: Path) -> None:
    for number in range(1, 6):
        (folder / f"data_batch_{number}").write_bytes(cifar_pickle(b"labels", 2, number))
    (folder / "test_batch").write_bytes(cifar_pickle(b"labels", 2, 9))
    (folder / "batches.meta").write_bytes(cifar_pickle(b"label_names", 10))


def make_cifar100(folder: Path) -> None:
    for name in ("train", "test"):
        (folder / name).write_bytes(cifar_pickle(b"fine_labels", 2, len(name)))
    (folder / "meta").write_bytes(cifar_pickle(b"fine_label_names", 10))


def read_cifar(source: Cifar, origin: Path) -> None:
    """All but the checksums of the authors' data, which would refuse any change at once."""
    source = replace(source, file_md5={}, array_sha256={})
    files = source._read_files(origin, ignore_progress)
    if source.npm and "train_lables.json" in files:
        arrays, classes = _read_npm(files, origin), CIFAR10_CLASSES
    else:
        arrays, classes = source._read_pickles(files, origin)
    splits = [
        Split(torch.from_numpy(arrays[f"{name} images"].copy()), torch.from_numpy(arrays[f"{name} labels"]).long())
        for name in ("train", "test")
    ]
    check_data(classes, *splits)


def archived(make: Callable[[Path], None], name: str, top: str) -> Callable[[Path], None]:
    """The files of `make` in one archive, below the folder `top`."""

    def write(folder: Path) -> None:
        inside = folder / top
        inside.mkdir()
        make(inside)
        files = [path for path in sorted(inside.rglob("*")) if path.is_file()]
        if name.endswith(".zip"):
            with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in files:
                    archive.writestr(f"{top}/{path.relative_to(inside)}", path.read_bytes())
        else:
            with tarfile.open(folder / name, "w:gz" if name.endswith("gz") else "w") as archive:
                for path in files:
                    archive.add(path, f"{top}/{path.relative_to(inside)}")
        shutil.rmtree(inside)

    return write


def make_npm(folder: Path) -> None:
    for number, name in enumerate([*(f"data_batch_{n}.png" for n in range(1, 6)), "test_batch.png"]):
        (folder / name).write_bytes(picture("PNG", (1024, 2), number))
    (folder / "train_lables.json").write_text(json.dumps(list(range(10))))
    (folder / "test_lables.json").write_text("[0, 1]")


def make_tiny_imagenet(folder: Path) -> None:
    for name, data in tiny_imagenet().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def read_tiny_imagenet(origin: Path) -> None:
    target = origin.parent / "store"
    try:
        TinyImageNet().build(origin, target, ignore_progress, "a test")
        official = open_store(target).read_splits()
        check_data(official.classes, official.train, official.test)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def make_pictures(kind: str) -> Callable[[Path], None]:
    return lambda folder: (folder / f"picture.{kind.lower()}").write_bytes(picture(kind, (12, 10), 0)) and None


def read_picture(folder: Path) -> None:
    (file,) = folder.iterdir()
    height, width = read_upright_size(file)
    assert height > 0 and width > 0
    for size, data in ((None, decode(file)), (8, decode(file, (8, 8)))):
        assert data.dtype == np.uint8 and data.shape[0] == 3 and data.ndim == 3
        assert data.shape[1:] == ((size, size) if size else (height, width))


def make_folder(folder: Path) -> None:
    for number in range(6):
        file = folder / f"class {number % 2}" / f"{number}.png"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(picture("PNG", (8, 8), number))


def read_folder(folder: Path) -> None:
    cache = folder.parent / "cache"
    try:
        official = Folder(str(folder)).read(cache, None, ignore_progress)
        check_data(official.classes, official.train, official.test)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def make_store(folder: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 4, 4), dtype=np.uint8)
    with create_store(folder / "made", name="cifar10", classes=["a", "b"], origin="a test") as writer:
        for split in ("train", "test"):
            writer.write_split(split, [pixels], np.array([0, 1, 0, 1]), (4, 4))
    for file in (folder / "made").iterdir():
        file.rename(folder / file.name)
    (folder / "made").rmdir()


def read_store(folder: Path) -> None:
    store = open_store(folder)
    if store is not None:
        official = store.read_splits()
        check_data(official.classes, official.train, official.test)
        store.verify()


def make_benchmark(layout: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        images = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        labels = torch.tensor([0, 1, 0, 1])
        settings = {"names": ("gaussian_noise", "contrast"), "severities": (1, 3), "layout": layout, "workers": 1}
        write_benchmark(images, labels, folder, classes=["cat", "dog"], **settings)

    return write


def read_benchmark(folder: Path) -> None:
    for verify in (True, False):
        benchmark = open_benchmark(folder, verify=verify)
        for condition in benchmark:
            images = condition.images[0 : len(condition)]
            assert images.dtype == torch.uint8 and images.shape[:2] == (len(condition.labels), 3)
            assert condition.labels.dtype == torch.int64
        _ = benchmark.frost, benchmark.profile, benchmark.seed
