"""Small valid files to be mutated."""

from __future__ import annotations

import io
import struct
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

WNIDS = ("n01443537", "n01629819")


@cache
def picture(kind: str, size: tuple[int, int], seed: int) -> bytes:
    width, height = size
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def cifar_pickle(key: bytes, count: int, seed: int = 0) -> bytes:
    """A batch with labels, or the list of class names, as Python 2 pickled it (protocol 2, byte strings)."""
    if key.endswith(b"names"):
        return b"\x80\x02}(" + _text(key) + b"](" + b"".join(_text(b"class %d" % n) for n in range(count)) + b"eu."
    rows = np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8).tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K"
        + bytes([count])
        + b"M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
        + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + _text(rows)
        + b"tb"
    )
    labels = b"](" + b"".join(b"K" + bytes([n % 10]) for n in range(count)) + b"e"
    return b"\x80\x02}(" + _text(b"data") + array + _text(key) + labels + b"u."


def _text(value: bytes) -> bytes:
    return (b"U" + bytes([len(value)]) if len(value) < 256 else b"T" + struct.pack("<i", len(value))) + value


def tiny_imagenet() -> dict[str, bytes]:
    """Two classes of two training images, and two of the test split, by their place in the layout."""
    files = {
        "wnids.txt": "\n".join(WNIDS).encode(),
        "words.txt": b"".join(b"%s\tfish, and more\n" % wnid.encode() for wnid in WNIDS),
        "val/val_annotations.txt": b"".join(
            b"val_%d.JPEG\t%s\t0\t0\t9\t9\n" % (n, WNIDS[n].encode()) for n in range(2)
        ),
    }
    for number, wnid in enumerate(WNIDS):
        files[f"val/images/val_{number}.JPEG"] = picture("JPEG", (64, 64), number)
        files |= {f"train/{wnid}/images/{wnid}_{n}.JPEG": picture("JPEG", (64, 64), 10 + n) for n in range(2)}
    return files


def results() -> dict[str, Any]:
    """A results file in which everything adds up: ten predictions under each condition, eight of them right."""
    import torch

    from dign.evaluation.result_info import EvaluationInfo, RunInfo
    from dign.evaluation.result_pools import TemperatureResult
    from dign.evaluation.summarize import CLEAN, make_results, pool_calibration
    from dign.metrics import Calibration

    def count() -> Calibration:
        calibration = Calibration(4)
        probabilities = torch.tensor([[0.9, 0.1]] * 8 + [[0.6, 0.4]] * 2)
        calibration.update(probabilities, torch.tensor([0] * 8 + [1] * 2))
        return calibration

    counts = {CLEAN: count(), ("gaussian_noise", 1): count(), ("fog", 3): count()}
    run = RunInfo("run", "dign", "DiGN", "tinynet", "digits", 0, 100)
    how = EvaluationInfo(
        "test", 10, (8, 8), "cifar", 0, bins=4, device="cpu", time="2026-01-01T00:00:00+00:00", seconds=1.0, versions={}
    )
    return make_results(counts, run, how, ["a", "b"], TemperatureResult(1.5, pool_calibration(counts))).to_json()
