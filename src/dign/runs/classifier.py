"""A trained classifier with everything that predicting needs, from wherever it was saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.data.framing import MIDDLE, Framing
from dign.methods.base import Method
from dign.methods.factory import make_method
from dign.models import build
from dign.runs.calibrator import Calibrator, read_calibrator
from dign.runs.checkpoints import load_weights
from dign.runs.folder import load_run
from dign.runs.hub_config import HUB_PREFIX, WEIGHTS, hub_folder, is_hub_folder, read_hub_config


class Classifier(nn.Module):
    """A trained network together with the method that knows how to predict with it.

    Calling it gives logits, as of any `nn.Module`; `predict` gives probabilities the way the method does, which for
    RSE is an average over noisy copies. Both are calibrated where the model has a calibrator, as after training with
    validation images; `classifier.model` and `predict_raw` are not.

    Attributes:
        model: The network, from images (N,3,H,W) in [0,1] to logits (N,C).
        method: The training method.
        classes: The names of the C classes.
        image_size: Height and width of the images that the network was trained on.
        name: What tables call it.
        framing: How a picture of any shape is brought to that size.
        calibrator: What makes its probabilities agree with how often it is right; None where none was fitted.

    Example:
        >>> import torch
        >>> from dign.methods import Standard
        >>> network = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
        >>> classifier = Classifier(network, Standard(), ["cat", "dog"], (2, 2))
        >>> classifier(torch.zeros(5, 3, 2, 2)).shape
        torch.Size([5, 2])
        >>> classifier.predict(torch.zeros(5, 3, 2, 2)).sum(1).round(decimals=3)
        tensor([1., 1., 1., 1., 1.])
    """

    def __init__(
        self,
        model: nn.Module,
        method: Method,
        classes: Sequence[str],
        image_size: tuple[int, int],
        name: str = "model",
        framing: Framing = MIDDLE,
        calibrator: Calibrator | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.method = method
        self.classes = list(classes)
        self.image_size = image_size
        self.name = name
        self.framing = framing
        self.calibrator = calibrator

    def forward(self, images: Tensor) -> Tensor:
        """The logits (N,C) of images (N,3,H,W) in [0,1]."""
        logits: Tensor = self.model(images)
        return logits if self.calibrator is None else self.calibrator(logits)

    @torch.no_grad()
    def predict(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Class probabilities the way the method predicts.

        Args:
            images: Float images (N,3,H,W) in [0,1], on the model's device.
            generator: For methods that draw noise when they predict; None takes torch's global one.

        Returns:
            Probabilities (N,C).
        """
        probabilities = self.predict_raw(images, generator)
        return probabilities if self.calibrator is None else self.calibrator.calibrate(probabilities)

    @torch.no_grad()
    def predict_raw(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """What `predict` gives without the calibrator."""
        return self.method.predict(self.model, images, generator)


def load_model(where: str | Path) -> Classifier:
    """Load a trained classifier.

    Args:
        where: The folder of a finished run (from `dign.train` or `dign train`), or a hub folder, as `DIR` or
            `hub:DIR` (from `dign hub save`).

    Returns:
        The classifier, on the CPU and in eval mode.

    Raises:
        UserError: `where` is neither, or its training has not finished, or a file in it is damaged.

    Example:
        >>> model = load_model("runs/photos")  # doctest: +SKIP
        >>> model.classes  # doctest: +SKIP
        ['cat', 'dog']
        >>> model.predict(images)  # doctest: +SKIP
        tensor([[0.9, 0.1]])
    """
    classifier = load_uncalibrated(where)
    classifier.calibrator = read_calibrator(hub_folder(where), len(classifier.classes))
    return classifier


def load_uncalibrated(where: str | Path) -> Classifier:
    """What `load_model` loads, without its calibrator, whose file may be damaged."""
    folder = hub_folder(where)
    if is_hub_folder(folder):
        return _load_hub_folder(folder)
    if str(where).startswith(HUB_PREFIX) or not (folder / "config.toml").is_file():
        raise UserError(
            f"{folder} is not a model: expected a run folder (with config.toml, from `dign train`) or a hub folder "
            "(with config.json, from `dign hub save`)."
        )
    run = load_run(folder)
    name = run.path.resolve().name
    return Classifier(run.model(), run.method(), run.classes, run.image_size, name, run.framing).eval()


def _load_hub_folder(folder: Path) -> Classifier:
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
    framing = Framing(**config["framing"])
    name = folder.resolve().name
    return Classifier(model, method, config["classes"], (height, width), name, framing).eval()
