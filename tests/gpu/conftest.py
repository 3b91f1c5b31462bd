"""Imagined GPUs: outcomes of `imagined.py`, which runs dign on tensors without values in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def imagined_devices(tmp_path_factory) -> Path:
    """The library that makes torch believe in a GPU."""
    compiler = os.environ.get("CXX") or shutil.which("g++")
    if not compiler:
        pytest.skip("no C++ compiler to build the imagined GPU's device guard")
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("there is a real GPU")
    library = tmp_path_factory.mktemp("gpu") / "imagined_devices.so"
    torch_folder = Path(torch.__file__).parent
    command = [compiler, "-shared", "-fPIC", "-std=c++20", f"-I{torch_folder / 'include'}", f"-L{torch_folder / 'lib'}",
               str(HERE / "imagined_devices.cpp"), "-o", str(library), "-lc10", "-ltorch_cpu",
               f"-Wl,-rpath,{torch_folder / 'lib'}"]  # fmt: skip
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if built.returncode:
        pytest.skip(f"this torch has no headers to build the device guard with: {built.stderr[-300:]}")
    return library


def _run(library: Path, device: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(HERE / "imagined.py"), str(library), device], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def imagined_cuda(imagined_devices) -> dict[str, str]:
    """What became of each check on an NVIDIA GPU: "ok", or the error and where it was raised."""
    return _run(imagined_devices, "cuda")


@pytest.fixture(scope="session")
def imagined_mps(imagined_devices) -> dict[str, str]:
    """The same on an Apple GPU."""
    return _run(imagined_devices, "mps")
