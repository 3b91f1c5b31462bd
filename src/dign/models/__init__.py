"""Architectures by name. Every model takes images in [0,1]: its first layer normalizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError, unknown_name
from dign.core.pixels import to_float
from dign.core.seeds import preserve_global_generators, seed_global_generators
from dign.models.densenet import DenseNet121
from dign.models.fastnet import FastNet, tinynet, wide_fastnet
from dign.models.normalize import Normalize, Normalized, channel_statistics, spread
from dign.models.resnet import ResNet18, wide_resnet18

MODELS: dict[str, Callable[[int, tuple[int, int]], nn.Module]] = {
    "tinynet": tinynet,
    "fastnet": FastNet,
    "wide_fastnet": wide_fastnet,
    "resnet18": ResNet18,
    "wide_resnet18": wide_resnet18,
    "densenet121": DenseNet121,
}


def build(
    name: str,
    *,
    classes: int,
    image_size: tuple[int, int],
    mean: Sequence[float] = (0.5, 0.5, 0.5),
    std: Sequence[float] = (0.25, 0.25, 0.25),
    seed: int = 0,
) -> nn.Module:
    """A model from images (N,3,H,W) in [0,1] to logits (N,classes), its initial weights drawn from `seed`.

    `name` is one of `MODELS`, or `timm:NAME` for an architecture of the timm library.
    """
    cpu = torch.device("cpu")
    with preserve_global_generators(cpu):
        seed_global_generators(seed, cpu)
        if name.startswith("timm:"):
            body = _timm_model(name.removeprefix("timm:"), classes)
        elif name in MODELS:
            body = MODELS[name](classes, image_size)
        else:
            raise unknown_name("model", name, [*MODELS, "timm:NAME"])
    return nn.Sequential(Normalize(mean, std), body)


def import_timm(wanted: str) -> Any:
    """The timm library, or an error that says what it was `wanted` for."""
    try:
        import timm
    except (ImportError, RuntimeError) as error:
        raise UserError(
            f"{wanted} needs the timm library, which cannot be imported here ({error}): pip install 'dign[timm]'."
        ) from error
    return timm


def _timm_model(name: str, classes: int) -> nn.Module:
    timm = import_timm(f"timm:{name}")
    if name not in timm.list_models():
        raise unknown_name("timm model", name, timm.list_models())
    model: nn.Module = timm.create_model(name, num_classes=classes)
    return model


def whiten(model: nn.Module, images: Tensor, most: int = 5_000) -> None:
    """Set a whitening first layer, where `build` made one, from up to `most` of the uint8 images (N,3,H,W)."""
    normalize, body = model.children()
    if isinstance(body, FastNet):
        body.whiten(normalize(to_float(spread(images, most))))


def count_parameters(model: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


__all__ = [
    "MODELS", "Normalize", "Normalized", "build", "channel_statistics", "count_parameters", "import_timm", "whiten",
]  # fmt: skip
