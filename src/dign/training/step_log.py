"""Steps that are not logged yet: a checkpoint stores them, so that a resumed run writes the same records."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Step:
    """The numbers of a step that will be logged, still on the device."""

    number: int
    loss: Tensor
    terms: dict[str, Tensor]


def stack(steps: list[Step]) -> dict[str, Tensor]:
    """Steps as a few tensors, each with one entry per step."""
    if not steps:
        return {}
    terms = {f"terms/{name}": torch.stack([step.terms[name] for step in steps]) for name in steps[0].terms}
    numbers = torch.tensor([step.number for step in steps])
    return {"number": numbers, "loss": torch.stack([step.loss for step in steps]), **terms}


def unstack(tensors: dict[str, Tensor]) -> list[Step]:
    """The inverse of `stack`; a `ValueError` or `KeyError` for other tensors."""
    if not tensors:
        return []
    terms = {name.removeprefix("terms/"): values for name, values in tensors.items() if name.startswith("terms/")}
    numbers, losses = tensors["number"], tensors["loss"]
    if numbers.dtype != torch.int64 or any(values.shape != (numbers.numel(),) for values in tensors.values()):
        raise ValueError("the steps are incomplete")
    return [
        Step(number, losses[index], {name: values[index] for name, values in terms.items()})
        for index, number in enumerate(numbers.tolist())
    ]
