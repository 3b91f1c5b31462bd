"""Out of distribution: how well a model tells images of its own kind from others, with both in the measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dign.core.errors import UserError
from dign.core.files import write_json
from dign.core.freezing import freeze_temporarily
from dign.core.outputs import logits_of
from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.data import load
from dign.data.dataset import Split
from dign.data.names import FOLDER_PREFIX, hide_folder_path
from dign.metrics.detection import OUTLIER_SCORES, DetectionScores, detect, outlier_score
from dign.parallel.devices import pick_device
from dign.runs.classifier import Classifier
from dign.runs.predict import find_images, read_images

NOISE = {"noise": "uniform", "gaussian": "Gaussian"}
"""Made-up images: every pixel uniform in [0,1], or Gaussian about gray with standard deviation 1/4."""


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
            positives.
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
    classifier: Classifier,
    known: Split,
    outliers: str,
    *,
    data: str = "custom",
    images: int | None = None,
    device: str = "auto",
    batch_size: int = 500,
    seed: int = 0,
) -> OutlierResult:
    """Measure how well a classifier's scores tell the images that it knows from others.

    Args:
        classifier: From `dign.load_model`; its logits are calibrated where it has a calibrator.
        known: Images like those that it was trained on, as of its test split.
        outliers: Others, resized to the model's size: a data set's name (its test images), "folder:PATH" (any
            pictures in it, no classes needed), "noise" (uniform) or "gaussian".
        data: The name of the known images.
        images: How many of each, at most.
        device: "auto", "cpu", "cuda", ...
        batch_size: Images predicted at once.
        seed: Seed of made-up images.

    Returns:
        AUROC, AUPR and FPR95 for each score.

    Raises:
        UserError: There are no such images.
    """
    target = pick_device(device)
    count = len(known) if images is None else min(images, len(known))
    others = load_outliers(outliers, classifier, count, seed)
    others = others if images is None else others[:images]
    if not count or not len(others):
        raise UserError("Both kinds of image are needed to tell them apart, and one of them is missing.")
    classifier.to(target)
    with freeze_temporarily(classifier), torch.no_grad():
        inside = _logits(classifier, lambda part: known.take(part), count, batch_size, target)
        outside = _logits(classifier, lambda part: others[part], len(others), batch_size, target)
    scores = {}
    for kind in OUTLIER_SCORES:
        found = detect(outlier_score(inside, kind), outlier_score(outside, kind))  # type: ignore[arg-type]
        assert found is not None  # there are images of both kinds
        scores[kind] = found
    return OutlierResult(classifier.name, data, hide_folder_path(outliers), count, len(others), scores)


def load_outliers(name: str, classifier: Classifier, count: int, seed: int = 0) -> Tensor:
    """Images (N,3,H,W), uint8, of the model's size; `count` where they are made up."""
    height, width = classifier.image_size
    if name in NOISE:
        generator = make_generator(seed, f"outliers/{name}", 0)
        if name == "noise":
            return torch.randint(256, (count, 3, height, width), generator=generator, dtype=torch.uint8)
        gray = 0.5 + torch.randn(count, 3, height, width, generator=generator) / 4
        return (gray.clamp(0, 1) * 255).round().to(torch.uint8)
    if name.startswith(FOLDER_PREFIX):
        files = find_images([Path(name.removeprefix(FOLDER_PREFIX)).expanduser()])
        return read_images(files, classifier.image_size, classifier.framing)
    found = load(name, validation=0.0).test.images
    if found.shape[-2:] == (height, width):
        return found
    resized = functional.interpolate(to_float(found), (height, width), mode="bilinear", antialias=True)
    return (resized.clamp(0, 1) * 255).round().to(torch.uint8)


def save_outliers(result: OutlierResult, folder: Path) -> Path:
    """Write a result into a run folder, under a name that says what it was measured against."""
    word = "".join(char if char.isalnum() else "-" for char in result.outliers).strip("-")
    file = folder / f"ood-{word}.json"
    write_json(file, result.to_json())
    return file


def _logits(
    classifier: Classifier, take: Callable[[slice], Tensor], count: int, batch_size: int, device: torch.device
) -> Tensor:
    starts = range(0, count, batch_size)
    parts = [take(slice(first, min(first + batch_size, count))) for first in starts]
    return torch.cat([logits_of(classifier(to_float(part.to(device)))).cpu() for part in parts])
