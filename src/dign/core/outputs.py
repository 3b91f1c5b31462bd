"""The logits in whatever a model returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dign.core.errors import UserError


def logits_of(output: Any) -> Tensor:
    """The logits in a model's output.

    Args:
        output: A tensor; an object with `.logits`, as Hugging Face's and torchvision's models return; a dictionary with
            the key "logits"; or a tuple or list whose first entry is the logits.

    Raises:
        UserError: There are no logits in it.

    >>> import torch
    >>> logits_of((torch.zeros(2, 10), "auxiliary")).shape
    torch.Size([2, 10])
    """
    found = output
    if isinstance(output, Mapping):
        found = output.get("logits")
    elif hasattr(output, "logits"):
        found = output.logits
    elif isinstance(output, tuple | list) and output:
        found = output[0]
    if not isinstance(found, Tensor):
        raise UserError(
            f"the model returned a {type(output).__name__} without logits: expected a tensor (N,C), an object with "
            ".logits, a dictionary with 'logits', or a tuple whose first entry is the logits."
        )
    return found


def release(logits: Tensor) -> Tensor:
    """The logits, ready for `torch.autograd.grad` where Lightning Fabric has wrapped the model.

    Its hook on them insists on `fabric.backward`, which is for training: the gradient of an image has no scaled loss,
    and none that processes exchange.
    """
    if not torch.compiler.is_compiling() and logits._backward_hooks:
        logits._backward_hooks.clear()
    return logits


def look_like_probabilities(values: Tensor) -> bool:
    """Whether the values (N,C,...) are at least 0 and add up to 1 over the classes, as those of a softmax do.

    >>> look_like_probabilities(torch.tensor([[0.2, 0.8]])), look_like_probabilities(torch.tensor([[0.2, 0.9]]))
    (True, False)
    """
    sums = values.float().sum(1)
    tolerance = 1e-5 if values.dtype in (torch.float32, torch.float64) else 1e-2
    return bool((values >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=tolerance)
