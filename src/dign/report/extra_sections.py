"""The parts of the page that appear where a run left more than results: loss landscape, example images."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

from dign.report.charts import Axes, Series, Tip, line_chart, number_ticks
from dign.report.html import Html, join, tag
from dign.report.load import Run
from dign.report.palette import dash_of
from dign.report.quantities import corruption_title
from dign.report.schema import clean_text
from dign.report.sections import per_model, swatch
from dign.report.study import Group, Study

LANDSCAPE_PANELS = {
    "loss_difference": "Change of the loss, |L(x+δ) − L(x)|",
    "accuracy": "Accuracy, %",
    "first_order": "First order, ε‖∇L‖",
    "second_order": "Second order, ε²/2 · E‖Hz‖²",
}
IMAGE_BUDGET = 2 * 2**20
"""Bytes of base64 that all example images together may take."""
PNG = b"\x89PNG\r\n\x1a\n"


def landscape_section(study: Study) -> Html | None:
    """The four panels of the paper's Figure 2, mean over seeds."""
    if not any(landscape_curve(run, name) for run in study.runs for name in LANDSCAPE_PANELS):
        return None

    def build(groups: Sequence[Group]) -> Html:
        figures = [_landscape_panel(name, title, groups) for name, title in LANDSCAPE_PANELS.items()]
        return tag("div", figures, class_="panels wide")

    note = "Means over images that are moved by δ, a random vector of length ε in units of [0,1] pixels."
    return join(tag("p", note, class_="note"), per_model(study, build))


def landscape_curve(run: Run, name: str) -> list[tuple[float, float]]:
    """(radius, mean) of one panel of what `dign landscape` left in the run folder, or nothing where it did not."""
    try:
        radii = run.landscape["settings"]["radii"]
        means = run.landscape["models"][0]["panels"][name]["mean"]
        points = [(float(radius), float(mean)) for radius, mean in zip(radii, means, strict=True)]
    except (IndexError, KeyError, TypeError, ValueError, OverflowError):
        return []
    return points if all(math.isfinite(value) for point in points for value in point) else []


def _landscape_panel(name: str, title: str, groups: Sequence[Group]) -> Html | None:
    series = [
        Series(group.label, group.slot, points, dash=dash_of(group))
        for group in groups
        if (points := _mean_curve([landscape_curve(run, name) for run in group.runs]))
    ]
    if not series:
        return None
    xs = [x for one in series for x, _ in one.points]
    high = 100.0 if name == "accuracy" else max(y for one in series for _, y in one.points) or 1.0
    axes = Axes(460, 280, (min(0.0, *xs), max(xs)), (0.0, high), (12, 12, 38, 52), number_ticks(0, max(xs), 6),
                number_ticks(0, high), "Radius ε")  # fmt: skip

    def tip(radius: float) -> Tip:
        at = [(one.slot, one.label, dict(one.points).get(radius)) for one in series]
        return [
            (None, f"{title}, ε = {radius:g}", ""),
            *((s, label, f"{y:.3g}") for s, label, y in at if y is not None),
        ]

    return tag("figure", tag("figcaption", title, class_="above"), line_chart(title, axes, series, tip))


def _mean_curve(curves: Sequence[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The mean over the runs that measured the same radii as the first."""
    found = [curve for curve in curves if curve]
    alike = [curve for curve in found if [x for x, _ in curve] == [x for x, _ in found[0]]]
    return [(points[0][0], sum(y for _, y in points) / len(points)) for points in zip(*alike, strict=True)]


def examples_section(study: Study) -> Html | None:
    """Images under each corruption with what every method makes of them (docs/report.md: `examples.json`)."""

    def build(groups: Sequence[Group]) -> Html | None:
        pictures: dict[tuple[str, int, int], dict[str, Any]] = {}
        for group in groups:
            run = next((run for run in group.runs if run.examples), None)
            for example in example_images(run) if run else []:
                key = (example["corruption"], example["severity"], example["index"])
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
