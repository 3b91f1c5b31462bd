"""Where a step's images come from: they are on the device, or are gathered on the host and copied ahead of time.

What a step gets is the same, bit for bit, wherever the images are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from dign.core.placement import copy_to_device
from dign.data.crop_batches import CropBatches
from dign.data.dataset import Split

Order = Callable[[int], Tensor]
"""From a step to the indices (n,) of its images in the training split, on the host: those that this process holds."""


class Batch(NamedTuple):
    """The images and labels of a step, on the device."""

    images: Tensor
    """(n,3,H,W) uint8."""
    labels: Tensor


class BatchSource(Protocol):
    """The training images, a step at a time. The loop asks for steps in ascending order, from any first one on."""

    @property
    def waited(self) -> float:
        """Seconds that steps have waited for their images so far, as far as that is known."""
        ...

    def get(self, step: int) -> Batch:
        """The batch of a step. The device need not have it yet when this returns: its stream waits for it."""
        ...

    def close(self) -> None:
        """Let go of threads, processes and files. Called once, also after an error."""
        ...


def make_batch_source(split: Split, order: Order, device: torch.device, *, last: int, share: float) -> BatchSource:
    """The source that suits the size of the split.

    Args:
        split: The training images.
        order: Which images a step gets.
        device: Where the steps are computed.
        last: The last step, after which nothing is prepared.
        share: The share of the device's memory that the images may take. Beyond it they stay where they are, and each
            batch is gathered while the device computes the one before; 0 asks for that in any case.
    """
    if share > 0 and isinstance(split.stored, Tensor) and split.shape.numel() <= share * device_memory(device):
        return ResidentBatches(split, order, device)
    return HostBatches(split, order, device, last=last)


def device_memory(device: torch.device) -> float:
    """The bytes of memory that the device has in all. Images in the host's memory, or mapped into it, need no other."""
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory())
    return float("inf")


class ResidentBatches:
    """All images are on the device; on the CPU that is where they are stored, and nothing is copied."""

    waited = 0.0

    def __init__(self, split: Split, order: Order, device: torch.device) -> None:
        self._order, self._device = order, device
        self._split = split if device.type == "cpu" else _upload(split, device)

    def get(self, step: int) -> Batch:
        index = copy_to_device(self._order(step), self._device)
        return Batch(self._split.take(index), self._split.labels[index])

    def close(self) -> None:
        pass


def _upload(split: Split, device: torch.device, at_once: int = 1024) -> Split:
    """The split on the device, copied in parts: no second copy is made on the host."""
    images = torch.empty(split.shape, dtype=torch.uint8, device=device)
    for start in range(0, len(split), at_once):
        part = slice(start, start + at_once)
        images[part] = split.take(part).to(device)
    return Split(images, split.labels.to(device))


class HostBatches:
    """Images stay on the host: a thread gathers the next batch into pinned memory and copies it on its own stream."""

    def __init__(self, split: Split, order: Order, device: torch.device, *, last: int) -> None:
        self._split, self._order, self._device, self._last = split, order, device, last
        self._stream: Any = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._thread = ThreadPoolExecutor(1, "batches")
        self._ahead: tuple[int, Future[tuple[Batch, Any]]] | None = None
        self.waited = 0.0

    def get(self, step: int) -> Batch:
        ahead = self._ahead
        waiting = ahead[1] if ahead and ahead[0] == step else self._thread.submit(self._prepare, step)
        start = time.perf_counter()
        batch, copied = waiting.result()
        self.waited += time.perf_counter() - start
        if step < self._last:
            self._ahead = step + 1, self._thread.submit(self._prepare, step + 1)
        if self._stream is not None:
            current = torch.cuda.current_stream(self._device)
            current.wait_event(copied)
            for tensor in batch:
                tensor.record_stream(current)  # its memory is not reused before this stream is done with it
        return batch

    def _prepare(self, step: int) -> tuple[Batch, Any]:
        index = self._order(step)
        images, labels = self._split.take(index), self._split.labels[index]
        if self._stream is None:
            return Batch(images.to(self._device), labels.to(self._device)), None
        with torch.cuda.stream(self._stream):
            batch = Batch(copy_to_device(images, self._device), copy_to_device(labels, self._device))
            return batch, self._stream.record_event()

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)


class DecodedBatches:
    """Random crops of photographs, which worker processes decode ahead of time, from the first step on."""

    def __init__(self, crops: CropBatches, labels: Tensor, order: Order, device: torch.device) -> None:
        self._crops, self._labels, self._order, self._device = crops, labels, order, device

    @property
    def waited(self) -> float:
        return self._crops.waited

    def get(self, step: int) -> Batch:
        images = next(self._crops).to(self._device, non_blocking=True)  # pinned where that matters
        return Batch(images, copy_to_device(self._labels[self._order(step)], self._device))

    def close(self) -> None:
        self._crops.close()
