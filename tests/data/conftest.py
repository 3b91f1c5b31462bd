"""Writers of small files in exactly the official formats."""

import io
import json
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CIFAR10_CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()  # noqa: SIM905


class Python2Pickle:
    """Pickles as Python 2 wrote them (protocol 2, byte strings), which no `pickle.dumps` of today does."""

    def __init__(self) -> None:
        self.out = bytearray(b"\x80\x02")
        self.memo = 0

    def put(self) -> None:
        self.out += b"q" + bytes([self.memo]) if self.memo < 256 else b"r" + struct.pack("<I", self.memo)
        self.memo += 1

    def write(self, value) -> None:
        if isinstance(value, bytes):
            short = len(value) < 256
            self.out += b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))
            self.out += value
            self.put()
        elif isinstance(value, int):
            self.out += b"K" + bytes([value]) if 0 <= value < 256 else b"J" + struct.pack("<i", value)
        elif isinstance(value, list):
            self.out += b"]"
            self.put()
            self.out += b"("
            for item in value:
                self.write(item)
            self.out += b"e"
        elif isinstance(value, dict):
            self.out += b"}"
            self.put()
            self.out += b"("
            for key, item in value.items():
                self.write(key)
                self.write(item)
            self.out += b"u"
        else:
            self.write_array(value)

    def write_array(self, array: np.ndarray) -> None:
        self.out += b"cnumpy.core.multiarray\n_reconstruct\n"
        self.put()
        self.out += b"cnumpy\nndarray\n"
        self.put()
        self.out += b"K\x00\x85U\x01b\x87R("
        self.out += (
            b"K\x01" + b"M" + struct.pack("<H", array.shape[0]) + b"M" + struct.pack("<H", array.shape[1]) + b"\x86"
        )
        self.out += (
            b"cnumpy\ndtype\n" + b"U\x02u1K\x00K\x01\x87R" + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        )
        self.out += b"\x89"
        self.write(array.tobytes())
        self.out += b"tb"


def pickled_by_python2(value) -> bytes:
    writer = Python2Pickle()
    writer.write(value)
    return bytes(writer.out + b".")


@pytest.fixture
def pickle2():
    return pickled_by_python2


@pytest.fixture
def make_images():
    """Random images (n,32,32,3) and labels that go round the classes."""

    def make(count: int, classes: int = 10, seed: int = 0) -> tuple[np.ndarray, list[int]]:
        images = np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        return images, [index % classes for index in range(count)]

    return make


def rows(images: np.ndarray) -> np.ndarray:
    """As CIFAR has them: 1024 red, 1024 green, 1024 blue bytes in a row."""
    return np.stack([np.concatenate([image[:, :, channel].ravel() for channel in range(3)]) for image in images])


@pytest.fixture
def write_cifar10():
    """Five training batches and a test batch, equal shares of the images in order."""

    def write(folder: Path, images: np.ndarray, labels: list[int], test_images: np.ndarray, test_labels: list[int]):
        folder.mkdir(parents=True)
        share = len(labels) // 5
        for number in range(5):
            part = slice(number * share, (number + 1) * share)
            batch = {
                b"batch_label": b"training batch %d of 5" % (number + 1),
                b"labels": labels[part],
                b"data": rows(images[part]),
                b"filenames": [b"image_%d.png" % index for index in range(share)],
            }
            (folder / f"data_batch_{number + 1}").write_bytes(pickled_by_python2(batch))
        test = {b"labels": test_labels, b"data": rows(test_images), b"batch_label": b"testing batch 1 of 1"}
        (folder / "test_batch").write_bytes(pickled_by_python2(test))
        names = {
            b"label_names": [name.encode() for name in CIFAR10_CLASSES],
            b"num_cases_per_batch": share,
            b"num_vis": 3072,
        }
        (folder / "batches.meta").write_bytes(pickled_by_python2(names))
        return folder

    return write


@pytest.fixture
def write_npm_package():
    """The package's files: PNGs of one image a row, labels in JSON under their misspelled names."""

    def write(path: Path, images: np.ndarray, labels: list[int], test_images: np.ndarray, test_labels: list[int]):
        share = len(labels) // 5
        files = {f"data_batch_{n + 1}.png": png(images[n * share : (n + 1) * share]) for n in range(5)}
        files["test_batch.png"] = png(test_images)
        files["train_lables.json"] = json.dumps(labels).encode()
        files["test_lables.json"] = json.dumps(test_labels).encode()
        return write_tar(path, {f"package/{name}": data for name, data in files.items()})

    def png(images: np.ndarray) -> bytes:
        buffer = io.BytesIO()
        Image.fromarray(images.reshape(len(images), 1024, 3)).save(buffer, "PNG")
        return buffer.getvalue()

    return write


def write_tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def tar_of():
    return write_tar


@pytest.fixture
def tar_folder():
    """A .tar.gz of a folder under its own name."""

    def write(path: Path, folder: Path) -> Path:
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, folder.name)
        return path

    return write


@pytest.fixture
def save_image():
    """Write a plain image of one color."""

    def save(path: Path, color=(200, 30, 90), size: tuple[int, int] = (8, 8), mode: str = "RGB", **options) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, size, color).save(path, **options)
        return path

    return save
