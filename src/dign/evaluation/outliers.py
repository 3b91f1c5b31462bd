"""Out of distribution: how well a model tells images of its own kind from others, with both in the measurement."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.core.errors import UserError, unknown_name
from dign.core.files import write_json
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import make_placed_generator
from dign.core.outputs import logits_of
from dign.core.pixels import to_float
from dign.core.sampling import spread_indices
from dign.core.seeds import make_generator
from dign.core.text import clean_text
from dign.data import load
from dign.data.dataset import DataSet, Split
from dign.data.framing import MIDDLE, Framing
from dign.data.names import FOLDER_PREFIX, NAMES, PICTURES, hide_folder_path, split_prefix
from dign.evaluation.info import EXTERNAL
from dign.evaluation.predictors import predict_by_logits
from dign.evaluation.result_info import RunInfo
from dign.evaluation.subjects import Subject
from dign.methods.base import Method
from dign.metrics.detection import OUTLIER_SCORES, DetectionScores, detect, outlier_score
from dign.metrics.temperature import log_probabilities
from dign.parallel.devices import pick_device
from dign.runs.calibrator import Calibrator
from dign.runs.classifier import Classifier
from dign.runs.predict import find_images, read_images
from dign.runs.seen_images import digest_split

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
            calibrator, softmax and entropy are calibrated. A classifier predicts them as its method does, RSE by the
            mean over noisy copies; the energy is that of the network's own logits, in one pass.
        known: Images like those that it was trained on, as of its test split.
        outliers: Others, resized to the size of the known ones: a data set's name (its test images), "folder:PATH" (any
            pictures in it, no classes needed), "noise" (uniform) or "gaussian".
        name: What tables call the model; by default the classifier's own name.
        data: The name of the known images.
        framing: How pictures of a folder are brought to that size; by default as for the classifier.
        images: How many of each, at most, spread evenly over them.
        device: "auto", "cpu", "cuda", ...
        batch_size: Images predicted at once.
        seed: Seed of made-up images, and of what a method draws when it predicts.
        skip_unreadable: Leave out pictures of a folder that cannot be read.

    Returns:
        AUROC, AUPR and FPR95 for each score.

    Raises:
        UserError: There are no such images, or some are among the known ones.

    >>> known = Split(torch.full((4, 3, 8, 8), 128, dtype=torch.uint8), torch.zeros(4, dtype=torch.long))
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> found = detect_outliers(model, known, "noise", device="cpu")
    >>> found.others, sorted(found.scores)
    (4, ['energy', 'entropy', 'softmax'])
    """
    called = name or str(getattr(model, "name", type(model).__name__))
    subject = _as_subject(model, called, data, framing)
    options: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "skip_unreadable": skip_unreadable}
    return _tell_apart(subject, known, outliers, data, images, pick_device(device), **options)


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
    called = hide_folder_path(data.name)
    if _locate(outliers) == _locate(data.name):
        raise UserError(
            f"{called} is what {subject.about.name} is measured on, and has no outliers: name images of another kind, "
            "such as another data set, folder:PATH or noise."
        )
    options: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "skip_unreadable": skip_unreadable}
    return _tell_apart(subject, getattr(data, split), outliers, called, images, pick_device(device), **options)


def _as_subject(model: nn.Module, name: str, data: str, framing: Framing | None) -> Subject:
    """A classifier, which predicts as its method does, or any module from images to logits."""
    if isinstance(model, Classifier):
        about = RunInfo(name, model.method.key, model.method.title, name, data)
        framing = framing or model.framing
        return Subject(model.model, model.method.predict, about, model.calibrator, framing=framing)
    return Subject(model, predict_by_logits, RunInfo(name, EXTERNAL, name, name, data), framing=framing or MIDDLE)


def _locate(data: str) -> str:
    """A data set's name; for a folder the path that it has in the end."""
    prefix, place = split_prefix(data)
    return f"{prefix}{os.path.realpath(os.path.expanduser(place))}" if prefix else data


def _tell_apart(
    subject: Subject,
    known: Split,
    outliers: str,
    data: str,
    images: int | None,
    device: torch.device,
    *,
    batch_size: int,
    seed: int,
    skip_unreadable: bool,
) -> OutlierResult:
    known = _spread(known, images)
    if not len(known):
        raise UserError("There are no images to tell the outliers from.")
    pixels = load_outliers(
        outliers, known.image_size, subject.framing, len(known), seed, skip_unreadable=skip_unreadable
    )
    others = Split(pixels, torch.zeros(len(pixels), dtype=torch.long))
    if not len(others):
        raise UserError(f"{outliers} has no images to tell from the known ones.")
    if outliers not in NOISE:
        _refuse_known(known, others, data, hide_folder_path(outliers))
    others = _spread(others, images)
    model = subject.model.to(device)
    with freeze_temporarily(model), torch.no_grad():
        inside, outside = (_predict(subject, split, batch_size, seed, device) for split in (known, others))
    scores = _compare(inside, outside, subject.calibrator)
    return OutlierResult(subject.about.name, data, hide_folder_path(outliers), len(known), len(others), scores)


def _refuse_known(known: Split, others: Split, data: str, outliers: str) -> None:
    digests = set(digest_split(known))
    shared = sum(digest in digests for digest in digest_split(others))
    if shared:
        raise UserError(
            f"{shared} of the {len(others)} images of {outliers} are among those of {data} that they are to be told "
            "from: name images of another kind, such as another data set, folder:PATH or noise."
        )


@dataclass(frozen=True)
class _Predictions:
    """Of some images, the network's own logits (N,C), and logits or log-probabilities (N,C) as the method predicts."""

    logits: Tensor
    predicted: Tensor


def _predict(subject: Subject, split: Split, batch_size: int, seed: int, device: torch.device) -> _Predictions:
    plain = _is_softmax(subject.predict)
    logits, predicted = [], []
    for first in range(0, len(split), batch_size):
        images = to_float(split.take(slice(first, first + batch_size)).to(device))
        logits.append(logits_of(subject.model(images)).cpu())
        if not plain:
            generator = make_placed_generator(seed, "outliers", first, device)
            predicted.append(log_probabilities(subject.predict(subject.model, images, generator)).double().cpu())
    return _Predictions(torch.cat(logits), torch.cat(predicted or logits))


def _is_softmax(predict: Callable[..., Tensor]) -> bool:
    """Whether predictions are the softmax of one pass: its logits tell sure images apart whose probabilities are 1."""
    method = getattr(predict, "__self__", None)
    if isinstance(method, Method):
        return all(type(part).predict is Method.predict for part in method.parts)
    return predict is predict_by_logits


def _spread(split: Split, images: int | None) -> Split:
    """At most so many images of a split, at equal distances: in a folder those of one class stand together."""
    if images is None or images >= len(split):
        return split
    return split.select(torch.tensor(spread_indices(len(split), images)))


def _compare(inside: _Predictions, outside: _Predictions, calibrator: Calibrator | None) -> dict[str, DetectionScores]:
    """Every score of known images against that of others."""
    pair = (inside, outside)
    calibrated = [each.predicted if calibrator is None else calibrator(each.predicted) for each in pair]
    logits = [each.logits for each in pair]
    scores = {}
    for kind in OUTLIER_SCORES:
        plain = kind == "energy"  # calibrated ones may be log-probabilities, whose energy is 0
        if plain and float(torch.cat(logits).double().logsumexp(1).abs().max()) < NO_ENERGY:
            continue
        found = detect(*(outlier_score(each, kind) for each in (logits if plain else calibrated)))  # type: ignore[arg-type]
        assert found is not None  # there are images of both kinds
        scores[kind] = found
    return scores


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
    if not split_prefix(name)[0] and name not in NAMES and not Path(name).is_dir():
        raise unknown_name("images", name, [*NOISE, *NAMES, *PICTURES])
    own = bool(split_prefix(name)[0]) and size[0] == size[1]  # pictures of any size, framed as the model's are
    data = load(
        name,
        validation=0.0,
        size=size[0] if own else None,
        framing=framing if own else MIDDLE,
        skip_unreadable=skip_unreadable,
    )
    found = data.test.images
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
