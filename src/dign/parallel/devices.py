"""Devices: which one computes, in which precision, and whether it can compile."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import torch

from dign.core.errors import UserError


def pick_device(name: str) -> torch.device:
    """Return the device called `name`, and make cuDNN deterministic.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    device = find_device(name)
    torch.backends.cudnn.deterministic = True
    return device


def find_device(name: str) -> torch.device:
    """Return the device called `name`.

    Args:
        name: "cpu", "cuda", "cuda:1"..., "mps" (an Apple GPU), or "auto": a CUDA GPU if there is one, else the
            CPU. An Apple GPU has to be asked for.

    Raises:
        UserError: There is no such device; the message lists those there are.

    >>> find_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:  # its message is a list of all that torch has ever run on
        raise _missing_device(name) from error
    if device.type in ("cuda", "mps") and str(device) not in list_devices() and (device.index or not _has(device.type)):
        raise _missing_device(name)
    if device.type == "cpu":
        if device.index:
            raise UserError("There is one CPU, whatever its cores: use the device 'cpu'.")
        device = torch.device("cpu")
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0].rstrip(".")
        raise UserError(f"The device '{name}' cannot be used here ({reason}): {_describe_choice()}.") from error
    return device


def list_devices() -> list[str]:
    """The devices of this machine that dign can use.

    >>> "cpu" in list_devices()
    True
    """
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if _has("cuda") else []
    return [*gpus, *(["mps"] if _has("mps") else []), "cpu"]


def _has(kind: str) -> bool:
    return torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available()


def _describe_choice() -> str:
    found = [f"'{name}' ({device_name(torch.device(name))})" if name != "cpu" else "'cpu'" for name in list_devices()]
    return f"this machine has {', '.join(found)}"


def _missing_device(name: str) -> UserError:
    return UserError(f"There is no device '{name}' here: {_describe_choice()}.")


def device_name(device: torch.device) -> str:
    """Name the processor, as far as results depend on it: "cpu", "mps", or the model of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def describe_device(precision: str, device: torch.device) -> dict[str, str]:
    """Describe the device and the precision that a run uses, for its record."""
    return {"device": device_name(device), "precision": resolve_precision(precision, device)}


def resolve_precision(precision: str, device: torch.device) -> str:
    """Resolve "auto", which is bfloat16 on a GPU that has it, else float32."""
    if precision != "auto":
        return precision
    return "bf16" if _has_bfloat16(device) else "32"


DTYPES = {"bf16": torch.bfloat16, "16": torch.float16}
"""The types that mixed precision computes in, by the name of the precision."""


def check_precision(precision: str, device: torch.device) -> None:
    """Raise a `UserError` if the device cannot compute in this precision, which `resolve_precision` gave."""
    if precision not in DTYPES:
        return
    if precision == "bf16" and device.type == "cuda" and not _has_bfloat16(device):
        raise UserError(f"{device_name(device)} does not compute in bfloat16: choose `precision=16` or `precision=32`.")
    try:
        with torch.autocast(device.type, dtype=DTYPES[precision]), torch.enable_grad():
            x = torch.ones(2, 8, 4, 4, device=device, requires_grad=True)
            torch.nn.functional.conv2d(x, torch.ones(8, 8, 3, 3, device=device)).sum().backward()
    except (RuntimeError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(
            f"The device '{device}' cannot compute in `precision={precision}` ({reason}): choose `precision=32`."
        ) from error


BFLOAT16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "avx10_2", "bf16", "sve_bf16")
"""What torch calls the instructions of a CPU, any of which makes bfloat16 fast."""


def warn_of_emulation(precision: str, device: torch.device) -> list[str]:
    """A warning if a CPU has to emulate bfloat16, which takes it several times as long as float32."""
    if precision != "bf16" or device.type != "cpu":
        return []
    capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in older torch
    if not capabilities or any(capabilities.get(name) for name in BFLOAT16_INSTRUCTIONS):
        return []
    return ['Slow: this CPU has no instructions for bfloat16 and emulates them. `precision="32"` is faster.']


def check_compiler(device: torch.device) -> None:
    """Raise a `UserError` if torch.compile lacks what it needs: a C++ compiler on a CPU, Triton and C on a GPU."""
    if device.type == "cuda" and not find_spec("triton"):
        raise UserError(
            "compile on a GPU needs Triton, which is not installed: pip install triton, or train without compile."
        )
    if device.type == "cuda" and sys.platform != "win32":  # its Triton brings a compiler along
        compilers = [os.environ["CC"]] if os.environ.get("CC") else ["gcc", "clang", "cc"]
        if not any(map(shutil.which, compilers)):
            raise UserError(
                f"compile needs the C compiler '{compilers[0]}', which is not installed: install it, or train "
                "without compile."
            )
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    compiler = os.environ.get("CXX", usual)
    if device.type == "cpu" and not shutil.which(compiler):
        raise UserError(
            f"compile needs the C++ compiler '{compiler}', which is not installed: install it, or train without "
            "compile."
        )


def _has_bfloat16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 natively; torch also says yes where it emulates it, slowly."""
    if device.type != "cuda":
        return False
    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
