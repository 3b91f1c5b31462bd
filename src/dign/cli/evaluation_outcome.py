"""What `dign evaluate` says of one model: a line for the terminal, a table, and the entry of --json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dign.cli.opening import Outcome

if TYPE_CHECKING:
    from dign.evaluation.result_parts import Summary
    from dign.evaluation.results import Results


def describe_outcome(name: str, results: Results) -> Outcome:
    """The results in one line, as JSON, and as a table."""
    from dign.evaluation.result_table import format_accuracies

    entry = {"name": name, **_summary_document(results.summary), **_confidence_document(results)}
    return Outcome(summary_line(name, results), entry, format_accuracies(results))


def _confidence_document(results: Results) -> dict[str, Any]:
    """What the results say of confidences, as JSON: proper scores, the calibrator and what was before it, promises."""
    calibrator = results.calibrator.to_json() if results.calibrator else {}
    calibrator.pop("bins", None)
    return {
        "uncertainty": results.uncertainty.to_json() if results.uncertainty else None,
        "calibrator": calibrator or None,
        "temperature": results.temperature.to_json() if results.temperature else None,
        "promises": _promises_document(results),
    }


def _promises_document(results: Results) -> dict[str, Any] | None:
    """What was promised, and how it is kept on clean images, under noise and under all corruptions."""
    from dign.evaluation.results import pool_promises

    if results.promises is None:
        return None
    kept = {where: scores.to_json() for where, scores in pool_promises(results).items()}
    return {**results.promises.to_json(), "kept": kept}


def _summary_document(summary: Summary) -> dict[str, Any]:
    """The summary as JSON; a mean over part of the corruptions is not called `mca` or `mca_n`, which are then null."""
    document = summary.to_json()
    parts = {}
    for key, complete, called in (
        ("mca_n", summary.noise_complete, summary.mca_n_name),
        ("mca", summary.complete, summary.mca_name),
    ):
        if document[key] is not None and not complete:
            parts[called], document[key] = document[key], None
    return {**document, "means_over_part": parts} if parts else document


def summary_line(name: str, results: Results) -> str:
    """Accuracy and calibration error in words, with the names that they have in tables."""
    from dign.corruptions.sets import SETS, TITLES
    from dign.metrics.aggregation import EXCLUDED, MCA_CORRUPTIONS

    accuracies = [f"accuracy {results.clean.accuracy:.1f} % clean"]
    summary = results.summary
    if results.mca_n is not None:
        which = "under noise (mCA-N)" if summary.noise_complete else summary.mca_n_name
        accuracies += [f"{results.mca_n:.1f} % {which}"]
    if results.goes_beyond_noise and results.mca is not None:
        which = "under all corruptions (mCA)" if results.complete else summary.mca_name
        accuracies += [f"{results.mca:.1f} % {which}"]
    if results.mca is None and EXCLUDED in results.corruptions:
        accuracies += [f"{results.corruptions[EXCLUDED].accuracy:.1f} % under {EXCLUDED}"]
    if results.imagenet_c:
        accuracies += [f"mCE {results.imagenet_c.mce:.1f} % (relative {results.imagenet_c.relative_mce:.1f} %)"]
    accuracies += [f"{scores.accuracy:.1f} % under {TITLES[name]}" for name, scores in results.sets.items()]
    shown = {EXCLUDED, *MCA_CORRUPTIONS, *(name for key in results.sets for name in SETS[key])}
    others = {name: each for name, each in results.corruptions.items() if name not in shown}
    accuracies += [f"{each.accuracy:.1f} % under {name}" for name, each in others.items()]
    under_noise = "under noise (ECE-N)" if summary.noise_complete else "under noise (ECE)"
    where, called = ("noise", under_noise) if results.calibration.noise else ("clean", "clean (ECE)")
    errors = [f"calibration error {getattr(results.calibration, where).ece:.1f} % {called}"]
    if (own := results.calibrator) and own.calibration:
        errors += [f"{getattr(own.calibration, where).ece:.1f} % without its {own.name}"]
    if scaled := results.temperature:
        fitted = f"temperature {scaled.value:.2f} (fitted on {scaled.images} images)"
        errors += [f"{getattr(scaled.calibration, where).ece:.1f} % at {fitted}"]
    return f"{name}: {', '.join(accuracies)}; {', '.join(errors)}"
