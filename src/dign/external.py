"""Models of any library: a Python entry that makes one, and a safetensors file with its weights."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dign.checkpoints import load_weights
from dign.data.base import DataSet
from dign.errors import UserError
from dign.evaluate import Subject
from dign.methods import Standard
from dign.models import count_parameters

METHOD = "external"
"""What results files give as the method of a model that dign did not train."""


def make_external(entry: str) -> nn.Module:
    """The module that `MODULE:NAME` makes: NAME is a function without arguments, or the module itself.

    This imports MODULE, with the working directory on the path, and so runs its code: that is what is asked for.
    """
    module_name, _, name = entry.partition(":")
    if not module_name or not name:
        raise UserError(f"'{entry}' is not a Python entry: write MODULE:FUNCTION, as in my_module:make_model.")
    sys.path.insert(0, os.getcwd())
    try:
        made = getattr(import_module(module_name), name)
        made = made if isinstance(made, nn.Module) else made()
    except Exception as error:  # a person's own code may fail in any way; what it says helps most
        raise UserError(f"{entry} cannot be used: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(os.getcwd())
    if not isinstance(made, nn.Module):
        raise UserError(f"{entry} gave a {type(made).__name__}, where a torch.nn.Module is wanted.")
    return made


class LogitsOf(nn.Module):
    """A module whose output may be an object with `logits`, as those of Hugging Face have."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        output = self.inner(images)
        return getattr(output, "logits", output)


def external_subject(entry: str, weights: str | Path | None, data: DataSet, label: str | None = None) -> Subject:
    """An external model, ready for `results_of`, its output checked against the classes of `data`."""
    model = make_external(entry)
    if weights is not None:
        if Path(weights).suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl"):
            raise UserError(
                f"{weights} may be a pickle, which could run anything when opened: save the weights with "
                "safetensors.torch.save_file(model.state_dict(), 'model.safetensors')."
            )
        load_weights(Path(weights), model)
    model = LogitsOf(model)
    _check_output(entry, model, data)
    name = label or (Path(weights).stem if weights else entry)
    about: dict[str, Any] = {
        "name": name,
        "method": METHOD,
        "title": name,
        "model": entry,
        "data": data.name,
        "seed": 0,
        "parameters": count_parameters(model),
    }
    return Subject(model, Standard().predict, about)


@torch.no_grad()
def _check_output(entry: str, model: nn.Module, data: DataSet) -> None:
    model.eval()
    try:
        logits = model(torch.full((2, 3, *data.image_size), 0.5))
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise UserError(
            f"{entry} fails on images of shape (2, 3, {data.image_size[0]}, {data.image_size[1]}): {reason}"
        ) from error
    if not isinstance(logits, Tensor) or logits.shape != (2, len(data.classes)):
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise UserError(
            f"{entry} must give logits (N, {len(data.classes)}) for the {len(data.classes)} classes of {data.name}, "
            f"but gives {shape} for two images."
        )
