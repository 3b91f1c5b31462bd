"""Batches are the same wherever the images are."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dign.data.dataset import Split
from dign.training.batches import HostBatches, ResidentBatches, make_batch_source
from dign.training.train import train

CPU = torch.device("cpu")
SMALL = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "dign", "alternate": True}


@pytest.fixture
def split():
    images = torch.arange(20, dtype=torch.uint8).view(20, 1, 1, 1).expand(20, 3, 2, 2)
    return Split(images, torch.arange(20)).select(torch.arange(19, 9, -1))


def order(step):
    return torch.tensor([step, 9 - step])


@pytest.mark.parametrize("kind", ["device", "host"])
def test_a_step_gets_the_images_and_labels_of_its_indices(split, kind):
    source = make_batch_source(split, order, CPU, last=4, share=0.33 if kind == "device" else 0)
    assert isinstance(source, ResidentBatches if kind == "device" else HostBatches)
    for step in (1, 2, 3, 4):  # a resumed run starts anywhere
        images, labels = source.get(step)
        assert images[:, 0, 0, 0].tolist() == labels.tolist() == [19 - step, 10 + step]
    source.close()


def test_the_next_batch_is_gathered_by_another_thread_and_none_after_the_last(split):
    asked = []
    source = HostBatches(split, lambda step: asked.append((step, threading.get_ident())) or order(step), CPU, last=2)
    for step in range(3):
        source.get(step)
    source.close()
    assert [step for step, _ in asked] == [0, 1, 2]
    assert threading.get_ident() not in {thread for _, thread in asked}


def test_an_error_in_that_thread_reaches_the_loop(split):
    def fail(step):
        raise OSError("the disk is gone")

    source = HostBatches(split, fail, CPU, last=2)
    with pytest.raises(OSError, match="the disk is gone"):
        source.get(0)
    source.close()


def test_images_are_on_the_device_only_if_they_fit_into_their_share(split, monkeypatch):
    monkeypatch.setattr("dign.training.batches.device_memory", lambda device: 400.0)  # the images take 120
    kinds = [type(make_batch_source(split, order, CPU, last=4, share=share)) for share in (0.29, 0.31)]
    assert kinds == [HostBatches, ResidentBatches]


@pytest.mark.slow
def test_training_from_the_host_ends_with_the_same_weights(tmp_path):
    runs = [train({**SMALL, "data_memory": share}, tmp_path / str(share), quiet=True) for share in (0.33, 0.0)]
    first, second = (load_file(run.weights) for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)


LARGE = """
import json, resource, sys
from pathlib import Path
import torch
import dign.training.loop
from dign.data.cache import Store
from dign.data.loading import SOURCES
from dign.training.train import train

class Large:
    def read(self, root, size, report):
        path = Path(sys.argv[1])
        return Store(path, json.loads((path / "info.json").read_text())).read_splits()

SOURCES["large"] = Large()
dign.training.setup.steps_per_epoch = lambda config, data: 3
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = int(sys.argv[2])
assert used < limit, f"{used} bytes are in use before the data are opened"
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
run = train({"data": "large", "preset": "digits", "epochs": 1, "batch_size": 32, "method": "standard", "device": "cpu",
             "flip": False, "validation": 0, "track": "none"}, sys.argv[3], quiet=True)
print(type(run.data().train.stored).__name__, len(run.data().train))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a limit of the address space")
def test_a_set_four_times_larger_than_the_address_space_can_be_trained_on(tmp_path):
    """The files are sparse: they take no room on the disk."""
    limit, side = 6 * 2**30, 64
    count = 4 * limit // (3 * side * side) + 1
    store, arrays = tmp_path / "store", {}
    store.mkdir()
    for name, images in (("train", count), ("test", 4)):
        for part, shape, dtype in (("images", (images, 3, side, side), "uint8"), ("labels", (images,), "int64")):
            _write_zeros(store / f"{name}_{part}.npy", shape, dtype)
            arrays[f"{name}_{part}"] = {"shape": list(shape), "dtype": dtype, "sha256": ""}
    info = {"format": 1, "name": "large", "origin": "nowhere", "classes": ["a", "b"], "arrays": arrays}
    (store / "info.json").write_text(json.dumps(info))
    command = [sys.executable, "-c", LARGE, str(store), str(limit), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    kind, images = done.stdout.split()
    assert kind == "ImageFile" and int(images) * 3 * side * side > 0.8 * 4 * limit
    assert load_file(Path(tmp_path / "run" / "model.safetensors"))


def _write_zeros(path, shape, dtype):
    import numpy as np

    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + int(np.prod(shape)) * np.dtype(dtype).itemsize)
    assert path.stat().st_blocks * 512 < 2**20, "not a sparse file"
