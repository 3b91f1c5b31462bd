"""The worst case on the page: accuracy under attack, and what is certified, from what runs' folders hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dign.certification.figure import read_published
from dign.core.text import clean_text
from dign.evaluation.attack import write_eps
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table, runs_cell
from dign.report.html.charts import Axes, Series, Tip, line_chart, number_ticks
from dign.report.html.result_sections import ModelPart, per_model
from dign.report.load import Run
from dign.report.palette import dash_of

POINTS = 120
"""Radii at which a curve is drawn."""


@dataclass(frozen=True)
class Attacked:
    """One entry of attacks.json: the attack as a table calls it, and accuracy in percent before and under it."""

    title: str
    clean: float
    robust: float


@dataclass(frozen=True)
class Certified:
    """One certificates file: an image is (radius, norm of the smallest change found), of those that are right."""

    sigma: float
    images: int
    right: tuple[tuple[float, float | None], ...]

    def accuracy(self, radius: float) -> float:
        """Percent of all images that are certified right up to `radius`."""
        return 100 * sum(certified >= radius for certified, _ in self.right) / self.images

    def accuracy_under_attack(self, radius: float) -> float:
        """Percent that are right and for which no change below `radius` was found."""
        return 100 * sum(norm is None or norm >= radius for _, norm in self.right) / self.images

    @property
    def is_attacked(self) -> bool:
        return any(norm is not None for _, norm in self.right)

    @property
    def average_radius(self) -> float:
        return sum(radius for radius, _ in self.right) / self.images


def read_attacked(run: Run) -> list[Attacked]:
    """The attacks in a run folder; entries that make no sense are left out."""
    found = []
    for entry in run.attacks:
        try:
            how = entry["attack"]
            kind, norm = clean_text(str(how["kind"])).upper(), clean_text(str(how["norm"]))
            size, steps = write_eps(float(how["eps"])), int(how["steps"])
            usual = {"restarts": 1, "seed": 0}
            others = [f"{word} {value}" for word in usual if (value := int(how.get(word, usual[word]))) != usual[word]]
            split = "" if entry.get("split") in (None, "test") else f" {clean_text(str(entry['split']))}"
            images = f"{int(entry['images'])}{split} images"
            title = ", ".join([f"{kind} {norm} {size}", f"{steps} steps", *others, images])
            numbers = float(entry["accuracy"]), float(entry["robust_accuracy"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if all(0 <= number <= 100 for number in numbers):
            found.append(Attacked(title, *numbers))
    return found


def read_certified(run: Run) -> list[Certified]:
    """The certificates in a run folder; files that make no sense are left out."""
    found = []
    for content in run.certificates:
        try:
            right = tuple(
                (float(row["radius"]), None if row.get("attack") is None else float(row["attack"]))
                for row in content["rows"]
                if row["correct"] is True
            )
            one = Certified(float(content["plan"]["sigma"]), len(content["rows"]), right)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            continue
        numbers = [one.sigma, *(number for pair in right for number in pair if number is not None)]
        if one.images and one.sigma > 0 and all(map(math.isfinite, numbers)):
            found.append(one)
    return found


def attack_table(study: Study) -> Table | None:
    """Accuracy before and under every attack, by method; None where no run was attacked."""
    by_group = [(group, [read_attacked(run) for run in group.runs]) for group in study.groups]
    titles = list(dict.fromkeys(one.title for _, runs in by_group for run in runs for one in run))
    if not titles:
        return None
    columns = [
        column
        for title in titles
        for column in (Column("Clean", f"on the images of {title}"), Column(title, "percent that stay right"))
    ]
    rows = []
    for group, runs in by_group:
        values = [[one for run in runs for one in run if one.title == title] for title in titles]
        if any(values):
            cells = [
                runs_cell(numbers)
                for found in values
                for numbers in ([one.clean for one in found], [one.robust for one in found])
            ]
            rows.append(Row(group.label, tuple(cells), group.slot))
    caption = "Percent of the attacked images. An upper bound: a stronger attack may leave less."
    return Table("attacks", "Accuracy under attack", caption, "Method", tuple(columns), (Section(None, tuple(rows)),))


def certificate_parts(study: Study) -> list[ModelPart]:
    """For every model and noise level: the curves, with the published ones on CIFAR-10, and their table."""

    def build(groups: Sequence[Group]) -> list[dict[str, Any]] | None:
        by_group = [(group, [one for run in group.runs for one in read_certified(run)]) for group in groups]
        sigmas = sorted({one.sigma for _, found in by_group for one in found})
        return [_at_sigma(sigma, by_group, study.data) for sigma in sigmas] or None

    return per_model(study, build)


def _at_sigma(sigma: float, by_group: Sequence[tuple[Group, list[Certified]]], data: str) -> dict[str, Any]:
    here = [(group, [one for one in found if one.sigma == sigma]) for group, found in by_group]
    here = [(group, found) for group, found in here if found]
    published = [curve for curve in _published(data) if curve["sigma"] == sigma]
    return {
        "sigma": f"{sigma:g}",
        "chart": _chart(sigma, here, published),
        "table": _table(here, published),
        "published": bool(published),
        "attacked": any(one.is_attacked for _, found in here for one in found),
    }


def _published(data: str) -> list[dict[str, Any]]:
    if data != "cifar10":
        return []
    content = read_published()
    return [{**curve, "radii": content["radii"][: len(curve["accuracy"])]} for curve in content["curves"]]


def _chart(sigma: float, here: Sequence[tuple[Group, list[Certified]]], published: Sequence[dict[str, Any]]) -> Markup:
    radii = [radius for _, found in here for one in found for radius, _ in one.right]
    norms = [norm for _, found in here for one in found for _, norm in one.right if norm]
    proven = max(radii, default=sigma)
    largest = min(max([proven, *norms]), 4 * proven)  # what an attack alone reaches would take all the room
    places = [largest * index / POINTS for index in range(POINTS + 1)]
    series = []
    for group, found in here:
        points = [(radius, _mean(one.accuracy(radius) for one in found)) for radius in places]
        series.append(Series(group.label, group.slot, points, None, dash_of(group), markers=False))
        if all(one.is_attacked for one in found):
            above = [(radius, _mean(one.accuracy_under_attack(radius) for one in found)) for radius in places]
            series.append(Series(f"{group.label}, under attack", group.slot, above, None, "2 3", markers=False))
    for number, curve in enumerate(published, start=1):
        points = [(x, y) for x, y in zip(curve["radii"], curve["accuracy"], strict=True) if x <= largest]
        series.append(Series(curve["title"], -number, points, None, "2 3"))
    axes = Axes(560, 320, (0, largest), (0, 100), (12, 12, 38, 44), number_ticks(0, largest, 6), number_ticks(0, 100),
                "l2 radius", "Accuracy, %")  # fmt: skip

    def tip(place: float) -> Tip:
        at = [(one, dict(one.points).get(place)) for one in series]
        return [
            (None, f"radius {place:.3g}", ""),
            *((one.slot, one.label, f"{y:.1f} %") for one, y in at if y is not None),
        ]

    return line_chart(f"Certified accuracy at sigma {sigma:g}", axes, series, tip)


def _table(here: Sequence[tuple[Group, list[Certified]]], published: Sequence[dict[str, Any]]) -> Table:
    largest = max((radius for _, found in here for one in found for radius, _ in one.right), default=0.0)
    step = 0.25 if largest > 0.5 else 0.05
    radii = [round(step * number, 10) for number in range(int(largest / step) + 1)]
    columns = tuple([Column(f"{radius:g}", f"percent certified right up to radius {radius:g}") for radius in radii]
                    + [Column("Average radius", "wrong and unanswered images count 0")])  # fmt: skip
    ours = []
    for group, found in here:
        cells = [runs_cell([one.accuracy(radius) for one in found]) for radius in radii]
        cells.append(runs_cell([one.average_radius for one in found], decimals=3))
        ours.append(Row(group.label, tuple(cells), group.slot))
    theirs = []
    for curve in published:
        known = dict(zip(curve["radii"], curve["accuracy"], strict=True))
        cells = [_given(known.get(radius)) for radius in radii]
        theirs.append(Row(curve["title"], (*cells, _given(curve["acr"], 3))))
    sections = (
        [Section("Here", tuple(ours)), Section("Published", tuple(theirs))] if theirs else [Section(None, tuple(ours))]
    )
    caption = "Percent of all certified images that are certified right up to the radius."
    return Table("certificates", "Certified accuracy", caption, "Radius", columns, tuple(sections))


def _given(value: float | None, decimals: int = 1) -> Cell:
    return Cell() if value is None else Cell(f"{value:.{decimals}f}", value, decimals=decimals)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)
