"""Typed results of an evaluation: the only reader and writer of a results file (docs/results.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dign.core.errors import UserError, quote_path
from dign.core.files import parse_json, read_json, write_json
from dign.core.text import clean_text
from dign.corruptions import STORED_QUALITY
from dign.evaluation.confusion_result import ConfusionResult, read_confusion
from dign.evaluation.image_record import ImageRecord
from dign.evaluation.json_values import BrokenResults, as_object, fail
from dign.evaluation.promises import Promises, PromiseScores
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_parts import ConditionResult, CorruptionResult, Summary, score_sets
from dign.evaluation.result_pools import (
    CalibratorResult,
    PooledCalibration,
    PooledUncertainty,
    TemperatureResult,
    pool_uncertainty,
)
from dign.evaluation.result_scores import scores_to_json
from dign.evaluation.result_table import format_table
from dign.metrics import CalibrationScores
from dign.metrics.aggregation import MCA_N_CORRUPTIONS, counts_in_mca
from dign.metrics.corruption_error import CorruptionError, are_imagenet_classes, corruption_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SCHEMA = 1
RESULTS_FILE = "results.json"
MAX_RESULTS_SIZE = 256 * 2**20
"""Bytes of a file: more than the largest record of images that is kept (`image_record.MAX_VALUES`) takes."""


@dataclass(frozen=True, repr=False)
class Results:
    """What an evaluation measured. Prints as a table.

    Attributes:
        run: What was evaluated.
        evaluation: On what, how, where, when and by which code.
        classes: Names of the classes.
        clean: Scores on the clean images, as in `results.clean.accuracy` and `results.clean.ece`.
        corruptions: Scores by corruption and severity, as in `results.corruptions["fog"].severities[3].accuracy`.
        summary: Means over corruptions, and pooled calibration.
        temperature: The fitted temperature with the scores at it; None where none was fitted.
        confusion: Which classes were taken for which: on the clean images, and under the condition of the lowest
            accuracy. Empty where there are more than 100 classes, and for files of older versions.
        calibrator: The calibrator that is part of the model, with the scores without it; None where it has none.
        promises: What was promised on held-out images, `conditions` say how it holds; None where the model has none.
        images: What each image got under each condition; None where that is very much, and for files of older versions.

    >>> import torch, dign
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 10))
    >>> conditions = dign.Conditions(corruptions=["shot_noise", "fog"], severities=[3])
    >>> results = dign.evaluate(model, (torch.rand(20, 3, 8, 8), torch.arange(20) % 10), conditions)
    >>> results.mca_n == results.corruptions["shot_noise"].severities[3].accuracy
    True
    """

    run: RunInfo
    evaluation: EvaluationInfo
    classes: tuple[str, ...]
    clean: ConditionResult
    corruptions: dict[str, CorruptionResult]
    summary: Summary
    temperature: TemperatureResult | None = None
    confusion: tuple[ConfusionResult, ...] = ()
    images: ImageRecord | None = None
    calibrator: CalibratorResult | None = None
    promises: Promises | None = None

    @property
    def mca(self) -> float | None:
        """Mean accuracy over the corruptions that were measured, without Gaussian noise, in percent; None without any.

        It is mCA only where `complete`; `summary.mca_name` says what to call it.
        """
        return self.summary.mca

    @property
    def mca_n(self) -> float | None:
        """Mean accuracy over impulse, shot and speckle noise, as far as measured, in percent; None without any."""
        return self.summary.mca_n

    @property
    def complete(self) -> bool:
        """Whether all eighteen corruptions of mCA were measured at all severities, so that `mca` is mCA."""
        return self.summary.complete

    @property
    def calibration(self) -> PooledCalibration:
        """Scores pooled over conditions: `.clean`, `.noise` and `.all`."""
        return self.summary.calibration

    @cached_property
    def sets(self) -> dict[str, CalibrationScores]:
        """Scores pooled over each further set that was measured as a whole, as in `results.sets["c-bar"].accuracy`.

        The keys are those of `dign.corruptions.SETS`. None of these corruptions is part of `mca`.
        """
        return score_sets(self.corruptions)

    @property
    def uncertainty(self) -> PooledUncertainty | None:
        """Proper scores and the like: `.clean`, and their means over `.noise` and `.all`; None for older files."""
        conditions = list_conditions(self.clean, self.corruptions)
        return pool_uncertainty({pair: each.uncertainty for pair, each in conditions.items() if each.uncertainty})

    @cached_property
    def imagenet_c(self) -> CorruptionError | None:
        """mCE and relative mCE, in percent of AlexNet's errors; None unless the fifteen corruptions of ImageNet-C were
        measured at all severities, as JPEG of quality 85, on the thousand classes of ImageNet, named by WordNet id.
        """
        how = self.evaluation
        if not are_imagenet_classes(self.classes) or how.jpeg_quality != STORED_QUALITY["imagenet"]:
            return None
        return corruption_error({name: each.accuracies for name, each in self.corruptions.items()}, self.clean.accuracy)

    @property
    def counted(self) -> tuple[str, ...]:
        """The corruptions that means and pools are over."""
        return tuple(name for name in self.corruptions if counts_in_mca(name))

    @property
    def goes_beyond_noise(self) -> bool:
        """Whether `mca` is about more than noise; under noise alone it is `mca_n` again."""
        return self.summary.goes_beyond_noise

    def __repr__(self) -> str:
        return format_table(self)

    def to_frame(self) -> DataFrame:
        """A pandas table with a row for each condition; "clean" has severity 0.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise UserError("to_frame() needs pandas: install it with `pip install pandas`.") from error
        rows = [{"corruption": "clean", "family": "clean", "severity": 0, **_scores(self.clean)}]
        for name, corruption in self.corruptions.items():
            for severity, condition in corruption.severities.items():
                place = {"corruption": name, "family": corruption.family, "severity": severity}
                rows.append({**place, **_scores(condition)})
        return DataFrame(rows)

    def plot(self) -> Figure:
        """A matplotlib figure: accuracy by severity for each family, and reliability, clean and under corruption."""
        from dign.evaluation.figures import draw_results

        return draw_results(self)

    def save(self, path: Path | str) -> Path:
        """Write a results file, which `dign report` reads.

        Args:
            path: A .json file, or a folder, into which results.json is written.

        Returns:
            The file.
        """
        file = Path(path)
        file = file if file.suffix == ".json" else file / RESULTS_FILE
        write_json(file, self.to_json())
        return file

    @classmethod
    def load(cls, path: Path | str) -> Results:
        """Read and check a results file; the file may be untrusted.

        Args:
            path: A results file, or a folder that holds results.json.

        Raises:
            UserError: There is no such file, or it is broken.
        """
        path = Path(path)
        file = path / RESULTS_FILE if path.is_dir() else path
        name = clean_text(file.parent if file.name == RESULTS_FILE else file)
        if not file.is_file():
            if path.is_dir():
                raise UserError(
                    f"The run folder '{name}' has no {RESULTS_FILE}: make it with `dign evaluate {quote_path(name)}`."
                )
            raise UserError(f"There is no results file '{clean_text(path)}'.")
        try:
            return cls.from_json(read_json(file, MAX_RESULTS_SIZE))
        except (BrokenResults, OSError, ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, BrokenResults) else f"it cannot be read ({clean_text(error)})"
            where = f"The {RESULTS_FILE} of run folder '{name}'" if file.name == RESULTS_FILE else f"'{name}'"
            hint = f"make it again with `dign evaluate {quote_path(name)}`" if path.is_dir() else "evaluate again"
            raise UserError(f"{where} is broken: {reason}; {hint}.") from error

    @classmethod
    def parse(cls, text: str) -> Results:
        """The results in the text of a results file; what is wrong with it is a `ValueError`."""
        return cls.from_json(parse_json(text))

    @classmethod
    def from_json(cls, value: Any) -> Results:
        """The results in a decoded results file.

        Raises:
            BrokenResults: A field is missing or makes no sense.
        """
        given = as_object(value, "the file")
        if given.get("schema") != SCHEMA:
            fail(f"its schema is {clean_text(given.get('schema'))!r}, and this version reads schema {SCHEMA}")
        run, evaluation = RunInfo.from_json(given.get("run")), EvaluationInfo.from_json(given.get("evaluation"))
        classes = given.get("classes", [])
        if not isinstance(classes, list):
            fail("classes is not a list")
        clean = ConditionResult.from_json(given.get("clean"), "clean")
        corruptions = {
            clean_text(name): CorruptionResult.from_json(
                entry, f"corruptions.{clean_text(name)}", clean.calibration.bins
            )
            for name, entry in as_object(given.get("corruptions"), "corruptions").items()
        }
        severities = {name: corruption.severities for name, corruption in corruptions.items()}
        summary = Summary.from_json(given.get("summary"), severities)
        if abs(summary.clean_accuracy - clean.accuracy) > 1e-3:
            fail("summary.clean_accuracy is not the accuracy of the clean images")
        scaled = given.get("temperature")
        temperature = None if scaled is None else TemperatureResult.from_json(scaled)
        confusion = read_confusion(given.get("confusion"), len(classes), list_conditions(clean, corruptions))
        names = tuple(map(clean_text, classes))
        kept = given.get("images")
        counts = {pair: each.count for pair, each in list_conditions(clean, corruptions).items()}
        images = None if kept is None else ImageRecord.from_json(kept, len(classes), counts)
        fitted, promised = given.get("calibrator"), given.get("promises")
        return cls(
            run,
            evaluation,
            names,
            clean,
            corruptions,
            summary,
            temperature,
            confusion,
            images,
            None if fitted is None else CalibratorResult.from_json(fitted),
            None if promised is None else Promises.from_json(promised),
        )

    def to_json(self) -> dict[str, Any]:
        """What `save` writes."""
        value: dict[str, Any] = {
            "schema": SCHEMA,
            "run": self.run.to_json(),
            "evaluation": self.evaluation.to_json(),
            "classes": list(self.classes),
            "clean": self.clean.to_json(),
            "corruptions": {name: corruption.to_json() for name, corruption in self.corruptions.items()},
            "summary": self.summary.to_json(),
        }
        if self.imagenet_c:
            value["summary"]["imagenet_c"] = asdict(self.imagenet_c)
        if self.sets:
            value["summary"]["sets"] = {name: scores_to_json(scores) for name, scores in self.sets.items()}
        if self.temperature:
            value["temperature"] = self.temperature.to_json()
        if self.confusion:
            value["confusion"] = [matrix.to_json() for matrix in self.confusion]
        if self.calibrator:
            value["calibrator"] = self.calibrator.to_json()
        if self.promises:
            value["promises"] = self.promises.to_json()
        if self.images:
            value["images"] = self.images.to_json()
        return value


def pool_promises(results: Results) -> dict[str, PromiseScores]:
    """How promises are kept on "clean" images, under "noise" and under "all" corruptions, where that was measured."""
    pools: dict[str, list[PromiseScores]] = {}
    for (name, _), condition in list_conditions(results.clean, results.corruptions).items():
        places = {"clean": name == "clean", "noise": name in MCA_N_CORRUPTIONS, "all": name in results.counted}
        for place, belongs in places.items():
            if belongs and condition.promises:
                pools.setdefault(place, []).append(condition.promises)
    return {place: PromiseScores.pool(scores) for place, scores in pools.items()}


def list_conditions(
    clean: ConditionResult, corruptions: Mapping[str, CorruptionResult]
) -> dict[tuple[str, int], ConditionResult]:
    """Every measured condition by corruption and severity; the clean images have severity 0."""
    corrupted = {
        (name, severity): condition
        for name, corruption in corruptions.items()
        for severity, condition in corruption.severities.items()
    }
    return {("clean", 0): clean, **corrupted}


def _scores(condition: ConditionResult) -> Mapping[str, Any]:
    entries = condition.to_json()
    del entries["bins"]
    promises = entries.pop("promises", None)
    entries |= entries.pop("uncertainty", None) or {}
    return entries if promises is None else {**entries, **_flatten(promises)}


def _flatten(promises: Mapping[str, Any]) -> dict[str, Any]:
    sets = {f"set_{key}_{kind}": value for key in ("coverage", "size") for kind, value in promises[key].items()}
    return {"answered": promises["answered"], "error_answered": promises["error"], **sets}
