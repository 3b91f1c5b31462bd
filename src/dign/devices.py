"""Where computation happens, and the form in which images go there."""

import torch
from lightning_fabric import Fabric
from torch import Tensor

from dign.errors import UserError


def as_float(images: Tensor, *, channels_last: bool = False) -> Tensor:
    """uint8 images as float in [0,1]."""
    x = images.float().div_(255)
    return x.contiguous(memory_format=torch.channels_last) if channels_last else x


def make_fabric(device: str, precision: str) -> Fabric:
    """Fabric for one device: 'auto' takes a GPU if there is one, and bfloat16 where that GPU has it."""
    kind, _, index = device.partition(":")
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda" and not torch.cuda.is_available():
        raise UserError("There is no CUDA device here: use --device cpu.")
    if precision == "auto":
        precision = "bf16" if kind == "cuda" and torch.cuda.is_bf16_supported() else "32"
    torch.backends.cudnn.deterministic = True
    try:
        return Fabric(
            accelerator=kind,
            devices=[int(index)] if index else 1,
            precision="bf16-mixed" if precision == "bf16" else "32-true",
        )
    except (ValueError, RuntimeError) as error:
        raise UserError(f"The device '{device}' cannot be used: {error}") from error
