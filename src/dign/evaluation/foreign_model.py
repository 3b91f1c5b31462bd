"""Models that no run folder holds: of any library, through a Python entry that makes one, or in a hub folder."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError, join_names
from dign.data.dataset import DataSet
from dign.data.names import hide_folder_path
from dign.evaluation.evaluate import Subject
from dign.methods import Standard
from dign.models import count_parameters
from dign.runs.checkpoints import load_weights
from dign.runs.classifier import open_classifier
from dign.runs.hub_config import HUB_PREFIX, hub_folder, read_hub_config

METHOD = "external"
"""What results files give as the method of a model that dign did not train."""


def make_external(entry: str) -> nn.Module:
    """The module that `MODULE:NAME` makes: NAME is a function without arguments, or the module itself.

    This imports MODULE, with the working directory on the path, and so runs its code: that is what is asked for.
    """
    module_name, _, name = entry.partition(":")
    if not module_name or not name:
        raise UserError(f"'{entry}' is not a Python entry: write MODULE:FUNCTION, as in my_module:make_model.")
    if module_name.endswith(".py"):
        raise UserError(f"'{module_name}' is a file: name its module, as in {Path(module_name).stem}:{name}.")
    place = os.getcwd()
    sys.path.insert(0, place)
    try:
        made = getattr(import_module(module_name), name)
        made = made if isinstance(made, nn.Module) else made()
    except (Exception, SystemExit) as error:  # a person's own code may fail in any way; what it says helps most
        raise UserError(f"{entry} cannot be used: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(place)
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
        logits: Tensor = getattr(output, "logits", output)
        return logits


def external_subject(entry: str, weights: str | Path | None, data: DataSet, label: str | None = None) -> Subject:
    """An external model, or `hub:DIR`, ready for `results_of`, its output checked against the classes of `data`."""
    if entry.startswith(HUB_PREFIX):
        if weights is not None:
            raise UserError(f"{entry} has weights of its own: leave out --weights.")
        return _hub_subject(entry, data, label)
    model: nn.Module = make_external(entry)
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
        "data": hide_folder_path(data.name),
        "seed": 0,
        "parameters": count_parameters(model),
    }
    return Subject(model, Standard().predict, about)


def _hub_subject(entry: str, data: DataSet, label: str | None) -> Subject:
    """A hub folder's model, which predicts as the method does that it was trained with."""
    classifier = open_classifier(entry)
    if classifier.classes != list(data.classes):
        raise UserError(
            f"{entry} knows the classes {join_names(classifier.classes)}, but {data.name} has "
            f"{join_names(data.classes)}."
        )
    if classifier.image_size != data.image_size:
        height, width = classifier.image_size
        hint = f": say --size {height}" if height == width else ""
        raise UserError(f"{entry} takes images of {height}x{width} pixels, and these have other sides{hint}.")
    about: dict[str, Any] = {
        "name": label or classifier.name,
        "method": classifier.method.key,
        "title": classifier.method.title,
        "model": read_hub_config(hub_folder(entry))["model"],
        "data": hide_folder_path(data.name),
        "seed": 0,
        "parameters": count_parameters(classifier.model),
    }
    return Subject(classifier.model, classifier.method.predict, about)


@torch.no_grad()
def _check_output(entry: str, model: nn.Module, data: DataSet) -> None:
    model.eval()
    try:
        where = next(chain(model.parameters(), model.buffers()), torch.empty(0)).device
        logits = model(torch.full((2, 3, *data.image_size), 0.5, device=where))
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
    if not bool(logits.isfinite().all()):
        raise UserError(
            f"{entry} gives logits that are not finite for a gray image: are its weights what they should be?"
        )
    if bool((logits >= 0).all()) and torch.allclose(logits.sum(1), torch.ones_like(logits[:, 0]), atol=1e-5):
        raise UserError(f"{entry} gives probabilities, where logits are wanted: leave out its softmax.")
