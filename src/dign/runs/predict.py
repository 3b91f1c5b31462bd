"""Predictions for image files, and how stable they are under noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from dign.augment.noise import add_gaussian_noise
from dign.core.checks import check_at_least
from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily
from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.data.decoding import decode, map_in_parallel, replace_unprintable
from dign.data.sources.folder import find_pictures
from dign.parallel.devices import pick_device
from dign.runs.classifier import Classifier

SIGMAS = (0.05, 0.1, 0.2, 0.3)
"""Strengths of noise, in [0,1] pixel units, that stability is measured at unless others are asked for."""
DRAWS_AT_ONCE = 50
"""Fixed, not an option: it is part of how the noise is drawn, and so of the result."""


@dataclass(frozen=True)
class Prediction:
    """What a classifier says of one image.

    `confidence` is the probability of `label`; `top` the most probable classes with theirs. `stability` maps a
    noise level to the fraction of noisy draws that are given the same class as the image itself.
    """

    image: str
    label: str
    confidence: float
    top: dict[str, float]
    stability: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def image_files(places: Iterable[str]) -> list[Path]:
    """The files that these paths say: a file itself, a folder's images in the order of their names."""
    found: list[Path] = []
    for place in map(Path, places):
        if place.is_dir():
            inside = sorted(find_pictures(place))
            if not inside:
                raise UserError(f"The folder {replace_unprintable(place)} holds no images.")
            found += inside
        else:
            found.append(place)
    if not found:
        raise UserError("Which images? Name image files or folders, or give - for a list of paths on standard input.")
    return found


def read_images(files: Sequence[Path], image_size: tuple[int, int]) -> Tensor:
    """Image files as uint8 (N,3,H,W), decoded as training images are: upright, RGB, the middle cut out and resized."""

    def read(file: Path) -> np.ndarray:
        try:
            if not file.is_file():
                raise UserError("there is no such file")
            return _decoded(file, image_size)
        except UserError as error:
            raise UserError(f"The image {replace_unprintable(file)} cannot be read: {error}.") from error

    return torch.from_numpy(np.stack(list(map_in_parallel(read, files))))


def _decoded(file: Path, image_size: tuple[int, int]) -> np.ndarray:
    height, width = image_size
    if height == width:
        return decode(file, height)
    pixels = decode(file)
    if pixels.shape[1:] == image_size:
        return pixels
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    fitted = ImageOps.fit(image, (width, height), method=Image.Resampling.BICUBIC)
    return np.ascontiguousarray(np.asarray(fitted).transpose(2, 0, 1))


def predict_files(
    classifier: Classifier,
    files: Sequence[Path],
    *,
    sigmas: Sequence[float] = SIGMAS,
    draws: int = 100,
    top: int = 3,
    seed: int = 0,
    device: str = "auto",
) -> Iterator[Prediction]:
    """Predict each file in turn. All files are read first, so that a bad one is known before anything is said.

    An image's prediction does not depend on the other images in the list.
    """
    check_at_least(0, **{f"sigma {sigma}": sigma for sigma in sigmas})
    images = read_images(files, classifier.image_size)
    target = pick_device(device)
    classifier.model.to(target)
    with freeze_temporarily(classifier.model), torch.no_grad():
        for file, pixels in zip(files, images, strict=True):
            image = to_float(pixels.to(target))
            probabilities = classifier.predict(image[None], make_generator(seed, "predict", 0, target))[0]
            order = probabilities.argsort(descending=True).tolist()
            yield Prediction(
                image=replace_unprintable(file),
                label=classifier.classes[order[0]],
                confidence=float(probabilities[order[0]]),
                top={classifier.classes[index]: float(probabilities[index]) for index in order[:top]},
                stability={
                    f"{sigma:g}": stability(classifier, image, order[0], sigma, draws=draws, seed=seed)
                    for sigma in sigmas
                },
            )


def stability(
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
