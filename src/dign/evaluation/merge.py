"""Several evaluations of one run: merged by condition where they were made alike, else kept beside each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from dign.core.errors import UserError
from dign.core.files import read_json, write_json
from dign.corruptions import ALL_NAMES
from dign.evaluation.confusion_result import ConfusionResult, find_worst
from dign.evaluation.examples import EXAMPLES_FILE
from dign.evaluation.promises import PromiseScores
from dign.evaluation.result_info import EvaluationInfo
from dign.evaluation.result_pools import CalibratorResult, TemperatureResult
from dign.evaluation.results import RESULTS_FILE, Results, list_conditions
from dign.evaluation.summarize import CLEAN, Counts, Uncertainties, make_results

ALIKE = (
    "split", "images", "image_size", "profile", "seed", "benchmark", "jpeg_quality", "bins", "precision", "left_out",
)  # fmt: skip
"""In what two evaluations agree whose conditions may share a file."""


def save_evaluation(
    folder: Path,
    results: Results,
    examples: dict[str, Any],
    report: Callable[[str], None] = lambda text: None,
    *,
    keep_earlier: bool = True,
) -> Path:
    """Write the results of a run into its folder; nothing that was measured before is lost.

    An evaluation under the same circumstances is merged with `results.json`, condition by condition. Otherwise the
    one that measured less, or was made on other images than the run's own, is stored beside it (`results-NAME.json`).

    Args:
        folder: The run folder.
        results: What was measured now.
        examples: What to write to `examples.json`; those of corruptions that were not measured now are kept.
        report: Called with a sentence that says where results went, if that is not simply `results.json`.
        keep_earlier: Whether earlier results are merged or kept beside; else they are replaced, and kept beside only
            where they have conditions that these have not.

    Returns:
        The file that holds the results.
    """
    main = folder / RESULTS_FILE
    old = _load(main)
    if old and not keep_earlier:
        if set(_conditions(old)) - set(_conditions(results)):
            kept = _save_beside(folder, old, find_differences(results, old) or {"more": "conditions"})
            report(f"The earlier results, under more conditions, are kept in {kept}.")
        old = None
    differences = find_differences(old, results) if old else {}
    if old is None or not differences:
        merged = merge_results(old, results) if old else results
        if old and merged.evaluation.earlier:
            _add_earlier_examples(folder, examples)
            report(f"Added to the earlier results in {main}, which now have {len(merged.corruptions)} corruptions.")
        write_json(folder / EXAMPLES_FILE, examples)
        return merged.save(main)
    if _takes_over(results, old):
        kept = _save_beside(folder, old, find_differences(results, old))
        report(f"The earlier results, made under other circumstances, are kept in {kept}.")
        write_json(folder / EXAMPLES_FILE, examples)
        return results.save(main)
    file = _save_beside(folder, results, differences)
    report(f"{main} is left as it is, since it was made under other circumstances: these results are in {file}.")
    return file


def find_differences(old: Results, new: Results) -> dict[str, Any]:
    """In what the circumstances of two evaluations differ, with the values of the new one; empty if they can merge."""
    before, now = old.evaluation, new.evaluation
    found = {name: getattr(now, name) for name in ALIKE if getattr(before, name) != getattr(now, name)}
    if old.run.data != new.run.data:
        found["data"] = new.run.data
    if before.images_sha256 and now.images_sha256 and before.images_sha256 != now.images_sha256:
        found["images"] = now.images
    if replace(old.run, name="", data="") != replace(new.run, name="", data="") or old.classes != new.classes:
        found["model"] = new.run.model
    if _own_calibrator(old) != _own_calibrator(new):
        found["calibrator"] = new.calibrator.kind if new.calibrator else None
    if not found and _pick_temperature(old, new) is None and (old.temperature or new.temperature):
        found["temperature"] = new.temperature.value if new.temperature else None
    return found


def merge_results(old: Results, new: Results) -> Results:
    """One set of results: the conditions of the new evaluation, and those of the old that it did not measure."""
    before, now = _conditions(old), _conditions(new)
    counts = {**before, **now, CLEAN: new.clean.calibration}
    known = [*ALL_NAMES, *sorted({name for name, _ in counts} - set(ALL_NAMES))]
    ordered = dict(sorted(counts.items(), key=lambda item: (known.index(item[0][0]), item[0][1])))
    kept = list(dict.fromkeys(name for name, severity in before if (name, severity) not in now))
    info = replace(new.evaluation, frost=new.evaluation.frost or (old.evaluation.frost if "frost" in kept else None))
    if kept:
        info = replace(info, earlier=_list_earlier(old.evaluation, kept))
    scores = {**_uncertainties(old), **_uncertainties(new)}
    images = old.images.merge(new.images) if old.images and new.images else new.images
    merged = make_results(
        ordered,
        new.run,
        info,
        new.classes,
        _pick_temperature(old, new),
        None,
        scores,
        images or new.images,
        {**_promises(old), **_promises(new)} if old.promises == new.promises else _promises(new),
    )
    confusion = _merge_confusion(old, new, ordered)
    return replace(merged, confusion=confusion, calibrator=_merge_calibrator(old, new), promises=new.promises)


def _list_earlier(old: EvaluationInfo, kept: Sequence[str]) -> tuple[dict[str, str], ...]:
    """Which of the corruptions that are kept are from when: of the old evaluation, or of one that it was added to."""
    own, parts = list(kept), []
    for part in old.earlier or ():
        names = [name for name in part.get("corruptions", "").split(", ") if name in kept]
        own = [name for name in own if name not in names]
        parts += [{**part, "corruptions": ", ".join(names)}] if names else []
    about = {name: value for name in ("time", "commit", "device") if (value := getattr(old, name))}
    return (*parts, *([{"corruptions": ", ".join(own), **about}] if own else []))


def _merge_confusion(old: Results, new: Results, counts: Counts) -> tuple[ConfusionResult, ...]:
    """The matrices of the clean images and of the worst of all conditions, as far as one of the two has them."""
    measured = {CLEAN, *_conditions(new)}
    kept = [matrix for matrix in old.confusion if (matrix.corruption, matrix.severity) not in measured]
    known = {(matrix.corruption, matrix.severity): matrix for matrix in (*kept, *new.confusion)}
    worst = find_worst({each: part.compute().accuracy for each, part in counts.items() if each != CLEAN})
    return tuple(known[each] for each in (CLEAN, worst) if each in known)


def _conditions(results: Results) -> Counts:
    return {
        (name, severity): condition.calibration
        for name, corruption in results.corruptions.items()
        for severity, condition in corruption.severities.items()
    }


def _own_calibrator(results: Results) -> CalibratorResult | None:
    """What the calibrator is, without what was measured."""
    return replace(results.calibrator, calibration=None, uncertainty=None, bins={}) if results.calibrator else None


def _merge_calibrator(old: Results, new: Results) -> CalibratorResult | None:
    """The calibrator, with the scores without it where those are over all of the merged conditions."""
    before, now = set(_conditions(old)), set(_conditions(new))
    return new.calibrator if now >= before else old.calibrator if before >= now else _own_calibrator(new)


def _promises(results: Results) -> dict[tuple[str, int], PromiseScores]:
    conditions = list_conditions(results.clean, results.corruptions)
    return {pair: each.promises for pair, each in conditions.items() if each.promises}


def _uncertainties(results: Results) -> Uncertainties:
    conditions = list_conditions(results.clean, results.corruptions)
    return {pair: each.uncertainty for pair, each in conditions.items() if each.uncertainty}


def _pick_temperature(old: Results, new: Results) -> TemperatureResult | None:
    """The temperature whose pooled scores are over the merged conditions; None where there is none."""
    before, now = set(_conditions(old)), set(_conditions(new))
    if now >= before and new.temperature:
        return new.temperature
    return old.temperature if before >= now and not new.temperature else None


def _takes_over(new: Results, old: Results) -> bool:
    """Whether a run's `results.json` is to be the new evaluation, made under other circumstances than the old one."""
    if new.evaluation.left_out is not None or new.evaluation.split != "test":
        return False
    if old.evaluation.left_out is not None or old.evaluation.split != "test":
        return True
    return set(_conditions(new)) >= set(_conditions(old)) and not (old.temperature and not new.temperature)


def _save_beside(folder: Path, results: Results, differences: dict[str, Any]) -> Path:
    """Store results under a name that says in what they differ, merged with results of that name if made alike."""
    if {"split", "data"} & set(differences):  # other images, of course
        differences = {name: value for name, value in differences.items() if name not in ("images", "left_out")}
    words = [_describe(name, value) for name, value in differences.items()]
    name = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(dict.fromkeys(words))).strip("-")[:80]
    for number in count(1):
        file = folder / f"results-{name}{f'-{number}' if number > 1 else ''}.json"
        there = _load(file)
        if there is None:
            return results.save(file)
        if not find_differences(there, results):
            return merge_results(there, results).save(file)
    raise AssertionError("a free name is found")


def _describe(name: str, value: Any) -> str:
    if name in ("split", "profile", "model", "data"):
        return str(value).removeprefix("folder:")
    if name == "benchmark":
        return str(value or "on-the-fly")
    if name == "precision":
        return f"precision-{value}"
    if name == "image_size":
        return "x".join(map(str, value or ()))
    return {
        "images": "other-images",
        "left_out": "other-images",
        "temperature": name,
        "calibrator": "uncalibrated" if value is None else f"{value}-calibrated",
    }.get(name, f"{name}-{value}")


def _load(file: Path) -> Results | None:
    """The results in a file; None where there is none, or none that can be read."""
    try:
        return Results.load(file) if file.is_file() else None
    except UserError:
        return None


def _add_earlier_examples(folder: Path, examples: dict[str, Any]) -> None:
    """Put the earlier examples of corruptions that were not measured now after those that were."""
    try:
        earlier = read_json(folder / EXAMPLES_FILE)["images"]
        measured = {entry["corruption"] for entry in examples["images"]}
        examples["images"] += [entry for entry in earlier if entry["corruption"] not in measured]
    except (OSError, ValueError, KeyError, TypeError):
        return  # there are none, or none that can be read
