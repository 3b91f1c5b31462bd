"""The report's tables as plain data; `formats` turns them into Markdown, CSV and LaTeX, `page` into HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dign.metrics.aggregation import EXCLUDED
from dign.report.analysis.confidence_quantities import (
    CALIBRATION,
    PROMISES,
    RAW,
    SCALED,
    TEMPERATURE,
    UNCERTAINTY,
    UNCERTAINTY_SCORES,
    corruption_uncertainty,
    promise_kept,
)
from dign.report.analysis.quantities import (
    CLEAN_ACCURACY,
    IMAGENET_C,
    MCA,
    MEANS,
    NOISE_MEANS,
    SET_MEANS,
    Quantity,
    corruption_accuracy,
    noise_text,
    severity_accuracy,
)
from dign.report.analysis.study import Group, Statistic, Study

MINUS = "−"
NOTHING = "–"
CHOSEN_SCORES = ("nll", "smooth_ece", "augrc")
"""Of the scores of uncertainty, those that a page shows under each corruption at once; the others are folded."""


@dataclass(frozen=True)
class Cell:
    """A number with its spread (None: one seed), or a text."""

    text: str = NOTHING
    value: float | None = None
    std: float | None = None
    count: int = 0
    best: bool = False
    decimals: int = 1

    @property
    def spread(self) -> str:
        """The standard deviation as text, with the digits of the number; empty where there is none."""
        return "" if self.std is None else f"{self.std:.{self.decimals}f}"

    @property
    def plain(self) -> str:
        return self.text if self.std is None else f"{self.text} ± {self.spread}"


@dataclass(frozen=True)
class Column:
    label: str
    help: str = ""
    numeric: bool = True
    slot: int | None = None


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]
    slot: int | None = None
    help: str = ""


@dataclass(frozen=True)
class Section:
    """Rows under a common heading (None: no heading)."""

    heading: str | None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Table:
    key: str
    title: str
    caption: str
    corner: str
    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    wide_labels: bool = False
    """Row labels are sentences."""

    @property
    def rows(self) -> list[Row]:
        return [row for section in self.sections for row in section.rows]


def number(value: float, decimals: int = 1) -> str:
    """One decimal, a real minus sign, and never a negative zero."""
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def signed(value: float, decimals: int = 1) -> str:
    text = number(value, decimals)
    return text if text.startswith(MINUS) or not text.strip("0.") else f"+{text}"


def statistic_cell(statistic: Statistic | None, best: bool = False, decimals: int = 1) -> Cell:
    if statistic is None:
        return Cell()
    std = statistic.std if statistic.count > 1 else None
    return Cell(number(statistic.mean, decimals), statistic.mean, std, statistic.count, best, decimals)


def runs_cell(values: Sequence[float], decimals: int = 1) -> Cell:
    """A number over runs, whatever their seeds are; nothing where there are none."""
    return statistic_cell(Statistic(dict(enumerate(values))), decimals=decimals) if values else Cell()


def best_mean(quantity: Quantity, groups: Iterable[Group]) -> str | None:
    """The best mean as it is printed: whoever prints the same is best as well. None where nobody competes."""
    means = [mean for group in groups if (mean := group.mean(quantity)) is not None]
    if len(means) < 2 or quantity.higher_is_better is None:
        return None
    return number(max(means) if quantity.higher_is_better else min(means), quantity.decimals)


def cells(quantity: Quantity, groups: Sequence[Group]) -> tuple[Cell, ...]:
    """One cell per group, the best of them marked."""
    best = best_mean(quantity, groups)
    statistics = [group.statistic(quantity) for group in groups]
    digits = quantity.decimals
    return tuple(
        statistic_cell(s, best is not None and s is not None and number(s.mean, digits) == best, digits)
        for s in statistics
    )


def mark_best(cells: Sequence[Cell], highest: bool) -> tuple[Cell, ...]:
    """The cells, with whichever prints the same as the best marked; none where fewer than two have a number."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return tuple(cells)
    best = (max if highest else min)(values)
    return tuple(replace(cell, best=cell.text == number(best, cell.decimals)) for cell in cells)


def measured(study: Study, quantities: Iterable[Quantity]) -> list[Quantity]:
    """Those that at least one run has."""
    return [q for q in quantities if any(q.read(run) is not None for run in study.runs)]


def by_method(study: Study, quantities: Sequence[Quantity], key: str, title: str, caption: str) -> Table:
    """Methods as rows, quantities as columns, a section per model."""
    quantities = measured(study, quantities)
    columns = [Column("Seeds", "Number of runs with different seeds.")]
    columns += [Column(f"{q.short_label} {q.arrow}", q.help) for q in quantities]
    sections = []
    for model in study.models:
        groups = study.of_model(model)
        by_quantity = [cells(quantity, groups) for quantity in quantities]
        rows = []
        for index, group in enumerate(groups):
            seeds = Cell(str(len(group.runs)), float(len(group.runs)))
            rows.append(Row(group.label, (seeds, *(column[index] for column in by_quantity)), group.slot))
        sections.append(Section(model if len(study.models) > 1 else None, tuple(rows)))
    return Table(key, title, caption, "Method", tuple(columns), tuple(sections))


def by_quantity(
    study: Study, quantities: Sequence[Quantity], models: Sequence[str], key: str, title: str, caption: str
) -> Table:
    """Quantities as rows, methods as columns, a section per model: the layout of the paper."""
    labels = {group.label: group for model in models for group in study.of_model(model)}
    columns = tuple(Column(label, slot=group.slot) for label, group in labels.items())
    sections = []
    for model in models:
        groups = {group.label: group for group in study.of_model(model)}
        rows = []
        for quantity in measured(study, quantities):
            found = dict(zip(groups, cells(quantity, list(groups.values())), strict=True))
            rows.append(Row(quantity.label, tuple(found.get(label, Cell()) for label in labels), help=quantity.help))
        sections.append(Section(f"{study.data}, {model}", tuple(rows)))
    return Table(key, title, caption, "Metric", columns, tuple(sections))


SPREAD = "Mean ± population standard deviation over seeds where there are several; best in bold."


def chance_text(study: Study) -> str:
    """What the ECE of a perfectly calibrated model would be on so many images, by chance alone."""
    floors = [number(run.results.clean.calibration.expected_ece()) for run in study.runs]
    low, high = min(floors, key=float), max(floors, key=float)
    images = study.runs[0].results.clean.count
    about = low if low == high else f"{low} to {high}, depending on its confidences,"
    return f" By chance alone, a perfectly calibrated model has an ECE of about {about} on {images} images."


def summary_table(study: Study) -> Table:
    """What matters most comes first: a narrow terminal shows only the first columns."""
    errors = [CALIBRATION["noise", "ece"], CALIBRATION["clean", "ece"]]
    more = [CALIBRATION["noise", score] for score in ("rmse", "oe", "sharpness")]
    quantities = [CLEAN_ACCURACY, *MEANS, *errors, *more, *SET_MEANS, *IMAGENET_C]
    return by_method(study, quantities, "summary", f"Summary, {study.data}", SPREAD + chance_text(study))


def temperature_table(study: Study) -> Table | None:
    """Calibration as trained beside calibration after temperature scaling, where that was measured."""
    if not measured(study, [TEMPERATURE]):
        return None
    keys = [(place, score) for place in ("clean", "noise", "all") for score in ("ece", "rmse")]
    plain = {key: replace(RAW[key], label=f"{RAW[key].label} at T = 1") for key in keys}
    quantities = [TEMPERATURE, *(quantity for key in keys for quantity in (plain[key], SCALED[key]))]
    caption = (
        "T is one temperature per run, fitted on its validation images; T = 1 is the model as it was trained. "
        f"Accuracies stay as they are. {SPREAD}"
    )
    return by_quantity(study, quantities, study.models, "temperature", "After temperature scaling", caption)


def uncertainty_table(study: Study) -> Table | None:
    """Proper scores, calibration errors without fixed bins, and selective prediction, where they were measured."""
    if not measured(study, UNCERTAINTY.values()):
        return None
    caption = (
        "Of the clean images, and means over corruptions and severities. NLL and Brier are proper scores; the "
        f"calibration errors are of the largest probability but for the class-wise one. {SPREAD}"
    )
    quantities = list(UNCERTAINTY.values())
    return by_quantity(study, quantities, study.models, "uncertainty", "Knowing when it is unsure", caption)


def corruption_uncertainty_table(study: Study) -> Table | None:
    """Every score of uncertainty under every corruption, where they were measured."""
    names = list(study.corruptions)
    quantities = [corruption_uncertainty(name, score) for score in UNCERTAINTY_SCORES for name in names]
    if not measured(study, quantities):
        return None
    caption = f"Under each corruption, mean over its severities. {SPREAD}"
    title = "Uncertainty per corruption"
    return by_quantity(study, quantities, study.models, "uncertainty-corruptions", title, caption)


def promise_table(study: Study) -> Table | None:
    """How promises made on held-out clean images are kept under every corruption, where that was measured."""
    quantities = [promise_kept(name, key) for key in PROMISES for name in ("clean", *study.corruptions)]
    if not measured(study, quantities):
        return None
    caption = (
        "Thresholds were chosen on held-out clean images: answers of which at most 5 % are wrong, other images are "
        "refused, and prediction sets that hold the true class nine times out of ten. How that is kept under each "
        f"corruption, over all its severities; sets of one class, as of a model that is right more often, say no more "
        f"than its accuracy. {describe_missing_promises(study.groups)}{SPREAD}"
    )
    return by_quantity(study, quantities, study.models, "promises", "Promises per corruption", caption)


def describe_missing_promises(groups: Sequence[Group]) -> str:
    """Which methods could not promise an error, in how many of their seeds, and why; "" where all could."""
    text = ""
    for group in groups:
        made = [run.results.promises for run in group.runs if run.results.promises is not None]
        without = [each for each in made if each.threshold is None]
        if without:
            error, images = f"{100 * without[0].error:g} %", min(each.images for each in without)
            seeds = f" in {len(without)} of {len(made)} seeds" if len(without) < len(made) else ""
            text += f"{group.label}: no error of {error} can be promised from {images} held-out images{seeds}. "
    return text


def uncertainty_parts(study: Study) -> list[Table]:
    """`uncertainty_table` in parts that stand side by side: clean images, noise, all corruptions."""
    titles = {"clean": "Clean images", "noise": "Noise", "all": "All corruptions"}
    return _parts(study, {
        title: [
            replace(quantity, label=f"{quantity.label.partition(' ')[2]} {quantity.arrow}")
            for (where, _), quantity in UNCERTAINTY.items() if where == place
        ]
        for place, title in titles.items()
    })  # fmt: skip


def corruption_uncertainty_parts(study: Study) -> list[Table]:
    """`corruption_uncertainty_table` in parts that stand side by side, one per score; `CHOSEN_SCORES` first."""
    by_title = {}
    for score in sorted(UNCERTAINTY_SCORES, key=lambda score: score not in CHOSEN_SCORES):
        quantities = [corruption_uncertainty(name, score) for name in study.corruptions]
        title = f"{quantities[0].label.partition(': ')[2]} {quantities[0].arrow}"
        by_title[title] = [replace(quantity, label=quantity.label.partition(":")[0]) for quantity in quantities]
    return _parts(study, by_title, "Corruption")


def promise_parts(study: Study) -> list[Table]:
    """`promise_table` in parts that stand side by side, one per promise."""
    titles = {
        "error": "Wrong among the answers, % ↓",
        "answered": "Answered, % ↑",
        "coverage": "True class in its set, % ↑",
        "size": "Classes in a set ↓",
    }
    return _parts(study, {
        title: [
            replace(quantity, label=quantity.label.partition(":")[0])
            for quantity in (promise_kept(name, key) for name in ("clean", *study.corruptions))
        ]
        for key, title in titles.items()
    }, "Corruption")  # fmt: skip


def _parts(study: Study, quantities: dict[str, list[Quantity]], corner: str = "Metric") -> list[Table]:
    """A table per title of what was measured; where there is one model, it goes without saying."""
    found = []
    for title, some in quantities.items():
        if not measured(study, some):
            continue
        table = by_quantity(study, some, study.models, title.lower(), title, "")
        sections = table.sections if len(study.models) > 1 else (Section(None, table.sections[0].rows),)
        found.append(replace(table, corner=corner, sections=sections))
    return found


def corruption_table(study: Study) -> Table:
    quantities = [CLEAN_ACCURACY, *map(corruption_accuracy, study.corruptions)]
    caption = f"Accuracy in percent per corruption, mean over its severities. {SPREAD}"
    return by_quantity(study, quantities, study.models, "corruptions", "Accuracy per corruption", caption)


def severity_table(study: Study) -> Table:
    """Accuracy at each severity, over the noises of mCA-N (over all corruptions where there is no such noise)."""
    names = study.noises or study.counted or tuple(study.corruptions)
    label = noise_text(study.noises) if study.noises else "the corruptions"
    quantities = [severity_accuracy(severity, names, label) for severity in (0, *study.severities)]
    caption = f"Accuracy in percent at each severity, mean over {label}. {SPREAD}"
    return by_quantity(study, quantities, study.models, "severities", "Accuracy per severity", caption)


def paper_tables(study: Study) -> list[Table]:
    """Tables 1, 2 and 3 in the layout of the paper, with our numbers; the third needs more corruptions than noise."""
    noises = [name for name in (EXCLUDED, *study.noises) if name in study.corruptions]
    first = [CLEAN_ACCURACY, *NOISE_MEANS, *map(corruption_accuracy, noises)]
    scores = ("rmse", "ece", "oe", "sharpness")
    second = [CALIBRATION[place, score] for place in ("clean", "noise") for score in scores]
    third = [CLEAN_ACCURACY, *MEANS, *(CALIBRATION[place, "rmse"] for place in ("clean", "noise", "all"))]
    tables = [
        by_quantity(study, first, study.models, "table1", "Table 1: accuracy under noise", f"Accuracy in percent "
                    f"on clean images and under noise, in the layout of the paper's Table 1. {SPREAD}"),
        by_quantity(study, second, study.models, "table2", "Table 2: calibration under noise", "Calibration errors "
                    "(RMSE, ECE, OE, in percent) and sharpness (SH) on clean images and pooled over noise, in the "
                    f"layout of the paper's Table 2. {SPREAD}"),
        by_quantity(study, third, study.models, "table3", "Table 3: noise and all corruptions", "Accuracy and RMS "
                    "calibration error under noise and under all corruptions, in the layout of the paper's "
                    f"Table 3. {SPREAD}"),
    ]  # fmt: skip
    return tables if measured(study, [MCA]) else tables[:2]
