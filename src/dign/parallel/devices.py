"""Where computation happens, and the form in which images go there."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec

import torch

from dign.core.errors import UserError


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


def describe_device(precision: str, device: torch.device) -> dict[str, str]:
    """What `device` and `precision` of a configuration have come to, for the run's record."""
    return {"device": device_name(device), "precision": resolve_precision(precision, device)}


def resolve_precision(precision: str, device: torch.device) -> str:
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


def _has_bfloat16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 itself; torch also says yes where it imitates that, slowly."""
    if device.type != "cuda":
        return False
    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
