"""The parts of the page that show results, as charts and values for the templates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dign.metrics import Calibration
from dign.metrics.aggregation import merge_calibrations
from dign.report.analysis.confidence_quantities import CALIBRATION, RAW, severity_error
from dign.report.analysis.quantities import NOISE_MEANS, Quantity, corruption_title, noise_text, severity_accuracy
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import measured, statistic_cell
from dign.report.html.calibration_charts import Spot, reliability_diagram, scatter
from dign.report.html.charts import Axes, Series, Tip, end_label_room, line_chart, number_ticks, tip_text
from dign.report.palette import dash_of, heat_color
from dign.report.scales import accuracy_range, error_range


@dataclass(frozen=True)
class ModelPart:
    """What a section shows for one model; `name` is None where there is only one."""

    name: str | None
    content: Any


def per_model(study: Study, build: Callable[[Sequence[Group]], Any]) -> list[ModelPart]:
    """`build(groups)` for every model; None leaves a model out."""
    several = len(study.models) > 1
    built = [(model, build(study.of_model(model))) for model in study.models]
    return [ModelPart(model if several else None, content) for model, content in built if content is not None]


@dataclass(frozen=True)
class Against:
    """What is drawn against severity: a quantity per severity (0: clean), over some corruptions."""

    title: str
    places: tuple[int, ...]
    levels: tuple[Quantity, ...]
    y_label: str = "Accuracy, %"
    promise: tuple[float, str] | None = None
    """A value to compare with, and its name."""

    @classmethod
    def accuracy(cls, study: Study, names: tuple[str, ...], title: str) -> Against:
        places = (0, *study.severities)
        return cls(title, places, tuple(severity_accuracy(place, names, title) for place in places))

    @classmethod
    def error(cls, study: Study, names: tuple[str, ...], title: str) -> Against:
        places = (0, *study.severities)
        levels = tuple(severity_error(place, names, title) for place in places)
        return cls(title, places, levels, "Calibration error (ECE), %")

    def values(self, groups: Sequence[Group]) -> list[float]:
        means = [group.mean(level) for group in groups for level in self.levels]
        return [mean for mean in means if mean is not None]


def severity_chart(groups: Sequence[Group], what: Against, y_range: tuple[float, float], large: bool = False) -> Markup:
    series = [_severity_series(group, what) for group in groups]
    series = [one for one in series if one.points]
    width, height = (460.0, 300.0) if large else (230.0, 165.0)
    right = end_label_room([one.label for one in series]) if large else 10.0
    ticks = [(place, str(place) if place else "clean") for place in what.places]
    axes = Axes(
        width,
        height,
        (0, max(what.places)),
        y_range,
        (12, right, 36, 44 if large else 34),
        ticks,
        number_ticks(*y_range, 5 if large else 4),
        "Severity" if large else "",
        what.y_label if large else "",
        what.promise,
    )

    def tip(place: float) -> Tip:
        return _severity_tip(groups, what, what.places.index(int(place)))

    return line_chart(f"{what.title}: {what.y_label} against severity", axes, series, tip, end_labels=large)


def _severity_series(group: Group, what: Against) -> Series:
    found = [(place, group.statistic(level)) for place, level in zip(what.places, what.levels, strict=True)]
    present = [(place, statistic) for place, statistic in found if statistic]
    points = [(float(place), statistic.mean) for place, statistic in present]
    return Series(group.label, group.slot, points, [s.std for _, s in present], dash_of(group))


def _severity_tip(groups: Sequence[Group], what: Against, index: int) -> Tip:
    level = what.levels[index]
    found = [(group, group.statistic(level)) for group in groups]
    present = sorted(((g, s) for g, s in found if s), key=lambda pair: -pair[1].mean)
    lines = [(group.slot, group.label, statistic_cell(statistic).plain) for group, statistic in present]
    return [(None, f"{what.title}, {level.label.lower()}", ""), *lines]


def noise_figures(study: Study) -> list[ModelPart]:
    """The figures to look at first: accuracy and calibration error as noise grows."""
    names = study.noises or study.counted
    if not names:
        return []
    title = noise_text(study.noises).capitalize() if study.noises else "All corruptions"
    accuracy, error = Against.accuracy(study, names, title), Against.error(study, names, title)
    accuracies = accuracy_range(accuracy.values(study.groups))
    errors = error_range(error.values(study.groups))

    def build(groups: Sequence[Group]) -> dict[str, Any]:
        return {
            "title": title.lower(),
            "accuracy": severity_chart(groups, accuracy, accuracies, large=True),
            "error": severity_chart(groups, error, errors, large=True),
            "bands": has_several_seeds(groups),
        }

    return per_model(study, build)


def has_several_seeds(groups: Sequence[Group]) -> bool:
    return any(len(group.runs) > 1 for group in groups)


def small_multiples(study: Study) -> list[ModelPart]:
    """A chart per corruption by family, all with the same scale."""
    panels = {name: Against.accuracy(study, (name,), corruption_title(name)) for name in study.corruptions}
    y_range = accuracy_range([value for what in panels.values() for value in what.values(study.groups)])

    def build(groups: Sequence[Group]) -> dict[str, list[tuple[str, Markup]]]:
        families: dict[str, list[tuple[str, Markup]]] = {}
        for name, family in study.corruptions.items():
            chart = severity_chart(groups, panels[name], y_range)
            families.setdefault(family, []).append((panels[name].title, chart))
        return families

    return per_model(study, build)


@dataclass(frozen=True)
class HeatCell:
    text: str
    background: str
    ink: str
    tip: str


@dataclass(frozen=True)
class HeatMap:
    """Accuracy by corruption and severity of one method; None where it was not measured."""

    label: str
    slot: int
    rows: list[tuple[str, list[HeatCell | None]]]


def heat_maps(study: Study) -> list[ModelPart]:
    def build(groups: Sequence[Group]) -> list[HeatMap]:
        return [HeatMap(group.label, group.slot, _heat_rows(group, study)) for group in groups]

    return per_model(study, build)


def _heat_rows(group: Group, study: Study) -> list[tuple[str, list[HeatCell | None]]]:
    return [
        (corruption_title(name), [_heat_cell(group, name, severity) for severity in study.severities])
        for name in study.corruptions
    ]


def _heat_cell(group: Group, name: str, severity: int) -> HeatCell | None:
    statistic = group.statistic(severity_accuracy(severity, (name,), name))
    if statistic is None:
        return None
    background, ink = heat_color(statistic.mean / 100)
    place = f"{corruption_title(name)}, severity {severity}"
    lines = [(group.slot, group.label, ""), (None, place, f"{statistic_cell(statistic).plain} %")]
    return HeatCell(f"{statistic.mean:.0f}", background, ink, tip_text(lines))


@dataclass(frozen=True)
class Diagram:
    title: str
    ece: str
    chart: Markup


@dataclass(frozen=True)
class ReliabilityRow:
    label: str
    slot: int
    diagrams: list[Diagram]


def reliability_places(study: Study) -> list[tuple[str, str, tuple[str, ...] | None]]:
    """Title, key of the calibration scores, and corruptions (None: clean images) of a method's diagrams."""
    places: list[tuple[str, str, tuple[str, ...] | None]] = [("Clean images", "clean", None)]
    places.append(("Noise", "noise", study.noises))
    if set(study.counted) - set(study.noises):
        places.append(("All corruptions", "all", study.counted))
    return places


def reliability_rows(study: Study) -> list[ModelPart]:
    """Per method: clean, noise and (where there is more than noise) all corruptions side by side."""
    places = reliability_places(study)

    def build(groups: Sequence[Group]) -> list[ReliabilityRow]:
        rows = []
        for group in groups:
            pooled = [(title, key, group.pooled(names)) for title, key, names in places]
            found = [_diagrams(group, title, key, counts) for title, key, counts in pooled if counts is not None]
            rows.append(ReliabilityRow(group.label, group.slot, [one for part in found for one in part]))
        return rows

    return per_model(study, build)


def _diagrams(group: Group, title: str, key: str, pooled: Calibration) -> list[Diagram]:
    """One diagram; where the models have calibrators, one without them before it."""
    ece = statistic_cell(group.statistic(CALIBRATION[key, "ece"])).plain
    name = f"Reliability of {group.label}, {title.lower()}"
    images = group.runs[0].results.evaluation.images
    chart = reliability_diagram(name, pooled, group.slot, images)
    fitted = [run.results.calibrator for run in group.runs]
    if not any(fitted):
        return [Diagram(title, ece, chart)]
    raw = statistic_cell(group.statistic(RAW[key, "ece"])).plain
    parts = [one.bins[key] for one in fitted if one and key in one.bins]
    if len(parts) < len(fitted):  # files of older versions have the scores alone
        return [Diagram(title, f"{ece}, {raw} without its temperature", chart)]
    before = reliability_diagram(f"{name}, before calibration", merge_calibrations(parts), group.slot, images)
    return [Diagram(f"{title}, before", raw, before), Diagram(f"{title}, after", ece, chart)]


def accuracy_calibration(study: Study) -> list[ModelPart]:
    """Accuracy against calibration error under noise: a method should be right often and know when it is not."""
    ece = CALIBRATION["noise", "ece"]

    def build(groups: Sequence[Group]) -> dict[str, Any] | None:
        accuracy = (measured(study, NOISE_MEANS) or NOISE_MEANS)[0]
        spots = [spot for group in groups if (spot := _spot(group, accuracy, ece))]
        if not spots:
            return None
        title = "Accuracy against calibration under noise"
        chart = scatter(title, spots, f"{accuracy.label}, % (more is better)", "ECE-N, % (less is better)")
        return {"chart": chart, "seeds": has_several_seeds(groups)}

    return per_model(study, build) if study.noises else []


def _spot(group: Group, x: Quantity, y: Quantity) -> Spot | None:
    mean_x, mean_y = group.mean(x), group.mean(y)
    if mean_x is None or mean_y is None:
        return None
    runs = [(x.read(run), y.read(run)) for run in group.runs]
    return Spot(group.label, group.slot, mean_x, mean_y, [(a, b) for a, b in runs if a is not None and b is not None])
