"""Fine-tuning: weights to start from, and parts of the model that stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.models import fetch_pretrained, find_preprocessing
from dign.runs.checkpoints import digest_tensors, read_tensors
from dign.runs.config import RunConfig
from dign.runs.hub_config import WEIGHTS, hub_folder, is_hub_folder
from dign.runs.weight_matching import NORMALIZATION, check_match, find_head, head_tensors, match_names, network_of

PRETRAINED = "pretrained"
BODY = "body"


@dataclass(frozen=True)
class StartingWeights:
    """Weights to start from, known to fit. `fresh` are tensors of the head that keep their random initialization."""

    tensors: dict[str, Tensor]
    fresh: tuple[str, ...]
    digest: str

    def load_into(self, model: nn.Module) -> None:
        model.load_state_dict(self.tensors, strict=False)  # known to fit, but for the head

    @property
    def normalization(self) -> tuple[list[float], list[float]] | None:
        """Mean and standard deviation that the weights were trained with, where they are known."""
        if "0.mean" not in self.tensors or "0.std" not in self.tensors:
            return None
        return self.tensors["0.mean"].flatten().tolist(), self.tensors["0.std"].flatten().tolist()


def load_starting_weights(config: RunConfig, model: nn.Module) -> StartingWeights | None:
    """Load what `config.init` names, checked against `model` (which may be on the meta device); None without `init`.

    Everything but the head must match in shape, and in name or order; the head keeps its random initialization where
    its shape differs or the file has none. The file may hold the bare network, without dign's normalization layer in
    front: the normalization is then the one that such weights are known to be trained with, if any.
    """
    if not config.init:
        return None
    where, found = _find(config)
    wanted, head = model.state_dict(), head_tensors(model)
    found = match_names(found, wanted, head)
    if not found.keys() & set(NORMALIZATION):
        found |= _known_normalization(config.model)
    fresh = tuple(name for name in sorted(head) if name not in found or found[name].shape != wanted[name].shape)
    tensors = {name: tensor for name, tensor in found.items() if name not in fresh}
    check_match(where, tensors, wanted, {*head, *NORMALIZATION})
    return StartingWeights(tensors, fresh, digest_tensors(tensors))


def _known_normalization(name: str) -> dict[str, Tensor]:
    """Mean and standard deviation that trained weights of the network expect."""
    expected = find_preprocessing(name)
    values = zip(NORMALIZATION, (expected.mean, expected.std), strict=True)
    return {name: torch.tensor(value, dtype=torch.float32).view(-1, 1, 1) for name, value in values if value}


def _find(config: RunConfig) -> tuple[str, dict[str, Tensor]]:
    """The source's name for messages, and the tensors that `init` names."""
    if config.init == PRETRAINED:
        return f"the pretrained {config.model}", fetch_pretrained(config.model)
    place = hub_folder(config.init)
    if not place.is_dir():
        return str(place), read_tensors(place)
    if not is_hub_folder(place) and not (place / "config.toml").is_file():
        raise UserError(f"{place} is neither a run folder nor a hub folder: `init` takes one of them or a file.")
    if not (place / WEIGHTS).is_file():
        raise UserError(f"{place} has no {WEIGHTS}: has its training finished?")
    return str(place), read_tensors(place / WEIGHTS)


def freeze(model: nn.Module, patterns: str, *, norms: bool = False) -> list[nn.Module]:
    """Turn off the gradients of what `patterns` matches; returns the batch norms that must stay in eval mode.

    `patterns` are comma-separated names in the model or inside its network ("stages.0", "layer?.*"), each with all
    modules below it; or "body": everything but the head. "" freezes nothing. The batch norms are those in it; with
    `norms` all of them, whose weights are trained nevertheless.
    """
    words = [word.strip() for word in patterns.split(",") if word.strip()]
    used = dict.fromkeys(words, False)
    head = find_head(model)

    def is_frozen(name: str) -> bool:
        if BODY in words and not any(name == module or name.startswith(f"{module}.") for module in head):
            used[BODY] = True
            return True
        hits = [word for word in words if word != BODY and _matches(name, word)]
        used.update(dict.fromkeys(hits, True))
        return bool(hits)

    for name, parameter in model.named_parameters():
        if is_frozen(name):
            parameter.requires_grad_(False)
    kept = [name for name, module in model.named_modules() if _has_statistics(module) and (is_frozen(name) or norms)]
    for word, was_used in used.items():
        if not was_used:
            parts = ", ".join(name for name, _ in network_of(model).named_children())
            raise UserError(
                f"`freeze={word}` matches nothing in this model: its parts are {parts} (or {BODY}: all but the head)."
            )
    if words and not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError(f"`freeze={patterns}` leaves nothing to train.")
    return [model.get_submodule(name) for name in kept]


def group_parameters(model: nn.Module, head_lr: float) -> list[dict[str, Any]]:
    """The trainable parameters of body and head, as groups of an optimizer; `lr_scale` multiplies the learning rate."""
    head = {id(p) for name in find_head(model) for p in model.get_submodule(name).parameters()}
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if head_lr == 1:
        return [{"params": parameters, "lr_scale": 1.0}]
    body = [parameter for parameter in parameters if id(parameter) not in head]
    groups = ((body, 1.0), ([parameter for parameter in parameters if id(parameter) in head], head_lr))
    return [{"params": members, "lr_scale": scale} for members, scale in groups if members]


def _matches(name: str, pattern: str) -> bool:
    """Whether a dotted name or one of its parents matches; the network's own prefix "1." may be left out."""
    for full in {name, name.removeprefix("1.")}:
        parts = full.split(".")
        if any(fnmatchcase(".".join(parts[:depth]), pattern) for depth in range(1, len(parts) + 1)):
            return True
    return False


def _has_statistics(module: nn.Module) -> bool:
    return getattr(module, "running_mean", None) is not None
