"""Fit a calibrator on held-out images, for a run, a hub folder or any classifier."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dign.augment.noise import add_diverse_gaussian_noise, add_gaussian_noise
from dign.core.errors import UserError, unknown_name
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import make_placed_generator
from dign.core.pixels import to_float
from dign.core.sampling import batch_size_for
from dign.data.dataset import Split
from dign.methods import DiGN, DiGNWithoutCR
from dign.methods.base import Method
from dign.metrics import Calibration, CalibrationScores
from dign.metrics.histogram_binning import fit_histogram_binning
from dign.metrics.temperature import PRIOR, fit_temperature, log_probabilities
from dign.metrics.vector_scaling import fit_vector_scaling
from dign.parallel.devices import pick_device
from dign.runs.calibrator import (
    KINDS,
    Calibrator,
    HeldOut,
    Transform,
    apply_transform,
    read_calibrator,
    write_calibrator,
)
from dign.runs.classifier import load_uncalibrated
from dign.runs.folder import load_run
from dign.runs.held_out import held_out_for_hub, held_out_for_run
from dign.runs.hub_config import hub_folder, is_hub_folder
from dign.runs.seen_images import add_calibration_images

DEFAULT_ON = "clean"
ON = ("clean", "noise", "both")
FOLDS = 5
"""Parts of the held-out images; each is calibrated by what the others fitted, for the promises."""
FEW = 200
"""Held-out images below which their calibration error says little."""


def make_noisy(method: Method, images: Tensor, generator: torch.Generator) -> Tensor | None:
    """Images (N,3,H,W) under the noise of DiGN, with consistency or without, that a method has; None if it has none."""
    part = _noisy_part(method)
    if part is None:
        return None
    is_fixed = isinstance(part, DiGN) and part.levels == "fixed"
    add_noise = add_gaussian_noise if is_fixed else add_diverse_gaussian_noise
    return add_noise(images, part.sigma_max, generator, density=part.density)


def check_noise(method: Method, on: str | None) -> None:
    """Refuse to calibrate on noise a method that trains without that of DiGN."""
    if on in ("noise", "both") and _noisy_part(method) is None:
        raise UserError(f"{method.title} trains without the noise of DiGN, to be calibrated on: choose clean.")


def _noisy_part(method: Method) -> DiGN | DiGNWithoutCR | None:
    """The part of a method that has the strongest noise."""
    parts = [part for part in method.parts if isinstance(part, DiGN | DiGNWithoutCR)]
    return max(parts, key=lambda part: part.sigma_max, default=None)


@torch.no_grad()
def fit_calibrator(
    model: torch.nn.Module,
    method: Method,
    split: Split,
    *,
    data: str = "custom",
    kind: str = "temperature",
    on: str | None = None,
    device: torch.device | str = "cpu",
    batch_size: int | None = None,
) -> Calibrator:
    """Fit a calibrator on held-out images with labels.

    Args:
        model: The trained network, on `device`; it is left as it was.
        method: The method that predicts with it.
        split: Images that the model was not trained on.
        data: The name of these images.
        kind: "temperature", one number; "vector", two for each class; "histogram", 16 for each class.
        on: "clean", "noise", the Gaussian noise that the method trains with, or "both". By default "clean", which was
            measured to hold better under corruptions (docs/calibrate.md).
        device: Where to predict.
        batch_size: Images predicted at once, by default 500, or fewer large ones.

    Returns:
        The calibrator, with the record that promises are made from.

    Raises:
        UserError: There are no images, or `kind` or `on` is unknown, or the method has no noise to calibrate on.
    """
    on = DEFAULT_ON if on is None else on
    if kind not in KINDS:
        raise unknown_name("kind of calibration", kind, KINDS)
    if on not in ON:
        raise unknown_name("`on`", on, ON)
    check_noise(method, on)
    if not len(split):
        raise UserError("A model is calibrated on held-out images with labels, and there are none.")
    with freeze_temporarily(model):
        at_once = batch_size or batch_size_for(split.image_size)
        clean, noisy = _predict(model, method, split, on, torch.device(device), at_once)
    labels = split.labels.cpu()
    views = [view for view, wanted in ((clean, on != "noise"), (noisy, on != "clean")) if wanted and view is not None]

    def fit(chosen: Tensor) -> Transform:
        scores, truth = torch.cat([view[chosen] for view in views]), labels[chosen].repeat(len(views))
        return _fit(kind, scores, truth)

    transform = fit(torch.ones(len(labels), dtype=torch.bool))
    scores, truth = torch.cat(views), labels.repeat(len(views))
    return Calibrator(
        kind=kind,
        transform=transform,
        data=data,
        images=len(labels),
        on=on,
        nll_before=functional.cross_entropy(scores, truth).item(),
        nll_after=functional.cross_entropy(apply_transform(transform, scores), truth).item(),
        held_out=_hold_out(clean, labels, fit),
    )


def _fit(kind: str, scores: Tensor, labels: Tensor) -> Transform:
    fits: dict[str, Callable[[Tensor, Tensor], Transform]] = {
        "temperature": lambda scores, labels: fit_temperature(scores, labels, PRIOR).value,
        "vector": fit_vector_scaling,
        "histogram": fit_histogram_binning,
    }
    return fits[kind](scores, labels)


def _predict(
    model: torch.nn.Module, method: Method, split: Split, on: str, device: torch.device, batch_size: int
) -> tuple[Tensor, Tensor | None]:
    """Log-probabilities (N,C) of the clean images, and of the noisy ones where they are wanted and exist."""
    found: dict[str, list[Tensor]] = {"clean": [], "noise": []}
    for first in range(0, len(split), batch_size):
        images = to_float(split.take(slice(first, first + batch_size)).to(device))
        generator = make_placed_generator(0, "calibrate", first, device)
        noisy = make_noisy(method, images, generator) if on != "clean" else None
        for name, view in (("clean", images), ("noise", noisy)):
            if view is not None:
                found[name].append(log_probabilities(method.predict(model, view, generator)).double().cpu())
    return torch.cat(found["clean"]), torch.cat(found["noise"]) if found["noise"] else None


def _hold_out(clean: Tensor, labels: Tensor, fit: Callable[[Tensor], Transform]) -> HeldOut | None:
    """Each image as calibrated by what the other folds fitted; None for fewer images than folds."""
    if len(labels) < FOLDS:
        return None
    fold = torch.arange(len(labels)) % FOLDS
    probabilities = torch.empty_like(clean)
    for number in range(FOLDS):
        inside = fold == number
        probabilities[inside] = apply_transform(fit(~inside), clean[inside]).softmax(1)
    return HeldOut.of(probabilities, labels)


@dataclass(frozen=True)
class Calibrated:
    """What calibrating a model gave.

    Attributes:
        file: Where the calibrator is stored.
        calibrator: The calibrator.
        left_out: Images that were not used because the model was trained on them, or is measured on them.
        is_new: Whether the model predicts otherwise than before, so that earlier measurements are not of it.
        before: Scores of the held-out images without it.
        after: And with a calibrator that was fitted without them.
    """

    file: Path
    calibrator: Calibrator
    left_out: int
    is_new: bool
    before: CalibrationScores
    after: CalibrationScores

    def describe(self) -> str:
        """What was fitted on what, and by how much the calibration error falls."""
        left = f" {self.left_out} images that it was trained or is measured on are left out." if self.left_out else ""
        few = f"; from {self.after.count} images, this is rough" if self.after.count < FEW else ""
        return (
            f"{self.file}: {self.calibrator.describe()}.{left} Calibration error (ECE) on held-out images "
            f"{self.before.ece:.1f} % before, {self.after.ece:.1f} % after{few}.{self._describe_loss()}"
            f"{self._describe_accuracy()}"
        )

    def _describe_loss(self) -> str:
        """What to make of a calibration error that has grown."""
        if self.after.ece < self.before.ece + 0.05:
            return ""
        before, after = self.calibrator.nll_before, self.calibrator.nll_after
        better = f" By the log loss, which it is fitted by, {before:.3f} became {after:.3f}."
        worse = f" It is worse by the log loss too, {before:.3f} before and {after:.3f} after: fit a temperature."
        return better if after < before else worse

    def _describe_accuracy(self) -> str:
        """What it does to the answers, which a temperature leaves as they are."""
        before, after = self.before.accuracy, self.after.accuracy
        if abs(after - before) < 0.05:
            return ""
        advice = ": a temperature would leave them as they are." if after < before else "."
        return f" It changes answers: accuracy {before:.1f} % before, {after:.1f} % after{advice}"

    def to_json(self) -> dict[str, Any]:
        value = self.calibrator.to_json()
        value.pop("held_out", None)
        return {"file": str(self.file), "left_out": self.left_out, **value, "before": asdict(self.before),
                "after": asdict(self.after)}  # fmt: skip


def calibrate_model(
    where: str | Path,
    data: str | None = None,
    *,
    kind: str = "temperature",
    on: str | None = None,
    skip_unreadable: bool = False,
    device: str = "auto",
    batch_size: int = 500,
) -> Calibrated:
    """Fit a calibrator for the model of a run folder or a hub folder, and store it there as part of the model.

    Args:
        where: A finished run's folder, or a hub folder, as `DIR` or `hub:DIR`.
        data: Labeled images with the model's classes: a data set, or "folder:PATH". By default the validation images
            of the run. Images that the model was trained on, and test images of its own data, are left out; those that
            are used are remembered in its folder, and left out when it is measured.
        kind: As of `fit_calibrator`.
        on: As of `fit_calibrator`.
        skip_unreadable: Leave out images of a folder that cannot be read.
        device: "auto", "cpu", "cuda", ...
        batch_size: Images predicted at once.

    Returns:
        The calibrator, where it is stored, and how the calibration error falls.

    Raises:
        UserError: There are no images that the model has not been trained on, or its folder cannot be written to.

    Example:
        >>> calibrate_model("runs/photos").calibrator.temperature  # doctest: +SKIP
        1.31
    """
    folder = hub_folder(where)
    classifier = load_uncalibrated(where)
    if not os.access(folder, os.W_OK):
        raise UserError(f"No permission to write into {folder}: copy the model to where you may write.")
    if is_hub_folder(folder):
        if data is None:
            raise UserError(f"{folder} is a hub folder, without images of its own: name some with `data`.")
        images = held_out_for_hub(folder, data, skip_unreadable=skip_unreadable)
    else:
        images = held_out_for_run(load_run(folder), data, skip_unreadable=skip_unreadable)
    target = pick_device(device)
    model, method = classifier.model.to(target), classifier.method
    options: dict[str, Any] = {"kind": kind, "on": on, "device": target, "batch_size": batch_size}
    calibrator = fit_calibrator(model, method, images.split, data=images.name, **options)
    earlier = None
    with suppress(UserError):  # a damaged one is replaced
        earlier = read_calibrator(folder, len(classifier.classes))
    calibrator = calibrator.keep_numbers(earlier) if earlier else calibrator
    is_new = earlier is None or calibrator.transform != earlier.transform
    with freeze_temporarily(model), torch.no_grad():
        clean, _ = _predict(model, method, images.split, "clean", target, batch_size)
    before = Calibration()
    before.update(clean.exp(), images.split.labels)
    after = Calibration()
    if calibrator.held_out is not None:
        confidence, correct = calibrator.held_out.confidence, calibrator.held_out.correct
        after.update(confidence[:, None].repeat(1, 2), (~correct).long())
    else:
        after.update(calibrator(clean).softmax(1), images.split.labels)
    if data is not None:
        add_calibration_images(folder, images.split)  # first, so that none is forgotten if this process is killed
    file = write_calibrator(folder, calibrator)
    return Calibrated(file, calibrator, images.left_out, is_new, before.compute(), after.compute())
