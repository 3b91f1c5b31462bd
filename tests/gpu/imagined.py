"""Run parts of dign on an imagined GPU: `python imagined.py GUARD.so`, outcomes as JSON on standard output.

Under FakeTensorMode an operation that mixes CPU and CUDA tensors raises, and so does everything whose result the host
has to wait for (`.item()`, `nonzero`, `bincount`, `.numpy()`, shapes that depend on data). The guard has to be loaded
before torch is: this is a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

CUDA = torch.device("cuda")
Check = Callable[[], object]


def images(count: int = 8, side: int = 32) -> Tensor:
    return torch.rand(count, 3, side, side, device=CUDA)


def labels(count: int = 8) -> Tensor:
    return torch.randint(0, 10, (count,), device=CUDA)


def checks() -> Iterator[tuple[str, Check]]:
    from dign.augment.train_transforms import TrainTransforms
    from dign.corruptions import ALL_NAMES, corrupt
    from dign.methods import METHODS
    from dign.metrics import Calibration, Confusion
    from dign.models import build
    from dign.training.optimizers import make_optimizer

    def model() -> torch.nn.Module:
        with CUDA:
            return build("fastnet", classes=10, image_size=(32, 32))

    def step(key: str) -> Check:
        def run() -> None:
            out = METHODS[key]()(model(), images(), labels())
            assert out.loss.device.type == out.logits.device.type == "cuda"
            assert all(term.device.type == "cuda" for term in out.terms.values())
            out.loss.backward()

        return run

    def predict(key: str) -> Check:
        def run() -> None:
            assert METHODS[key]().predict(model().eval(), images()).device.type == "cuda"

        return run

    # The range of images is looked at in the first call, and then every thousandth time.
    METHODS["standard"]()(build("tinynet", classes=10, image_size=(8, 8)), torch.rand(2, 3, 8, 8), torch.arange(2))
    for key in METHODS:
        yield f"step/{key}", step(key)
        yield f"predict/{key}", predict(key)
    yield "transforms", lambda: TrainTransforms()(images())

    def corrupted(name: str, severity: int) -> Check:
        def run() -> None:
            batch = (images() * 255).to(torch.uint8)
            assert corrupt(batch, name, severity).device.type == "cuda"

        return run

    for name in ALL_NAMES:
        corrupt(torch.zeros(1, 3, 32, 32, dtype=torch.uint8), name, 3)  # tables are built on the host, once
        yield f"corrupt/{name}", corrupted(name, 3)

    def update(metric: Calibration | Confusion) -> None:
        metric.to(CUDA).update(images(8, 1).flatten(1).repeat(1, 4)[:, :10].softmax(1), labels())

    yield "metrics/calibration", lambda: update(Calibration())
    yield "metrics/confusion", lambda: update(Confusion(10))

    def optimize(name: str) -> Check:
        def run() -> None:
            net = model()
            optimizer = make_optimizer(name, net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.0)
            METHODS["standard"]()(net, images(), labels()).loss.backward()
            optimizer.step()

        return run

    for name in ("sgd", "orthogonal"):
        yield f"optimizer/{name}", optimize(name)


MODE = FakeTensorMode(allow_non_fake_inputs=True)
"""One for all: tables that a check caches on the device serve the next. Pictures on the host become fake when used."""


def outcome(check: Check) -> str:
    try:
        with MODE:
            check()
    except Exception as error:
        package = str(Path(sys.modules["dign"].__file__).parent)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(package)]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].line}" if frames else "?"
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} at {place}"
    return "ok"


if __name__ == "__main__":
    found = {name: outcome(check) for name, check in checks()}
    print(json.dumps(found), flush=True)
    os._exit(0)  # autograd's thread for the imagined device cannot be joined
