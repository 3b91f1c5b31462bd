"""Where tensors are: copies to a device that the host does not wait for, and devices without float64."""

from __future__ import annotations

import torch
from torch import Tensor


def copy_to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on `device`; the tensor itself if it is there already.

    A plain copy from ordinary memory to a GPU waits until everything before it is done. From pinned memory it does not.

    >>> copy_to_device(torch.arange(3), torch.device("cpu"))
    tensor([0, 1, 2])
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def place_for_float64(device: torch.device | str) -> torch.device:
    """The device itself where it computes in float64; the CPU for an Apple GPU (mps), which does not.

    >>> place_for_float64("mps"), place_for_float64("cuda:1")
    (device(type='cpu'), device(type='cuda', index=1))
    """
    device = torch.device(device)
    return torch.device("cpu") if device.type == "mps" else device
