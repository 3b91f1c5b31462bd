"""Compiled code draws what eager code draws, from the generator that is named."""

import pytest
import torch

from dign.core.compiled_draws import draw_from
from dign.core.image_rng import normal_like, uniform


def draw(x):
    first = uniform(4, 2, generator=None, device=x.device)
    return first, uniform(4, 2, generator=None, device=x.device), normal_like(x, None)


@pytest.mark.slow
def test_compiled_draws_are_those_of_the_generator_and_no_two_are_the_same():
    x, generator = torch.zeros(4, 3), torch.Generator().manual_seed(3)
    compiled = torch.compile(draw, fullgraph=True, backend="aot_eager")
    with draw_from(generator):
        first, second, noise = compiled(x)
    again = torch.Generator().manual_seed(3)
    assert torch.equal(first, torch.rand(4, 2, generator=again))
    assert torch.equal(second, torch.rand(4, 2, generator=again)) and not torch.equal(first, second)
    assert torch.equal(noise, torch.randn(4, 3, generator=again))


def test_without_a_generator_torch_s_own_is_drawn_from():
    compiled = torch.compile(draw, fullgraph=True, backend="aot_eager")
    with torch.random.fork_rng([]):
        torch.manual_seed(5)
        first = compiled(torch.zeros(4, 3))[0]
        torch.manual_seed(5)
        assert torch.equal(first, torch.rand(4, 2))
