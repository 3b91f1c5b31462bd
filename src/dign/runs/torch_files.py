"""Weights in files of `torch.save`, read without running anything that is in them."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dign.core.errors import UserError, summarize_error

TORCH_FILES = (".pt", ".pth", ".bin", ".ckpt")
"""Endings of the files that `torch.save` writes."""
WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "module", "net")
"""Where training scripts put the weights inside what they save."""
PREFIXES = ("module.", "_orig_mod.", "model.")
"""What DistributedDataParallel, `torch.compile` and Lightning put before every name."""
SAFE_SINCE = (2, 6)
"""Earlier releases of torch could be made to run code by a file, even with `weights_only` (CVE-2025-32434)."""


def read_torch_file(path: Path) -> dict[str, Tensor]:
    """All tensors of a state dict that `torch.save` wrote, by name.

    The file is opened with `torch.load(weights_only=True)`, which makes tensors and plain containers and nothing else.
    The state dict may be inside one of `WRAPPERS`; `PREFIXES` that all names share are removed.

    Raises:
        UserError: There is no such file, it wants more than tensors, or there is no state dict in it.
    """
    if _torch_version() < SAFE_SINCE:
        raise UserError(
            f"{path} cannot be opened safely with torch {torch.__version__} (CVE-2025-32434): install torch 2.6 or "
            "newer, or save the weights as safetensors."
        )
    found = _unwrap(_load(path))
    if found is None:
        raise UserError(
            f"{path} has no weights in it: expected what torch.save(model.state_dict(), file) writes, or a dictionary "
            f"with that under one of {', '.join(WRAPPERS)}."
        )
    return _strip_prefixes(found)


def _torch_version() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", torch.__version__)[:2]))


def _load(path: Path) -> Any:
    alone = "save the weights alone with torch.save(model.state_dict(), 'weights.pth')."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they warn of is an error below
            return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}.") from error
    except Exception as error:  # a damaged file fails in many ways
        if "TorchScript" in str(error):
            raise UserError(f"{path} is a TorchScript archive, a program and not weights: {alone}") from error
        wanted = re.search(r"unsupported (?:global: )?GLOBAL (\S+)", str(error), re.IGNORECASE)
        if wanted:
            raise UserError(
                f"{path} wants more than tensors when it is opened ({wanted[1]}), which could run anything: {alone}"
            ) from error
        reason = "" if isinstance(error, pickle.UnpicklingError) else f" ({summarize_error(error).rstrip('.')[:200]})"
        raise UserError(f"{path} is not a file of torch.save, or is damaged{reason}: {alone}") from error


def _unwrap(found: Any, depth: int = 3) -> dict[str, Tensor] | None:
    if not isinstance(found, Mapping) or depth == 0:
        return None
    tensors = {name: value for name, value in found.items() if isinstance(name, str) and isinstance(value, Tensor)}
    if tensors and len(tensors) == len(found):
        return tensors
    for key in WRAPPERS:
        inner = _unwrap(found.get(key), depth - 1)
        if inner is not None:
            return inner
    return None


def _strip_prefixes(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    for prefix in PREFIXES * 2:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors
