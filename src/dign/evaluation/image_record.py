"""What each image got, compactly: its answer and confidence under each condition, and proper scores, in 16 bits each.

With it, two models can be compared image by image, and risk-coverage curves be drawn, without predicting again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from dign.core.packing import pack_bytes, unpack_bytes
from dign.core.text import clean_text
from dign.evaluation.json_values import as_object, fail
from dign.evaluation.tally import Tally
from dign.metrics.aggregation import MCA_CORRUPTIONS, MCA_N_CORRUPTIONS

LEVELS = 2**16 - 1
MAX_VALUES = 20_000_000
"""Predictions (images times conditions) up to which a record is kept: about 60 MB, or 120 with a calibrator."""
Pair = tuple[str, int]
LOSSES = ("nll", "brier")
"""Proper scores, whose mean over conditions is kept of each image."""
POOLS = {"clean": ("clean",), "noise": MCA_N_CORRUPTIONS, "all": MCA_CORRUPTIONS}
"""What they are means over: conditions of these names, as far as measured."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What every image got under one condition.

    Attributes:
        answers: Predicted classes (N,), uint16.
        levels: Confidences (N,), uint16: 0 to 65535 for 0 to 1.
        raw_levels: The confidences before the model's calibrator, likewise; None where it has none, or gives other
            answers than the model without it.
    """

    answers: np.ndarray
    levels: np.ndarray
    raw_levels: np.ndarray | None = None

    @property
    def confidence(self) -> np.ndarray:
        """Confidences (N,) in [0,1], to 1/131070."""
        return self.levels / LEVELS

    @property
    def raw_confidence(self) -> np.ndarray | None:
        """Confidences before the calibrator."""
        return None if self.raw_levels is None else self.raw_levels / LEVELS

    @property
    def columns(self) -> list[np.ndarray]:
        return [self.answers, self.levels, *([] if self.raw_levels is None else [self.raw_levels])]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answers):
            return NotImplemented
        mine, theirs = self.columns, other.columns
        return len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]  # arrays have none


@dataclass(frozen=True, eq=False)
class ImageRecord:
    """The true classes of the images, and what each got under each condition.

    Attributes:
        labels: True classes (N,), uint16.
        conditions: Answers by corruption and severity; the clean images have severity 0.
        losses: By pool (`POOLS`), the `LOSSES` of each image, (2,N), means over the pool's conditions in float16. A
            pool is there where one evaluation measured all its conditions that are among these.
    """

    labels: np.ndarray
    conditions: dict[Pair, Answers]
    losses: dict[str, np.ndarray] = field(default_factory=dict)

    def correct(self, condition: Pair) -> np.ndarray:
        """Which images are right (N,), bool."""
        right: np.ndarray = self.conditions[condition].answers == self.labels
        return right

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageRecord):
            return NotImplemented
        if not self.same_images(other) or self.conditions != other.conditions:
            return False
        return self.losses.keys() == other.losses.keys() and all(
            np.array_equal(value, other.losses[name]) for name, value in self.losses.items()
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def same_images(self, other: ImageRecord) -> bool:
        """Whether both are of images with the same labels in the same order."""
        return np.array_equal(self.labels, other.labels)

    @classmethod
    def of(cls, tallies: Mapping[Pair, Tally], raw: Mapping[Pair, Tally] | None = None) -> ImageRecord | None:
        """The record of what was counted; None where it would be very large, or conditions have different images.

        Args:
            tallies: What was counted under each condition.
            raw: The same before the model's calibrator, where it has one.
        """
        clean = next(iter(tallies.values()), None)
        if clean is None or sum(len(tally.labels) for tally in tallies.values()) > MAX_VALUES:
            return None
        if any(not tally.labels.equal(clean.labels) for tally in tallies.values()):
            return None
        if raw is not None and any(_differ(raw[pair], tally) for pair, tally in tallies.items()):
            raw = None
        conditions = {}
        for condition, tally in tallies.items():
            answers, before = tally.answers.numpy().astype(np.uint16), _levels(raw[condition]) if raw else None
            conditions[condition] = Answers(answers, _levels(tally), before)
        losses = {name: _mean_losses([tallies[pair] for pair in pairs]) for name, pairs in _pool(tallies).items()}
        return cls(clean.labels.numpy().astype(np.uint16), conditions, losses)

    @property
    def has_raw(self) -> bool:
        """Whether it has confidences before the calibrator, under all conditions."""
        return bool(self.conditions) and all(each.raw_levels is not None for each in self.conditions.values())

    def merge(self, newer: ImageRecord) -> ImageRecord | None:
        """This record with the conditions of a newer one; None where they are of other images."""
        if not self.same_images(newer):
            return None
        merged = ImageRecord(self.labels, {**self.conditions, **newer.conditions})
        for name, pairs in _pool(merged.conditions).items():
            source = newer if any(pair in newer.conditions for pair in pairs) else self
            if name in source.losses and all(pair in source.conditions for pair in pairs):
                merged.losses[name] = source.losses[name]
        return merged

    @classmethod
    def from_json(cls, value: Any, classes: int, counts: Mapping[Pair, int]) -> ImageRecord:
        """The record in a results file that has these conditions, with so many images each."""
        given = as_object(value, "images")
        images = counts["clean", 0]
        labels = _unpack(given.get("labels"), images, 1, "images.labels")[0]
        columns = 3 if given.get("raw") is True else 2
        found: dict[Pair, Answers] = {}
        entries = as_object(given.get("conditions"), "images.conditions")
        for name, severities in entries.items():
            for severity, text in as_object(severities, f"images.conditions.{clean_text(name)}").items():
                pair = (name, int(severity)) if severity in {"0", "1", "2", "3", "4", "5"} else None
                if pair is None or counts.get(pair) != images:
                    fail(f"images.conditions has {clean_text(name)} {clean_text(severity)!r}, which was not measured")
                found[pair] = Answers(
                    *_unpack(text, images, columns, f"images.conditions.{clean_text(name)}.{severity}")
                )
        if any(int(part.max()) >= classes for part in (labels, *(each.answers for each in found.values()))):
            fail("images names a class that is not among the classes")
        return cls(labels, found, _read_losses(given.get("losses", {}), images))

    def to_json(self) -> dict[str, Any]:
        conditions: dict[str, dict[str, str]] = {}
        kept: dict[str, Any] = {"raw": True} if self.has_raw else {}
        for (name, severity), each in self.conditions.items():
            conditions.setdefault(name, {})[str(severity)] = _pack(*each.columns[: 3 if kept else 2])
        if self.losses:
            kept["losses"] = {name: _pack(*values.view(np.uint16)) for name, values in self.losses.items()}
        return {"labels": _pack(self.labels), **kept, "conditions": conditions}


def _pool(conditions: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The conditions of each pool that has any."""
    pools = {name: [pair for pair in conditions if pair[0] in names] for name, names in POOLS.items()}
    return {name: pairs for name, pairs in pools.items() if pairs}


def _mean_losses(tallies: Sequence[Tally]) -> np.ndarray:
    means: np.ndarray = torch.stack([tally.losses for tally in tallies]).mean(0).T.numpy().astype(np.float16)
    return means


def _read_losses(value: Any, images: int) -> dict[str, np.ndarray]:
    found = {}
    for name, text in as_object(value, "images.losses").items():
        if name not in POOLS:
            fail(f"images.losses has {clean_text(name)!r}, which is none of {', '.join(POOLS)}")
        found[name] = np.stack(_unpack(text, images, len(LOSSES), f"images.losses.{name}")).view(np.float16)
        if not (np.isfinite(found[name]).all() and (found[name] >= 0).all()):
            fail(f"images.losses.{name} has values that are no losses")
    return found


def _differ(one: Tally, other: Tally) -> bool:
    """Whether the answers are others, and not by rounding alone, where two classes are equally likely."""
    return int((one.answers != other.answers).sum()) > max(1, len(one.answers) / 1000)


def _levels(tally: Tally) -> np.ndarray:
    confidence = tally.confidences.state()["confidence"].numpy()
    levels: np.ndarray = np.rint(confidence * LEVELS).astype(np.uint16)
    return levels


def _pack(*columns: np.ndarray) -> str:
    """Columns of 16 bits as text: high bytes and low bytes apart, which compresses better, then zlib and base64."""
    planes = [(column >> shift).astype(np.uint8).tobytes() for column in columns for shift in (8, 0)]
    return pack_bytes(b"".join(planes))


def _unpack(text: Any, images: int, columns: int, where: str) -> list[np.ndarray]:
    """What `_pack` wrote."""
    try:
        planes = unpack_bytes(text, 2 * images * columns)
    except ValueError:
        fail(f"{where} is not the record of {images} images")
    parts = np.frombuffer(planes, np.uint8).reshape(columns, 2, images).astype(np.uint16)
    return [(high << 8) | low for high, low in parts]
