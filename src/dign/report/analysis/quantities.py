"""What a report measures of a run: each quantity has a name, a direction and a way to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dign.corruptions.sets import FURTHER_SETS, SETS, TITLES
from dign.evaluation.image_record import POOLS
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


def conditions_of(place: str) -> Callable[[Run], list[tuple[str, int]]]:
    """The conditions of "clean", of "noise" (those of mCA-N), of "all" (those of mCA) or of a further set."""

    def choose(run: Run) -> list[tuple[str, int]]:
        if place == "clean":
            return [("clean", 0)]
        wanted = POOLS.get(place) or SETS[place]
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


CLEAN_ACCURACY = Quantity(
    "clean_accuracy",
    "Clean acc.",
    "Accuracy on the clean test images, in percent.",
    True,
    lambda run: run.results.clean.accuracy,
    images=ImageScore("accuracy", conditions_of("clean")),
)
MCA_N = Quantity(
    "mca_n",
    "mCA-N",
    "Mean accuracy over impulse, shot and speckle noise and their five severities, in percent.",
    True,
    lambda run: run.results.mca_n if run.results.summary.noise_complete else None,
    images=ImageScore("accuracy", conditions_of("noise")),
)
NOISE_MEAN = Quantity(
    "noise_mean",
    "Noise acc.",
    "Mean accuracy over the part of mCA-N's three noises and five severities that was measured, in percent.",
    True,
    lambda run: None if run.results.summary.noise_complete else run.results.mca_n,
    images=ImageScore("accuracy", conditions_of("noise")),
)
MCA = Quantity(
    "mca",
    "mCA",
    "Mean accuracy over all eighteen corruptions but Gaussian noise, and their five severities, in percent.",
    True,
    lambda run: run.results.mca if run.results.complete else None,
    images=ImageScore("accuracy", conditions_of("all")),
)
CORRUPTION_MEAN = Quantity(
    "corruption_mean",
    "Corrupt acc.",
    "Mean accuracy over the part of mCA's eighteen corruptions and five severities that was measured, in percent.",
    True,
    lambda run: run.results.mca if run.results.goes_beyond_noise and not run.results.complete else None,
    images=ImageScore("accuracy", conditions_of("all")),
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
            images=ImageScore("accuracy", conditions_of(name)),
        ),
        Quantity(
            f"{name}_ece",
            f"{TITLES[name]} ECE",
            f"Expected calibration error, the {len(SETS[name])} corruptions of {TITLES[name]} pooled, in percent.",
            False,
            _set_score(name, "ece"),
            images=ImageScore("ece", conditions_of(name)),
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
