"""Models that are not in a run folder: of any library, made by a Python entry, or in a hub folder."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from torch import nn

from dign.core.errors import UserError, join_names
from dign.data.dataset import DataSet
from dign.data.names import hide_folder_path
from dign.evaluation.info import EXTERNAL
from dign.evaluation.predictors import check_logits, predict_by_logits
from dign.evaluation.result_info import RunInfo
from dign.evaluation.subjects import Subject
from dign.models import count_parameters
from dign.runs.checkpoints import load_weights
from dign.runs.classifier import load_model
from dign.runs.hub_config import HUB_PREFIX, hub_folder, read_hub_config


def make_foreign_model(entry: str) -> nn.Module:
    """The module that a Python entry makes. This imports MODULE, and so runs its code.

    Args:
        entry: "MODULE:NAME", where NAME is a function without arguments, or the module itself. MODULE is looked for
            in the working directory and among installed packages.

    Raises:
        UserError: The entry cannot be imported, or does not give an `nn.Module`.
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
    except (Exception, SystemExit) as error:  # the user's code may fail in any way
        raise UserError(f"{entry} cannot be used: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(place)
    if not isinstance(made, nn.Module):
        raise UserError(f"{entry} gave a {type(made).__name__}, where a torch.nn.Module is expected.")
    return made


def foreign_subject(entry: str, weights: str | Path | None, data: DataSet, label: str | None = None) -> Subject:
    """A model of any library, or `hub:DIR`, ready for `evaluate_subject`.

    Args:
        entry: "MODULE:NAME", or "hub:DIR".
        weights: A safetensors file to load into the module; not for a hub folder, which has its own.
        data: The data set; the model's output must have as many classes.
        label: Name in tables; by default the file's name, or the entry.

    Raises:
        UserError: The model cannot be made, or does not give logits for these images and classes.
    """
    if entry.startswith(HUB_PREFIX):
        if weights is not None:
            raise UserError(f"{entry} has weights of its own: leave out weights.")
        return _hub_subject(entry, data, label)
    model = make_foreign_model(entry)
    if weights is not None:
        load_weights(Path(weights), model)
    check_logits(entry, model, (3, *data.image_size), len(data.classes), data.name)
    name = label or (Path(weights).stem if weights else entry)
    about = RunInfo(name, EXTERNAL, name, entry, hide_folder_path(data.name), 0, count_parameters(model))
    return Subject(model, predict_by_logits, about)


def _hub_subject(entry: str, data: DataSet, label: str | None) -> Subject:
    """A hub folder's model, which predicts as the method that it was trained with."""
    classifier = load_model(entry)
    if classifier.classes != list(data.classes):
        raise UserError(
            f"{entry} knows the classes {join_names(classifier.classes)}, but {data.name} has "
            f"{join_names(data.classes)}."
        )
    if classifier.image_size != data.image_size:
        height, width = classifier.image_size
        hint = f": load the data with size {height}" if height == width else ""
        raise UserError(f"{entry} takes images of {height}x{width} pixels, and these have other sides{hint}.")
    about = RunInfo(
        name=label or classifier.name,
        method=classifier.method.key,
        title=classifier.method.title,
        model=read_hub_config(hub_folder(entry))["model"],
        data=hide_folder_path(data.name),
        parameters=count_parameters(classifier.model),
    )
    return Subject(classifier.model, classifier.method.predict, about)
