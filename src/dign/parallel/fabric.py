"""Lightning Fabric for one process or several: made, launched, and joined."""

from __future__ import annotations

import atexit
import logging
import os
from inspect import signature
from typing import TYPE_CHECKING

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from dign.core.errors import UserError
from dign.parallel.devices import pick_device, resolve_precision
from dign.parallel.launching import local_rank, resolve_process_counts
from dign.parallel.team import SINGLE_PROCESS, Team

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def make_fabric(name: str, precision: str, devices: int = 1, nodes: int = 1) -> Fabric:
    """Fabric for `devices` processes on each of `nodes` nodes, or for as many as a launcher started; all are launched.

    precision 'auto' is bfloat16 on a GPU that has it.
    """
    devices, nodes = resolve_process_counts(devices, nodes)
    several = devices * nodes > 1
    device = _own_device(name, devices) if several else pick_device(name)
    from lightning_fabric import Fabric  # takes seconds to import, and only training needs it
    from lightning_fabric.strategies import DDPStrategy

    precision = resolve_precision(precision, device)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # the first process has its own way to say things
    try:
        fabric = Fabric(
            accelerator=device.type,
            devices=devices if several or device.index is None else [device.index],
            num_nodes=nodes,
            strategy=DDPStrategy(**_without_buffers()) if several else "auto",
            precision="bf16-mixed" if precision == "bf16" else "32-true",
        )
    except (ValueError, RuntimeError) as error:  # what Fabric does not like about SLURM's variables
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"The {devices * nodes} processes cannot work together: {reason}") from error
    if several:
        reconnect_after_restart(device)
        fabric.launch()
    return fabric


def join_processes(device: str, devices: int, nodes: int) -> Team:
    """Start, or find, the processes that were asked for. Without several, nothing is started or imported."""
    if resolve_process_counts(devices, nodes) == (1, 1):
        return SINGLE_PROCESS
    return Team.from_fabric(make_fabric(device, "32", devices, nodes))


def reconnect_after_restart(device: torch.device) -> None:
    """Connect processes that torchrun has started again, before Fabric does.

    Torchrun keeps the store in which processes leave their addresses, and with it those of the ones that have died
    (torch 2.13): each attempt has to look in a place of its own.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if attempt == "0" or distributed.is_initialized():
        return
    store, rank, count = next(distributed.rendezvous("env://"))
    place = distributed.PrefixStore(f"attempt {attempt}", store)
    backend, own = ("nccl", device) if device.type == "cuda" else ("gloo", None)
    distributed.init_process_group(backend, store=place, rank=rank, world_size=count, device_id=own)
    atexit.register(distributed.destroy_process_group)


def _without_buffers() -> dict[str, bool]:
    """The option that keeps DDP from sharing batch norm's statistics before every pass.

    They are shared in `dign.parallel.batch_norm`: here a method's second pass would change them under its first.
    """
    known = signature(DistributedDataParallel).parameters
    return {"forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers": False}


def _check_cores(processes: int) -> None:
    """Some more processes than cores are slow; many more bring a machine to a stand, before any of them can say so."""
    cores = os.cpu_count() or 1
    if processes > 4 * cores:
        raise UserError(
            f"{processes} processes are too many for the {cores} core{'s' if cores > 1 else ''} of this machine: "
            f"say --devices {cores}."
        )


def _own_device(name: str, devices: int) -> torch.device:
    """The device of this one of several processes."""
    kind, _, index = name.partition(":")
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if index or kind not in ("cuda", "cpu"):
        raise UserError(f"--device {name} is one device: with several processes use --device cuda or --device cpu.")
    if kind == "cpu":
        _check_cores(devices)
        return pick_device("cpu")
    if torch.cuda.device_count() < devices:
        raise UserError(f"{devices} processes need as many GPUs, and there are {torch.cuda.device_count()} here.")
    return pick_device(f"cuda:{local_rank()}")
