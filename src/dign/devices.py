"""Where computation happens, and the form in which images go there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dign.errors import UserError

if TYPE_CHECKING:
    from lightning_fabric import Fabric


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
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"The device '{name}' cannot be used here ({reason}): use --device cpu.") from error
    return device


def make_fabric(name: str, precision: str) -> Fabric:
    """Fabric for one device; precision 'auto' is bfloat16 on a GPU that has it."""
    device = pick_device(name)
    from lightning_fabric import Fabric  # takes seconds to import, and only training needs it

    if precision == "auto":
        precision = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "32"
    torch.backends.cudnn.deterministic = True
    return Fabric(
        accelerator=device.type,
        devices=1 if device.index is None else [device.index],
        precision="bf16-mixed" if precision == "bf16" else "32-true",
    )
