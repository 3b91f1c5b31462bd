"""Weights and training states as safetensors: one file each, written atomically, never unpickled."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from dign.core.errors import UserError
from dign.core.files import replace_file
from dign.runs.torch_files import TORCH_FILES, read_torch_file

PICKLES = (*TORCH_FILES, ".pkl")
"""Endings of files that may be pickles."""


def save_weights(path: Path, model: nn.Module, **metadata: object) -> None:
    """Write a model's parameters and buffers."""
    _save(path, dict(model.state_dict()), metadata)


def load_weights(path: Path, model: nn.Module) -> None:
    """Read weights into a model: all of them, or none and a `UserError` that names what does not fit."""
    tensors = read_tensors(path)
    _check_fit(path, tensors, model.state_dict())
    model.load_state_dict(tensors)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, or of a state dict that `torch.save` wrote, by name."""
    return read_torch_file(path) if path.suffix.lower() in TORCH_FILES else _read(path)[0]


def digest_tensors(tensors: dict[str, Tensor]) -> str:
    """The SHA-256 of tensors and their names, whatever their order and device."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        sha.update(name.encode())
        sha.update(tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


class SavedState(NamedTuple):
    """What a checkpoint holds besides weights and the optimizer's state."""

    metadata: dict[str, str]
    unlogged: dict[str, Tensor]
    average: dict[str, Tensor]


def save_state(
    path: Path,
    model: nn.Module,
    optimizer: Optimizer,
    unlogged: dict[str, Tensor],
    average: dict[str, Tensor] | None = None,
    **metadata: object,
) -> None:
    """Write all that resuming needs: weights, their average if there is one, the optimizer's state, the steps not
    logged yet, and metadata."""
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer/{names[parameter]}/{key}"] = value
    tensors |= {f"pending/{name}": tensor for name, tensor in unlogged.items()}
    tensors |= {f"average/{name}": tensor for name, tensor in (average or {}).items()}
    _save(path, tensors, metadata)


def load_state(path: Path, model: nn.Module, optimizer: Optimizer) -> SavedState:
    """Restore what `save_state` wrote of the model and the optimizer; returns the rest of it."""
    tensors, metadata = _read(path)
    weights = _strip_prefix("model/", tensors)
    _check_fit(path, weights, model.state_dict())
    states = {name: _strip_prefix(f"optimizer/{name}/", tensors) for name, _ in model.named_parameters()}
    _check_states(path, states, dict(model.named_parameters()))
    _check_known(path, tensors, ["model/", "pending/", "average/", *(f"optimizer/{name}/" for name in states)])
    model.load_state_dict(weights)
    for name, parameter in model.named_parameters():
        for key, value in states[name].items():
            like = torch.empty_like(parameter if value.shape == parameter.shape else value, device=parameter.device)
            optimizer.state[parameter][key] = like.copy_(value)
    return SavedState(metadata, _strip_prefix("pending/", tensors), _strip_prefix("average/", tensors))


def _check_states(path: Path, states: dict[str, dict[str, Tensor]], parameters: dict[str, nn.Parameter]) -> None:
    """An optimizer's state of a parameter is one number or has the parameter's shape."""
    for name, state in states.items():
        for key, value in state.items():
            if value.numel() != 1 and value.shape != parameters[name].shape:
                raise UserError(
                    f"{path} belongs to another model: the optimizer's '{key}' of '{name}' has shape "
                    f"{tuple(value.shape)}, the model expects {tuple(parameters[name].shape)}."
                )
            if not bool(value.isfinite().all()):
                raise UserError(f"{path} is damaged: the optimizer's '{key}' of '{name}' is not finite.")


def _check_known(path: Path, tensors: dict[str, Tensor], prefixes: list[str]) -> None:
    unknown = [name for name in tensors if not name.startswith(tuple(prefixes))]
    if unknown:
        raise UserError(f"{path} belongs to another model: it has '{unknown[0]}', which the run lacks.")


def _strip_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _save(path: Path, tensors: dict[str, Tensor], metadata: dict[str, object]) -> None:
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replace_file(path) as partial:
        try:
            save_file(plain, partial, metadata={key: str(value) for key, value in metadata.items()})
        except SafetensorError as error:  # safetensors hides that the disk is full: raise it as other writers do
            number = re.search(r"os error (\d+)", str(error))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if path.suffix.lower() in PICKLES:
        raise UserError(
            f"{path} may be a pickle, which could run anything when opened: save the weights with "
            "safetensors.torch.save_file(model.state_dict(), 'model.safetensors')."
        )
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}.") from error
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is not a readable safetensors file: {error}.") from error


def _check_fit(path: Path, found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    if missing or extra:
        what = f"has no '{missing[0]}'" if missing else f"has '{extra[0]}', which the model lacks"
        raise UserError(
            f"{path} belongs to another model: it {what} ({len(missing)} tensors missing, {len(extra)} too many)."
        )
    for name, tensor in found.items():
        if tensor.shape != wanted[name].shape:
            raise UserError(
                f"{path} belongs to another model: '{name}' has shape {tuple(tensor.shape)}, "
                f"the model expects {tuple(wanted[name].shape)}."
            )
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise UserError(f"{path} is damaged: '{name}' holds values that are not finite.")
