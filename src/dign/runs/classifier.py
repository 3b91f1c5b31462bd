"""A trained classifier with all that predicting needs, from wherever it was saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.methods.base import Method
from dign.methods.factory import make_method
from dign.models import build
from dign.runs.checkpoints import load_weights
from dign.runs.folder import load_run
from dign.runs.hub_config import HUB_PREFIX, WEIGHTS, hub_folder, is_hub_folder, read_hub_config


@dataclass(frozen=True)
class Classifier:
    """`model` maps images (N,3,H,W) in [0,1] to logits; `method` knows how to predict with it."""

    name: str
    model: nn.Module
    method: Method
    classes: list[str]
    image_size: tuple[int, int]

    def predict(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Class probabilities (N,C)."""
        return self.method.predict(self.model, images, generator)


def open_classifier(where: str | Path) -> Classifier:
    """The classifier in a finished run folder, or in a hub folder (`DIR` or `hub:DIR`), on the CPU in eval mode."""
    folder = hub_folder(where)
    if is_hub_folder(folder):
        return _open_hub_folder(folder)
    if str(where).startswith(HUB_PREFIX) or not (folder / "config.toml").is_file():
        raise UserError(
            f"{folder} is no model: give a run folder (with config.toml, from `dign train`) or a hub folder "
            "(with config.json, from `dign hub save`)."
        )
    run = load_run(folder)
    return Classifier(run.path.resolve().name, run.model(), run.method(), run.classes, run.image_size)


def _open_hub_folder(folder: Path) -> Classifier:
    config = read_hub_config(folder)
    height, width = config["image_size"]
    model = build(
        config["model"],
        classes=len(config["classes"]),
        image_size=(height, width),
        mean=config["mean"],
        std=config["std"],
    )
    load_weights(folder / WEIGHTS, model)
    method = make_method(config["method"], config["settings"])
    return Classifier(folder.resolve().name, model.eval(), method, config["classes"], (height, width))
