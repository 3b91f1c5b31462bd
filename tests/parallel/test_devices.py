"""Devices that cannot be used are refused with a reason."""

import pytest
import torch

from dign.core.errors import UserError
from dign.parallel.devices import describe_device, pick_device, resolve_precision


def test_a_device_without_float64_is_refused(monkeypatch):
    def zeros(*size, dtype=None, **options):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype.") if dtype is torch.float64 else AssertionError

    monkeypatch.setattr(torch, "zeros", zeros)
    with pytest.raises(UserError, match=r"'mps' cannot be used here \(Cannot convert a MPS Tensor to float64 dtype\)"):
        pick_device("mps")


@pytest.mark.parametrize("name", ["abacus", "cpu:1"])
def test_a_device_that_does_not_exist_is_a_user_error(name):
    with pytest.raises(UserError, match="use "):
        pick_device(name)


def test_precision_auto_is_float32_on_a_cpu_and_anything_else_stays():
    cpu = torch.device("cpu")
    assert [resolve_precision(name, cpu) for name in ("auto", "32", "bf16")] == ["32", "32", "bf16"]
    assert describe_device("auto", cpu) == {"device": "cpu", "precision": "32"}
