"""Predictions for images and image files, and how stable they are under noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dign.augment.noise import add_gaussian_noise
from dign.core.checks import check_at_least, check_integer
from dign.core.errors import UserError, unknown_name
from dign.core.freezing import freeze_temporarily
from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.data.bulk_decoding import UnreadableImages
from dign.data.decoding import decode, map_in_parallel, replace_unprintable
from dign.data.framing import MIDDLE, Framing
from dign.data.sources.folder import find_pictures
from dign.metrics.conformal import SETS, prediction_sets
from dign.parallel.devices import pick_device
from dign.runs.classifier import Classifier
from dign.runs.ensemble import Ensemble, open_classifier

SIGMAS = (0.05, 0.1, 0.2, 0.3)
"""Default noise levels for the stability, in [0,1] pixel units."""
DRAWS_AT_ONCE = 50
"""Fixed, not a parameter: the noise, and so the result, depends on it."""


@dataclass(frozen=True)
class Prediction:
    """The prediction for one image.

    Attributes:
        image: The image's path; for an image given as an array, its index in the batch.
        label: The most probable class.
        confidence: Its probability.
        top: The most probable classes with their probabilities.
        stability: For each noise level, the fraction of noisy copies that get the same class as the image itself.
        unsure: Whether the confidence is below what was promised; None where nothing was promised.
        candidates: The prediction set, the most probable class first; None where no coverage of sets was promised.
    """

    image: str
    label: str
    confidence: float
    top: dict[str, float]
    stability: dict[str, float]
    unsure: bool | None = None
    candidates: list[str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; what was not promised is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Promise:
    """What predictions are to keep, chosen on the model's held-out images.

    Args:
        error: Answers are wrong no more often than this, with a certainty of 90 %; other images are "unsure".
        coverage: Or: this share of the images is answered.
        sets: Prediction sets hold the true class with this probability.
        kind: "threshold", the smallest sets on average, or "adaptive", larger ones where an image is hard.

    The promise is about images like those that were held out: under corruptions it is kept less well, by as much as
    `dign evaluate` measures.
    """

    error: float | None = None
    coverage: float | None = None
    sets: float | None = None
    kind: str = "adaptive"

    @property
    def is_empty(self) -> bool:
        return self.error is None and self.coverage is None and self.sets is None

    def thresholds(self, classifier: Classifier) -> tuple[float | None, float | None]:
        """The confidence from which on the classifier answers, and the score up to which classes are in a set."""
        if self.kind not in SETS:
            raise unknown_name("kind of prediction sets", self.kind, SETS)
        for name in ("error", "coverage", "sets"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int | float):
                raise UserError(f"`{name}` must be a number between 0 and 1, as in 0.9, not {value!r}.")
        if self.is_empty:
            return None, None
        held = classifier.calibrator.held_out if classifier.calibrator else None
        if isinstance(classifier, Ensemble):
            raise UserError("An ensemble has no record of held-out images, which promises are made from: ask a member.")
        if held is None:
            raise UserError(
                f"{classifier.name} keeps no record of held-out images, from which promises are made: calibrate it "
                "first, `dign calibrate`."
            )
        answers = self.error is not None or self.coverage is not None
        threshold = held.threshold(self.error, self.coverage) if answers else None
        if self.sets is not None and not 0 < self.sets < 1:
            raise UserError(f"`sets` must be between 0 and 1, as in 0.9, not {self.sets:g}.")
        if self.sets is None:
            return threshold, None
        quantile = held.quantile(self.sets, self.kind)
        if math.isinf(quantile):
            raise UserError(
                f"Sets that hold the true class with a probability of {self.sets:g} cannot be promised from "
                f"{len(held)} held-out images: promise less, or calibrate on at least "
                f"{math.ceil(self.sets / (1 - self.sets))}."
            )
        return threshold, quantile


NO_PROMISE = Promise()


def predict(
    model: Classifier | str | Path,
    images: str | Path | Sequence[str | Path] | Tensor | np.ndarray,
    *,
    sigmas: Sequence[float] = SIGMAS,
    draws: int = 100,
    top: int = 3,
    seed: int = 0,
    device: str = "auto",
    promise: Promise = NO_PROMISE,
    skip_unreadable: bool = False,
) -> list[Prediction]:
    """Predict the classes of images, and measure how stable the predictions are under noise.

    Args:
        model: A classifier, or the folder that `load_model` loads one from, or several: `ensemble:runs/a,runs/b`.
        images: Paths of image files or of folders of images; or a batch of images (N,3,H,W), uint8 or float in
            [0,1], of the size that the model was trained on.
        sigmas: Standard deviations of the noise, in [0,1] pixel units; an empty sequence skips the stability.
        draws: Noisy copies of an image per level.
        top: Number of classes in `Prediction.top`.
        seed: Seed of the noise.
        device: "auto", "cpu", "cuda", "cuda:1", ...
        promise: What the predictions are to keep, such as `Promise(error=0.05)`: then `Prediction.unsure` says where
            the model does not answer. The model must have been calibrated.
        skip_unreadable: Leave out files that cannot be read.

    Returns:
        One `Prediction` per image, in order. It does not depend on the other images.

    Raises:
        UserError: A file cannot be read, with `skip_unreadable` none of them can, or the images have the wrong shape,
            type or range.

    Example:
        >>> predict("runs/photos", ["holiday.jpg", "pictures/"])  # doctest: +SKIP
        [Prediction(image='holiday.jpg', label='cat', confidence=0.97, ...
        >>> from dign.methods import Standard
        >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> model = Classifier(network, Standard(), ["cat", "dog"], (2, 2))
        >>> len(predict(model, torch.rand(5, 3, 2, 2), draws=4))
        5
    """
    classifier = model if isinstance(model, Classifier) else open_classifier(model)
    options: dict[str, Any] = {"sigmas": sigmas, "draws": draws, "top": top, "seed": seed, "device": device}
    options["promise"] = promise
    if isinstance(images, Tensor | np.ndarray):
        batch = _check_images(torch.as_tensor(images), classifier.image_size)
        return list(predict_images(classifier, batch, [str(index) for index in range(len(batch))], **options))
    paths = [images] if isinstance(images, str | Path) else images
    size, framing = classifier.image_size, classifier.framing
    files, pixels = read_pictures(find_images(paths), size, framing, skip_unreadable=skip_unreadable)
    return list(predict_images(classifier, pixels, [replace_unprintable(file) for file in files], **options))


def _check_images(images: Tensor, image_size: tuple[int, int]) -> Tensor:
    """Images (N,3,H,W), uint8 or float in [0,1], or an error that names what is wrong with them."""
    if images.shape[1:] != (3, *image_size):
        height, width = image_size
        raise UserError(f"images must have shape (N,3,{height},{width}), not {tuple(images.shape)}.")
    if images.dtype == torch.uint8:
        return images
    if not images.is_floating_point() or not bool(((images >= 0) & (images <= 1)).all()):
        raise UserError("images must be uint8, or float in [0,1]: undo normalization and divide 0-255 by 255.")
    return images.float()


def find_images(places: Iterable[str | Path]) -> list[Path]:
    """The image files that these paths name: a file itself, or a folder's images sorted by name."""
    found: list[Path] = []
    for place in map(Path, places):
        if place.is_dir():
            inside = sorted(find_pictures(place))
            if not inside:
                raise UserError(f"The folder {replace_unprintable(place)} contains no images.")
            found += inside
        else:
            found.append(place)
    if not found:
        raise UserError("images is empty: name image files or folders.")
    return found


def read_images(
    files: Sequence[Path], image_size: tuple[int, int], framing: Framing = MIDDLE, *, skip_unreadable: bool = False
) -> Tensor:
    """Read image files as uint8 (N,3,H,W), decoded as the images that a model is evaluated on: upright, RGB, framed.

    Raises:
        UserError: Some cannot be read, and are not to be left out: all of them are named; or none can be read.
    """
    return read_pictures(files, image_size, framing, skip_unreadable=skip_unreadable)[1]


def read_pictures(
    files: Sequence[Path], image_size: tuple[int, int], framing: Framing = MIDDLE, *, skip_unreadable: bool = False
) -> tuple[list[Path], Tensor]:
    """As `read_images`, with the files that were read: fewer than were named, where some are left out."""
    images, reasons = _read_what_can_be_read(files, image_size, framing)
    if skip_unreadable:
        if not images:
            shown = replace_unprintable(files[0])
            raise UserError(
                f"None of the {len(files)} images can be read, beginning with {shown}: {reasons[files[0]]}."
            )
    elif reasons and len(files) == 1:
        raise UserError(f"The image {replace_unprintable(files[0])} cannot be read: {reasons[files[0]]}.")
    elif reasons:
        told = {str(file): reason for file, reason in reasons.items()}
        raise UnreadableImages(told, ", or set `skip_unreadable` to leave them out")
    return [file for file in files if file not in reasons], torch.from_numpy(np.stack(images))


def _read_what_can_be_read(
    files: Sequence[Path], image_size: tuple[int, int], framing: Framing
) -> tuple[list[np.ndarray], dict[Path, str]]:
    """The images, and for each file that is none the reason."""

    def read(file: Path) -> np.ndarray | UserError:
        try:
            return decode(file, image_size, framing) if file.is_file() else UserError("the file does not exist")
        except UserError as error:
            return error

    read_files = list(map_in_parallel(read, files))
    reasons = {file: str(got) for file, got in zip(files, read_files, strict=True) if isinstance(got, UserError)}
    return [got for got in read_files if not isinstance(got, UserError)], reasons


def predict_images(
    classifier: Classifier,
    images: Tensor,
    names: Sequence[str],
    *,
    sigmas: Sequence[float] = SIGMAS,
    draws: int = 100,
    top: int = 3,
    seed: int = 0,
    device: str = "auto",
    promise: Promise = NO_PROMISE,
) -> Iterator[Prediction]:
    """Predict each image (3,H,W) of a batch in turn, with the options of `predict`."""
    check_at_least(0, **{f"sigma {sigma}": sigma for sigma in sigmas})
    check_integer(1, draws=draws, top=top)
    threshold, quantile = promise.thresholds(classifier)
    target = pick_device(device)
    classifier.to(target)
    with freeze_temporarily(classifier), torch.no_grad():
        for name, pixels in zip(names, images, strict=True):
            image = to_float(pixels.to(target))
            probabilities = classifier.predict(image[None], make_generator(seed, "predict", 0, target))[0]
            order = probabilities.argsort(descending=True).tolist()
            yield Prediction(
                image=name,
                label=classifier.classes[order[0]],
                confidence=float(probabilities[order[0]]),
                top={classifier.classes[index]: float(probabilities[index]) for index in order[:top]},
                stability={
                    f"{sigma:g}": measure_stability(classifier, image, order[0], sigma, draws=draws, seed=seed)
                    for sigma in sigmas
                },
                unsure=None if threshold is None else float(probabilities[order[0]]) < threshold - 1e-7,
                candidates=None if quantile is None else _candidates(classifier, probabilities, quantile, promise.kind),
            )


def _candidates(classifier: Classifier, probabilities: Tensor, quantile: float, kind: str) -> list[str]:
    """The classes of a prediction set, the most probable first."""
    inside = prediction_sets(probabilities[None], quantile, kind)[0]
    order = probabilities.argsort(descending=True).tolist()
    return [classifier.classes[index] for index in order if bool(inside[index])]


def measure_stability(
    classifier: Classifier, image: Tensor, label: int, sigma: float, *, draws: int = 100, seed: int = 0
) -> float:
    """The fraction of `draws` of clip(x + N(0, sigma^2 I), 0, 1) that get the class `label`; x is (3,H,W) in [0,1]."""
    agreeing = torch.zeros((), dtype=torch.int64, device=image.device)
    for first in range(0, draws, DRAWS_AT_ONCE):
        generator = make_generator(seed, f"stability/{sigma:g}", first, image.device)
        count = min(DRAWS_AT_ONCE, draws - first)
        noisy = add_gaussian_noise(image.expand(count, -1, -1, -1), sigma, generator).clamp(0, 1)
        agreeing += (classifier.predict(noisy, generator).argmax(1) == label).sum()
    return agreeing.item() / draws
