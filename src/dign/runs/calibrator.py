"""What is stored with a model's weights so that its probabilities can be believed: a calibrator, and a record."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.files import read_json, write_json
from dign.core.packing import pack_bytes, unpack_bytes
from dign.core.text import clean_text
from dign.metrics.conformal import SETS, conformal_quantile, conformal_scores
from dign.metrics.histogram_binning import HistogramBinning
from dign.metrics.refusal import threshold_for_coverage, threshold_for_error
from dign.metrics.temperature import log_probabilities
from dign.metrics.vector_scaling import VectorScaling

CALIBRATION_FILE = "calibration.json"
KINDS = ("temperature", "vector", "histogram")
MAX_IMAGES = 10_000_000
TOLERANCE = 1e-6
"""Relative difference up to which numbers are the same: a fit on the same images repeats itself but for rounding."""


Transform = float | VectorScaling | HistogramBinning
"""A temperature, or another function from log-probabilities to log-probabilities."""


def apply_transform(transform: Transform, scores: Tensor) -> Tensor:
    """Calibrated logits (N,C) for logits or log-probabilities (N,C)."""
    return scores / transform if isinstance(transform, float) else transform(scores)


def is_same_transform(one: Transform, other: Transform) -> bool:
    """Whether two transforms are the same but for rounding.

    >>> is_same_transform(0.64, 0.64 + 3e-8), is_same_transform(0.64, 0.641)
    (True, False)
    """
    numbers, others = _list_numbers(one), _list_numbers(other)
    if type(one) is not type(other) or len(numbers) != len(others):
        return False
    return all(math.isclose(*pair, rel_tol=TOLERANCE, abs_tol=1e-9) for pair in zip(numbers, others, strict=True))


def _list_numbers(transform: Transform) -> list[float]:
    if isinstance(transform, VectorScaling):
        return [*transform.factor, *transform.offset]
    if isinstance(transform, HistogramBinning):
        return [number for row in (*transform.edges, *transform.values) for number in row]
    return [transform]


@dataclass(frozen=True)
class HeldOut:
    """What a model's calibrated predictions got on held-out images: all that promises are made from.

    The calibrator of each prediction was fitted without that image, so that nothing looks better than it is.

    Attributes:
        confidence: (n,), the largest probability.
        correct: (n,), whether it is that of the label.
        scores: For each kind of prediction sets, the conformal scores (n,) of the labels.
    """

    confidence: Tensor
    correct: Tensor
    scores: dict[str, Tensor]

    @classmethod
    def of(cls, probabilities: Tensor, labels: Tensor) -> HeldOut:
        """The record of calibrated probabilities (n,C) of images with these labels (n,)."""
        confidence, answers = probabilities.max(1)
        rows = torch.arange(len(labels))
        scores = {kind: conformal_scores(probabilities, kind)[rows, labels].float() for kind in SETS}
        return cls(confidence.float(), answers == labels, scores)

    def __len__(self) -> int:
        return len(self.confidence)

    def threshold(self, error: float | None = None, coverage: float | None = None) -> float:
        """The confidence from which on a model answers, for a promised error, or for a coverage."""
        if (error is None) == (coverage is None):
            raise UserError("Promise either an `error` or a `coverage`.")
        if error is not None:
            return threshold_for_error(self.confidence, self.correct, error)
        assert coverage is not None
        return threshold_for_coverage(self.confidence, coverage)

    def quantile(self, coverage: float, kind: str) -> float:
        """The score up to which classes belong to a prediction set."""
        return conformal_quantile(self.scores[kind], coverage)

    def to_json(self) -> dict[str, Any]:
        floats = {"confidence": self.confidence, **self.scores}
        packed = {name: pack_bytes(values.numpy().astype("<f4").tobytes()) for name, values in floats.items()}
        correct = pack_bytes(np.packbits(self.correct.numpy()).tobytes())
        return {"images": len(self), **packed, "correct": correct}

    @classmethod
    def from_json(cls, value: Any) -> HeldOut:
        """Raises ValueError where the value is not a record."""
        given = _object(value, "held_out")
        images = given.get("images")
        if type(images) is not int or not 0 < images <= MAX_IMAGES:
            _fail("held_out.images is not a number of images")
        floats = {}
        for name in ("confidence", *SETS):
            array = np.frombuffer(unpack_bytes(given.get(name), 4 * images), "<f4").astype(np.float32)
            if not ((array >= 0) & (array <= 1 + 1e-5)).all():
                _fail(f"held_out.{name} is not between 0 and 1")
            floats[name] = torch.from_numpy(array)
        bits = np.frombuffer(unpack_bytes(given.get("correct"), (images + 7) // 8), np.uint8)
        correct = torch.from_numpy(np.unpackbits(bits)[:images].astype(bool))
        return cls(floats.pop("confidence"), correct, floats)


@dataclass(frozen=True)
class Calibrator:
    """A function from a model's scores to calibrated ones, with what it was fitted on.

    Attributes:
        kind: "temperature", "vector" or "histogram".
        transform: The temperature, or the scaling or binning.
        data: The name of the data that it was fitted on.
        images: The number of images.
        on: "clean", "noise" (of the method) or "both": how the images were shown.
        nll_before: Mean log loss on them without it.
        nll_after: And with it.
        held_out: What promises are made from; None where nothing was kept.

    >>> Calibrator("temperature", 2.0, "digits", 100, "clean", 0.5, 0.4)(torch.tensor([[4.0, 0.0]]))
    tensor([[2., 0.]])
    """

    kind: str
    transform: Transform
    data: str
    images: int
    on: str
    nll_before: float
    nll_after: float
    held_out: HeldOut | None = None

    @property
    def temperature(self) -> float | None:
        """The temperature, where it is one."""
        return self.transform if isinstance(self.transform, float) else None

    def __call__(self, scores: Tensor) -> Tensor:
        """Calibrated logits (N,C) for logits or log-probabilities (N,C)."""
        return apply_transform(self.transform, scores)

    def calibrate(self, probabilities: Tensor) -> Tensor:
        """Calibrated probabilities (N,C) for probabilities (N,C)."""
        return self(log_probabilities(probabilities)).softmax(-1)

    def keep_numbers(self, earlier: Calibrator) -> Calibrator:
        """The earlier calibrator where this one is the same but for rounding: what was measured with it still holds."""
        facts = ("kind", "data", "images", "on")
        same = all(getattr(self, name) == getattr(earlier, name) for name in facts)
        same = same and is_same_transform(self.transform, earlier.transform)
        if not same:
            return self
        return earlier if earlier.held_out is not None else replace(self, transform=earlier.transform)

    def describe(self) -> str:
        """'temperature 0.64, fitted on 5000 images of cifar10'."""
        name = {"vector": "vector scaling", "histogram": "histogram binning"}.get(self.kind)
        shown = {"clean": "", "noise": ", with the method's noise", "both": ", clean and with the method's noise"}
        fitted = f"fitted on {self.images} images of {self.data}{shown[self.on]}"
        return f"{name or f'temperature {self.temperature:.2f}'}, {fitted}"

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"kind": self.kind}
        if isinstance(self.transform, VectorScaling):
            value |= {"factor": list(self.transform.factor), "offset": list(self.transform.offset)}
        elif isinstance(self.transform, HistogramBinning):
            value |= {"edges": list(map(list, self.transform.edges)), "values": list(map(list, self.transform.values))}
        else:
            value["temperature"] = self.transform
        value |= {"data": self.data, "images": self.images, "on": self.on}
        value["nll"] = {"before": self.nll_before, "after": self.nll_after}
        return {**value, "held_out": self.held_out.to_json()} if self.held_out else value

    @classmethod
    def from_json(cls, value: Any, classes: int) -> Calibrator:
        """The calibrator of a model with so many classes; the value may be untrusted.

        Raises:
            ValueError: It is not one.
        """
        given = _object(value, "it")
        nll = _object(given.get("nll"), "nll")
        if given.get("kind") not in KINDS or given.get("on") not in ("clean", "noise", "both"):
            _fail("its kind or what it was fitted on is unknown")
        if type(given.get("images")) is not int or not isinstance(given.get("data"), str):
            _fail("it does not say what it was fitted on")
        held = given.get("held_out")
        return cls(
            kind=given["kind"],
            transform=_read_transform(given, classes),
            data=clean_text(given["data"]),
            images=given["images"],
            on=given["on"],
            nll_before=_number(nll.get("before")),
            nll_after=_number(nll.get("after")),
            held_out=None if held is None else HeldOut.from_json(held),
        )


def write_calibrator(folder: Path, calibrator: Calibrator) -> Path:
    """Store a calibrator in a run folder."""
    file = folder / CALIBRATION_FILE
    write_json(file, calibrator.to_json())
    return file


def read_calibrator(folder: Path, classes: int) -> Calibrator | None:
    """The calibrator of a run folder; None where it has none.

    Raises:
        UserError: The file is damaged.
    """
    file = folder / CALIBRATION_FILE
    if not file.is_file():
        return None
    try:
        return Calibrator.from_json(read_json(file), classes)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"{file} cannot be used ({clean_text(error)}): make it again with `dign calibrate`, or remove it."
        ) from error


def _read_transform(given: dict[str, Any], classes: int) -> Transform:
    if given["kind"] == "temperature":
        temperature = _number(given.get("temperature"))
        if not 0.001 < temperature < 1000:
            _fail("temperature is out of range")
        return temperature
    if given["kind"] == "vector":
        return VectorScaling(_numbers(given.get("factor"), classes), _numbers(given.get("offset"), classes))
    values, edges = given.get("values"), given.get("edges")
    if not isinstance(values, list) or not isinstance(edges, list) or not values or not isinstance(values[0], list):
        _fail("its bins are not lists")
    if len(values) != classes or len(edges) != classes:
        _fail(f"its bins are not of {classes} classes")
    bins = len(values[0])
    binning = HistogramBinning(
        tuple(_numbers(row, bins - 1) for row in edges), tuple(_numbers(row, bins) for row in values)
    )
    if not all(0 < value <= 1 for row in binning.values for value in row):
        _fail("the value of a bin is not a probability")
    return binning


def _numbers(value: Any, count: int) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != count:
        _fail(f"a list of {count} numbers is missing")
    return tuple(map(_number, value))


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        _fail("a number is missing")
    return float(value)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _fail(f"{where} is not an object")
    return value


def _fail(what: str) -> NoReturn:
    raise ValueError(what)
