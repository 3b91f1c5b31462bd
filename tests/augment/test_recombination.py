"""Each against its definition, step by step, with the numbers that were drawn."""

import pytest
import torch

from dign.augment.pairs import partners
from dign.augment.recombination import (
    apply_one_operation,
    hybrid_paired,
    hybrid_single,
    recombine_paired,
    recombine_single,
)
from dign.augment.spectra import low_frequencies, recombine


@pytest.fixture
def x():
    return torch.rand(32, 3, 8, 8, generator=torch.Generator().manual_seed(0)).mul(255).round().div(255)


def generator():
    return torch.Generator().manual_seed(5)


def test_single(x):
    made, draw = recombine_single(x, 0.5, 3.0, generator()), generator()
    first = apply_one_operation(x, 3.0, draw)
    second = apply_one_operation(first, 3.0, draw)
    numbers = torch.rand(32, 2, generator=draw)
    for i in range(32):
        a, b = (first, second) if numbers[i, 1] < 0.5 else (second, first)
        expected = recombine(a[i : i + 1], b[i : i + 1]).clamp(0, 1)[0] if numbers[i, 0] < 0.5 else first[i]
        torch.testing.assert_close(made[i], expected)


def test_paired(x):
    made = recombine_paired(x, 0.6, generator())
    numbers = torch.rand(32, 1, generator=generator())
    for i in range(32):
        j = (i + 16) % 32
        expected = recombine(x[i : i + 1], x[j : j + 1])[0] if numbers[i, 0] < 0.6 else x[i]
        torch.testing.assert_close(made[i], expected)


def test_hybrid_single(x):
    made, draw = hybrid_single(x, 0.5, 3.0, generator()), generator()
    first = apply_one_operation(x, 3.0, draw)
    second = apply_one_operation(first, 3.0, draw)
    numbers = torch.rand(32, 2, generator=draw)
    own = (numbers[:, 1] < 0.5).view(-1, 1, 1, 1)
    low, other = torch.where(own, first, second), torch.where(own, second, first)
    low = recombine_single(low_frequencies(low), 0.5, 3.0, draw)
    for i in range(32):
        high = other[i : i + 1] - low_frequencies(other[i : i + 1])
        expected = (low[i] + high[0]).clamp(0, 1) if numbers[i, 0] < 0.5 else first[i]
        torch.testing.assert_close(made[i], expected)


def test_hybrid_paired(x):
    made, draw = hybrid_paired(x, 0.6, generator()), generator()
    hybrid = torch.rand(32, 1, generator=draw)
    mixed = torch.rand(32, 1, generator=draw)
    low = low_frequencies(x)
    high = x - low
    for i in range(32):
        mine = recombine(low[i : i + 1], partners(low, 0.25)[i : i + 1])[0] if mixed[i, 0] < 0.6 else low[i]
        expected = mine + high[(i + 16) % 32] if hybrid[i, 0] < 0.6 else x[i]
        torch.testing.assert_close(made[i], expected)


def test_nothing_is_recombined_at_probability_zero(x):
    assert torch.equal(recombine_paired(x, 0.0), x) and torch.equal(hybrid_paired(x, 0.0), x)
    for single in (recombine_single, hybrid_single):
        assert torch.equal(single(x, 0.0, 3.0, generator()), apply_one_operation(x, 3.0, generator()))
