"""What a user should know about training images before spending time on them."""

from __future__ import annotations

import torch

from dign.data.dataset import DataSet

FEW_IMAGES, MUCH_MORE, FEW_STEPS = 50, 10, 200
"""Per class, between classes, in all: rules of thumb below (above) which a person is told. None was measured."""


def advice(data: DataSet, steps: int, *, from_nothing: bool = True) -> list[str]:
    """What a person should know about the training images before spending time on them.

    `from_nothing`: whether training begins with random weights, so that trained ones are worth a thought.
    """
    counts = torch.bincount(data.train.labels, minlength=len(data.classes)).tolist()
    fewest, most = min(counts), max(counts)
    rare, frequent = data.classes[counts.index(fewest)], data.classes[counts.index(most)]
    said = []
    if fewest < FEW_IMAGES:
        said.append(
            f"Few images: '{rare}' has {fewest} to train on. Below about {FEW_IMAGES} in a class results differ much "
            f"from seed to seed: {'start from trained weights (--init, --freeze body), and ' if from_nothing else ''}"
            "compare several --seed."
        )
    if most > MUCH_MORE * max(fewest, 1):
        said.append(
            f"Unbalanced classes: '{frequent}' has {most} training images, '{rare}' {fewest}. Accuracy counts images, "
            f"so a model can score well and never answer '{rare}': add images of it, or leave out some of '{frequent}'."
        )
    if steps < FEW_STEPS:
        said.append(
            f"Few steps: {steps} in all is little to learn from. A smaller --batch-size makes more of them in an "
            "epoch, --epochs more of those."
        )
    return said
