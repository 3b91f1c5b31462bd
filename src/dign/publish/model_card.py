"""The README of a shared model: what it is, how to use it, and what was measured, from the results file alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dign.core.files import write_text
from dign.core.text import clean_text
from dign.corruptions.sets import SETS, TITLES
from dign.evaluation.promises import Promises
from dign.evaluation.result_pools import PooledCalibration
from dign.evaluation.results import RESULTS_FILE, Results, pool_promises
from dign.metrics import CalibrationScores
from dign.metrics.aggregation import EXCLUDED, MCA_N_CORRUPTIONS
from dign.metrics.refusal import CERTAINTY
from dign.runs.calibrator import Calibrator


def read_results(folder: Path) -> Results | None:
    """The results of a run folder; None where the run was not evaluated."""
    return Results.load(folder) if (folder / RESULTS_FILE).is_file() else None


def note_calibrator(folder: Path, calibrator: Calibrator) -> None:
    """Have the card of a hub folder speak of a calibrator that was fitted since it was written."""
    card = folder / "README.md"
    if not card.is_file():
        return
    before, heading, after = card.read_text(encoding="utf-8").partition("## Calibration\n")
    if not heading:
        return
    rest = after[after.index("\n## ") + 1 :] if "\n## " in after else ""
    *section, end = _calibrated(calibrator)
    section[-1] += " The scores below were measured without it."
    write_text(card, before + "\n".join([*section, end, rest]))


def card_text(about: dict[str, Any], results: Results | None) -> str:
    """Markdown for the card of a model described by `about` (its hub configuration, its method, its settings)."""
    config = about["model"]
    height, width = config["image_size"]
    lines = [
        f"# {_plain(config['model'])} on {_plain(config['data'])}, trained with {_plain(about['method'])}",
        "",
        f"An image classifier for {len(config['classes'])} classes, trained with dign; it takes RGB images of "
        f"{height}x{width} pixels with values in [0,1] and normalizes them itself.",
        "",
        "```python",
        "from dign.publish.hub import HubModel",
        "",
        'model = HubModel.from_pretrained("DIR")      # images (N,3,H,W) in [0,1] to logits',
        "probabilities = model.method.predict(model, images)",
        "```",
        "",
        "`dign predict DIR picture.jpg` does the same from a terminal.",
        "",
        *_seen(config),
        *_calibrated(about.get("calibrator")),
        "## Measured",
        "",
        *_measured(results),
        "",
        "## Trained with",
        "",
        *_settings(about["settings"]),
        "",
        "## Classes",
        "",
        ", ".join(_plain(name) for name in config["classes"]),
        "",
    ]
    return "\n".join(lines)


def _seen(config: dict[str, Any]) -> list[str]:
    """Which images the model has seen, so that nobody calibrates or measures on them."""
    seen = config.get("seen")
    if not seen:
        return []
    held = f"; {100 * seen['validation']:g} % of the training images were held out" if seen["validation"] else ""
    kept = held or ", and held none out"
    return ["## Seen", "", f"Trained on {seen['images']} images of {_plain(config['data'])}{kept}.", ""]


def _calibrated(calibrator: Calibrator | None) -> list[str]:
    if calibrator is None:
        return ["## Calibration", "", "None: its probabilities are as training left them (`dign calibrate`).", ""]
    return ["## Calibration", "", f"Part of the model: {_plain(calibrator.describe())}.", ""]


def _measured(results: Results | None) -> list[str]:
    if results is None:
        return ["Not evaluated as it is: `dign evaluate RUN` before `dign hub save RUN DIR` puts the table here."]
    how = results.evaluation
    dign = (how.versions or {}).get("dign")
    mixed = f" in mixed precision ({_plain(how.precision)})" if how.precision != "32" else ""
    lines = [
        f"On the {_plain(how.split)} split ({how.images} images), corruptions of profile {_plain(how.profile)}, seed "
        f"{how.seed}, pooled without {EXCLUDED}; measured{mixed} {_plain(how.time)} with dign "
        f"{_plain(dign)}.",
        "",
        *_score_table(results),
        *_uncertainty_table(results),
    ]
    severities = sorted({severity for each in results.corruptions.values() for severity in each.severities})
    if severities:
        rows = [
            (_plain(name), *(_one_decimal(each.accuracies.get(severity)) for severity in severities))
            for name, each in results.corruptions.items()
        ]
        lines += ["", "Accuracy in percent by severity:", "", *_table(("corruption", *map(str, severities)), rows)]
    return lines


def _name_pools(results: Results) -> dict[str, str]:
    """What the clean images, those under noise and those under all corruptions are called: as far as measured."""
    noises = [name.removesuffix("_noise") for name in MCA_N_CORRUPTIONS if name in results.corruptions]
    everything = f"all {len(results.counted)} corruptions" if results.complete else _plain(results.summary.mca_name)
    return {"clean": "clean", "noise": f"noise ({', '.join(noises)})", "all": everything}


def _score_table(results: Results) -> list[str]:
    pools = _name_pools(results)
    everything = pools["all"]
    rows = _score_rows(results, results.calibration, tuple(pools.values()))
    rows += [_score_row(f"{TITLES[name]} ({len(SETS[name])} corruptions)", part) for name, part in results.sets.items()]
    if results.calibrator and results.calibrator.calibration:
        names = tuple(f"{name}, without its {results.calibrator.name}" for name in ("clean", "noise", everything))
        rows += _score_rows(results, results.calibrator.calibration, names)
    if results.temperature:
        at = f"at temperature {results.temperature.value:.2f}"
        names = tuple(f"{name}, {at}" for name in ("clean", "noise", everything))
        rows += _score_rows(results, results.temperature.calibration, names)
    return _table(("images", "accuracy %", "ECE %", "RMSE %", "OE %"), rows)


def _uncertainty_table(results: Results) -> list[str]:
    """Proper scores, how well confidence tells right from wrong, and how promises are kept, by pool."""
    if results.uncertainty is None:
        return []
    pools = {name: getattr(results.uncertainty, name) for name in ("clean", "noise", "all")}
    kept = pool_promises(results)
    rows = []
    for name, scores in pools.items():
        if scores is not None and (name != "all" or results.goes_beyond_noise):
            promise = kept.get(name)
            cells = (f"{scores.nll:.3f}", f"{scores.brier:.3f}", f"{scores.augrc:.2f}", _one_decimal(scores.auroc))
            answered = (promise.answered, promise.error, promise.coverage["adaptive"]) if promise else (None,) * 3
            rows.append((_name_pools(results)[name], *cells, *map(_one_decimal, answered)))
    head = ("images", "log loss", "Brier score", "AUGRC %", "AUROC of right and wrong %")
    promised = ("answered %", "wrong among them %", "true class in its set %")
    return ["", *_describe_promises(results.promises), *_table((*head, *promised), rows)]


def _describe_promises(promises: Promises | None) -> list[str]:
    if promises is None:
        return []
    made = f"sets that hold the true class in {100 * promises.coverage:g} %"
    if promises.threshold is not None:
        sure = f"with a certainty of {100 * CERTAINTY:g} %"
        made = f"answers of which at most {100 * promises.error:g} % are wrong, {sure}, and {made}"
    return [f"Promised from {promises.images} held-out clean images: {made}. How that is kept:", ""]


def _score_rows(results: Results, pooled: PooledCalibration, names: Sequence[str]) -> list[Sequence[str]]:
    """A row for each pool that was measured; all corruptions only where these are more than noise."""
    everything = pooled.all if results.goes_beyond_noise else None
    return [
        _score_row(name, part)
        for name, part in zip(names, (pooled.clean, pooled.noise, everything), strict=True)
        if part is not None
    ]


def _score_row(name: str, part: CalibrationScores) -> Sequence[str]:
    return (name, *(f"{value:.2f}" for value in (part.accuracy, part.ece, part.rmse, part.oe)))


def _one_decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _settings(settings: dict[str, dict[str, Any]]) -> list[str]:
    return _table(
        ("method", "settings"),
        [
            (_plain(name), ", ".join(f"{key} {_plain(value)}" for key, value in table.items()))
            for name, table in settings.items()
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _plain(value: object) -> str:
    """Text as one line of Markdown, with its special characters escaped."""
    return "".join(f"\\{char}" if char in "\\`*[]<>|#" else char for char in clean_text(value))
