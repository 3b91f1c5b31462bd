"""Several processes that work on one thing: who they are, what they agree on, and what each of them does.

Only the first writes files and speaks. What one of them notices (a mistake, a full disk, Ctrl-C) all of them learn, so
that none waits for another that has gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, distributed

from dign.core.errors import ReportedByRankZero, UserError
from dign.core.image_rng import make_shared_generator
from dign.core.seeds import make_generator

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")


@dataclass(frozen=True)
class Team:
    """`world_size` processes, this one being `rank`: it holds images `rank`, `rank + world_size`, ... of a batch."""

    rank: int = 0
    world_size: int = 1
    device: torch.device | None = None
    """Where this process computes, if the team was gathered for a device."""
    control: Any = None
    """The channel for what the processes agree on: always gloo, so that to agree never waits for a GPU."""

    @classmethod
    def from_fabric(cls, fabric: Fabric) -> Team:
        """The processes that Fabric has launched."""
        if fabric.world_size == 1:
            return cls(device=fabric.device)
        return cls(fabric.global_rank, fabric.world_size, fabric.device, distributed.new_group(backend="gloo"))

    @property
    def is_rank_zero(self) -> bool:
        return self.rank == 0

    def local_slice(self, everything: Tensor) -> Tensor:
        """This process's share of what a batch consists of."""
        return everything[self.rank :: self.world_size] if self.world_size > 1 else everything

    def generator(self, seed: int, purpose: str, step: int, device: torch.device) -> torch.Generator:
        """A generator for this process's share of a batch: all processes together draw what one would."""
        if self.world_size == 1:
            return make_generator(seed, purpose, step, device)
        return make_shared_generator(seed, purpose, step, device, self.rank, self.world_size)

    def check_divides(self, batch_size: int) -> None:
        """Means over equal shares have the mean over the batch as their mean; over unequal ones they have not."""
        if batch_size % self.world_size:
            raise UserError(
                f"A batch of {batch_size} images cannot be shared out equally among {self.world_size} processes: "
                f"choose a --batch-size that {self.world_size} divides (or fewer processes)."
            )

    def mean(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """The means over the processes of numbers on the device."""
        if self.world_size == 1:
            return values
        total = self.sum(torch.stack(list(values.values())))
        return dict(zip(values, total / self.world_size, strict=True))

    def sum(self, values: Tensor) -> Tensor:
        """The sum over the processes of numbers on the device."""
        if self.world_size == 1:
            return values
        total = values.clone()
        distributed.all_reduce(total)
        return total

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Each flag as soon as one process raises it."""
        if self.world_size == 1:
            return flags
        raised = torch.tensor(flags, dtype=torch.uint8)
        distributed.all_reduce(raised, distributed.ReduceOp.MAX, group=self.control)
        return tuple(bool(flag) for flag in raised)

    def gather(self, value: T) -> Sequence[T]:
        """The values of all processes, by rank, for all of them."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        distributed.all_gather_object(values, value, group=self.control)
        return values

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """A block of local work that succeeds everywhere or nowhere; all wait for all at its end.

        A mistake or a failed file in one process ends it in all; the first process tells about it.
        """
        failure: UserError | OSError | None = None
        try:
            yield
        except (UserError, OSError) as error:
            failure = error
        if self.world_size == 1 and failure:
            raise failure
        sentences = self.gather(str(failure) if failure else None)
        said = next((sentence for sentence in sentences if sentence is not None), None)
        if said is None:
            return
        if not self.is_rank_zero:
            raise ReportedByRankZero(said) from failure
        raise failure or UserError(said)

    @contextmanager
    def enter_on_rank_zero(self, context: AbstractContextManager[Any]) -> Iterator[None]:
        """A context that the first process enters for all."""
        with self.all_or_none():
            if self.is_rank_zero:
                context.__enter__()
        try:
            yield
        finally:
            if self.is_rank_zero:
                context.__exit__(None, None, None)

    @contextmanager
    def report_dead_peer(self, what_to_do: str) -> Iterator[None]:
        """Collective work: that another process has died in the middle of it is said in a sentence."""
        try:
            yield
        except RuntimeError as error:
            if self.world_size == 1 or not (isinstance(error, distributed.DistError) or "gloo" in str(error)):
                raise
            raise UserError(f"Another of the {self.world_size} processes has died: {what_to_do}.") from error


SINGLE_PROCESS = Team()
