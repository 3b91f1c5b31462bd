"""Architectures and trained weights of timm and torchvision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError, summarize_error
from dign.models.preprocessing import INTERPOLATIONS, Preprocessing

TIMM, TORCHVISION = "timm:", "torchvision:"
PREFIXES = (TIMM, TORCHVISION)
AS_TRAINED = {"aux_logits": False, "init_weights": True, "transform_input": True}
"""Two of torchvision's networks as their weights want them: no auxiliary heads, and inputs of another scale."""


def import_library(name: str, wanted: str) -> Any:
    """Import timm or torchvision; the error says what it was `wanted` for."""
    try:
        return import_module(name)
    except (ImportError, RuntimeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]:
            raise UserError(f"{wanted} needs the {error.name} library: pip install 'dign[{error.name}]'.") from error
        raise UserError(
            f"{wanted} needs the {name} library, which is installed but fails ({summarize_error(error)}): install the "
            f"torchvision that fits torch {torch.__version__}."
        ) from error


def build_from_library(name: str, classes: int, image_size: tuple[int, int]) -> nn.Module:
    """An untrained network of a library, by its name with the library's prefix.

    Most networks take images of any size. Vision transformers are built for one, here for `image_size`.
    """
    create, options = _creator(name, image_size)
    try:
        network: nn.Module = create(num_classes=classes, **options)
    except Exception as error:
        if not options.keys() & {"img_size", "image_size"}:
            raise
        raise UserError(
            f"{name} cannot be built for images of {image_size[0]}x{image_size[1]} pixels "
            f"({summarize_error(error).rstrip('.')}): choose a size that its patches divide."
        ) from error
    return network


def _creator(name: str, image_size: tuple[int, int]) -> tuple[Callable[..., nn.Module], dict[str, Any]]:
    """The function that makes a network, and its options for images of a size."""
    short = name.partition(":")[2]
    if name.startswith(TIMM):
        timm = import_library("timm", name)
        _check_known(name, "timm.list_models()", timm.list_models())
        config = timm.get_pretrained_cfg(short)
        is_for_one_size = config is not None and config.fixed_input_size and config.input_size[1:] != image_size
        return partial(timm.create_model, short), {"img_size": image_size} if is_for_one_size else {}
    create = partial(_import_torchvision(name).get_model, short)
    if short in ("googlenet", "inception_v3"):
        return create, AS_TRAINED
    return create, {"image_size": image_size[0]} if short.startswith("vit_") else {}


def _import_torchvision(name: str) -> Any:
    """torchvision's models, among which there is one of this name."""
    models = import_library("torchvision.models", name)
    _check_known(name, "torchvision.models.list_models()", models.list_models(module=models))
    return models


def _check_known(name: str, how: str, known: list[str]) -> None:
    library, _, short = name.partition(":")
    if short in known or short.partition(".")[0] in known:  # timm names weights after a dot
        return
    near = get_close_matches(short, known, n=10, cutoff=0.3)
    hint = f"the nearest are {', '.join(near)}" if near else f"`{how}` in Python lists them"
    raise UserError(f"Unknown {library} model '{short}': {hint}.")


def read_timm_preprocessing(config: Mapping[str, Any]) -> Preprocessing:
    """What a `pretrained_cfg` of timm says, in a library or in the configuration file of a folder."""
    size, mode = config.get("input_size"), config.get("crop_mode", "center")
    return Preprocessing(
        size=size[-1] if size else None,
        mean=tuple(config["mean"]) if config.get("mean") else None,
        std=tuple(config["std"]) if config.get("std") else None,
        fit="squash" if mode == "squash" else "crop",
        crop_fraction=config.get("crop_pct"),
        interpolation=_known_interpolation(config.get("interpolation")),
    )


def read_torchvision_preprocessing(name: str) -> Preprocessing:
    """As the transforms say that come with torchvision's weights."""
    transforms = _import_torchvision(f"{TORCHVISION}{name}").get_model_weights(name).DEFAULT.transforms()
    size, resized = transforms.crop_size[0], transforms.resize_size[0]
    return Preprocessing(
        size=size,
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
        fit="crop",
        crop_fraction=round(size / resized, 4),
        interpolation=_known_interpolation(transforms.interpolation.value),
    )


def _known_interpolation(name: str | None) -> str | None:
    return name if name in INTERPOLATIONS else None


def fetch_pretrained(name: str) -> dict[str, Tensor]:
    """The trained weights of a library's network by tensor, from the library's own place for them or its cache.

    Raises:
        UserError: The name is of neither library, or the weights cannot be fetched.
    """
    if not name.startswith(PREFIXES):
        raise UserError(f"`init=pretrained` is for models of timm and torchvision, not for {name}: name a file.")
    _creator(name, (0, 0))  # an unknown name, or a missing library, is another error than a failed download
    try:
        if name.startswith(TIMM):
            trained: nn.Module = import_library("timm", name).create_model(name.removeprefix(TIMM), pretrained=True)
            return trained.state_dict()
        models = import_library("torchvision.models", name)
        weights = models.get_model_weights(name.removeprefix(TORCHVISION)).DEFAULT
        tensors: dict[str, Tensor] = weights.get_state_dict(progress=False, check_hash=True)
    except Exception as error:  # a download fails in as many ways as there are networks
        raise UserError(
            f"The pretrained weights of {name} could not be fetched ({summarize_error(error).rstrip('.')}): try again, "
            "or name a file that has them."
        ) from error
    # Auxiliary heads are for training from scratch, and the network is built without them.
    return {key: tensor for key, tensor in tensors.items() if not key.startswith(("aux1.", "aux2.", "AuxLogits."))}
