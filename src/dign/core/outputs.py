"""The logits in whatever a model returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
