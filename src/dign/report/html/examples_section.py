"""Example images on the page, where a run left some."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

from dign.evaluation.results import clean_text
from dign.report.analysis.quantities import corruption_title
from dign.report.analysis.study import Group, Study
from dign.report.html.markup import Html, join, tag
from dign.report.html.result_sections import per_model, swatch
from dign.report.load import Run

IMAGE_BUDGET = 2 * 2**20
"""Bytes of base64 that all example images together may take."""
PNG = b"\x89PNG\r\n\x1a\n"


def examples_section(study: Study) -> Html | None:
    """Images under each corruption with what every method makes of them (docs/report.md: `examples.json`)."""

    def build(groups: Sequence[Group]) -> Html | None:
        pictures: dict[tuple[Any, ...], dict[str, Any]] = {}
        for group in groups:
            run = next((run for run in group.runs if run.examples), None)
            if run is None:
                continue
            for example in example_images(run):
                key = (example["corruption"], example["severity"], example["index"], *_source(run, example))
                picture = pictures.setdefault(key, {**example, "answers": []})
                picture["answers"].append((group, example))
        figures, used = [], 0
        for key in sorted(pictures, key=lambda key: (key[0] != "clean", key)):
            used += len(pictures[key]["png"])
            if used > IMAGE_BUDGET:
                break
            figures.append(_example(pictures[key]))
        left = len(pictures) - len(figures)
        note = tag("p", f"{left} more images are left out to keep this page small.", class_="note") if left else None
        return join(tag("div", figures, class_="examples"), note) if figures else None

    if not any(run.examples for run in study.runs):
        return None
    return per_model(study, build) or None


def _source(run: Run, example: dict[str, Any]) -> tuple[str, ...]:
    """What tells images of the same number apart: other splits and benchmarks count other images."""
    return (*(clean_text(run.evaluation.get(key)) for key in ("split", "benchmark")), example["label"])


def example_images(run: Run) -> list[dict[str, Any]]:
    """The entries of a run's examples that are what they should be: a PNG, a label, a prediction, a confidence."""
    entries = run.examples.get("images") if run.examples else None
    return [entry for raw in (entries if isinstance(entries, list) else []) if (entry := _checked(raw))]


def _checked(raw: Any) -> dict[str, Any] | None:
    try:
        entry = {key: clean_text(raw[key]) for key in ("corruption", "label", "prediction")}
        entry |= {"severity": int(raw["severity"]), "index": int(raw["index"]), "confidence": float(raw["confidence"])}
        png = base64.b64decode(raw["png"], validate=True)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if not png.startswith(PNG) or not math.isfinite(entry["confidence"]):
        return None
    return {**entry, "png": base64.b64encode(png).decode()}


def _example(picture: dict[str, Any]) -> Html:
    corrupted = picture["corruption"] != "clean"
    title = f"{corruption_title(picture['corruption'])} {picture['severity']}" if corrupted else "Clean"
    answers = []
    for group, example in picture["answers"]:
        right = example["prediction"] == picture["label"]
        mark = tag("span", "✓" if right else "✗", class_="passes" if right else "fails",
                   title="right" if right else "wrong")  # fmt: skip
        text = f"{example['prediction']} {example['confidence']:.0f} %"
        answers.append(tag("li", swatch(group.slot), mark, text, class_=f"s{group.slot}", title=group.label))
    image = tag("img", src=f"data:image/png;base64,{picture['png']}", alt=f"{picture['label']}, {title}")
    return tag("figure", image, tag("figcaption", title, ": ", tag("b", picture["label"])), tag("ul", answers))
