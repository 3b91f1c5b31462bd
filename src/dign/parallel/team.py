"""The processes that share a run: their ranks, what they agree on, and what each of them does.

Only rank zero writes files and reports. What one of them notices (a user error, a full disk, Ctrl-C) all of them learn,
so that none waits for one that has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, distributed

from dign.core.errors import ReportedByRankZero, UserError
from dign.core.image_rng import make_shared_generator
from dign.core.seeds import make_generator

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")

PATIENCE = 1800.0
"""Seconds that processes wait for one that does not answer."""


@dataclass(frozen=True)
class Team:
    """`world_size` processes, this one being `rank`: it holds images `rank`, `rank + world_size`, ... of a batch."""

    rank: int = 0
    world_size: int = 1
    device: torch.device | None = None
    """Where this process computes, if the team was created for a device."""
    control: Any = None
    """The process group for what the processes agree on: always gloo, so that agreeing never waits for a GPU."""

    @classmethod
    def from_fabric(cls, fabric: Fabric, patience: float = PATIENCE) -> Team:
        """The team of the processes that Fabric has launched, which wait `patience` seconds for each other."""
        if fabric.world_size == 1:
            return cls(device=fabric.device)
        control = distributed.new_group(backend="gloo", timeout=timedelta(seconds=patience))
        return cls(fabric.global_rank, fabric.world_size, fabric.device, control)

    @property
    def is_rank_zero(self) -> bool:
        return self.rank == 0

    def local_slice(self, batch: Tensor) -> Tensor:
        """Return this process's share of a batch."""
        return batch[self.rank :: self.world_size] if self.world_size > 1 else batch

    def generator(self, seed: int, purpose: str, step: int, device: torch.device) -> torch.Generator:
        """Make a generator for this process's share of a batch: all processes together draw what one would."""
        if self.world_size == 1:
            return make_generator(seed, purpose, step, device)
        return make_shared_generator(seed, purpose, step, device, self.rank, self.world_size)

    def check_divides(self, batch_size: int, parts: int = 1) -> None:
        """Raise a `UserError` for unequal shares: the mean of their means would not be the mean of the batch.

        Each process passes its share through the model in `parts`, one after the other.
        """
        if parts > 1 and batch_size % (self.world_size * parts):
            shared = f" of each of {self.world_size} processes" if self.world_size > 1 else ""
            raise UserError(
                f"A batch of {batch_size} images cannot be cut into {parts} equal parts{shared}: choose a `batch_size` "
                f"that {self.world_size * parts} divides, or another `accumulate`."
            )
        if batch_size % self.world_size:
            raise UserError(
                f"A batch of {batch_size} images cannot be shared out equally among {self.world_size} processes: "
                f"choose a batch size that {self.world_size} divides, or fewer processes."
            )

    def mean(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Average numbers on the device over the processes."""
        if self.world_size == 1:
            return values
        total = self.sum(torch.stack(list(values.values())))
        return dict(zip(values, total / self.world_size, strict=True))

    def sum(self, values: Tensor) -> Tensor:
        """Sum numbers on the device over the processes."""
        if self.world_size == 1:
            return values
        total = values.clone()
        distributed.all_reduce(total)
        return total

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Average the gradients over the processes, as DistributedDataParallel does for a model that it wraps."""
        gradients = [each.grad for each in parameters if each.grad is not None]
        if self.world_size == 1 or not gradients:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients]).div_(self.world_size)
        distributed.all_reduce(flat)
        for gradient, mean in zip(gradients, flat.split([each.numel() for each in gradients]), strict=True):
            gradient.copy_(mean.view_as(gradient))

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Return each flag as True if it is True in any process."""
        if self.world_size == 1:
            return flags
        raised = torch.tensor(flags, dtype=torch.uint8)
        distributed.all_reduce(raised, distributed.ReduceOp.MAX, group=self.control)
        return tuple(bool(flag) for flag in raised)

    def gather(self, value: T) -> Sequence[T]:
        """Return the values of all processes, by rank, in all of them."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        distributed.all_gather_object(values, value, group=self.control)
        return values

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Run a block of local work that succeeds in all processes or in none; all wait for each other at its end.

        A `UserError` or `OSError` in one process is raised in all; rank zero reports it.
        """
        failure: UserError | OSError | None = None
        try:
            yield
        except (UserError, OSError) as error:
            failure = error
        if self.world_size == 1 and failure:
            raise failure
        messages = self.gather(str(failure) if failure else None)
        message = next((message for message in messages if message is not None), None)
        if message is None:
            return
        if not self.is_rank_zero:
            raise ReportedByRankZero(message) from failure
        raise failure or UserError(message)

    @contextmanager
    def enter_on_rank_zero(self, context: AbstractContextManager[Any]) -> Iterator[None]:
        """Enter a context in rank zero, on behalf of all."""
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
        """Run collective work; the death of another process in the middle of it is a `UserError`."""
        try:
            yield
        except RuntimeError as error:
            if self.world_size == 1 or not (isinstance(error, distributed.DistError) or "gloo" in str(error)):
                raise
            raise UserError(
                f"Another of the {self.world_size} processes has died, or cannot be reached: {what_to_do}."
            ) from error


SINGLE_PROCESS = Team()
