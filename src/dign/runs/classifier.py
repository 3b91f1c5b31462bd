"""A trained classifier with all that predicting needs, from wherever it was saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.methods.base import Method
from dign.runs.folder import load_run
from dign.runs.hub_config import HUB_PREFIX, hub_folder, is_hub_folder


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
        try:
            from dign.publish.hub import open_hub_folder
        except ImportError as error:
            raise UserError(f"Hub folders need huggingface_hub ({error}): pip install 'dign[hub]'.") from error
        return open_hub_folder(folder)
    if str(where).startswith(HUB_PREFIX) or not (folder / "config.toml").is_file():
        raise UserError(
            f"{folder} is no model: give a run folder (with config.toml, from `dign train`) or a hub folder "
            "(with config.json, from `dign hub save`)."
        )
    run = load_run(folder)
    return Classifier(run.path.resolve().name, run.model(), run.method(), run.classes, run.image_size)
