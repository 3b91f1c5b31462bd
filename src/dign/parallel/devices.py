"""Where computation happens, and the form in which images go there."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from dign.core.errors import UserError
from dign.parallel.launching import local_rank, processes
from dign.parallel.team import meet_after_restart

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from dign.runs.config import RunConfig


def as_float(images: Tensor, *, channels_last: bool = False) -> Tensor:
    """uint8 images as float in [0,1]."""
    x = images.float().div_(255)
    return x.contiguous(memory_format=torch.channels_last) if channels_last else x


def pick_device(name: str) -> torch.device:
    """The device called `name`; 'auto' is a GPU if there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.partition(":")[0] == "cuda" and not torch.cuda.is_available():
        raise UserError("There is no CUDA device here: use --device cpu.")
    try:
        device = torch.device(name)
    except RuntimeError as error:  # its message is a list of all that torch has ever run on
        raise UserError(f"There is no device called '{name}': use --device auto, cpu, cuda or cuda:1.") from error
    if device.type == "cpu":
        if device.index:
            raise UserError("There is one CPU, whatever its cores: use --device cpu.")
        device = torch.device("cpu")
    try:
        torch.zeros(1, device=device, dtype=torch.float64).item()  # which corruptions and sums need, and Apple's lack
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0].rstrip(".")
        raise UserError(f"The device '{name}' cannot be used here ({reason}): use --device cpu.") from error
    torch.backends.cudnn.deterministic = True
    return device


def device_name(device: torch.device) -> str:
    """The processor by its name, as far as results depend on it: cpu, or what the GPU is called."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def where_it_runs(config: RunConfig, device: torch.device) -> dict[str, str]:
    """What `device` and `precision` of a configuration have come to, for the run's record."""
    return {"device": device_name(device), "precision": resolved_precision(config.precision, device)}


def resolved_precision(precision: str, device: torch.device) -> str:
    """'auto' is bfloat16 on a GPU that has it."""
    if precision != "auto":
        return precision
    return "bf16" if _has_bfloat16(device) else "32"


def check_compiler(device: torch.device) -> None:
    """torch.compile writes C++ on a CPU, Triton on a GPU: say before a run begins that nothing here compiles it."""
    if device.type == "cuda" and not find_spec("triton"):
        raise UserError(
            "--compile on a GPU needs Triton (pip install triton), which is not here: go without --compile."
        )
    if device.type == "cuda" and sys.platform != "win32":  # its Triton brings a compiler along
        compilers = [os.environ["CC"]] if os.environ.get("CC") else ["gcc", "clang", "cc"]
        if not any(map(shutil.which, compilers)):
            raise UserError(
                f"There is no C compiler '{compilers[0]}' for --compile: install it, or go without --compile."
            )
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    compiler = os.environ.get("CXX", usual)
    if device.type == "cpu" and not shutil.which(compiler):
        raise UserError(f"There is no C++ compiler '{compiler}' for --compile: install it, or go without --compile.")


def make_fabric(name: str, precision: str, devices: int = 1, nodes: int = 1) -> Fabric:
    """Fabric for `devices` processes on each of `nodes` nodes, or for as many as a launcher started; all are launched.

    precision 'auto' is bfloat16 on a GPU that has it.
    """
    devices, nodes = processes(devices, nodes)
    several = devices * nodes > 1
    device = _own_device(name, devices) if several else pick_device(name)
    with _torchmetrics_unread():
        from lightning_fabric import Fabric  # takes seconds to import, and only training needs it
        from lightning_fabric.strategies import DDPStrategy

    precision = resolved_precision(precision, device)
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
        meet_after_restart(device)
        fabric.launch()
    return fabric


def _has_bfloat16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 itself; torch also says yes where it imitates that, slowly."""
    if device.type != "cuda":
        return False
    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)


@contextmanager
def _torchmetrics_unread() -> Iterator[None]:
    """Tell Fabric which torchmetrics there is, if any, without importing it.

    Fabric imports it for its version number alone; with it come SciPy and, where they are installed, Transformers:
    twice the time of all else that a training imports.
    """
    name = "torchmetrics"
    try:
        there = version(name)
    except PackageNotFoundError:
        there = None
    if there is None or name in sys.modules:
        yield
        return
    sys.modules[name] = stand_in = ModuleType(name)
    stand_in.__dict__["__version__"] = there
    try:
        yield
    finally:
        del sys.modules[name]


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
