"""A program that uses the public API, for type checkers (`make lint`): every name has its real type, and no other name
is accepted."""

from typing import assert_type

from torch import Tensor, nn

import dign
from dign.methods.outcome import Outcome


def train_step(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    method = dign.DiGN(sigma_max=0.2) + dign.AugMix()
    assert_type(dign.make_method("dign"), dign.Method)
    assert_type(method(model, x, y), Outcome)
    return method(model, x, y).loss


def corrupted(x: Tensor) -> Tensor:
    return assert_type(dign.corrupt(x, "fog", 3), Tensor)


def names(where: str) -> list[str]:
    return assert_type(dign.load_model(where), dign.Classifier).classes


def misspelled() -> object:
    return dign.Dign  # type: ignore[attr-defined]
