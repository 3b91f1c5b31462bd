import errno
import subprocess
import sys

import numpy as np
import pytest

import dign.data
from dign.core.errors import UserError
from dign.core.locks import wait_for_lock
from dign.data.cache import create_store, open_store

IMAGES = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
LABELS = np.array([0, 1])


def write(path, images=IMAGES):
    with wait_for_lock(path), create_store(path, name="x", classes=["a", "b"], origin="here") as writer:
        for split in ("train", "test"):
            writer.write_split(split, images, LABELS, (4, 4))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read_as_plain_numpy_files(tmp_path):
    write(tmp_path / "store")
    store = open_store(tmp_path / "store")
    assert np.array_equal(np.load(tmp_path / "store" / "train_images.npy"), IMAGES)
    assert np.array_equal(store.array("test_images"), IMAGES)
    assert store.classes == ("a", "b")
    assert all(check.good for check in store.verify())


def test_a_writer_that_fails_leaves_the_old_store_and_nothing_else(tmp_path):
    write(tmp_path / "store")
    with pytest.raises(KeyboardInterrupt), create_store(tmp_path / "store", name="x", classes=[], origin="") as writer:
        writer.write_split("train", IMAGES, LABELS, (4, 4))
        raise KeyboardInterrupt
    assert names(tmp_path) == [".store.lock", "store"]
    assert np.array_equal(open_store(tmp_path / "store").array("train_images"), IMAGES)


@pytest.mark.slow
def test_what_a_killed_writer_left_is_cleared_away(tmp_path):
    killed = (
        "import os, sys, pathlib, numpy as np\n"
        "from dign.core.locks import wait_for_lock\n"
        "from dign.data.cache import create_store\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "with wait_for_lock(path), create_store(path, name='x', classes=['a'], origin='') as writer:\n"
        "    writer.write_split('train', np.zeros((2, 3, 4, 4), np.uint8), np.zeros(2, np.int64), (4, 4))\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(tmp_path / "store")]).returncode == -9
    assert names(tmp_path) == [".store.lock", ".store.partial"]
    assert open_store(tmp_path / "store") is None
    write(tmp_path / "store")
    assert names(tmp_path) == [".store.lock", "store"]


@pytest.mark.parametrize(
    ("number", "sentence"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "may not be written to")]
)
def test_a_full_or_read_only_disk_is_one_sentence(tmp_path, number, sentence):
    def images():
        yield IMAGES[0]
        raise OSError(number, "as the system would")

    with pytest.raises(UserError, match=f"{sentence}.*DIGN_DATA"):
        write(tmp_path / "store", images())
    assert names(tmp_path) == [".store.lock"]


@pytest.mark.parametrize(
    "info",
    [
        b"",
        b"[" * 100_000,
        b"{}",
        b"[1, 2]",
        b'{"format": 1, "name": "x"}',
        b'{"format": 1, "name": "x", "origin": "", "classes": 3, "arrays": {}}',
        b'{"format": 1, "name": "x", "origin": "", "classes": ["a"], "arrays": {"train_images": {}}}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_description_is_one_sentence(tmp_path, info):
    write(tmp_path / "store")
    (tmp_path / "store" / "info.json").write_bytes(info)
    with pytest.raises(UserError, match="damaged"):
        open_store(tmp_path / "store")


def test_an_array_that_would_be_unpickled_is_refused(tmp_path):
    write(tmp_path / "store")
    np.save(tmp_path / "store" / "train_images.npy", np.array([{"code": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="damaged"):
        open_store(tmp_path / "store").array("train_images")


@pytest.mark.slow
def test_processes_that_build_at_once_all_get_the_same(tmp_path, save_image):
    for index in range(30):
        for name in ("a", "b"):
            save_image(tmp_path / "all" / name / f"{index}.png", (index, 7, len(name)), size=(40, 30))
    program = (
        "import sys, hashlib, dign.data\n"
        "data = dign.data.load(sys.argv[1], size=16, root=sys.argv[2])\n"
        "print(hashlib.sha256(data.train.images.numpy().tobytes()).hexdigest())\n"
    )
    command = [sys.executable, "-c", program, f"folder:{tmp_path / 'all'}", str(tmp_path / "root")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    digests = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(digests) == 1
    assert len([name for name in names(tmp_path / "root") if not name.startswith(".")]) == 1
    assert not [name for name in names(tmp_path / "root") if "partial" in name]


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("DIGN_DATA", str(tmp_path))
    assert dign.data.cache_root() == tmp_path
    monkeypatch.delenv("DIGN_DATA")
    assert dign.data.cache_root().name == "dign"
