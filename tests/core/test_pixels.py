"""Pixels convert between uint8 and float without loss, and arguments are left alone."""

import pytest
import torch

from dign.core.errors import UserError
from dign.core.pixels import divide, to_float, to_uint8, truncate_to_uint8, whole_to_uint8

LEVELS = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_level_is_its_exact_quotient_and_comes_back(dtype):
    x = to_float(LEVELS, dtype)
    assert x.dtype == dtype and x.flatten().tolist() == [
        torch.tensor(level / 255, dtype=dtype).item() for level in range(256)
    ]
    assert torch.equal(to_uint8(x), LEVELS)


def test_the_division_is_done_with_a_tensor_which_cuda_does_not_replace_by_a_product(monkeypatch):
    divisors = []
    original = torch.Tensor.__truediv__
    monkeypatch.setattr(torch.Tensor, "__truediv__", lambda x, y: divisors.append(type(y)) or original(x, y))
    to_float(LEVELS)
    divide(torch.ones(1), 3)
    assert divisors == [torch.Tensor, torch.Tensor]


def test_rounding_is_to_the_nearest_and_truncation_downward_both_within_range():
    x = torch.tensor([-1.0, 0.0, 0.9 / 255, 1.4 / 255, 1.6 / 255, 1.0, 2.0])
    before = x.clone()
    assert to_uint8(x).tolist() == [0, 0, 1, 1, 2, 255, 255]
    assert truncate_to_uint8(x).tolist() == [0, 0, 0, 1, 1, 255, 255]
    assert torch.equal(x, before)


def test_float_images_pass_and_integers_are_refused():
    x = torch.rand(2, 3, 4, 4)
    assert torch.equal(to_float(x), x)
    assert to_float(x, channels_last=True).is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(UserError, match=r"not torch\.int64"):
        to_float(torch.zeros(1, 3, 2, 2, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_whole_numbers_become_bytes(dtype) -> None:
    assert whole_to_uint8(torch.arange(256).to(dtype)).tolist() == list(range(256))
