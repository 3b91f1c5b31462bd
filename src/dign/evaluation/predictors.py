"""Models in any form as functions from images to probabilities, and checks of what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, TypeGuard, cast

import torch
from torch import Tensor, nn

from dign.core.checks import check_value
from dign.core.errors import UserError, summarize_error
from dign.core.freezing import freeze_temporarily
from dign.core.outputs import logits_of, look_like_probabilities
from dign.evaluation.measure import Predictor
from dign.parallel.devices import DTYPES, check_precision
from dign.runs.config import PRECISIONS
from dign.runs.foreign.onnx_files import OnnxNetwork

Model = nn.Module | Callable[..., Tensor] | Any
"""A module from images to logits, an object with `.predict`, or a function from images to probabilities."""


def make_predictor(model: Model) -> Predictor:
    """The function from images and a generator to probabilities that a model stands for.

    Raises:
        UserError: The model is neither a module, nor an object with `.predict`, nor a function.
    """
    if gives_logits(model):
        return partial(predict_by_logits, model)
    function = getattr(model, "predict", model)
    if not callable(function):
        hint = "; dign.load_model opens a run folder" if isinstance(model, str | PathLike) else ""
        raise UserError(
            f"model must be an nn.Module, an object with .predict, or a function from images to probabilities, "
            f"not a {type(model).__name__}{hint}."
        )
    if _takes_generator(function):
        return cast(Predictor, function)
    return lambda images, generator: function(images)


def in_precision(predict: Predictor, model: Model, precision: str, device: torch.device) -> Predictor:
    """The predictor of a model in mixed precision: "bf16" or "16"; "32" is the predictor itself.

    Raises:
        UserError: There is no such precision, or the device, or the model, cannot compute in it.
    """
    check_value("precision", precision, PRECISIONS, None)
    if precision == "32":
        return predict
    check_precision(precision, device)
    if isinstance(model, nn.Module) and any(isinstance(part, OnnxNetwork) for part in model.modules()):
        raise UserError("An ONNX file computes in a precision of its own: evaluate it without another.")

    def predict_mixed(images: Tensor, generator: torch.Generator) -> Tensor:
        with torch.autocast(device.type, dtype=DTYPES[precision]):
            return predict(images, generator)

    return predict_mixed


def predict_by_logits(model: nn.Module, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The softmax of a module's logits."""
    return torch.softmax(logits_of(model(images)).float(), dim=-1)


def gives_logits(model: Model) -> TypeGuard[nn.Module]:
    """Whether a model is a module that is used by its logits: it has no `predict(images, generator)`."""
    predict = getattr(model, "predict", None)
    return isinstance(model, nn.Module) and not (callable(predict) and "generator" in _positional(predict))


def _takes_generator(function: Callable[..., Tensor]) -> bool:
    """Whether a function has a second parameter that is called `generator`, or that has to be given."""
    second = list(_positional(function).values())[1:2]
    return any(each.name == "generator" or each.default is each.empty for each in second)


def _positional(function: Callable[..., Tensor]) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return {}
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {name: each for name, each in parameters.items() if each.kind in kinds}


def device_of(model: Model) -> torch.device:
    """Where a module's parameters or buffers are; the CPU for anything else."""
    if not isinstance(model, nn.Module):
        return torch.device("cpu")
    return next(chain(model.parameters(), model.buffers()), torch.empty(0)).device


@torch.no_grad()
def check_logits(
    name: str, model: nn.Module, image_shape: tuple[int, ...], classes: int | None = None, data: str = "the data"
) -> None:
    """Check that a module gives logits, with a forward pass of two gray images.

    Args:
        name: What errors call the model.
        model: The module; it is left as it was.
        image_shape: (C,H,W).
        classes: Number of classes of the data, where it is known.
        data: What errors call the data.

    Raises:
        UserError: The module fails, or what it gives is not finite logits (2,classes), or looks like probabilities.
    """
    gray = torch.full((2, *image_shape), 0.5, device=device_of(model))
    try:
        with freeze_temporarily(model):
            output = model(gray)
    except Exception as error:
        shape = ", ".join(map(str, gray.shape))
        raise UserError(f"{name} fails on images of shape ({shape}): {summarize_error(error)}") from error
    logits = logits_of(output)
    if logits.dim() != 2 or len(logits) != 2:
        raise UserError(f"{name} must give logits (N, C), but gives {tuple(logits.shape)} for two images.")
    if logits.shape[1] < 2:
        raise UserError(f"{name} gives one logit per image: expected one for each class, two for a binary classifier.")
    if classes is not None and logits.shape[1] != classes:
        raise UserError(
            f"{name} knows {logits.shape[1]} classes, but {data} has {classes}: name data with the model's classes, or "
            "fine-tune the model on these."
        )
    if not bool(logits.isfinite().all()):
        raise UserError(f"{name} gives logits that are not finite for a gray image: check its weights.")
    if look_like_probabilities(logits):
        raise UserError(f"{name} gives probabilities, where logits are expected: leave out its softmax.")


class CheckedPredictor:
    """A predictor whose first answer is checked; `classes` is then how many classes it knows."""

    def __init__(self, predict: Predictor) -> None:
        self.predict = predict
        self.classes: int | None = None

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        probabilities = self.predict(images, generator)
        if self.classes is None:
            self._check(probabilities, len(images))
            self.classes = probabilities.shape[1]
        return probabilities

    @staticmethod
    def _check(probabilities: Any, count: int) -> None:
        if not isinstance(probabilities, Tensor) or not probabilities.is_floating_point():
            kind = probabilities.dtype if isinstance(probabilities, Tensor) else type(probabilities).__name__
            raise UserError(f"model must give probabilities as a float tensor (N,C), not {kind}.")
        if probabilities.dim() != 2 or len(probabilities) != count:
            raise UserError(
                f"model must give probabilities (N,C), but gives {tuple(probabilities.shape)} for {count} images."
            )
        sums = probabilities.float().sum(1)
        if not bool((probabilities >= 0).all()) or not torch.allclose(sums, torch.ones_like(sums), atol=1e-2):
            raise UserError(
                "model must give probabilities that are at least 0 and add up to 1: apply softmax to logits first."
            )
