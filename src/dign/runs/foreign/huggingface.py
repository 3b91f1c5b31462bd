"""Folders in the layout of the Hugging Face hub, of its transformers library or of timm; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dign.core.errors import UserError, join_names, summarize_error
from dign.core.files import read_json
from dign.models.libraries import TIMM, read_timm_preprocessing
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign.architectures import open_architecture
from dign.runs.foreign.model import ForeignModel
from dign.runs.foreign.preprocessing_files import read_preprocessing

CONFIG = "config.json"
TIMM_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def is_huggingface_folder(folder: Path) -> bool:
    """Whether the folder has the configuration of a model of transformers or timm."""
    try:
        config = read_json(folder / CONFIG)
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and ("model_type" in config or "architecture" in config)


def open_huggingface(folder: Path, given: Preprocessing) -> ForeignModel:
    """The image classifier of a folder, with the preprocessing that stands in it."""
    config = read_json(folder / CONFIG)
    if "model_type" not in config:
        return _open_timm(folder, config, given)
    try:
        from transformers import AutoModelForImageClassification
    except (ImportError, RuntimeError) as error:
        raise UserError(
            f"{folder} needs the transformers library ({summarize_error(error)}): pip install 'dign[transformers]'."
        ) from error
    if config.get("auto_map"):
        raise UserError(f"{folder} brings Python code of its own, which is not run: name it as MODULE:FUNCTION.")
    if config.get("problem_type") == "multi_label_classification":
        raise UserError(
            f"{folder} gives several labels to an image, where exactly one is expected: it is not supported."
        )
    try:
        model, loaded = AutoModelForImageClassification.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    except Exception as error:  # as many as there are models
        raise UserError(f"{folder} cannot be opened as an image classifier: {summarize_error(error)}") from error
    absent = sorted(map(str, {*loaded["missing_keys"], *loaded.get("mismatched_keys", ())}))
    if absent:
        raise UserError(
            f"{folder} has no weights for {join_names(absent, 3)}: it was not trained as a classifier, or is damaged."
        )
    return ForeignModel(model, folder.resolve().name, read_preprocessing(folder).override(given), _labels(model.config))


def _labels(config: Any) -> list[str] | None:
    """Names of the classes; None where they are the placeholders LABEL_0, LABEL_1, ..."""
    names = [str(config.id2label[index]) for index in sorted(config.id2label)]
    return None if all(name == f"LABEL_{index}" for index, name in enumerate(names)) else names


def _open_timm(folder: Path, config: dict[str, Any], given: Preprocessing) -> ForeignModel:
    weights = next((folder / name for name in TIMM_WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise UserError(f"{folder} has no weights: expected {' or '.join(TIMM_WEIGHTS)}.")
    stated = config.get("pretrained_cfg")
    try:
        known = read_timm_preprocessing(stated) if isinstance(stated, dict) else Preprocessing()
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"pretrained_cfg in {folder / CONFIG} cannot be used: {error}") from error
    model = open_architecture(f"{TIMM}{config['architecture']}", weights, known.override(given))
    names = config.get("label_names")
    model.name = folder.resolve().name
    model.classes = list(map(str, names)) if isinstance(names, list) else None
    return model
