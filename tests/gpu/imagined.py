"""Run parts of dign on an imagined GPU: `python imagined.py GUARDS.so cuda`, outcomes as JSON on standard output.

`imagined_mode.py` says what raises there. The guards have to be loaded before torch is: this is a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    os.environ["IMAGINED_DEVICE"] = sys.argv[2]
    ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)

import torch
from imagined_mode import ImaginedDevice, NoLiterals, waiting_allowed
from torch import Tensor

DEVICE = torch.device(os.environ.get("IMAGINED_DEVICE", "cuda"), 0)
Check = Callable[[], object]
FEW_STEPS = {"at": {"steps": 2}, "trades": {"steps": 2}, "augmax": {"steps": 2}}
"""Two steps of an attack meet all that ten meet."""


def images(count: int = 8, side: int = 32) -> Tensor:
    return torch.rand(count, 3, side, side, device=DEVICE)


def labels(count: int = 8) -> Tensor:
    return torch.randint(0, 10, (count,), device=DEVICE)


def probabilities() -> Tensor:
    return torch.rand(8, 10, device=DEVICE).softmax(1)


def model(name: str = "fastnet") -> torch.nn.Module:
    net = built(name).train()
    net.zero_grad()
    return net


@cache
def built(name: str) -> torch.nn.Module:
    from dign.models import build

    with DEVICE, waiting_allowed():
        return build(name, classes=10, image_size=(32, 32))


def generators() -> dict[str, torch.Generator | None]:
    from dign.core.image_rng import make_placed_generator, make_shared_generator
    from dign.core.seeds import make_generator

    return {
        "torch's": None,
        "seeded": make_generator(0, "method", 1, DEVICE),
        "shared": make_shared_generator(0, "method", 1, DEVICE, rank=1, world_size=2),
        "placed": make_placed_generator(0, "method", 1, DEVICE),
    }


def methods() -> Iterator[tuple[str, Check]]:
    from dign.methods import METHODS, AugMix, CutMix, DiGN, Method, MixUp, TrivialAugment, batch_checks

    def step(method: Method, kind: str) -> None:
        out = method(model(), images(), labels(), generator=generators()[kind])
        assert out.loss.device == out.logits.device == DEVICE
        assert all(term.device == DEVICE for term in out.terms.values())
        out.loss.backward()

    def predict(method: Method) -> None:
        assert method.predict(model().eval(), images(), generators()["placed"]).device == DEVICE

    # Values are looked at in the first call, and every hundredth time after it: here in none of the calls below.
    METHODS["standard"]()(model_on_host(), torch.rand(2, 3, 32, 32), torch.arange(2))
    batch_checks.LOOK_EVERY = sys.maxsize
    chosen = {key: kind(**FEW_STEPS.get(key, {})) for key, kind in METHODS.items()}
    chosen |= {
        "sum": DiGN() + AugMix(),
        "mixed": CutMix() + MixUp() + DiGN(),
        "thirty": TrivialAugment(noise=True),
        "fourier": AugMix(operations=("fourier", "rotate"), depth=2, severity=3),
    }
    for key, method in chosen.items():
        for kind in ("torch's", "seeded", "shared"):
            yield f"step/{key}/{kind}", lambda method=method, kind=kind: step(method, kind)
        yield f"predict/{key}", lambda method=method: predict(method)

    def edit(kind: str) -> None:
        from dign.augment.autoencoder import make_weights, save_autoencoder
        from dign.augment.edited_networks import edited_networks

        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "autoencoder.safetensors")
            with waiting_allowed():  # the autoencoder is read and copied once
                save_autoencoder(file, make_weights())
                edited_networks(images(), file, generator=generators()[kind])
            assert edited_networks(images(), file, generator=generators()[kind]).device == DEVICE

    for kind in ("torch's", "seeded", "shared"):
        yield f"step/edited networks/{kind}", lambda kind=kind: edit(kind)


def model_on_host() -> torch.nn.Module:
    from dign.models import build

    return build("tinynet", classes=10, image_size=(32, 32))


def transforms() -> Iterator[tuple[str, Check]]:
    from dign.augment.train_transforms import TrainTransforms, shrink
    from dign.core.pixels import to_float

    pixels = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8, device="cpu")
    for kind in ("torch's", "seeded", "shared"):
        yield f"transforms/{kind}", lambda kind=kind: TrainTransforms()(images(), generators()[kind])
    mirrored = lambda: torch.rand(8, device=DEVICE) < 0.5  # noqa: E731
    yield "transforms/alternating", lambda: TrainTransforms()(images(), mirrored=mirrored())
    yield "transforms/shrink", lambda: shrink(images())
    yield "transforms/to_float", lambda: to_float((images() * 255).to(pixels.dtype), channels_last=True)


def corruptions() -> Iterator[tuple[str, Check]]:
    from dign.corruptions import ALL_NAMES, corrupt
    from dign.corruptions.sequences import FRAMES, make_frames

    def corrupted(name: str) -> None:
        batch = (images() * 255).to(torch.uint8)
        with waiting_allowed():  # tables are built on the host and copied, once
            corrupt(batch, name, 3)
        assert corrupt(batch, name, 3).device == DEVICE

    for name in ALL_NAMES if DEVICE.type == "cuda" else ["contrast"]:  # on an Apple GPU the CPU corrupts
        yield f"corrupt/{name}", lambda name=name: corrupted(name)

    def framed(name: str) -> None:
        batch = (images() * 255).to(torch.uint8)
        with waiting_allowed():
            list(islice(make_frames(batch, name), 3))
        assert all(frame.device == DEVICE for frame in islice(make_frames(batch, name), 3))

    for name in FRAMES if DEVICE.type == "cuda" else ():
        yield f"corrupt/frames/{name}", lambda name=name: framed(name)


def metrics() -> Iterator[tuple[str, Check]]:
    from dign.metrics import Accuracy, Calibration, Confusion, Temperature

    for metric in (Accuracy(), Calibration(), Confusion(10), Temperature()):
        name = type(metric).__name__.lower()

        def update(metric: Accuracy | Calibration | Confusion | Temperature) -> None:
            with waiting_allowed():
                metric.to(DEVICE)
            metric.update(probabilities(), labels())

        yield f"metrics/{name}", lambda metric=metric: update(metric)


def scoring() -> Iterator[tuple[str, Check]]:
    from dign.corruptions import corrupt
    from dign.evaluation.measure import Work, measure
    from dign.evaluation.predictors import make_predictor
    from dign.methods import RSE, Standard
    from dign.training.validation import score_batch

    for method in (Standard(), RSE()):
        yield (
            f"validate/{method.key}",
            lambda method=method: score_batch(model().eval(), method, images(), labels(), generators()["placed"]),
        )

    def evaluate(conditions: tuple[str, int]) -> None:
        degraded = lambda: corrupt((images() * 255).to(torch.uint8), *conditions)  # noqa: E731
        work = [Work(conditions, 0, torch.zeros(8, dtype=torch.int64), degraded)]
        measure(make_predictor(model().eval()), work, device=DEVICE)

    yield "evaluate", lambda: evaluate(("contrast", 3))


def optimizers() -> Iterator[tuple[str, Check]]:
    from dign.methods import Standard
    from dign.models.winograd import use_winograd
    from dign.training.optimizers import make_optimizer

    def optimize(name: str) -> None:
        net = model()
        optimizer = make_optimizer(name, net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        for _ in range(2):
            Standard()(net, images(), labels()).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    for name in ("sgd", "orthogonal"):
        yield f"optimizer/{name}", lambda name=name: optimize(name)

    def winograd() -> None:
        net = use_winograd(model("resnet18"))
        Standard()(net, images(), labels()).loss.backward()

    yield "winograd", winograd


MODE = ImaginedDevice()
"""One for all: tables that a check caches on the device serve the next."""


def outcome(check: Check) -> str:
    try:
        with MODE, NoLiterals():
            check()
    except Exception as error:
        package = str(Path(sys.modules["dign"].__file__).parent)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(package)]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].line}" if frames else "?"
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} at {place}"
    return "ok"


def run() -> dict[str, str]:
    groups = (methods, transforms, corruptions, metrics, scoring, optimizers)
    return {name: outcome(check) for group in groups for name, check in group()}


if __name__ == "__main__":
    print(json.dumps(run()), flush=True)
    os._exit(0)  # autograd's thread for the imagined device cannot be joined
