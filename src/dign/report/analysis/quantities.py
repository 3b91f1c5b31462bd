"""What a report measures of a run: each quantity has a name, a direction and a way to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dign.corruptions.sets import FURTHER_SETS, SETS, TITLES
from dign.evaluation.image_record import LOSSES
from dign.evaluation.result_pools import PooledCalibration
from dign.metrics import Calibration
from dign.metrics.aggregation import MCA_CORRUPTIONS, MCA_N_CORRUPTIONS
from dign.report.load import Run


@dataclass(frozen=True)
class ImageScore:
    """A score of what each image got: "accuracy", "ece", "rmse" or "oe", over the conditions that `choose` names.

    Or "nll" or "brier", over those of a `pool`.
    """

    score: str
    choose: Callable[[Run], Sequence[tuple[str, int]]]
    raw: bool = False
    """Of confidences before the model's calibrator."""
    pool: str = ""
    """Of losses: "clean", "noise" or "all"."""


def _conditions(place: str) -> Callable[[Run], list[tuple[str, int]]]:
    """The conditions of "clean", of "noise" (those of mCA-N), of "all" (those of mCA) or of a further set."""

    def choose(run: Run) -> list[tuple[str, int]]:
        if place == "clean":
            return [("clean", 0)]
        wanted = {"noise": MCA_N_CORRUPTIONS, "all": MCA_CORRUPTIONS}.get(place) or SETS[place]
        corruptions = run.results.corruptions
        return [(name, level) for name in wanted if name in corruptions for level in corruptions[name].severities]

    return choose


@dataclass(frozen=True)
class Quantity:
    """A number that a run has; `read` gives None where it does not."""

    key: str
    label: str
    """As the paper's tables call it."""
    help: str
    higher_is_better: bool | None
    """None: neither is."""
    read: Callable[[Run], float | None]
    decimals: int = 1
    """Digits that tables show."""
    images: ImageScore | None = None
    """How it follows from what each image got; None where it does not."""

    @property
    def short_label(self) -> str:
        """For the head of a column: 'ECE-N' for 'Corrupt ECE-N'; but an accuracy says of what it is."""
        return self.label if self.label.endswith("acc.") else self.label.removeprefix("Corrupt ")

    @property
    def arrow(self) -> str:
        return {True: "↑", False: "↓", None: ""}[self.higher_is_better]


def _pooled(where: str, score: str) -> Callable[[Run], float | None]:
    return lambda run: _score(run, run.results.calibration, where, score)


def _scaled(where: str, score: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        if run.results.calibrator:
            return _score(run, run.results.calibration, where, score)
        temperature = run.results.temperature
        return _score(run, temperature.calibration, where, score) if temperature else None

    return read


def _score(run: Run, pooled: PooledCalibration, where: str, score: str) -> float | None:
    scores = getattr(pooled, where)
    return getattr(scores, score) if scores and (where != "all" or run.results.goes_beyond_noise) else None


CLEAN_ACCURACY = Quantity(
    "clean_accuracy",
    "Clean acc.",
    "Accuracy on the clean test images, in percent.",
    True,
    lambda run: run.results.clean.accuracy,
    images=ImageScore("accuracy", _conditions("clean")),
)
MCA_N = Quantity(
    "mca_n",
    "mCA-N",
    "Mean accuracy over impulse, shot and speckle noise and their five severities, in percent.",
    True,
    lambda run: run.results.mca_n if run.results.summary.noise_complete else None,
    images=ImageScore("accuracy", _conditions("noise")),
)
NOISE_MEAN = Quantity(
    "noise_mean",
    "Noise acc.",
    "Mean accuracy over the part of mCA-N's three noises and five severities that was measured, in percent.",
    True,
    lambda run: None if run.results.summary.noise_complete else run.results.mca_n,
    images=ImageScore("accuracy", _conditions("noise")),
)
MCA = Quantity(
    "mca",
    "mCA",
    "Mean accuracy over all eighteen corruptions but Gaussian noise, and their five severities, in percent.",
    True,
    lambda run: run.results.mca if run.results.complete else None,
    images=ImageScore("accuracy", _conditions("all")),
)
CORRUPTION_MEAN = Quantity(
    "corruption_mean",
    "Corrupt acc.",
    "Mean accuracy over the part of mCA's eighteen corruptions and five severities that was measured, in percent.",
    True,
    lambda run: run.results.mca if run.results.goes_beyond_noise and not run.results.complete else None,
    images=ImageScore("accuracy", _conditions("all")),
)
NOISE_MEANS = (MCA_N, NOISE_MEAN)
MEANS = (MCA_N, NOISE_MEAN, MCA, CORRUPTION_MEAN)
"""Means over corruptions; over part of them they have names of their own."""


def _set_score(name: str, score: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        scores = run.results.sets.get(name)
        return getattr(scores, score) if scores else None

    return read


SET_MEANS: tuple[Quantity, ...] = tuple(
    quantity
    for name in FURTHER_SETS
    for quantity in (
        Quantity(
            name,
            f"{TITLES[name]} acc.",
            f"Mean accuracy over the {len(SETS[name])} corruptions of {TITLES[name]} and their severities, in percent.",
            True,
            _set_score(name, "accuracy"),
            images=ImageScore("accuracy", _conditions(name)),
        ),
        Quantity(
            f"{name}_ece",
            f"{TITLES[name]} ECE",
            f"Expected calibration error, the {len(SETS[name])} corruptions of {TITLES[name]} pooled, in percent.",
            False,
            _set_score(name, "ece"),
            images=ImageScore("ece", _conditions(name)),
        ),
    )
)
"""Scores over the sets of corruptions beyond the common ones, which are no part of mCA."""
IMAGENET_C: tuple[Quantity, ...] = (
    Quantity(
        "mce",
        "mCE",
        "Mean error under the fifteen corruptions of ImageNet-C, in percent of AlexNet's.",
        False,
        lambda run: run.results.imagenet_c.mce if run.results.imagenet_c else None,
    ),
    Quantity(
        "relative_mce",
        "Rel. mCE",
        "What the corruptions of ImageNet-C add to the clean error, in percent of what they add to AlexNet's.",
        False,
        lambda run: run.results.imagenet_c.relative_mce if run.results.imagenet_c else None,
    ),
)
"""Only of models with ImageNet's classes."""

_SCORES = {
    "rmse": ("RMSE", "Root mean square gap between confidence and accuracy, in percent", False),
    "ece": ("ECE", "Expected calibration error: mean gap between confidence and accuracy, in percent", False),
    "oe": ("OE", "Overconfidence error: the gap where confidence is above accuracy, in percent", False),
    "sharpness": ("SH", "Sharpness: 1 / standard deviation of the confidence inside a bin", True),
}
_PLACES = {
    "clean": ("Clean {}", "clean images"),
    "noise": ("Corrupt {}-N", "impulse, shot and speckle noise pooled, as far as measured"),
    "all": ("Corrupt {}", "all corruptions that were measured but Gaussian noise pooled"),
}
CALIBRATION: dict[tuple[str, str], Quantity] = {
    (place, score): Quantity(
        f"{place}_{score}",
        pattern.format(name),
        f"{text}; {what}.",
        higher,
        _pooled(place, score),
        images=None if score == "sharpness" else ImageScore(score, _conditions(place)),
    )
    for place, (pattern, what) in _PLACES.items()
    for score, (name, text, higher) in _SCORES.items()
}

_UNCERTAINTY = {
    "nll": ("NLL", "Mean negative log-likelihood, in nats", False),
    "brier": ("Brier", "Brier score, from 0 to 2", False),
    "brier_reliability": ("Brier reliability", "Part of the Brier score that calibration can remove", False),
    "adaptive_ece": ("Adaptive ECE", "ECE over bins of equal mass, in percent", False),
    "classwise_ece": ("Class-wise ECE", "ECE of every class's probability, mean over classes, in percent", False),
    "debiased_rmse": ("Debiased RMSE", "Calibration error without the bias of few images, in percent", False),
    "smooth_ece": ("Smooth ECE", "Calibration error without bins, in percent", False),
    "aurc": ("AURC", "Area under the risk-coverage curve, in percent", False),
    "augrc": ("AUGRC", "Mean risk of an undetected error over all coverages, in percent", False),
    "accuracy_at_80": ("Acc. at 80 %", "Accuracy on the 80 % with the highest confidence, in percent", True),
    "auroc": ("AUROC", "How well confidence tells right from wrong, in percent; 50 is chance", True),
    "aupr": ("AUPR", "Average precision of the right answers in the order of confidence, in percent", True),
    "fpr95": ("FPR95", "Wrong answers accepted with 95 % of the right ones, in percent", False),
}
_DECIMALS = {"nll": 3, "brier": 3, "brier_reliability": 3, "aurc": 2, "augrc": 2}
UNCERTAINTY_PLACES = {
    "clean": ("Clean {}", "clean images"),
    "noise": ("Noise {}", "mean over impulse, shot and speckle noise and their severities, as far as measured"),
    "all": ("All {}", "mean over all corruptions that were measured but Gaussian noise"),
}


def _uncertainty(where: str, score: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        pooled = run.results.uncertainty
        part = getattr(pooled, where) if pooled and (where != "all" or run.results.goes_beyond_noise) else None
        return getattr(part, score) if part else None

    return read


UNCERTAINTY: dict[tuple[str, str], Quantity] = {
    (place, score): Quantity(
        f"{place}_{score}",
        pattern.format(name),
        f"{text}; {what}.",
        higher,
        _uncertainty(place, score),
        decimals=_DECIMALS.get(score, 1),
        images=ImageScore(score, _conditions(place), pool=place) if score in LOSSES else None,
    )
    for place, (pattern, what) in UNCERTAINTY_PLACES.items()
    for score, (name, text, higher) in _UNCERTAINTY.items()
}
"""Proper scores and the like: of clean images, and means over corruptions."""


def corruption_uncertainty(name: str, score: str) -> Quantity:
    """A score of `UncertaintyScores` under one corruption, the mean over its severities."""

    def read(run: Run) -> float | None:
        corruption = run.results.corruptions.get(name)
        found = [each.uncertainty for each in corruption.severities.values()] if corruption else []
        values = [getattr(scores, score) for scores in found if scores]
        present = [value for value in values if value is not None]
        return sum(present) / len(present) if present else None

    label, text, higher = _UNCERTAINTY[score]
    title = f"{corruption_title(name)}: {label}"
    help = f"{text}; under {corruption_title(name).lower()}, mean over severities."
    decimals = UNCERTAINTY["clean", score].decimals
    return Quantity(f"{name}_{score}", title, help, higher, read, decimals)


UNCERTAINTY_SCORES = tuple(_UNCERTAINTY)
_PROMISES = {
    "error": (
        "wrong among the answers",
        "Wrong answers, of those that promise an error of 5 %, in percent",
        False,
    ),
    "answered": ("answered", "Images that are answered under that promise, in percent", True),
    "coverage": (
        "true class in its set",
        "Adaptive sets that promise 90 % and hold the true class, in percent",
        True,
    ),
    "size": ("size of sets", "Classes in such a set", False),
}
PROMISES = tuple(_PROMISES)


def promise_kept(name: str, key: str) -> Quantity:
    """How a promise is kept under one corruption, the mean over its severities; "clean" are the clean images."""

    def read(run: Run) -> float | None:
        corruption = run.results.corruptions.get(name)
        found = [run.results.clean] if name == "clean" else list(corruption.severities.values()) if corruption else []
        scores = [getattr(each.promises, key) for each in found if each.promises]
        values = [score["adaptive"] if isinstance(score, dict) else score for score in scores]
        present = [value for value in values if value is not None]
        return sum(present) / len(present) if present else None

    label, text, higher = _PROMISES[key]
    return Quantity(f"{name}_promise_{key}", f"{corruption_title(name)}: {label}", f"{text}.", higher, read)


def _raw(where: str, score: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        own = run.results.calibrator
        pooled = own.calibration if own else run.results.calibration
        return _score(run, pooled, where, score) if pooled else None

    return read


RAW: dict[tuple[str, str], Quantity] = {
    (place, score): replace(
        plain,
        read=_raw(place, score),
        images=None if score == "sharpness" else ImageScore(score, _conditions(place), raw=True),
    )
    for (place, score), plain in CALIBRATION.items()
}
"""Calibration as training leaves it, before the calibrator that is part of a model: what the paper measures."""

TEMPERATURE = Quantity(
    "temperature",
    "T",
    "Temperature fitted on the validation images: above 1 the model was too sure of itself.",
    None,
    lambda run: _temperature(run),
    decimals=2,
)


def _temperature(run: Run) -> float | None:
    own, fitted = run.results.calibrator, run.results.temperature
    return own.value if own else fitted.value if fitted else None


SCALED: dict[tuple[str, str], Quantity] = {
    (place, score): Quantity(
        f"{plain.key}_tempered",
        f"{plain.label} at T",
        f"{plain.help[:-1]}, with the fitted temperature.",
        plain.higher_is_better,
        _scaled(place, score),
    )
    for (place, score), plain in CALIBRATION.items()
}


def noise_text(names: Sequence[str]) -> str:
    """("impulse_noise", "shot_noise") as 'impulse and shot noise'."""
    *most, last = (name.removesuffix("_noise") for name in names)
    return f"{', '.join(most)} and {last} noise" if most else f"{last} noise"


def corruption_title(name: str) -> str:
    """`shot_noise` as 'Shot Noise', `jpeg_compression` as 'JPEG Compression'."""
    return name.replace("_", " ").title().replace("Jpeg", "JPEG")


def corruption_accuracy(name: str) -> Quantity:
    def read(run: Run) -> float | None:
        corruption = run.results.corruptions.get(name)
        return corruption.accuracy if corruption else None

    def choose(run: Run) -> list[tuple[str, int]]:
        corruption = run.results.corruptions.get(name)
        return [(name, severity) for severity in corruption.severities] if corruption else []

    title = corruption_title(name)
    text = f"Accuracy under {title.lower()}, mean over severities, in percent."
    return Quantity(name, title, text, True, read, images=ImageScore("accuracy", choose))


def severity_accuracy(severity: int, names: tuple[str, ...], label: str) -> Quantity:
    """Mean accuracy over the corruptions `names` at one severity; severity 0 is clean."""

    def read(run: Run) -> float | None:
        if severity == 0:
            return run.results.clean.accuracy
        corruptions = run.results.corruptions
        found = [corruptions[name].accuracies.get(severity) for name in names if name in corruptions]
        present = [accuracy for accuracy in found if accuracy is not None]
        return sum(present) / len(present) if present else None

    text = "clean" if severity == 0 else f"severity {severity}"
    return Quantity(f"severity_{severity}", text.capitalize(), f"Accuracy at {text}, mean over {label}.", True, read)


def severity_error(severity: int, names: tuple[str, ...], label: str) -> Quantity:
    """ECE of the predictions under the corruptions `names` at one severity, pooled; severity 0 is clean."""

    def read(run: Run) -> float | None:
        if severity == 0:
            return run.results.clean.ece
        corruptions = run.results.corruptions
        found = [corruptions[name].severities.get(severity) for name in names if name in corruptions]
        present = [condition.calibration for condition in found if condition is not None]
        if not present:
            return None
        pooled = Calibration(present[0].bins)
        for calibration in present:
            pooled.merge(calibration)
        return pooled.compute().ece

    text = "clean" if severity == 0 else f"severity {severity}"
    return Quantity(f"severity_ece_{severity}", text.capitalize(), f"ECE at {text}, pooled over {label}.", False, read)
