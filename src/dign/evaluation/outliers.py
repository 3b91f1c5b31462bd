"""Out of distribution: how well a model tells images of its own kind from others, with both in the measurement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.core.errors import UserError
from dign.core.files import write_json
from dign.core.freezing import freeze_temporarily
from dign.core.outputs import logits_of
from dign.core.pixels import to_float
from dign.core.sampling import spread_indices
from dign.core.seeds import make_generator
from dign.core.text import clean_text
from dign.data import load
from dign.data.dataset import DataSet, Split
from dign.data.framing import MIDDLE, Framing
from dign.data.names import FOLDER_PREFIX, hide_folder_path
from dign.evaluation.subjects import CalibratedModel, Subject
from dign.metrics.detection import OUTLIER_SCORES, DetectionScores, detect, outlier_score
from dign.parallel.devices import pick_device
from dign.runs.calibrator import Calibrator
from dign.runs.classifier import Classifier
from dign.runs.predict import find_images, read_images

NOISE = {"noise": "uniform", "gaussian": "Gaussian"}
"""Made-up images: every pixel uniform in [0,1], or Gaussian about gray with standard deviation 1/4."""
NO_ENERGY = 1e-4
"""Largest energy of log-probabilities, by rounding."""


@dataclass(frozen=True)
class OutlierResult:
    """How well a model tells the images that it knows from others.

    Attributes:
        model: Name of the model.
        data: The images that it knows.
        outliers: The others.
        images: Number of images that it knows.
        others: Number of the others.
        scores: For each score ("softmax", "entropy", "energy"), AUROC, AUPR and FPR95 in percent; known images are the
            positives. Models that give probabilities alone, as ensembles do, have no energy.

    >>> scores = {"energy": DetectionScores(auroc=90.0, aupr=95.0, fpr95=40.0)}
    >>> OutlierResult("mine", "photos", "noise", 100, 100, scores).describe()
    'mine: 100 images of photos against 100 of noise; AUROC / FPR95 in percent by energy 90.0 / 40.0'
    """

    model: str
    data: str
    outliers: str
    images: int
    others: int
    scores: dict[str, DetectionScores]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        """One line for a terminal."""
        parts = [f"{name} {each.auroc:.1f} / {each.fpr95:.1f}" for name, each in self.scores.items()]
        return (
            f"{self.model}: {self.images} images of {self.data} against {self.others} of {self.outliers}; AUROC / "
            f"FPR95 in percent by {', '.join(parts)}"
        )


def detect_outliers(
    model: nn.Module,
    known: Split,
    outliers: str,
    *,
    name: str | None = None,
    data: str = "custom",
    framing: Framing | None = None,
    images: int | None = None,
    device: str = "auto",
    batch_size: int = 500,
    seed: int = 0,
    skip_unreadable: bool = False,
) -> OutlierResult:
    """Measure how well a model's scores tell the images that it knows from others.

    Args:
        model: The classifier of `dign.load_model`, or any module from images in [0,1] to logits. Where it has a
            calibrator, softmax and entropy are calibrated; the energy is that of the network's own logits.
        known: Images like those that it was trained on, as of its test split.
        outliers: Others, resized to the size of the known ones: a data set's name (its test images), "folder:PATH" (any
            pictures in it, no classes needed), "noise" (uniform) or "gaussian".
        name: What tables call the model; by default the classifier's own name.
        data: The name of the known images.
        framing: How pictures of a folder are brought to that size; by default as for the classifier.
        images: How many of each, at most, spread evenly over them.
        device: "auto", "cpu", "cuda", ...
        batch_size: Images predicted at once.
        seed: Seed of made-up images.
        skip_unreadable: Leave out pictures of a folder that cannot be read.

    Returns:
        AUROC, AUPR and FPR95 for each score.

    Raises:
        UserError: There are no such images.

    >>> known = Split(torch.full((4, 3, 8, 8), 128, dtype=torch.uint8), torch.zeros(4, dtype=torch.long))
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> found = detect_outliers(model, known, "noise", device="cpu")
    >>> found.others, sorted(found.scores)
    (4, ['energy', 'entropy', 'softmax'])
    """
    target = pick_device(device)
    known = _spread(known, images)
    if not len(known):
        raise UserError("There are no images to tell the outliers from.")
    framing = framing or (model.framing if isinstance(model, Classifier) else MIDDLE)
    height, width = known.take(slice(0, 1)).shape[-2:]
    pixels = load_outliers(outliers, (height, width), framing, len(known), seed, skip_unreadable=skip_unreadable)
    others = _spread(Split(pixels, torch.zeros(len(pixels), dtype=torch.long)), images)
    if not len(others):
        raise UserError(f"{outliers} has no images to tell from the known ones.")
    model.to(target)
    network, calibrator = _take_apart(model)
    with freeze_temporarily(model), torch.no_grad():
        inside, outside = (_logits(network, split, batch_size, target) for split in (known, others))
    called = name or str(getattr(model, "name", type(model).__name__))
    scores = _compare(inside, outside, calibrator)
    return OutlierResult(called, data, hide_folder_path(outliers), len(known), len(others), scores)


def _spread(split: Split, images: int | None) -> Split:
    """At most so many images of a split, at equal distances: in a folder those of one class stand together."""
    if images is None or images >= len(split):
        return split
    return split.select(torch.tensor(spread_indices(len(split), images)))


def _take_apart(model: nn.Module) -> tuple[nn.Module, Calibrator | None]:
    """A model without its calibrator, and the calibrator."""
    return (model.model, model.calibrator) if isinstance(model, Classifier | CalibratedModel) else (model, None)


def _compare(inside: Tensor, outside: Tensor, calibrator: Calibrator | None) -> dict[str, DetectionScores]:
    """Every score of known images (N,C) against that of others, from logits before they are calibrated."""
    calibrated = [logits if calibrator is None else calibrator(logits) for logits in (inside, outside)]
    scores = {}
    for kind in OUTLIER_SCORES:
        plain = kind == "energy"  # calibrated ones may be log-probabilities, whose energy is 0
        if plain and float(torch.cat([inside, outside]).double().logsumexp(1).abs().max()) < NO_ENERGY:
            continue
        pair = (outlier_score(logits, kind) for logits in ((inside, outside) if plain else calibrated))  # type: ignore[arg-type]
        found = detect(*pair)
        assert found is not None  # there are images of both kinds
        scores[kind] = found
    return scores


def outliers_subject(
    subject: Subject,
    data: DataSet,
    outliers: str,
    *,
    split: str = "test",
    images: int | None = None,
    device: str = "auto",
    batch_size: int = 500,
    seed: int = 0,
    skip_unreadable: bool = False,
) -> OutlierResult:
    """What `detect_outliers` finds about a run, or any model, on images of a split of its data.

    Args: as of `detect_outliers`.
    """
    return detect_outliers(
        subject.as_module(), getattr(data, split), outliers, name=subject.about.name, data=hide_folder_path(data.name),
        framing=subject.framing, images=images, device=device, batch_size=batch_size, seed=seed,
        skip_unreadable=skip_unreadable,
    )  # fmt: skip


def load_outliers(
    name: str, size: tuple[int, int], framing: Framing, count: int, seed: int = 0, *, skip_unreadable: bool = False
) -> Tensor:
    """Images (N,3,H,W), uint8, of a size (H,W); `count` where they are made up."""
    if name in NOISE:
        generator = make_generator(seed, f"outliers/{name}", 0)
        if name == "noise":
            return torch.randint(256, (count, 3, *size), generator=generator, dtype=torch.uint8)
        gray = 0.5 + torch.randn(count, 3, *size, generator=generator) / 4
        return (gray.clamp(0, 1) * 255).round().to(torch.uint8)
    if name.startswith(FOLDER_PREFIX):
        folder = Path(name.removeprefix(FOLDER_PREFIX)).expanduser()
        if not folder.is_dir():
            raise UserError(f"There is no folder {clean_text(folder)}: name one with pictures in it.")
        return read_images(find_images([folder]), size, framing, skip_unreadable=skip_unreadable)
    found = load(name, validation=0.0).test.images
    if found.shape[-2:] == size:
        return found
    resized = functional.interpolate(to_float(found), size, mode="bilinear", antialias=True)
    return (resized.clamp(0, 1) * 255).round().to(torch.uint8)


def save_outliers(folder: Path, result: OutlierResult) -> Path:
    """Write a result into a folder, under a name that says what it was measured against."""
    word = "".join(char if char.isalnum() else "-" for char in result.outliers).strip("-")
    file = folder / f"ood-{word}.json"
    write_json(file, result.to_json())
    return file


def _logits(model: nn.Module, split: Split, batch_size: int, device: torch.device) -> Tensor:
    parts = (split.take(slice(first, first + batch_size)) for first in range(0, len(split), batch_size))
    return torch.cat([logits_of(model(to_float(part.to(device)))).cpu() for part in parts])
