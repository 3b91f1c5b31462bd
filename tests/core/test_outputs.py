"""Logits are found in what the libraries' models return, and nothing else is taken for them."""

from types import SimpleNamespace

import pytest
import torch

from dign.core.errors import UserError
from dign.core.outputs import logits_of

LOGITS = torch.randn(2, 3)


@pytest.mark.parametrize(
    "output",
    [LOGITS, (LOGITS, None), [LOGITS], {"logits": LOGITS, "loss": 1.0}, SimpleNamespace(logits=LOGITS, loss=None)],
    ids=["tensor", "tuple", "list", "dictionary", "object"],
)
def test_the_logits_are_found(output):
    assert logits_of(output) is LOGITS


@pytest.mark.parametrize("output", [None, (), {}, {"out": LOGITS}, "logits", ("loss", LOGITS)])
def test_anything_else_is_one_clear_error(output):
    with pytest.raises(UserError, match="without logits: expected a tensor"):
        logits_of(output)
