"""How many images fit into memory at once, and a fallback when fewer do than estimated."""

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from dign.core.errors import UserError, is_out_of_memory
from dign.core.freezing import freeze_temporarily
from dign.landscape.gradients import traced_log_probabilities

LARGEST_BATCH = {"cpu": 128, "cuda": 1024}
"""Larger batches were not faster."""

Progress = Callable[[int, int], None]
"""Called with the number of images done and the number in all."""


def run_in_batches(
    count: int, batch_size: int, work: Callable[[slice], dict[str, Tensor]], progress: Progress | None = None
) -> dict[str, Tensor]:
    """Call `work` on batches of images 0..count-1 and concatenate its tensors, one row per image, on the CPU.

    If memory runs out, the batch is halved and tried again; a single image that does not fit is an error.
    """
    parts: list[dict[str, Tensor]] = []
    done = 0
    while done < count:
        batch = slice(done, min(done + batch_size, count))
        try:
            parts.append({name: value.cpu() for name, value in work(batch).items()})
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if batch_size == 1:
                raise make_memory_error() from error
            batch_size = (batch_size + 1) // 2
            continue
        done = batch.stop
        if progress:
            progress(done, count)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def find_batch_size(model: nn.Module, image: Tensor, *, second_order: bool = False) -> int:
    """The largest sensible batch for gradients (or Hessian-vector products) in the memory that is free now.

    `image` is one image (1,...) on the model's device. A forward pass stores the activations of each image; a
    backward pass needs about as much again, and the graph of the gradient three times more.
    """
    largest = LARGEST_BATCH.get(image.device.type, 128)
    free = get_free_memory(image.device)
    if free is None:
        return largest
    needed = measure_activations(model, image) * (8 if second_order else 3) + 16 * image.numel() * image.element_size()
    fitting = int(0.5 * free / needed)
    if fitting < 1:
        raise make_memory_error(needed, free)
    return min(fitting, largest)


def measure_activations(model: nn.Module, image: Tensor) -> int:
    """The bytes that one forward pass stores for its backward pass, without the model's own tensors."""
    own = {tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with freeze_temporarily(model), torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        traced_log_probabilities(model, image)
    return sum(kept.values())


def get_free_memory(device: torch.device) -> int | None:
    """Free memory of the device in bytes, or None if it is unknown."""
    if device.type == "cuda":
        reserved_but_unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserved_but_unused
    if device.type != "cpu":
        return None
    candidates = [_linux_available(), _container_available()]
    known = [value for value in candidates if value is not None]
    return min(known) if known else _half_of_physical()


def make_memory_error(needed: int | None = None, free: int | None = None) -> UserError:
    amount = f": it needs about {needed / 2**20:.0f} MiB and {free / 2**20:.0f} MiB are free" if needed and free else ""
    return UserError(
        f"There is too little memory for even one image through this model{amount}; "
        "use a machine or device with more, or close other programs."
    )


def _linux_available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


CONTAINER = Path("/sys/fs/cgroup")


def _container_available() -> int | None:
    """What a container's limit leaves, which /proc/meminfo does not show; cached files can be dropped."""
    try:
        used = int((CONTAINER / "memory.current").read_text())
        facts = dict(line.split() for line in (CONTAINER / "memory.stat").read_text().splitlines())
        return int((CONTAINER / "memory.max").read_text()) - used + int(facts.get("inactive_file", 0))
    except (OSError, ValueError):
        return None


def _half_of_physical() -> int | None:
    if not hasattr(os, "sysconf"):  # Windows
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
