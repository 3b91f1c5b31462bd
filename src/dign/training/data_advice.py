"""What a user should know about a run before spending time on it."""

from __future__ import annotations

import torch

from dign.core.errors import join_names
from dign.data.dataset import DataSet
from dign.training.cost import describe_duration

FEW_IMAGES, MUCH_MORE, FEW_STEPS = 50, 10, 200
"""Images per class, ratio between classes, steps: rules of thumb, not measured, beyond which there is advice."""
FEW_STEPS_TUNING = 40
"""Steps from trained weights: with 20 photographs are recognized less well than with 40 or 80 (results/photos)."""
LONG = 2 * 3600
"""Seconds on a CPU from which on a user should know before the first step."""


def give_advice(data: DataSet, steps: int, *, from_scratch: bool = True) -> list[str]:
    """Advice about the training images.

    `from_scratch`: whether training starts from random weights, so that trained ones are worth a thought.
    """
    counts = torch.bincount(data.train.labels, minlength=len(data.classes)).tolist()
    fewest, most = min(counts), max(counts)
    rare, frequent = data.classes[counts.index(fewest)], data.classes[counts.index(most)]
    notes = [describe_skipped(data.skipped)] if data.skipped else []
    if fewest < FEW_IMAGES:
        start = 'start from trained weights (`init`, `freeze="body"`), and ' if from_scratch else ""
        notes.append(
            f"Few images: '{rare}' has {fewest} to train on. Below about {FEW_IMAGES} in a class results differ much "
            f"from seed to seed: {start}compare several values of `seed`."
        )
    if data.enlarged:
        some = "1 picture is" if data.enlarged == 1 else f"{data.enlarged} pictures are"
        notes.append(
            f"Small pictures: {some} smaller than the images of {data.image_size[0]} pixels, and enlarged, so less "
            "sharp than the others. A smaller `size` needs no enlarging."
        )
    unmeasured = [
        name
        for name, count in zip(data.classes, data.test.labels.bincount(minlength=len(data.classes)), strict=True)
        if not count
    ]
    if unmeasured:
        notes.append(
            f"No test images: of {join_names(unmeasured, most=5)} there is none, so that the results say nothing about "
            f"{'it' if len(unmeasured) == 1 else 'them'}."
        )
    if most > MUCH_MORE * max(fewest, 1):
        notes.append(
            f"Unbalanced classes: '{frequent}' has {most} training images, '{rare}' {fewest}. Accuracy counts images, "
            f"so a model can score well and never answer '{rare}': add images of it, or set `balance`."
        )
    if steps < (FEW_STEPS if from_scratch else FEW_STEPS_TUNING):
        notes.append(
            f"Few steps: {steps} in all is little to learn from. A smaller `batch_size` gives more steps per epoch, a "
            "larger `epochs` more epochs."
        )
    return notes


def describe_skipped(names: tuple[str, ...]) -> str:
    """A sentence about image files that were left out."""
    what = "1 image that cannot be read is" if len(names) == 1 else f"{len(names)} images that cannot be read are"
    return f"Unreadable: {what} left out: {join_names(names, most=20)}."


def warn_of_duration(seconds: float | None) -> list[str]:
    """A warning if training takes hours or days on a CPU; `seconds` is a rough estimate."""
    if seconds is None or seconds < LONG:
        return []
    return [
        f"Long: on this CPU the training takes very roughly {describe_duration(seconds)}. A GPU is much faster, and so "
        'is `preset="fast"` as it stands: a small model, 6 epochs.'
    ]
