"""Checks of the images, labels and logits that a method is given: shapes, types and devices.

They read no values, so that a GPU is not waited for, with one exception: whether images are in [0,1], and logits are
not probabilities, is looked at on the first call and on every hundredth after it.
"""

import warnings
from types import SimpleNamespace

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.outputs import look_like_probabilities
from dign.methods.labels import Labels

LOOK_EVERY = 100
"""Calls from one look at the values of images and logits to the next."""
OVERSHOOT = 0.1
"""How far outside [0,1] pixels may be without a warning: bicubic resizing does that."""

_looks = SimpleNamespace(calls=0, warned=False, warned_of_probabilities=False, warned_of_no_layers=False)


def check_images(x: Tensor) -> None:
    """Refuse what is not a batch of float images (N,C,H,W).

    Raises:
        UserError: The images are integers, or have another number of axes.

    >>> check_images(torch.zeros(2, 3, 8, 8, dtype=torch.uint8))
    Traceback (most recent call last):
    dign.core.errors.UserError: images are torch.uint8: expected float in [0,1], e.g. images / 255.
    """
    if not isinstance(x, Tensor):
        raise UserError(f"images are a {type(x).__name__}: expected a float tensor (N,C,H,W) in [0,1].")
    if not x.is_floating_point():
        raise UserError(f"images are {x.dtype}: expected float in [0,1], e.g. images / 255.")
    if x.dim() != 4:
        raise UserError(f"images have shape {tuple(x.shape)}: expected (N,C,H,W).")


def check_labels(y: Tensor, x: Tensor) -> Tensor:
    """Labels as int64: class indices (N,), or (N,H,W) for segmentation.

    Raises:
        UserError: The labels are not class indices, or not as many as the images, or on another device, or there are
            none.

    >>> check_labels(torch.tensor([1, 0], dtype=torch.uint8), torch.zeros(2, 3, 8, 8))
    tensor([1, 0])
    """
    if not isinstance(y, Tensor):
        raise UserError(f"labels are a {type(y).__name__}: expected a tensor of class indices (N,).")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise UserError(
            f"labels are {y.dtype}: expected integer class indices; give a binary classifier two logits and labels 0 "
            "and 1. Soft and multi-label targets are not supported."
        )
    if y.dim() not in (1, 3):
        raise UserError(
            f"labels have shape {tuple(y.shape)}: expected class indices (N,), or (N,H,W) for segmentation; one-hot "
            "labels become indices by y.argmax(1). Multi-label targets are not supported."
        )
    if len(x) == 0:
        raise UserError("the batch is empty: expected at least one image (drop empty batches in the data loader).")
    if len(y) != len(x):
        raise UserError(f"{len(x)} images have {len(y)} labels: expected one for each.")
    if y.device != x.device:
        raise UserError(f"images are on {x.device} and labels on {y.device}: move both to one device.")
    return y.long()


def check_class_axis(logits: Tensor) -> Tensor:
    """The logits, refused unless they are float, (N,C) or (N,C,H,W), of at least two classes.

    Raises:
        UserError: The logits have another shape or type.

    >>> check_class_axis(torch.zeros(8, 1))
    Traceback (most recent call last):
    dign.core.errors.UserError: the model returned one logit per image: expected one for each class, two for a binary classifier.
    """  # noqa: E501
    if not logits.is_floating_point() or logits.dim() not in (2, 4):
        raise UserError(
            f"the model returned {logits.dtype} logits of shape {tuple(logits.shape)}: expected float logits (N,C), or "
            "(N,C,H,W) for segmentation."
        )
    if logits.shape[1] < 2:
        raise UserError(
            "the model returned one logit per image: expected one for each class, two for a binary classifier."
        )
    return logits


def class_rows(logits: Tensor, y: Labels) -> Tensor:
    """Logits with the classes on the last axis and everything else on the first: (N,C) as they are, (N,C,H,W) pixel
    by pixel as (N*H*W,C), in the order of `y.flatten()`.

    Raises:
        UserError: The logits do not fit the labels.

    >>> class_rows(torch.zeros(2, 5, 8, 8), torch.zeros(2, 8, 8, dtype=torch.long)).shape
    torch.Size([128, 5])
    """
    check_class_axis(logits)
    if (len(logits), *logits.shape[2:]) != tuple(y.shape):
        raise UserError(
            f"the model returned logits of shape {tuple(logits.shape)} for labels of shape {tuple(y.shape)}: expected "
            "(N,C) for (N,), or (N,C,H,W) for (N,H,W)."
        )
    return logits if logits.dim() == 2 else logits.movedim(1, -1).flatten(0, -2)


def is_time_to_look() -> bool:
    """Whether values are looked at in this call of a method; never in compiled code."""
    if torch.compiler.is_compiling():
        return False
    _looks.calls += 1
    return bool((_looks.calls - 1) % LOOK_EVERY == 0)


def warn_of_range(x: Tensor) -> None:
    """Warn, once in a process, of images that are not in [0,1]: every noise level and radius has that unit."""
    if _looks.warned:
        return
    low, high = (bound.item() for bound in torch.aminmax(x.detach()))
    if low < -OVERSHOOT or high > 1 + OVERSHOOT:
        _looks.warned = True
        warnings.warn(
            f"images range from {low:.3g} to {high:.3g}, but methods take them in [0,1], the unit of sigma, sigma_max "
            "and radius. Scale them to [0,1]; a model that wants normalized images becomes "
            "dign.Normalized(model, mean, std).",
            UserWarning,
            stacklevel=3,
        )


def warn_of_probabilities(logits: Tensor) -> None:
    """Warn, once in a process, of a model that ends in a softmax: the loss applies another."""
    if _looks.warned_of_probabilities or not look_like_probabilities(logits.detach()):
        return
    _looks.warned_of_probabilities = True
    warnings.warn(
        "the model returns probabilities, but methods take logits and apply softmax themselves: leave out the softmax "
        "at its end.",
        UserWarning,
        stacklevel=3,
    )


def warn_of_no_layers(finding: str) -> None:
    """Warn, once, that a method that reaches into the network finds nothing there."""
    if _looks.warned_of_no_layers or torch.compiler.is_compiling():
        return
    _looks.warned_of_no_layers = True
    warnings.warn(f"{finding}. Name layers of the model with `layers`.", stacklevel=2)
