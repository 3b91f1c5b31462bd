"""Benchmarks are written in the published layouts, are resumed, and never overwrite anything else."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.core.locks import lock_folder
from dign.corruptions import corrupt, open_benchmark, write_benchmark
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


class Stop(Exception):
    pass


def test_arrays_have_the_layout_of_cifar_10_c(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog", "contrast"), seed=4)
    fog = np.load(tmp_path / "fog.npy")
    assert fog.shape == (5 * COUNT, 16, 12, 3) and fog.dtype == np.uint8
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), np.tile(labels.numpy(), 5))
    third = torch.from_numpy(fog[2 * COUNT : 3 * COUNT]).permute(0, 3, 1, 2)
    assert torch.equal(third, corrupt(images, "fog", 3, seed=4))


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


def test_a_benchmark_of_others_is_not_written_over(tmp_path: Path, images, labels) -> None:
    np.save(tmp_path / "fog.npy", np.zeros(3))
    before = contents(tmp_path)
    with pytest.raises(UserError, match="did not write"):
        write(images, labels, tmp_path, names=("fog",))
    assert contents(tmp_path) == before


def test_images_that_cannot_be_corrupted_leave_nothing_behind(tmp_path: Path, images, labels) -> None:
    with pytest.raises(UserError, match="at least 8"):
        write(images[..., :6, :6], labels, tmp_path / "new", names=("fog",))
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="workers are threads elsewhere")
@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_a_worker_that_dies_is_an_error_and_leaves_no_part(
    tmp_path: Path, images, labels, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("dign.corruptions.benchmark.write._corrupt_batch", lambda *_: os._exit(1))
        with pytest.raises(UserError, match="died, perhaps out of memory"):
            write(images, labels, tmp_path, names=("fog",), workers=2, layout=layout)
    assert not [path for path in tmp_path.rglob("*fog*") if path.is_file()]
    write(images, labels, tmp_path, names=("fog",), workers=2, layout=layout)
    assert len(list(open_benchmark(tmp_path, verify=True))) == 5


def test_a_folder_that_another_process_writes_to_is_left_alone(tmp_path: Path, images, labels) -> None:
    write(images, labels, tmp_path, names=("fog",))
    before = contents(tmp_path)
    with lock_folder(tmp_path, "writing to"), pytest.raises(UserError, match="Another process is writing to"):
        write(images, labels, tmp_path, names=("contrast",))
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "profile, jpeg, quality, ending",
    [
        ("imagenet", "profile", 85, "JPEG"),
        ("cifar", "profile", 85, "JPEG"),
        ("tiny-imagenet", 40, 40, "JPEG"),
        ("imagenet", None, None, "png"),
    ],
)
def test_files_hold_what_corrupt_makes_with_the_same_jpeg(tmp_path, profile, jpeg, quality, ending):
    """Bit for bit, in either layout; files are JPEG of quality 85 where nothing else is said."""
    coarse = torch.rand(3, 3, 5, 5, generator=torch.Generator().manual_seed(1))
    images = (torch.nn.functional.interpolate(coarse, size=(24, 24), mode="bilinear") * 255).to(torch.uint8)
    labels = torch.tensor([0, 0, 1])
    how = {"classes": ("a", "b"), "names": ("shot_noise",), "severities": (5,), "profile": profile, "jpeg": jpeg}
    made = write_benchmark(images, labels, tmp_path / "files", layout="folders", **how)
    assert made["jpeg_quality"] == quality
    assert {path.suffix for path in (tmp_path / "files" / "shot_noise").rglob("*.*")} == {f".{ending}"}
    expected = corrupt(images, "shot_noise", 5, profile=profile, jpeg=quality)
    benchmark = open_benchmark(tmp_path / "files")
    assert torch.equal(benchmark.condition("shot_noise", 5).images[:], expected)
    assert benchmark.jpeg_quality == quality
    arrays = write_benchmark(images, labels, tmp_path / "arrays", **how)
    expected = corrupt(images, "shot_noise", 5, profile=profile, jpeg=jpeg)
    assert torch.equal(open_benchmark(tmp_path / "arrays").condition("shot_noise", 5).images[:], expected)
    assert arrays["jpeg_quality"] == (None if profile == "cifar" else quality)


def test_another_quality_needs_another_folder(tmp_path):
    images, labels = torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])
    how = {"classes": ("a", "b"), "names": ("fog",), "severities": (1,)}
    write_benchmark(images, labels, tmp_path, jpeg=85, **how)
    with pytest.raises(UserError, match=r"another jpeg_quality .85, not None"):
        write_benchmark(images, labels, tmp_path, **how)
    with pytest.raises(UserError, match="quality from 1 to 100"):
        write_benchmark(images, labels, tmp_path / "new", jpeg=0, **how)
    assert not (tmp_path / "new").exists()
