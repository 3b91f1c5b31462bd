"""Lightning Fabric for one process or several: create it, launch it, join the processes."""

from __future__ import annotations

import atexit
import logging
import os
from datetime import timedelta
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from dign.core.errors import UserError
from dign.parallel.devices import check_precision, pick_device, resolve_precision
from dign.parallel.launching import local_rank, resolve_process_counts
from dign.parallel.team import PATIENCE, SINGLE_PROCESS, Team

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def make_fabric(name: str, precision: str, devices: int = 1, nodes: int = 1, *, patience: float = PATIENCE) -> Fabric:
    """Create Fabric and launch its processes.

    Args:
        name: The device, as for `pick_device`; with several processes "auto", "cpu" or "cuda".
        precision: "32", "bf16", "16", or "auto": bfloat16 on a GPU that has it.
        devices: Processes on each node; torchrun's number, where torchrun started this process.
        nodes: Number of nodes.
        patience: Seconds that processes wait for one that does not answer.

    Raises:
        UserError: There are too few devices, they lack the precision, or the processes cannot work together.
    """
    devices, nodes = resolve_process_counts(devices, nodes)
    several = devices * nodes > 1
    device = _pick_local_device(name, devices) if several else pick_device(name)
    from lightning_fabric import Fabric  # takes seconds to import, and only training needs it
    from lightning_fabric.strategies.ddp import DDPStrategy

    precision = resolve_precision(precision, device)
    check_precision(precision, device)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # rank zero reports by itself
    try:
        fabric = Fabric(
            accelerator=device.type,
            devices=devices if several or device.index is None else [device.index],
            num_nodes=nodes,
            strategy=DDPStrategy(timeout=timedelta(seconds=patience), **_without_buffers()) if several else "auto",
            **_precision(precision, device),
        )
    except (ValueError, RuntimeError) as error:  # SLURM's variables may not suit Fabric
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"The {devices * nodes} processes cannot work together: {reason}") from error
    if several:
        reconnect_after_restart(device, patience)
        fabric.launch()
    return fabric


def _precision(precision: str, device: torch.device) -> dict[str, Any]:
    """Fabric's options: float16 needs a plugin, since Fabric has a gradient scaler for GPUs alone."""
    if precision != "16":
        return {"precision": "bf16-mixed" if precision == "bf16" else "32-true"}
    from lightning_fabric.plugins import MixedPrecision

    return {"plugins": MixedPrecision("16-mixed", device.type, torch.amp.GradScaler(device.type))}


def join_processes(device: str, devices: int, nodes: int) -> Team:
    """Join the processes that the user or a launcher asked for; for one process nothing is imported."""
    if resolve_process_counts(devices, nodes) == (1, 1):
        return SINGLE_PROCESS
    return Team.from_fabric(make_fabric(device, "32", devices, nodes))


def reconnect_after_restart(device: torch.device, patience: float = PATIENCE) -> None:
    """Connect processes that torchrun has restarted, before Fabric does.

    Torchrun keeps the store with the addresses of the processes, and with it those of dead ones (torch 2.13): each
    attempt needs a prefix of its own.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if attempt == "0" or distributed.is_initialized():
        return
    store, rank, world_size = next(rendezvous("env://"))
    backend, device_id = ("nccl", device) if device.type == "cuda" else ("gloo", None)
    distributed.init_process_group(
        backend,
        store=PrefixStore(f"attempt {attempt}", store),
        rank=rank,
        world_size=world_size,
        device_id=device_id,
        timeout=timedelta(seconds=patience),
    )
    atexit.register(distributed.destroy_process_group)


def _without_buffers() -> dict[str, Any]:
    """Return the option that keeps DDP from broadcasting batch norm's statistics before every pass.

    `dign.parallel.batch_norm` averages them: here a method's second pass would change them under its first.
    """
    known = signature(DistributedDataParallel).parameters
    return {"forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers": False}


def _check_cores(processes: int) -> None:
    """Refuse many more processes than cores: they would bring the machine to a halt before they could report it."""
    cores = os.cpu_count() or 1
    if processes > 4 * cores:
        raise UserError(
            f"{processes} processes are too many for the {cores} core{'s' if cores > 1 else ''} of this machine: "
            f"use {cores}."
        )


def _pick_local_device(name: str, devices: int) -> torch.device:
    """Return the device of this process, one of several."""
    kind, _, index = name.partition(":")
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if index or kind not in ("cuda", "cpu"):
        raise UserError(f"The device '{name}' is for one process: with several use 'cuda' or 'cpu'.")
    if kind == "cpu":
        _check_cores(devices)
        return pick_device("cpu")
    if torch.cuda.device_count() < devices:
        raise UserError(f"{devices} processes need as many GPUs, and there are {torch.cuda.device_count()} here.")
    return pick_device(f"cuda:{local_rank()}")
