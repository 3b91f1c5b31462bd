"""Example images on the page, where a run left some: the most instructive ones first."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dign.core.text import clean_text
from dign.evaluation.json_values import is_percentage
from dign.report.analysis.quantities import corruption_title
from dign.report.analysis.study import Group, Study
from dign.report.html.result_sections import ModelPart, per_model
from dign.report.load import Run

IMAGE_BUDGET = 2 * 2**20
"""Bytes of base64 that all example images together may take."""
SHOWN_FIRST = 24
"""Images that are shown without unfolding the rest."""
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Answer:
    """What a method makes of a picture."""

    group: Group
    prediction: str
    confidence: str
    right: bool
    certainty: float
    """The confidence as a fraction."""
    second: str = ""
    """The second most probable class with its confidence, where it is known."""


@dataclass(frozen=True)
class Picture:
    """An image under a condition, with every method's answer."""

    index: int
    corruption: str
    severity: int
    label: str
    png: str
    answers: list[Answer] = field(default_factory=list)

    @property
    def title(self) -> str:
        return "Clean" if self.corruption == "clean" else f"{corruption_title(self.corruption)} {self.severity}"

    @property
    def instructiveness(self) -> float:
        """2 and more where some are right and some wrong, then how sure those are who are wrong."""
        wrong = [answer.certainty for answer in self.answers if not answer.right]
        split = 0 < len(wrong) < len(self.answers)
        return 2.0 * split + max(wrong, default=0.0)


def examples_parts(study: Study) -> list[ModelPart]:
    """Images under each corruption with what every method makes of them (docs/report.md: `examples.json`)."""

    budget = IMAGE_BUDGET // len(study.models)

    def build(groups: Sequence[Group]) -> dict[str, Any] | None:
        pictures = _collect(groups)
        if not pictures:
            return None
        first = _within_budget(pick_instructive(pictures, SHOWN_FIRST), budget)
        chosen = set(map(id, first))
        room = budget - sum(len(picture.png) for picture in first)
        rest = _within_budget([picture for picture in pictures if id(picture) not in chosen], room)
        return {"first": first, "rest": rest, "left_out": len(pictures) - len(first) - len(rest)}

    return per_model(study, build)


def _collect(groups: Sequence[Group]) -> list[Picture]:
    """The pictures of these groups, those of different groups put together; clean ones first."""
    pictures: dict[tuple[Any, ...], Picture] = {}
    for group in groups:
        run = next((run for run in group.runs if run.examples), None)
        if run is None:
            continue
        for example in example_images(run):
            key = (example["corruption"], example["severity"], example["index"], *_source(run, example))
            names = ("index", "corruption", "severity", "label", "png")
            picture = pictures.setdefault(key, Picture(*(example[name] for name in names)))
            picture.answers.append(_answer(group, example))
    return [pictures[key] for key in sorted(pictures, key=lambda key: (key[0] != "clean", key))]


def _answer(group: Group, example: dict[str, Any]) -> Answer:
    right = example["prediction"] == example["label"]
    confidence = example["confidence"]
    return Answer(group, example["prediction"], f"{confidence:.0f}", right, confidence / 100, example["second"])


def _within_budget(pictures: Sequence[Picture], budget: int) -> list[Picture]:
    """As many of the pictures, from the first on, as fit."""
    found: list[Picture] = []
    for picture in pictures:
        budget -= len(picture.png)
        if budget < 0:
            break
        found.append(picture)
    return found


def pick_instructive(pictures: Sequence[Picture], count: int) -> list[Picture]:
    """Pictures from every class in turn, the most instructive ones first, and rather another image than the same again.

    A class that has been shown once more than another waits for it. Where all are right, there is nothing to learn:
    then rather the same image under another corruption.
    """
    left = list(pictures)
    classes: Counter[str] = Counter()
    images: Counter[int] = Counter()
    found: list[Picture] = []
    while left and len(found) < count:
        best = max(
            left,
            key=lambda one: (-classes[one.label], one.instructiveness > 0, -images[one.index], one.instructiveness),
        )
        left.remove(best)
        classes[best.label] += 1
        images[best.index] += 1
        found.append(best)
    return sorted(found, key=lambda one: -one.instructiveness)


def _source(run: Run, example: dict[str, Any]) -> tuple[str, ...]:
    """What tells images of the same number apart: other splits and benchmarks count other images."""
    return (*(clean_text(getattr(run.results.evaluation, key)) for key in ("split", "benchmark")), example["label"])


def example_images(run: Run) -> list[dict[str, Any]]:
    """The well-formed entries of a run's examples: a PNG, a label, a prediction, a confidence."""
    entries = run.examples.get("images") if run.examples else None
    return [entry for raw in (entries if isinstance(entries, list) else []) if (entry := _checked(raw))]


def _checked(raw: Any) -> dict[str, Any] | None:
    try:
        entry: dict[str, Any] = {key: clean_text(raw[key]) for key in ("corruption", "label", "prediction")}
        entry |= {"severity": int(raw["severity"]), "index": int(raw["index"]), "confidence": float(raw["confidence"])}
        png = base64.b64decode(raw["png"], validate=True)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if not png.startswith(PNG) or not math.isfinite(entry["confidence"]):
        return None
    return {**entry, "second": _second(raw), "png": base64.b64encode(png).decode()}


def _second(raw: dict[str, Any]) -> str:
    """The optional second most probable class, as '7 12 %'."""
    name, confidence = raw.get("second"), raw.get("second_confidence")
    if not isinstance(name, str) or not is_percentage(confidence):
        return ""
    return f"{clean_text(name)} {confidence:.0f} %"
