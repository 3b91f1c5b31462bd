"""The mode in which a GPU is imagined: the host's tensors are real, the device's have everything but values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten


class Waits(RuntimeError):
    """The host would wait for the device."""


class WrongDevice(RuntimeError):
    """A generator, a precision or a tensor that the device cannot use."""


allowed = False
"""Whether the host may wait just now: while a model is built, and when tables are made for the first time."""


@contextmanager
def waiting_allowed() -> Iterator[None]:
    global allowed
    before, allowed = allowed, True
    try:
        yield
    finally:
        allowed = before


class ImaginedDevice(FakeTensorMode):
    """Tensors of any device but the CPU are fake, those of the CPU are real.

    It raises where an operation mixes devices, where the host would wait for the device (what depends on values, and
    copies that are not asynchronous from pinned memory), where a generator is on another device than the numbers it
    draws, and for float64 on `mps`.
    """

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        wanted = kwargs.get("device")
        imagined = [leaf for leaf in leaves if isinstance(leaf, FakeTensor)]
        to_device = wanted is not None and torch.device(wanted).type not in ("cpu", "meta")
        if not imagined and not to_device:
            return func(*args, **kwargs)
        self._check_generator(leaves, wanted, imagined)
        if func is aten._to_copy.default and wanted is not None:
            self._check_copy(args[0], torch.device(wanted), kwargs.get("non_blocking", False))
        if func is aten.copy_.default:
            blocking = not (len(args) > 2 and args[2]) and not kwargs.get("non_blocking")
            self._check_copy(args[1], args[0].device, not blocking)
        if to_device and func is aten._to_copy.default and args[0].layout is torch.sparse_coo:
            return self._imagine_dense(args[0], wanted)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        for leaf in tree_leaves(result):
            if (
                isinstance(leaf, Tensor)
                and leaf.device.type == "mps"
                and leaf.dtype in (torch.float64, torch.complex128)
            ):
                raise WrongDevice(f"float64 on mps, by {func}")
        return result

    def _imagine_dense(self, matrix: Tensor, device: Any) -> Tensor:
        """Fake tensors cannot be sparse: a dense one, which takes no memory either, is multiplied alike."""
        with self:
            return torch.empty(matrix.shape, dtype=matrix.dtype, device=device)

    @staticmethod
    def _check_generator(leaves: list[Any], wanted: Any, imagined: list[Tensor]) -> None:
        device = torch.device(wanted) if wanted is not None else imagined[0].device
        for leaf in leaves:
            if isinstance(leaf, torch.Generator) and leaf.device.type != device.type:
                raise WrongDevice(f"a generator on {leaf.device} draws for {device}")

    @staticmethod
    def _check_copy(source: Tensor, target: torch.device, non_blocking: bool) -> None:
        if allowed or source.device.type == target.type or (source.dim() == 0 and not isinstance(source, FakeTensor)):
            return  # a number of the host is an argument of the kernel
        if target.type == "cpu":
            raise Waits(f"copies {tuple(source.shape)} to the host")
        if target.type == "cuda" and not non_blocking:
            raise Waits(f"copies {tuple(source.shape)} to the device and waits until it is there")


class NoLiterals(TorchFunctionMode):
    """`torch.tensor([...], device="cuda")` copies from ordinary memory, and waits; no dispatcher sees it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor) and not allowed and not isinstance(args[0], Tensor):
            device = torch.device(kwargs.get("device") or "cpu")
            if device.type == "cuda":
                raise Waits(f"{func.__name__} of host values on {device}")
        return func(*args, **kwargs)
