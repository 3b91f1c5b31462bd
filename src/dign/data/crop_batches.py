"""Batches of random crops, decoded by worker processes ahead of the steps that need them."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from dign.core.errors import UserError
from dign.data.crops import RandomCrop
from dign.data.decoding import replace_unprintable
from dign.data.pictures import Pictures

AHEAD = 2
"""Batches that a worker prepares in advance."""
MOST_WORKERS = 8

Plan = Iterable[tuple[int, Tensor]]
"""For each step the epoch, and the numbers of its pictures."""


@dataclass(frozen=True)
class _Crops(Dataset[Any]):
    """What a worker process does: a batch's epoch and numbers in, its crops out, or what is wrong with a picture."""

    pictures: Pictures
    crop: RandomCrop
    seed: int

    def __getitems__(self, batch: tuple[int, list[int]]) -> Tensor | str:
        epoch, numbers = batch
        crops = np.empty((len(numbers), 3, self.crop.size, self.crop.size), np.uint8)
        for place, number in enumerate(numbers):
            try:
                crops[place] = self.crop.read(self.pictures.read(number), self.seed, epoch, number)
            except UserError as error:
                name = replace_unprintable(self.pictures.name(number))
                return (
                    f"The image {name} cannot be read ({error}): put it back as it was and resume the run, or start a "
                    f"new one with `skip_unreadable`."
                )
        return torch.from_numpy(crops)


class CropBatches:
    """Yields the crops of each batch of a plan, uint8 (N,3,size,size), while workers prepare the next ones.

    What a batch holds depends on the seed, the epoch and the pictures' numbers, not on the number of workers.

    Attributes:
        waited: Seconds that the caller has waited for crops so far.
    """

    def __init__(
        self, pictures: Pictures, crop: RandomCrop, plan: Plan, *, seed: int, workers: int, pin: bool = False
    ) -> None:
        self.waited = 0.0
        loader = DataLoader(
            _Crops(pictures, crop, seed),
            batch_sampler=_Batches(plan),  # type: ignore[arg-type]  # a batch is an epoch and numbers
            num_workers=workers,
            prefetch_factor=AHEAD if workers else None,
            collate_fn=_keep,
            worker_init_fn=_start_worker if workers else None,
            multiprocessing_context="fork" if workers and sys.platform == "linux" else None,
            generator=torch.Generator(),  # the global one must not depend on how pictures are read
            pin_memory=pin,
        )
        self._batches: Iterator[Tensor | str] = iter(loader)
        # before multiprocessing waits for the workers, which no signal ends
        self._at_exit = partial(_close, weakref.ref(self))
        atexit.register(self._at_exit)

    def close(self) -> None:
        """End the workers; no batch can be taken afterwards."""
        self._batches = iter(())  # the loader ends its workers when nobody holds it any more
        atexit.unregister(self._at_exit)

    def __next__(self) -> Tensor:
        """The next batch.

        Raises:
            UserError: A picture cannot be decoded.
        """
        start = time.perf_counter()
        batch = next(self._batches)
        self.waited += time.perf_counter() - start
        if isinstance(batch, str):
            raise UserError(batch)
        return batch


def _close(batches: weakref.ref[CropBatches]) -> None:
    found = batches()
    if found is not None:
        found.close()


@dataclass(frozen=True)
class _Batches:
    plan: Plan

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        return ((epoch, numbers.tolist()) for epoch, numbers in self.plan)


def _keep(batch: Any) -> Any:
    return batch


def _start_worker(number: int) -> None:
    """Ctrl-C reaches every process of a terminal: the training finishes its step first, and ends the workers itself."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)


def count_workers(wanted: int, processes: int = 1) -> int:
    """How many workers each of `processes` on this machine has: `wanted`, or for -1 what the cores allow.

    >>> count_workers(3)
    3
    """
    if wanted >= 0:
        return wanted
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST_WORKERS, cores // processes))
