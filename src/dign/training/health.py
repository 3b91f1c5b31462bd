"""Is the training well? Losses that are not finite or not below guessing, steps that wait, memory that is too small."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from dign.core.errors import UserError, is_out_of_memory
from dign.data.crop_batches import count_workers
from dign.parallel.devices import describe_device, device_name
from dign.runs.config import RunConfig
from dign.runs.folder import Run
from dign.training.step_log import Step

DIVERGING = 2.0
"""Times the loss of guessing from which on a loss is not that of a model that learns."""
MOST_WAITING = 0.05
"""Share of the time that steps may wait for pictures before the user is told."""


class Diverged(UserError):
    """The loss, a weight or a statistic of a batch norm is no longer a finite number."""


def check_finite(steps: Sequence[Step], model: nn.Module, run: Run) -> None:
    """Raise at the first step whose loss is not finite; called before anything is saved."""
    losses = torch.stack([step.loss for step in steps]).tolist() if steps else []
    for step, loss in zip(steps, losses, strict=True):
        if not math.isfinite(loss):
            terms = ", ".join(f"{name} {value.item():.4g}" for name, value in step.terms.items())
            raise Diverged(f"The loss is not finite at step {step.number} ({terms}); {_suggest_recovery(run)}")
    tensors = [tensor.detach() for tensor in (*model.parameters(), *model.buffers()) if tensor.is_floating_point()]
    if not bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all()):
        when = f"after step {steps[-1].number}" if steps else "when training starts"
        raise Diverged(f"A weight or a statistic of a batch norm is not finite {when}; {_suggest_recovery(run)}")


def _suggest_recovery(run: Run) -> str:
    if run.checkpoint.exists():
        state = f"the last good checkpoint is {run.checkpoint}"
    else:
        state = f"no checkpoint was written yet, so remove {run.path} and start again"
    return f"{state}. Try a smaller `lr` than {run.config.lr:g}."


def note_divergence(terms: Mapping[str, float], done: int, classes: int, lr: float) -> list[str]:
    """A note if a cross-entropy is far above that of guessing; to be asked when the first steps are long over."""
    guessing = math.log(classes)
    lowest = min((value for name, value in terms.items() if "cross_entropy" in name), default=0.0)
    if lowest < DIVERGING * guessing:
        return []
    return [
        f"The loss is {lowest:.1f} after {done} steps, where guessing among {classes} classes has {guessing:.2f}: "
        f"training diverges. Stop it, and try a smaller `lr` than {lr:g}."
    ]


def note_chance_level(losses: Sequence[float | None], classes: int, lr: float) -> list[str]:
    """A note if neither the last training loss, which comes first, nor that of validation is below guessing."""
    guessing = math.log(classes)
    if any(loss is None or loss < guessing for loss in losses):
        return []
    return [
        f"The loss ended at {losses[0]:.2f}, which is not below that of guessing among {classes} classes "
        f"({guessing:.2f}): the model learned nothing, or training diverged. Try a smaller `lr` than {lr:g}; if the "
        "loss was still falling, train for more `epochs`."
    ]


def note_waiting(waited: float, seconds: float, config: RunConfig) -> list[str]:
    """A note if the steps waited for pictures for more than a twentieth of the time."""
    if waited <= MOST_WAITING * seconds or waited < 1:
        return []
    return [
        f"The steps waited for pictures {100 * waited / seconds:.0f} % of the time: more `workers` than "
        f"{count_workers(config.workers, config.devices)} may decode them faster, and smaller files do."
    ]


def note_move(run: Run, config: RunConfig, device: torch.device) -> list[str]:
    """What differs from the device that the run was started on, if it is resumed elsewhere."""
    before, here = run.info.get("machine", {}), describe_device(config.precision, device)
    return [
        f"This run was started with {name} {before[name]} and is resumed with {value}: "
        "its weights will differ from those of an uninterrupted run."
        for name, value in here.items()
        if name in before and before[name] != value
    ]


@contextmanager
def explain_out_of_memory(run: Run, batch_size: int, device: torch.device) -> Iterator[None]:
    """Say which batch size to try where the memory of the device is too small for a step."""
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        parts = 2 * run.config.accumulate
        state = f" The last checkpoint is {run.checkpoint}." if run.checkpoint.exists() else ""
        raise UserError(
            f"The memory of {device_name(device)} is too small for a step of {batch_size} images: start a new run with "
            f"`batch_size={max(1, batch_size // 2)}`, or keep the batch and let it pass in {parts} parts with "
            f"`accumulate={parts}`.{state}"
        ) from error
