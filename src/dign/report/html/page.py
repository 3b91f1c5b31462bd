"""One HTML file that needs nothing else: no network, no other file, no library."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from dign.report.analysis.claims import claims_table
from dign.report.analysis.comparisons import comparison_table, difference_table
from dign.report.analysis.paper import citation, paper_comparison
from dign.report.analysis.story import headline, opening
from dign.report.analysis.study import Study
from dign.report.analysis.tables import (
    Table,
    corruption_table,
    paper_tables,
    severity_table,
    summary_table,
    temperature_table,
)
from dign.report.html.examples_section import examples_section
from dign.report.html.landscape_section import landscape_section
from dign.report.html.markup import Html, join, tag
from dign.report.html.result_sections import (
    accuracy_calibration,
    heat_maps,
    html_table,
    noise_figures,
    reliability_section,
    section_tables,
    small_multiples,
    swatch,
)
from dign.report.html.run_sections import runs_section, training_section
from dign.report.palette import palette_css


def build_page(study: Study) -> str:
    """The report as the text of an HTML file; the same runs give the same bytes."""
    panels = [(key, title, content) for key, title, content in _panels(study) if content]
    script = _asset("page.js")
    css = _asset("page.css") + palette_css({group.slot for group in study.groups})
    title = f"{study.data}: {headline(study)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(css)),
    )
    main = tag("main", [_panel(*panel) for panel in panels], id="main")
    body = tag(
        "body",
        tag("a", "Skip to the results", href="#main", class_="skip"),
        _header(study),
        _navigation([(key, title) for key, title, _ in panels]),
        _legend(study),
        main,
        tag("footer", tag("p", _provenance(study))),
        tag("div", id="tip", role="status", hidden=True),
        tag("script", Html(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _panels(study: Study) -> list[tuple[str, str, Html | None]]:
    return [
        ("summary", "Summary", _summary(study)),
        ("corruptions", "Corruptions", _corruptions(study)),
        ("calibration", "Calibration", _calibration(study)),
        ("examples", "Examples", _titled("Example images", examples_section(study))),
        ("landscape", "Landscape", _titled("Loss landscape", landscape_section(study))),
        ("training", "Training", _titled("Training curves", training_section(study))),
        ("paper", "Paper", _paper(study)),
        ("runs", "Runs", join(tag("h2", "Runs"), runs_section(study))),
    ]


def _summary(study: Study) -> Html:
    field = tag("input", type="search", id="filter", placeholder="Filter: a method or a model", autocomplete="off")
    tools = tag("div", tag("label", "Filter rows", field, class_="filter"), tag("output", id="shown"), class_="tools")
    table = html_table(summary_table(study), sortable=True, identifier="summary-table")
    more = [found for found in (comparison_table(study), difference_table(study)) if found]
    return join(noise_figures(study), tag("h2", "All methods"), tools, table, [_titled_table(one) for one in more])


def _titled_table(table: Table) -> Html:
    return join(tag("h2", table.title), html_table(table))


def _paper(study: Study) -> Html:
    """The claims, our numbers beside the paper's, and our numbers in the layout of its tables."""
    beside = paper_comparison(study)
    nothing = f"The paper has no numbers for {study.data} with {', '.join(study.models)}."
    return join(
        _titled_table(claims_table(study)),
        tag("h2", "Our numbers beside the paper's"),
        section_tables(beside) if beside else tag("p", nothing, class_="note"),
        [_titled_table(table) for table in paper_tables(study)],
        tag("p", f"The paper: {citation()}.", class_="note"),
    )


def _corruptions(study: Study) -> Html | None:
    if not study.corruptions:
        return None
    return join(
        tag("h2", "Accuracy against severity"),
        small_multiples(study),
        tag("h2", "Accuracy by corruption and severity"),
        tag("p", "Percent; the same colors in all maps.", class_="note"),
        heat_maps(study),
        tag("h2", "Per corruption"),
        html_table(corruption_table(study)),
        tag("h2", "Per severity"),
        html_table(severity_table(study)),
    )


def _calibration(study: Study) -> Html:
    explanation = (
        "Bars: accuracy of the predictions whose confidence lies in the bin. Short lines: their mean confidence; above "
        "the bar, the model claims more than it can. On the diagonal, confidence is what it says. Below: how often "
        "each confidence occurs. Counts of all seeds are pooled; pale bins hold less than 0.5 % of the predictions."
    )
    scaled = temperature_table(study)
    return join(
        _titled("Accuracy against calibration", accuracy_calibration(study)),
        _titled("After temperature scaling", html_table(scaled) if scaled else None),
        tag("h2", "Reliability"),
        tag("p", explanation, class_="note"),
        reliability_section(study),
    )


def _titled(title: str, content: Html | None) -> Html | None:
    return join(tag("h2", title), content) if content else None


def _header(study: Study) -> Html:
    run = study.runs[0]
    images = run.evaluation.get("images")
    about = [study.data, ", ".join(study.models), f"{images} test images" if isinstance(images, int) else None]
    about += [_plural(len(study.groups), "method"), _plural(len(study.runs), "run")]
    warnings = [tag("li", warning) for warning in study.warnings]
    theme = tag("button", "Light or dark", type="button", id="theme", hidden=True)
    return tag(
        "header",
        tag("div", tag("p", " · ".join(part for part in about if part), class_="about"), theme, class_="bar"),
        tag("h1", _unbroken(headline(study))),
        tag("p", _unbroken(" ".join(opening(study))), class_="lead"),
        tag("ul", warnings, class_="warnings", aria_label="Warnings") if warnings else None,
    )


def _unbroken(text: str) -> str:
    """A number and its percent sign stay on one line."""
    return text.replace(" %", "\u00a0%")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _navigation(panels: list[tuple[str, str]]) -> Html:
    return tag("nav", [tag("a", title, href=f"#{key}", id=f"tab-{key}") for key, title in panels], id="tabs",
               aria_label="Parts of the report")  # fmt: skip


def _panel(key: str, title: str, content: Html) -> Html:
    return tag("section", content, id=key, class_="panel", aria_label=title)


def _legend(study: Study) -> Html:
    labels = {group.label: group.slot for group in study.groups}
    chips = [
        tag("button", swatch(slot), label, type="button", class_=f"chip s{slot}", aria_pressed="true", data_slot=slot)
        for label, slot in labels.items()
    ]
    return tag("div", chips, id="legend", role="group", aria_label="Show or hide methods")


def _provenance(study: Study) -> str:
    """Which versions made the numbers."""
    versions = sorted({
        f"{name} {version}"
        for run in study.runs
        if isinstance(run.evaluation.get("versions"), dict)
        for name, version in run.evaluation["versions"].items()
    })  # fmt: skip
    return f"Made by dign report from {_plural(len(study.runs), 'results file')} ({', '.join(versions)})."


def _asset(name: str) -> str:
    return (files("dign.report.html") / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Only this very script may run, and nothing may be fetched: a second lock behind the escaping."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
