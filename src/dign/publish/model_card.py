"""The README of a shared model: what it is, how to use it, and what was measured, from the results file alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_results(folder: Path) -> dict[str, Any] | None:
    """The results file of a run folder, checked; None where the run was not evaluated."""
    from dign.core.errors import UserError, quote_path
    from dign.core.files import read_json
    from dign.evaluation.results import BrokenResults, check_results

    path = folder / "results.json"
    if not path.is_file():
        return None
    try:
        return check_results(read_json(path))
    except (OSError, ValueError, BrokenResults) as error:
        raise UserError(f"{path} is broken ({error}): run `dign evaluate {quote_path(folder)}` again.") from error


def card_text(about: dict[str, Any], results: dict[str, Any] | None) -> str:
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


def _measured(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return ["Not evaluated: `dign evaluate RUN` before `dign hub save RUN DIR` puts the table here."]
    how, summary = results["evaluation"], results["summary"]
    calibration = summary["calibration"]
    rows = [("clean", calibration["clean"])]
    noises = [name for name, entry in results["corruptions"].items() if entry["family"] == "noise"]
    named = ", ".join(_plain(name.removesuffix("_noise")) for name in sorted(noises) if name != "gaussian_noise")
    rows += [(f"noise ({named})", calibration["noise"])] if calibration.get("noise") else []
    more, everything = _beyond_noise(results)
    rows += [(everything, calibration["all"])] if more and calibration.get("all") else []
    scaled = results.get("temperature") or {}
    rows += [
        (f"{name}, at temperature {scaled['value']:.2f}", scaled[key])
        for key, name in (("clean", "clean"), ("noise", "noise"), ("all", everything))
        if scaled.get(key) and (more or key != "all")
    ]
    table = _table(
        ("images", "accuracy %", "ECE %", "RMSE %", "OE %"),
        [(name, *(f"{part[key]:.2f}" for key in ("accuracy", "ece", "rmse", "oe"))) for name, part in rows],
    )
    corrupted = [
        (_plain(name), *(f"{value['accuracy']:.1f}" for value in entry["severities"].values()))
        for name, entry in results["corruptions"].items()
    ]
    facts = {key: _plain(how.get(key)) for key in ("split", "images", "profile", "seed", "time")}
    lines = [
        f"On the {facts['split']} split ({facts['images']} images), corruptions of profile {facts['profile']}, seed "
        f"{facts['seed']}, pooled without gaussian_noise; measured {facts['time']} with dign "
        f"{_plain((how.get('versions') or {}).get('dign'))}.",
        "",
        *table,
    ]
    if corrupted:
        severities = next(iter(results["corruptions"].values()))["severities"]
        lines += ["", "Accuracy in percent by severity:", ""]
        lines += _table(("corruption", *severities), corrupted)
    return lines


def _beyond_noise(results: dict[str, Any]) -> tuple[bool, str]:
    """Whether there is more than noise, so that a pool of all corruptions is worth a row, and what to call that."""
    families = [entry["family"] for name, entry in results["corruptions"].items() if name != "gaussian_noise"]
    return any(family != "noise" for family in families), f"all {len(families)} corruptions"


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
    """Text from a file as it may stand in Markdown: one line, no marks that would be read as such."""
    from dign.evaluation.results import clean_text

    return "".join(f"\\{char}" if char in "\\`*[]<>|#" else char for char in clean_text(value))
