"""Models that are not in a run folder: of any library, made by a Python entry, or in a hub folder."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dign.core.errors import UserError, join_names
from dign.data.dataset import DataSet
from dign.data.framing import MIDDLE, Framing
from dign.data.names import hide_folder_path, split_prefix
from dign.evaluation.info import EXTERNAL
from dign.evaluation.predictors import check_logits, predict_by_logits
from dign.evaluation.result_info import RunInfo
from dign.evaluation.subjects import Subject
from dign.models import count_parameters
from dign.runs.classifier import load_model
from dign.runs.foreign import ForeignModel
from dign.runs.held_out import find_seen
from dign.runs.hub_config import hub_folder, read_hub_config


def foreign_subject(
    model: ForeignModel, entry: str, data: DataSet, label: str | None = None, framing: Framing = MIDDLE
) -> Subject:
    """A model of any library, ready for `evaluate_subject`.

    If the model knows the names of its classes, and they are the data's in another order, its logits are reordered.

    Args:
        model: From `dign.open_model`.
        entry: Where it came from, for results.
        data: The data set; the model's output must have as many classes.
        label: Name in tables; by default the model's own.
        framing: How the pictures of the data were brought to the model's size.

    Raises:
        UserError: The model does not give logits for these images and classes.
    """
    check_logits(entry, model, (3, *data.image_size), len(data.classes), data.name)
    model.reorder(data.classes)
    name = label or model.name
    about = RunInfo(name, EXTERNAL, name, entry, hide_folder_path(data.name), 0, count_parameters(model) or None)
    return Subject(model, predict_by_logits, about, framing=framing)


def describe_foreign(model: ForeignModel, data: DataSet) -> list[str]:
    """How images are prepared for the model, and what is not known about it, in sentences for the user."""
    size = "x".join(map(str, data.image_size))
    known = replace(model.preprocessing, size=None)
    if not split_prefix(data.name)[0]:  # images of one size, which are not framed
        known = replace(known, fit=None, crop_fraction=None, interpolation=None)
    lines = [f"{model.name}: " + ", ".join(filter(None, (f"images of {size} pixels", known.describe()))) + "."]
    if model.normalize is None and not model.normalizes:
        lines.append("No normalization is known: images go in as they are, in [0,1], unless you set `mean` and `std`.")
    if model.classes is not None and model.classes != list(data.classes):
        lines.append(
            f"Its classes are called {join_names(model.classes, 3)}, those of {data.name} "
            f"{join_names(data.classes, 3)}: they are taken for the same, in this order."
        )
    return lines


def hub_subject(entry: str, data: DataSet, label: str | None = None) -> Subject:
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
    folder = hub_folder(entry)
    config = read_hub_config(folder)
    about = RunInfo(
        name=label or classifier.name,
        method=classifier.method.key,
        title=classifier.method.title,
        model=config["model"],
        data=hide_folder_path(data.name),
        parameters=count_parameters(classifier.model),
    )
    seen = partial(find_seen, folder, config)
    return Subject(classifier.model, classifier.method.predict, about, classifier.calibrator, seen, classifier.framing)
