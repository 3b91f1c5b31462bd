"""Architectures by name, and how a model is built from one. Every model takes images in [0,1]: it normalizes itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dign.core.errors import unknown_name
from dign.core.pixels import to_float
from dign.core.seeds import preserve_global_generators, seed_global_generators
from dign.models.densenet import DenseNet121
from dign.models.efficientnet_lite import EfficientNetLite0
from dign.models.fastnet import FastNet, tinynet, wide_fastnet
from dign.models.libraries import (
    PREFIXES,
    TIMM,
    TORCHVISION,
    build_from_library,
    import_library,
    read_timm_preprocessing,
    read_torchvision_preprocessing,
)
from dign.models.normalize import Normalize, Standardize, spread_indices
from dign.models.preprocessing import Preprocessing
from dign.models.resnet import ResNet18, wide_resnet18

MODELS: dict[str, Callable[[int, tuple[int, int]], nn.Module]] = {
    "tinynet": tinynet,
    "fastnet": FastNet,
    "fastnet_standardized": FastNet,
    "wide_fastnet": wide_fastnet,
    "wide_fastnet_standardized": wide_fastnet,
    "resnet18": ResNet18,
    "wide_resnet18": wide_resnet18,
    "densenet121": DenseNet121,
    "efficientnet_lite0": EfficientNetLite0,
}
"""Name to a function of (classes, image size)."""

STANDARDIZED = tuple(name for name in MODELS if name.endswith("_standardized"))
"""Those whose images are standardized one by one."""


def build(
    name: str,
    *,
    classes: int,
    image_size: tuple[int, int],
    mean: Sequence[float] = (0.5, 0.5, 0.5),
    std: Sequence[float] = (0.25, 0.25, 0.25),
    seed: int = 0,
) -> nn.Module:
    """Build a model from images (N,3,H,W) in [0,1] to logits (N,classes).

    Args:
        name: One of `MODELS`, or `timm:NAME` or `torchvision:NAME` for an architecture of these libraries.
        classes: Number of classes.
        image_size: Height and width, which decide the first layer.
        mean: Of each channel of the training images (`channel_statistics`).
        std: Of each channel.
        seed: Of the initial weights. Torch's global random state is left as it is.

    Returns:
        A `Sequential` of the normalization and the network.

    Raises:
        UserError: There is no model of this name, or its library is not installed.

    >>> model = build("tinynet", classes=10, image_size=(32, 32))
    >>> model(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    cpu = torch.device("cpu")
    with preserve_global_generators(cpu):
        seed_global_generators(seed, cpu)
        if name.startswith(PREFIXES):
            body = build_from_library(name, classes, image_size)
        elif name in MODELS:
            body = MODELS[name](classes, image_size)
        else:
            raise unknown_name("model", name, [*MODELS, "timm:NAME", "torchvision:NAME"])
    normalize = Standardize if name in STANDARDIZED else Normalize
    return nn.Sequential(normalize(mean, std), body)


def find_preprocessing(name: str) -> Preprocessing:
    """What trained weights of an architecture expect of images, as its library or it states; empty where it does not.

    Args:
        name: As `build` takes it.

    >>> find_preprocessing("efficientnet_lite0").crop_fraction
    0.875
    >>> find_preprocessing("resnet18").describe()
    ''
    """
    if name.startswith(TORCHVISION):
        return read_torchvision_preprocessing(name.removeprefix(TORCHVISION))
    if name.startswith(TIMM):
        config = import_library("timm", name).get_pretrained_cfg(name.removeprefix(TIMM))
        return read_timm_preprocessing(config.to_dict()) if config else Preprocessing()
    return getattr(MODELS.get(name), "preprocessing", Preprocessing())


def whiten(model: nn.Module, images: Tensor, most: int = 5_000) -> None:
    """Set the whitening first layer of a model from `build`, if it has one, from training images.

    Args:
        model: From `build`; one without such a layer is left as it is.
        images: (N,3,H,W) uint8.
        most: How many of the images to use, spread evenly.
    """
    normalize, body = model.children()
    if isinstance(body, FastNet):
        body.whiten(normalize(to_float(images[spread_indices(len(images), most, images.shape[-2:])])))


def count_parameters(model: nn.Module) -> int:
    """Count the trainable parameters of a model.

    >>> count_parameters(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
