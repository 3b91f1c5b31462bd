"""The parts of the page that show results: summary, corruptions, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dign.report.analysis.claims import FAILS, PARTLY, PASSES, UNMEASURED, UNSURE
from dign.report.analysis.quantities import (
    CALIBRATION,
    MCA_N,
    Quantity,
    corruption_title,
    noise_text,
    severity_accuracy,
    severity_error,
)
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import NOTHING, Cell, Section, Table, statistic_cell
from dign.report.html.calibration_charts import Spot, reliability_diagram, scatter
from dign.report.html.charts import Axes, Series, Tip, line_chart, number_ticks, percent_range, tip_text
from dign.report.html.markup import Html, join, tag
from dign.report.palette import dash_of, heat_color


def html_table(table: Table, *, sortable: bool = False, identifier: str | None = None) -> Html:
    """A table in a box that scrolls sideways on small screens; `sortable` gives its heads buttons."""
    heads = [(table.corner, "", False), *((c.label, c.help, c.numeric) for c in table.columns)]
    head = []
    for label, help_text, numeric in heads:
        inner = tag("button", label, type="button", title=help_text or None) if sortable else label
        head.append(tag("th", inner, scope="col", class_="num" if numeric else None, title=help_text or None))
    bodies = []
    for section in table.sections:
        rows = []
        if section.heading:
            rows.append(tag("tr", tag("th", section.heading, colspan=len(heads), scope="rowgroup"), class_="section"))
        rows += [_html_row(table, row) for row in section.rows]
        bodies.append(tag("tbody", rows, data_section=section.heading or ""))
    kind = "data sentences" if table.wide_labels else "data"
    whole = tag("table", tag("thead", tag("tr", head)), bodies, id=identifier, class_=kind,
                data_sortable=sortable)  # fmt: skip
    box = tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=table.title)
    return join(box, tag("p", table.caption, class_="note") if table.caption else None)


def _html_row(table: Table, row) -> Html:
    label = join(swatch(row.slot), row.label) if row.slot is not None else row.label
    cells = [_html_cell(cell, column.numeric) for cell, column in zip(row.cells, table.columns, strict=True)]
    slot = None if row.slot is None else f"s{row.slot}"
    return tag("tr", tag("th", label, scope="row", title=row.help or None, data_value=row.label), cells, class_=slot)


def _html_cell(cell: Cell, numeric: bool) -> Html:
    shown: object = tag("strong", cell.text) if cell.best else cell.text
    spread = tag("span", f" ± {cell.std:.1f}", class_="std") if cell.std is not None else None
    value = None if cell.value is None else f"{cell.value:.6f}"
    kinds = {PASSES: " passes", FAILS: " fails"} | dict.fromkeys((UNSURE, UNMEASURED, PARTLY), " unsure")
    kind = kinds.get(cell.text, "")
    return tag("td", shown, spread, class_="num" if numeric else f"text{kind}", data_value=value)


def section_tables(table: Table) -> Html:
    """A table's sections as small tables side by side: for long ones."""
    parts = []
    for section in table.sections:
        rows = tuple(replace(row, slot=None) for row in section.rows)
        single = replace(table, sections=(Section(None, rows),), caption="")
        slot = section.rows[0].slot
        heading = tag("h4", swatch(slot) if slot is not None else None, section.heading)
        parts.append(tag("div", heading, html_table(single), class_=None if slot is None else f"s{slot}"))
    return join(tag("p", table.caption, class_="note"), tag("div", parts, class_="grid-of-tables"))


def swatch(slot: int) -> Html:
    return tag("span", class_=f"swatch s{slot}", aria_hidden="true")


def per_model(study: Study, build) -> Html:
    """`build(groups)` for every model, under its name where there are several."""
    several = len(study.models) > 1
    return join([[tag("h3", model) if several else None, build(study.of_model(model))] for model in study.models])


@dataclass(frozen=True)
class Against:
    """What is drawn against severity: a quantity per severity (0: clean), over some corruptions."""

    title: str
    places: tuple[int, ...]
    levels: tuple[Quantity, ...]
    y_label: str = "Accuracy, %"

    @classmethod
    def of(cls, study: Study, names: tuple[str, ...], title: str, quantity=severity_accuracy, **more) -> Against:
        places = (0, *study.severities)
        return cls(title, places, tuple(quantity(place, names, title) for place in places), **more)

    def values(self, groups: Sequence[Group]) -> list[float]:
        means = [group.mean(level) for group in groups for level in self.levels]
        return [mean for mean in means if mean is not None]


def severity_chart(groups: Sequence[Group], what: Against, y_range: tuple[float, float], large: bool = False) -> Html:
    series = [_severity_series(group, what) for group in groups]
    series = [one for one in series if one.points]
    width, height, right = (460.0, 300.0, 92.0) if large else (300.0, 190.0, 10.0)
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


def noise_figures(study: Study) -> Html | None:
    """The figures to look at first: accuracy and calibration error as noise grows."""
    names = study.noises or study.counted
    if not names:
        return None
    title = noise_text(study.noises).capitalize() if study.noises else "All corruptions"
    accuracy = Against.of(study, names, title)
    error = Against.of(study, names, title, severity_error, y_label="Calibration error (ECE), %")
    accuracy_range = percent_range(accuracy.values(study.groups))
    error_range = (0.0, 1.08 * max(error.values(study.groups)))

    def build(groups: Sequence[Group]) -> Html:
        bands = " Bands: ± one standard deviation over seeds." if _several_seeds(groups) else ""
        left = tag("figcaption", f"Accuracy as the corruption grows: {title.lower()}. Higher is better.{bands}")
        right = tag("figcaption", "How far confidence is from accuracy, pooled over the same images. Lower is better.")
        figures = [
            tag("figure", severity_chart(groups, accuracy, accuracy_range, large=True), left),
            tag("figure", severity_chart(groups, error, error_range, large=True), right),
        ]
        return tag("div", figures, class_="panels wide hero")

    return per_model(study, build)


def _several_seeds(groups: Sequence[Group]) -> bool:
    return any(len(group.runs) > 1 for group in groups)


def small_multiples(study: Study) -> Html:
    """A panel per corruption, all with the same scale."""
    panels = {name: Against.of(study, (name,), corruption_title(name)) for name in study.corruptions}
    y_range = percent_range([value for what in panels.values() for value in what.values(study.groups)])

    def build(groups: Sequence[Group]) -> Html:
        families: dict[str, list[Html]] = {}
        for name, family in study.corruptions.items():
            chart = severity_chart(groups, panels[name], y_range)
            panel = tag("figure", tag("figcaption", panels[name].title, class_="above"), chart)
            families.setdefault(family, []).append(panel)
        return join([
            [tag("h4", family.capitalize()) if len(families) > 1 else None, tag("div", panels, class_="panels")]
            for family, panels in families.items()
        ])  # fmt: skip

    return per_model(study, build)


def heat_maps(study: Study) -> Html:
    """Accuracy by corruption and severity, one map per method."""
    return per_model(study, lambda groups: tag("div", [_heat_map(group, study) for group in groups], class_="heats"))


def _heat_map(group: Group, study: Study) -> Html:
    head = [tag("th", str(severity), scope="col") for severity in study.severities]
    rows = []
    for name in study.corruptions:
        cells = [_heat_cell(group, name, severity) for severity in study.severities]
        rows.append(tag("tr", tag("th", corruption_title(name), scope="row"), cells))
    head_row = tag("tr", tag("td"), head)
    table = tag("table", tag("caption", swatch(group.slot), group.label), tag("thead", head_row), tag("tbody", rows),
                class_="heat")  # fmt: skip
    return tag("div", table, class_=f"s{group.slot} scroll")


def _heat_cell(group: Group, name: str, severity: int) -> Html:
    statistic = group.statistic(severity_accuracy(severity, (name,), name))
    if statistic is None:
        return tag("td", NOTHING)
    background, ink = heat_color(statistic.mean / 100)
    place = f"{corruption_title(name)}, severity {severity}"
    lines = [(group.slot, group.label, ""), (None, place, f"{statistic_cell(statistic).plain} %")]
    style = f"background:{background};color:{ink}"
    return tag("td", f"{statistic.mean:.0f}", style=style, data_tip=tip_text(lines))


def reliability_section(study: Study) -> Html:
    """Per method: clean, noise and (where there is more than noise) all corruptions side by side."""
    places = [("Clean images", None, "clean"), ("Noise", study.noises, "noise")]
    if set(study.counted) - set(study.noises):
        places.append(("All corruptions", study.counted, "all"))
    kind = "rows" if len(places) < 3 else "rows broad"
    return per_model(study, lambda groups: tag("div", [_reliability_row(g, places) for g in groups], class_=kind))


def _reliability_row(group: Group, places) -> Html:
    figures = []
    for title, names, place in places:
        pooled = group.pooled(names)
        if pooled is None:
            continue
        ece = statistic_cell(group.statistic(CALIBRATION[place, "ece"])).plain
        caption = tag("figcaption", title, tag("span", f"ECE {ece}", class_="score"), class_="above")
        diagram = reliability_diagram(f"Reliability of {group.label}, {title.lower()}", pooled, group.slot)
        figures.append(tag("figure", caption, diagram))
    head = tag("h4", swatch(group.slot), group.label)
    return tag("section", head, tag("div", figures, class_="panels"), class_=f"s{group.slot} card")


def accuracy_calibration(study: Study) -> Html | None:
    """mCA-N against ECE-N: a method should be right often and know when it is not."""
    ece = CALIBRATION["noise", "ece"]

    def build(groups: Sequence[Group]) -> Html | None:
        spots = [spot for group in groups if (spot := _spot(group, MCA_N, ece))]
        if not spots:
            return None
        chart = scatter(
            "Accuracy against calibration under noise", spots, "mCA-N, % (more is better)", "ECE-N, % (less is better)"
        )
        note = "Small marks: single seeds." if _several_seeds(groups) else ""
        caption = f"Accuracy under noise against calibration error under noise; lower right is better. {note}"
        return tag("figure", chart, tag("figcaption", caption))

    return per_model(study, build) if study.noises else None


def _spot(group: Group, x: Quantity, y: Quantity) -> Spot | None:
    if group.mean(x) is None or group.mean(y) is None:
        return None
    runs = [(x.read(run), y.read(run)) for run in group.runs]
    return Spot(group.label, group.slot, group.mean(x), group.mean(y), [(a, b) for a, b in runs if None not in (a, b)])
