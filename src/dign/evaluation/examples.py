"""Test images of every class under each corruption with what a model made of them: `examples.json`, for the report."""

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.corruptions.benchmark.read import Condition

EXAMPLES_FILE = "examples.json"
SEVERITIES = (3, 5)
"""Severities to give examples of; the highest measured one where these were not measured."""
IMAGES = 20
"""Images to show; more where there are more classes and the images are small."""
MOST_CLASSES = 100
"""Classes to show images of at most."""
LARGEST = 128
"""Pixels up to which an image is stored as it is; larger ones as thumbnails, for the report shows no larger ones."""
BUDGET = 3 * 2**19
"""Bytes of pixels, before compression, that the images of a file may take."""


def pick_severities(measured: Iterable[int]) -> list[int]:
    """The severities to give examples of.

    >>> pick_severities([1, 2, 3, 4, 5]), pick_severities([1, 2])
    ([3, 5], [2])
    """
    found = sorted(measured)
    return [severity for severity in found if severity in SEVERITIES] or found[-1:]


def pick_indices(labels: Tensor, count: int = IMAGES, most_classes: int = MOST_CLASSES) -> list[int]:
    """Indices of about `count` images, from every class in turn: the same for the same labels.

    Every class that occurs has one at least; of more than `most_classes` so many are taken, evenly spread.

    >>> pick_indices(torch.tensor([0, 0, 0, 1, 1, 2]), count=5)
    [0, 1, 3, 4, 5]
    """
    members = [torch.nonzero(labels == label).flatten().tolist() for label in labels.unique().tolist()]
    if len(members) > most_classes:
        members = [members[place * len(members) // most_classes] for place in range(most_classes)]
    per_class = -(-count // len(members)) if members else 0
    spread = [[of[place * len(of) // per_class] for place in range(min(per_class, len(of)))] for of in members]
    in_turn = [of[turn] for turn in range(per_class) for of in spread if turn < len(of)]
    return sorted(in_turn[: max(count, len(members))])


def plan_examples(labels: Tensor, image_size: Sequence[int], conditions: int) -> list[list[int]]:
    """For each of so many corrupted conditions the indices of the images to show, after those of the clean images.

    As many images under as many conditions as the budget allows: large images are fewer, and where there are still too
    many, each is shown under every second, third, ... condition, so that every class and every condition is there.
    """
    scale = min(1.0, LARGEST / max(image_size))
    room = int(BUDGET / (3 * image_size[0] * image_size[1] * scale**2))  # in images
    indices = pick_indices(labels, max(1, min(IMAGES, room // 3)), min(MOST_CLASSES, max(IMAGES, room // 2)))
    stride = 1
    while stride < conditions and len(indices) * (1 + conditions / stride) > room:
        stride += 1
    return [indices] + [
        [index for place, index in enumerate(indices) if (place + condition) % stride == 0]
        for condition in range(conditions)
    ]


@torch.no_grad()
def example_predictions(
    predict: Callable[[Tensor, torch.Generator], Tensor],
    conditions: Sequence[Condition],
    classes: Sequence[str],
    image_size: Sequence[int],
    *,
    device: torch.device | str = "cpu",
) -> dict[str, Any]:
    """Images with the prediction and its confidence (percent), and the second most probable class.

    Args:
        predict: From images and a generator to probabilities.
        conditions: The clean images first, then the corruptions.
        classes: Names of the classes.
        image_size: Height and width.
        device: Where to predict.

    Returns:
        What `examples.json` holds (docs/report.md).
    """
    if not conditions:
        return {"images": []}
    plan = plan_examples(conditions[0].labels, image_size, len(conditions) - 1)
    entries = []
    for condition, indices in zip(conditions, plan, strict=True):
        for index in indices:
            if index >= len(condition):  # a benchmark of fewer images
                continue
            image = condition.images[index : index + 1]
            generator = make_generator(0, f"example/{condition.name}/{condition.severity}", index, device)
            probabilities = predict(to_float(image.to(device)), generator)[0]
            entries.append(
                {
                    "index": index,
                    "corruption": condition.name,
                    "severity": condition.severity,
                    "label": classes[int(condition.labels[index])],
                    **_describe(probabilities, classes),
                    "png": png_base64(image[0]),
                }
            )
    return {"images": entries}


def _describe(probabilities: Tensor, classes: Sequence[str]) -> dict[str, Any]:
    confidences, predicted = probabilities.topk(min(2, len(probabilities)))
    names = [classes[index] for index in predicted.tolist()]
    percents = [round(100 * confidence, 2) for confidence in confidences.tolist()]
    second = {"second": names[1], "second_confidence": percents[1]} if len(names) > 1 else {}
    return {"prediction": names[0], "confidence": percents[0], **second}


def png_base64(image: Tensor) -> str:
    """A uint8 image (3,H,W) as a PNG in base64, no larger than `LARGEST` pixels."""
    buffer = io.BytesIO()
    picture = Image.fromarray(image.cpu().permute(1, 2, 0).contiguous().numpy())
    picture.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)  # leaves smaller ones as they are
    picture.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
