"""Random numbers inside compiled code.

`torch.compile` takes no `torch.Generator`, and cannot follow code whose shapes are drawn. What draws is therefore one
operator of the compiled graph each, which draws from the generator that `draw_from` has named for the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_generators: list[torch.Generator | None] = [None]
_ranks = [(0, 1)]
_operators = torch.library.Library("dign", "FRAGMENT")


@contextmanager
def draw_from(generator: torch.Generator | None) -> Iterator[None]:
    """Let compiled code draw from `generator` until the block ends; otherwise it draws from torch's own."""
    _generators.append(generator)
    _ranks.append((getattr(generator, "rank", 0), getattr(generator, "world_size", 1)))
    try:
        yield
    finally:
        _generators.pop()
        _ranks.pop()


def compiled_rank() -> tuple[int, int]:
    """Rank and world size of the process whose generator `draw_from` has named: constants of the compiled code."""
    return _ranks[-1]


def define_draw(schema: str, function: Callable[..., Any], fake: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that compiled code calls instead of a function that draws.

    Args:
        schema: The operator's name and arguments, as torch.library writes them.
        function: What it does; it is called with these arguments and `generator=`.
        fake: An empty, contiguous tensor of the shape, type and device of the result, from the same arguments.

    Returns:
        The operator.
    """
    name = schema.partition("(")[0]
    _operators.define(schema, tags=(torch.Tag.nondeterministic_seeded,))  # two calls are two draws

    def draw(*args: Any) -> Any:
        return function(*args, generator=_generators[-1]).contiguous()

    _operators.impl(name, draw, "CompositeExplicitAutograd")
    torch.library.register_fake(f"dign::{name}", fake)
    operator: Callable[..., Any] = getattr(torch.ops.dign, name).default
    return operator
