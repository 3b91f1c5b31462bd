"""One HTML file that needs nothing else: no network, no other file, no library."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from markupsafe import Markup

from dign.core.text import clean_text
from dign.report.analysis.claims import FAILS, PARTLY, PASSES, claims_table
from dign.report.analysis.comparisons import comparison_table, difference_table
from dign.report.analysis.losses import loss_tables
from dign.report.analysis.outlier_table import outlier_table
from dign.report.analysis.paper import citation, paper_comparison
from dign.report.analysis.settings import settings_table
from dign.report.analysis.story import headline, opening
from dign.report.analysis.study import Study
from dign.report.analysis.tables import (
    CHOSEN_SCORES,
    corruption_table,
    corruption_uncertainty_parts,
    corruption_uncertainty_table,
    paper_tables,
    promise_parts,
    promise_table,
    severity_table,
    summary_table,
    temperature_table,
    uncertainty_parts,
    uncertainty_table,
)
from dign.report.html.classes_section import class_parts
from dign.report.html.examples_section import examples_parts
from dign.report.html.landscape_section import landscape_parts
from dign.report.html.render import read_asset, render
from dign.report.html.result_sections import (
    accuracy_calibration,
    has_several_seeds,
    heat_maps,
    noise_figures,
    reliability_places,
    reliability_rows,
    small_multiples,
)
from dign.report.html.run_sections import run_details, runs_table, training_parts
from dign.report.html.sequences_section import sequence_tables
from dign.report.html.unsure_section import unsure_parts
from dign.report.html.worst_case_section import attack_table, certificate_parts
from dign.report.palette import palette_css


@dataclass(frozen=True)
class Panel:
    """A part of the page, with a tab of its own."""

    key: str
    title: str
    content: Markup


def build_page(study: Study) -> str:
    """The report as the text of an HTML file; the same runs give the same bytes."""
    script = read_asset("page.js")
    colors = Markup(palette_css(group.slot for group in study.groups))
    sentence = headline(study)
    page = render(
        "page.html",
        policy=_policy(script),
        title=f"{study.data}: {sentence}",
        css=read_asset("page.css") + read_asset("charts.css") + colors,
        about=" · ".join(_about(study)),
        headline=_unbroken(sentence),
        lead=_unbroken(" ".join(opening(study))),
        warnings=study.warnings,
        legend=list({group.label: group for group in study.groups}.values()),
        panels=_panels(study),
        provenance=_provenance(study),
        script=script,
    )
    return f"{page}\n"


def _panels(study: Study) -> list[Panel]:
    found = [
        ("summary", "Summary", _summary(study)),
        ("corruptions", "Corruptions", _corruptions(study)),
        ("sequences", "Sequences", _sequences(study)),
        ("classes", "Classes", _classes(study)),
        ("calibration", "Calibration", _calibration(study)),
        ("unsure", "Unsure", _unsure(study)),
        ("examples", "Examples", _examples(study)),
        ("landscape", "Landscape", _landscape(study)),
        ("worst-case", "Worst case", _worst_case(study)),
        ("training", "Training", _training(study)),
        ("paper", "Paper", _paper(study)),
        ("runs", "Runs", render("runs.html", runs=runs_table(study), details=run_details(study))),
    ]
    return [Panel(key, title, content) for key, title, content in found if content is not None]


def _summary(study: Study) -> Markup:
    tables = (*loss_tables(study), settings_table(study), comparison_table(study), difference_table(study))
    return render(
        "summary.html",
        noise_figures=noise_figures(study),
        summary=summary_table(study),
        more=[table for table in tables if table is not None],
    )


def _corruptions(study: Study) -> Markup | None:
    if not study.corruptions:
        return None
    return render(
        "corruptions.html",
        small_multiples=small_multiples(study),
        heat_maps=heat_maps(study),
        severities=study.severities,
        by_corruption=corruption_table(study),
        by_severity=severity_table(study),
    )


def _sequences(study: Study) -> Markup | None:
    tables = sequence_tables(study)
    return render("sequences.html", sequences=tables, columns=_columns(study)) if tables else None


def _classes(study: Study) -> Markup | None:
    parts = class_parts(study)
    return render("classes.html", parts=parts) if parts else None


def _calibration(study: Study) -> Markup:
    return render(
        "calibration.html",
        scatters=accuracy_calibration(study),
        temperature=temperature_table(study),
        reliability=reliability_rows(study),
        places=len(reliability_places(study)),
        paired=any(run.results.calibrator for run in study.runs),
    )


def _unsure(study: Study) -> Markup | None:
    parts, outliers = unsure_parts(study), outlier_table(study)
    titled = [(uncertainty_table(study), uncertainty_parts(study), [])]
    if study.corruptions:
        per_corruption = corruption_uncertainty_parts(study)
        shown, folded = per_corruption[: len(CHOSEN_SCORES)], per_corruption[len(CHOSEN_SCORES) :]
        titled += [
            (corruption_uncertainty_table(study), shown, folded),
            (promise_table(study), promise_parts(study), []),
        ]
    scores = [(whole.title, whole.caption, shown, folded) for whole, shown, folded in titled if whole is not None]
    if not (parts or scores or outliers):
        return None
    return render("unsure.html", parts=parts, scores=scores, outliers=outliers, columns=_columns(study))


def _columns(study: Study) -> int:
    """How broad a table with a column for each method is: a mean with its spread takes the room of two numbers."""
    return len(study.groups) * (2 if has_several_seeds(study.groups) else 1)


def _examples(study: Study) -> Markup | None:
    parts = examples_parts(study)
    return render("examples.html", examples=parts) if parts else None


def _landscape(study: Study) -> Markup | None:
    parts = landscape_parts(study)
    return render("landscape.html", parts=parts) if parts else None


def _worst_case(study: Study) -> Markup | None:
    attacks, certificates = attack_table(study), certificate_parts(study)
    if attacks is None and not certificates:
        return None
    return render("worst_case.html", attacks=attacks, certificates=certificates)


def _training(study: Study) -> Markup | None:
    parts = training_parts(study)
    return render("training.html", parts=parts) if parts else None


def _paper(study: Study) -> Markup | None:
    """The claims, and our numbers beside the paper's; None where neither can be compared with anything."""
    claims, beside = claims_table(study), paper_comparison(study)
    decided = any(row.cells[0].text in (PASSES, FAILS, PARTLY) for row in claims.rows)
    if beside is None and not decided:
        return None
    return render("paper.html", claims=claims, beside=beside, tables=paper_tables(study), citation=citation())


def _about(study: Study) -> list[str]:
    about = study.runs[0].results.evaluation
    measured = [] if about.images is None else [f"{about.images} {clean_text(about.split or 'test')} images"]
    methods = _plural(len({group.title for group in study.groups}), "method")
    variants = len({group.label for group in study.groups})
    several = "" if methods == _plural(variants, "method") else f" in {_plural(variants, 'variant')}"
    counts = [methods + several, _plural(len(study.runs), "run")]
    return [study.data, ", ".join(study.models), *measured, *counts]


def _unbroken(text: str) -> str:
    """A number and its percent sign stay on one line, and so does mCA-N."""
    return text.replace(" %", "\u00a0%").replace("mCA-N", "mCA\u2011N")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _provenance(study: Study) -> str:
    """Which versions made the numbers."""
    versions = sorted({
        f"{name} {version}"
        for run in study.runs
        for name, version in (run.results.evaluation.versions or {}).items()
    })  # fmt: skip
    return f"Made by dign report from {_plural(len(study.runs), 'results file')} ({', '.join(versions)})."


def _policy(script: str) -> str:
    """Only this very script may run, and nothing may be fetched: a second lock behind the escaping."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
