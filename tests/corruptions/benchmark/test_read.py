"""Writing and reading whole benchmarks."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.core.locks import lock_folder
from dign.corruptions import NAMES, corrupt, open_benchmark, write_benchmark
from dign.corruptions.benchmark.read import TINY_IMAGENET_C
from dign.corruptions.jpeg import jpeg

CLASSES = ("ant", "bee", "cow")
COUNT = 7


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (COUNT, 3, 16, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def labels() -> torch.Tensor:
    return torch.tensor([2, 0, 1, 1, 0, 2, 2])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(images, labels, folder: Path, **options):
    return write_benchmark(images, labels, folder, classes=CLASSES, **options)


def test_arrays_have_the_layout_of_cifar_10_c(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog", "contrast"), seed=4)
    fog = np.load(tmp_path / "fog.npy")
    assert fog.shape == (5 * COUNT, 16, 12, 3) and fog.dtype == np.uint8
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), np.tile(labels.numpy(), 5))
    third = torch.from_numpy(fog[2 * COUNT : 3 * COUNT]).permute(0, 3, 1, 2)
    assert torch.equal(third, corrupt(images, "fog", 3, seed=4))


def test_arrays_read_back_as_written(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog", "contrast"))
    benchmark = open_benchmark(tmp_path, labels=labels, verify=True)
    assert len(benchmark) == 10 and set(benchmark.names) == {"fog", "contrast"} and benchmark.profile == "cifar"
    for condition in benchmark:
        assert torch.equal(condition.labels, labels) and len(condition.images) == COUNT
        expected = corrupt(images, condition.name, condition.severity)
        assert torch.equal(condition.images[2:5], expected[2:5]) and torch.equal(condition.images[:], expected)


def test_folders_have_the_layout_of_tiny_imagenet_c(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("contrast",), severities=(1, 4), layout="folders")
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.JPEG"))
    assert len(files) == 2 * COUNT and files[0] == "contrast/1/ant/1.JPEG"
    benchmark = open_benchmark(tmp_path, verify=True)
    assert benchmark.severities == (1, 4) and benchmark.frost is None
    order = labels.argsort(stable=True)
    for condition in benchmark:
        assert torch.equal(condition.labels, labels[order])
        made = corrupt(images, "contrast", condition.severity)[order]
        assert torch.equal(condition.images[0:COUNT], jpeg(made, 85))


class Stop(Exception):
    pass


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_an_interrupted_benchmark_ends_as_an_uninterrupted_one(tmp_path: Path, images, labels, layout: str) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = {"names": ("gaussian_noise", "snow", "pixelate"), "layout": layout}
    write(images, labels, whole, workers=3, **options)

    def stop_at(limit: int):
        def progress(done: int, total: int) -> None:
            if done >= limit:
                raise Stop

        return progress

    for limit in (1, 3 * COUNT, 8 * COUNT):
        with pytest.raises(Stop):
            write(images, labels, broken, workers=1, progress=stop_at(limit), **options)
        assert not any(path.suffix == ".npy" and path.stat().st_size == 0 for path in broken.rglob("*"))
    write(images, labels, broken, workers=2, **options)
    assert contents(broken) == contents(whole)


def test_finished_parts_are_kept_and_damaged_ones_made_again(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog", "contrast"))
    before = contents(tmp_path)
    kept = (tmp_path / "fog.npy").stat().st_mtime_ns
    damaged = bytearray(before["contrast.npy"])
    damaged[-1] ^= 1
    (tmp_path / "contrast.npy").write_bytes(damaged)
    write(images, labels, tmp_path, names=("fog", "contrast"))
    assert contents(tmp_path) == before and (tmp_path / "fog.npy").stat().st_mtime_ns == kept


def test_more_corruptions_can_be_added(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path / "a", names=("fog",))
    write(images, labels, tmp_path / "a", names=("contrast",))
    write(images, labels, tmp_path / "b", names=("contrast", "fog"))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize(
    "change, word",
    [({"seed": 1}, "seed"), ({"severities": (1, 2)}, "severities"), ({"profile": "imagenet"}, "profile")],
)
def test_other_settings_need_another_folder(tmp_path: Path, images, labels, change, word: str) -> None:
    write(images, labels, tmp_path, names=("fog",))
    with pytest.raises(UserError, match=f"another {word}"):
        write(images, labels, tmp_path, names=("fog",), **change)
    with pytest.raises(UserError, match="another images"):
        write(images.flip(0), labels, tmp_path, names=("fog",))


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
    with pytest.raises(UserError, match="not what manifest"):
        open_benchmark(tmp_path, verify=True)
    victim.unlink()
    with pytest.raises(UserError, match="files are missing"):
        open_benchmark(tmp_path)
    victim.write_bytes(good)
    (tmp_path / "contrast/3/bee").rename(tmp_path / "contrast/3/bat")
    with pytest.raises(UserError, match="none of the classes"):
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


def test_bad_input_is_an_error(tmp_path: Path, images, labels) -> None:
    with pytest.raises(UserError, match="uint8 images"):
        write(images.float(), labels, tmp_path)
    with pytest.raises(UserError, match="6"):
        write(images, labels[:6], tmp_path)
    with pytest.raises(UserError, match="from 1 to 5"):
        write(images, labels, tmp_path, severities=(0,))
    with pytest.raises(UserError, match="Unknown layout"):
        write(images, labels, tmp_path, layout="zip")
    with pytest.raises(UserError, match="Did you mean 'snow'"):
        write(images, labels, tmp_path, names=("snwo",))


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


def test_a_benchmark_of_others_is_not_written_over(tmp_path: Path, images, labels) -> None:
    np.save(tmp_path / "fog.npy", np.zeros(3))
    before = contents(tmp_path)
    with pytest.raises(UserError, match="did not make"):
        write(images, labels, tmp_path, names=("fog",))
    assert contents(tmp_path) == before


def test_images_that_cannot_be_corrupted_leave_nothing_behind(tmp_path: Path, images, labels) -> None:
    with pytest.raises(UserError, match="at least 8"):
        write(images[..., :6, :6], labels, tmp_path / "new", names=("fog",))
    assert not (tmp_path / "new").exists()


def test_a_folder_that_another_process_writes_to_is_left_alone(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog",))
    before = contents(tmp_path)
    with lock_folder(tmp_path, "writing to"), pytest.raises(UserError, match="Another process is writing to"):
        write(images, labels, tmp_path, names=("contrast",))
    assert contents(tmp_path) == before


def test_jpeg_does_not_depend_on_how_matrices_are_multiplied(images, monkeypatch) -> None:
    """A GPU may round the factors of float32 matrices to 10 bits; whoever multiplies so would be off by levels."""
    expected = jpeg(images, 25)
    multiply = torch.Tensor.__matmul__

    def rounded(first, second):
        assert first.dtype != torch.float32, "float32 matrices are multiplied"
        return multiply(first, second)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    assert torch.equal(jpeg(images, 25), expected)
