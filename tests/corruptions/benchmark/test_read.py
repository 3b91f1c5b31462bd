"""Writing and reading whole benchmarks."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.corruptions import NAMES, SETS, corrupt, family_of, open_benchmark, write_benchmark
from dign.corruptions.benchmark.read import TINY_IMAGENET_C

CLASSES = ("ant", "bee", "cow")
COUNT = 7


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (COUNT, 3, 16, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def labels() -> torch.Tensor:
    return torch.tensor([2, 0, 1, 1, 0, 2, 2])


def write(images, labels, folder: Path, **options):
    return write_benchmark(images, labels, folder, classes=CLASSES, **options)


def test_arrays_read_back_as_written(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog", "contrast"))
    benchmark = open_benchmark(tmp_path, labels=labels, verify=True)
    assert len(benchmark) == 10 and set(benchmark.names) == {"fog", "contrast"} and benchmark.profile == "cifar"
    for condition in benchmark:
        assert torch.equal(condition.labels, labels) and len(condition.images) == COUNT
        expected = corrupt(images, condition.name, condition.severity)
        assert torch.equal(condition.images[2:5], expected[2:5]) and torch.equal(condition.images[:], expected)


def official(folder: Path, images, labels, names=NAMES) -> None:
    """A folder as published: all five severities, no manifest."""
    write(images, labels, folder, names=names)
    (folder / "manifest.json").unlink()


def test_published_arrays_need_no_manifest(tmp_path: Path, images, labels) -> None:
    official(tmp_path, images, labels)
    benchmark = open_benchmark(tmp_path, severities=(2,))
    assert benchmark.names == NAMES and len(benchmark) == 19 and benchmark.frost == "photographs"
    assert torch.equal(benchmark.condition("contrast", 2).images[:], corrupt(images, "contrast", 2))


def test_published_folders_need_no_manifest(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=TINY_IMAGENET_C, layout="folders")
    (tmp_path / "manifest.json").unlink()
    benchmark = open_benchmark(tmp_path)
    assert len(benchmark.names) == 15 and benchmark.condition("fog", 5).labels.tolist() == sorted(labels.tolist())


def test_a_missing_file_is_an_error(tmp_path: Path, images, labels) -> None:
    official(tmp_path, images, labels)
    (tmp_path / "fog.npy").unlink()
    with pytest.raises(UserError, match="lacks fog"):
        open_benchmark(tmp_path)
    assert len(open_benchmark(tmp_path, names=("snow",))) == 5
    (tmp_path / "labels.npy").unlink()
    with pytest.raises(UserError, match=r"labels.npy is missing"):
        open_benchmark(tmp_path, names=("snow",))


def test_a_truncated_file_is_an_error(tmp_path: Path, images, labels) -> None:
    official(tmp_path, images, labels, names=("fog",))
    path = tmp_path / "fog.npy"
    data = path.read_bytes()
    for size in (len(data) - 1, 40, 0):
        path.write_bytes(data[:size])
        with pytest.raises(UserError, match=r"fog.npy is truncated"):
            open_benchmark(tmp_path, names=("fog",))
    np.save(path, np.zeros((34, 16, 12, 3), np.uint8))
    with pytest.raises(UserError, match="34 images, but labels"):
        open_benchmark(tmp_path, names=("fog",))
    np.save(path, np.zeros((35, 16, 12), np.uint8))
    with pytest.raises(UserError, match=r"\(N,H,W,3\)"):
        open_benchmark(tmp_path, names=("fog",))


def test_pickles_are_not_opened(tmp_path: Path, images, labels) -> None:
    official(tmp_path, images, labels, names=("fog",))
    np.save(tmp_path / "fog.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match=r"not a .npy file"):
        open_benchmark(tmp_path, names=("fog",))


def test_wrong_labels_are_an_error(tmp_path: Path, images, labels) -> None:
    official(tmp_path, images, labels, names=("fog",))
    with pytest.raises(UserError, match="another data set"):
        open_benchmark(tmp_path, names=("fog",), labels=labels.flip(0))
    stored = np.load(tmp_path / "labels.npy")
    stored[9] += 1
    np.save(tmp_path / "labels.npy", stored)
    with pytest.raises(UserError, match="same labels for each severity"):
        open_benchmark(tmp_path, names=("fog",))
    np.save(tmp_path / "labels.npy", stored[:33])
    with pytest.raises(UserError, match="multiple of the 5"):
        open_benchmark(tmp_path, names=("fog",))
    np.save(tmp_path / "labels.npy", stored.astype(float))
    with pytest.raises(UserError, match="whole numbers"):
        open_benchmark(tmp_path, names=("fog",))


def test_folders_of_other_images_are_an_error(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("contrast",), severities=(1,), layout="folders")
    assert len(open_benchmark(tmp_path, labels=labels.flip(0))) == 1, "folders keep no order"
    with pytest.raises(UserError, match=r"contrast.1 holds 7 images that do not agree, class by class, with the 6"):
        open_benchmark(tmp_path, labels=labels[:6])
    with pytest.raises(UserError, match="it belongs to other images"):
        open_benchmark(tmp_path, labels=labels.clamp(max=1))


def test_damaged_folders_are_errors(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("contrast",), layout="folders")
    victim = tmp_path / "contrast/3/bee/2.JPEG"
    good = victim.read_bytes()
    victim.write_bytes(good[:50])
    condition = open_benchmark(tmp_path).condition("contrast", 3)
    with pytest.raises(UserError, match=r"bee.2.JPEG cannot be read"):
        condition.images[:]
    with pytest.raises(UserError, match="does not match its checksum"):
        open_benchmark(tmp_path, verify=True)
    victim.unlink()
    with pytest.raises(UserError, match="files are missing"):
        open_benchmark(tmp_path)
    victim.write_bytes(good)
    (tmp_path / "contrast/3/bee").rename(tmp_path / "contrast/3/bat")
    with pytest.raises(UserError, match="not one of the classes"):
        open_benchmark(tmp_path)
    shutil.rmtree(tmp_path / "contrast/3")
    with pytest.raises(UserError, match=r"contrast.3 is missing"):
        open_benchmark(tmp_path)


def test_what_is_no_benchmark_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no benchmark folder"):
        open_benchmark(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is not a benchmark"):
        open_benchmark(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(UserError, match="not a manifest"):
        open_benchmark(tmp_path)


def test_absent_severities_are_an_error(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog",), severities=(1, 3))
    assert torch.equal(open_benchmark(tmp_path).condition("fog", 3).images[:], corrupt(images, "fog", 3))
    with pytest.raises(UserError, match=r"severities \[1, 3\], not \[5\]"):
        open_benchmark(tmp_path, severities=(5,))


def test_an_unfinished_benchmark_is_not_taken_for_a_whole_one(tmp_path: Path, images, labels) -> None:
    def stop(done: int, total: int) -> None:
        if done > 5 * COUNT:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(images, labels, tmp_path, names=("contrast", "fog"), progress=stop)
    assert (tmp_path / "contrast.npy").exists()
    with pytest.raises(UserError, match="lacks fog"):
        open_benchmark(tmp_path)
    assert open_benchmark(tmp_path, names=("contrast",)).names == ("contrast",)


@pytest.mark.parametrize("layout, name", [("npy", "c-bar"), ("folders", "imagenet-c-bar"), ("folders", "c-bar")])
def test_a_published_c_bar_needs_no_manifest_and_is_whole(tmp_path: Path, images, labels, layout, name) -> None:
    write(images, labels, tmp_path, names=SETS[name], layout=layout)
    (tmp_path / "manifest.json").unlink()
    assert open_benchmark(tmp_path).names == SETS[name]
    assert open_benchmark(tmp_path, names=("lines",) if name == "c-bar" else ("plasma_noise",)).frost is None
    missing = tmp_path / ("sparkles.npy" if layout == "npy" else "sparkles")
    missing.rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="lacks sparkles"):
        open_benchmark(tmp_path)
    with pytest.raises(UserError, match="which dign did not write"):
        write(images, labels, tmp_path, names=("fog",))


def test_imagenet_c_as_it_is_downloaded_has_a_level_of_families(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path / "flat", names=TINY_IMAGENET_C, layout="folders")
    for name in TINY_IMAGENET_C:
        family = tmp_path / "imagenet-c" / family_of(name)
        family.mkdir(parents=True, exist_ok=True)
        (tmp_path / "flat" / name).rename(family / name)
    benchmark = open_benchmark(tmp_path / "imagenet-c")
    assert benchmark.names == TINY_IMAGENET_C and benchmark.jpeg_quality == 85
    assert benchmark.condition("fog", 2).labels.tolist() == sorted(labels.tolist())
    shutil.rmtree(tmp_path / "imagenet-c" / "weather" / "fog" / "4")
    with pytest.raises(UserError, match=r"fog.4 is missing: fetch or make it again"):
        open_benchmark(tmp_path / "imagenet-c")
    assert len(open_benchmark(tmp_path / "imagenet-c", severities=(1, 2))) == 30
