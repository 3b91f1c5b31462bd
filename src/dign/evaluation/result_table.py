"""Results as a table of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dign.corruptions.sets import SETS, TITLES
from dign.metrics import CalibrationScores

if TYPE_CHECKING:
    from dign.evaluation.results import Results


def format_table(results: Results) -> str:
    """Scores pooled over conditions, then accuracy by corruption and severity."""
    run, images = results.run, results.evaluation.images
    lines = [f"{run.title} ({run.model}) on {run.data}" + (f", {images} images" if images else ""), ""]
    lines += _align([("%", "accuracy", "ECE", "RMSE", "OE"), *_score_rows(results)])
    lines += _balanced_lines(results)
    lines += _uncertainty_lines(results)
    if results.imagenet_c:
        errors = (("mCE", results.imagenet_c.mce), ("relative mCE", results.imagenet_c.relative_mce))
        lines += ["", *_align([("% of AlexNet's error", ""), *((name, _number(value)) for name, value in errors)])]
    if results.corruptions:
        lines += ["", format_accuracies(results)]
    return "\n".join(lines)


def format_accuracies(results: Results) -> str:
    """Accuracy by corruption and severity; empty where no corruption was measured."""
    severities = sorted({severity for each in results.corruptions.values() for severity in each.severities})
    rows = [
        (name, *(_number(result.accuracies.get(severity)) for severity in severities), _number(result.accuracy))
        for name, result in results.corruptions.items()
    ]
    return "\n".join(_align([("accuracy % at severity", *map(str, severities), "mean"), *rows])) if rows else ""


def _score_rows(results: Results) -> list[tuple[str, ...]]:
    pooled, scaled = results.calibration, results.temperature
    rows = [_row("clean", pooled.clean, results.clean.accuracy)]
    if pooled.noise:
        name = "noise (accuracy: mCA-N)" if results.summary.noise_complete else results.summary.mca_n_name
        rows.append(_row(name, pooled.noise, results.mca_n))
    if pooled.all and results.goes_beyond_noise:
        name = "all corruptions (accuracy: mCA)" if results.complete else results.summary.mca_name
        rows.append(_row(name, pooled.all, results.mca))
    for name, scores in results.sets.items():
        rows.append(_row(f"{TITLES[name]} ({len(SETS[name])} corruptions)", scores, scores.accuracy))
    if results.calibrator and (before := results.calibrator.calibration):
        without = f"without {results.calibrator.name}"
        rows.append(_row(f"clean {without}", before.clean, results.clean.accuracy))
        if before.noise:
            rows.append(_row(f"noise {without}", before.noise, results.mca_n))
    if scaled:
        at = f"at temperature {scaled.value:.2f}"
        rows.append(_row(f"clean {at}", scaled.calibration.clean, results.clean.accuracy))
        if scaled.calibration.noise:
            rows.append(_row(f"noise {at}", scaled.calibration.noise, results.mca_n))
    return rows


SHOWN = {
    "nll": "NLL",
    "brier": "Brier",
    "adaptive_ece": "adaptive ECE",
    "classwise_ece": "class-wise ECE",
    "debiased_rmse": "debiased RMSE",
    "smooth_ece": "smooth ECE",
    "aurc": "AURC",
    "augrc": "AUGRC",
    "accuracy_at_80": "accuracy at 80 %",
    "auroc": "AUROC",
    "fpr95": "FPR95",
}
"""Score to its name in tables; `nll` and `brier` are no percentages."""


def _uncertainty_lines(results: Results) -> list[str]:
    """Proper scores and the like, a row each: they are too many for columns."""
    pooled = results.uncertainty
    if pooled is None:
        return []
    parts = {"clean": pooled.clean, "noise": pooled.noise}
    parts |= {"all": pooled.all} if results.goes_beyond_noise else {}
    present = {name: part for name, part in parts.items() if part}
    rows = [(title, *(_score(key, getattr(part, key)) for part in present.values())) for key, title in SHOWN.items()]
    return ["", *_align([("mean over conditions", *present), *rows])]


def _balanced_lines(results: Results) -> list[str]:
    """Balanced accuracy where it says something else than accuracy: classes of the test images differ in number."""
    sizes = {sum(row) for matrix in results.confusion for row in matrix.counts}
    if len(sizes) < 2:
        return []
    names = {each.corruption: f"{each.corruption}, severity {each.severity}" for each in results.confusion}
    parts = [f"{names[each.corruption]} {each.balanced_accuracy:.1f}" for each in results.confusion]
    return ["", f"balanced accuracy (mean over classes) %: {'; '.join(parts).replace('clean, severity 0', 'clean')}"]


def _score(key: str, value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if key in ("nll", "brier") else f"{value:.1f}"


def _row(name: str, scores: CalibrationScores, accuracy: float | None) -> tuple[str, ...]:
    return (name, *map(_number, (accuracy, scores.ece, scores.rmse, scores.oe)))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
