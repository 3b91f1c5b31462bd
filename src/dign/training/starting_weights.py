"""Fine-tuning: weights to start from, and parts of the model that stay as they are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.models import import_timm
from dign.runs.checkpoints import read_tensors
from dign.runs.config import RunConfig
from dign.runs.hub_config import WEIGHTS, hub_folder, is_hub_folder

PRETRAINED = "pretrained"
BODY = "body"


@dataclass(frozen=True)
class StartingWeights:
    """Weights to start from, known to fit. `fresh` are tensors of the head that keep their random initialization."""

    tensors: dict[str, Tensor]
    fresh: tuple[str, ...]
    digest: str

    def load_into(self, model: nn.Module) -> None:
        model.load_state_dict(self.tensors, strict=False)

    @property
    def normalization(self) -> tuple[list[float], list[float]] | None:
        """Mean and standard deviation that the weights were trained with, where they are known."""
        if "0.mean" not in self.tensors or "0.std" not in self.tensors:
            return None
        return self.tensors["0.mean"].flatten().tolist(), self.tensors["0.std"].flatten().tolist()


def load_starting_weights(config: RunConfig, model: nn.Module) -> StartingWeights | None:
    """Load what `config.init` names, checked against `model` (which may be on the meta device); None without `init`.

    Everything but the head must match in name and shape; the head keeps its random initialization where its shape
    differs or the file has none. The file may hold the bare network, without dign's normalization layer in front.
    """
    if not config.init:
        return None
    where, found = _find(config)
    wanted = model.state_dict()
    found = _match_names(found, wanted, model)
    head = {name for name in wanted if any(name.startswith(f"{module}.") for module in find_head(model))}
    fresh = tuple(name for name in sorted(head) if name not in found or found[name].shape != wanted[name].shape)
    optional = {*head, "0.mean", "0.std"}
    _check_fit(where, {name: found[name] for name in found if name not in fresh}, wanted, optional)
    tensors = {name: tensor for name, tensor in found.items() if name not in fresh}
    return StartingWeights(tensors, fresh, _digest(tensors))


def _find(config: RunConfig) -> tuple[str, dict[str, Tensor]]:
    """The source's name for messages, and the tensors that `init` names."""
    if config.init == PRETRAINED:
        return f"the pretrained {config.model}", _timm_pretrained(config.model)
    place = hub_folder(config.init)
    if not place.is_dir():
        return str(place), read_tensors(place)
    if not is_hub_folder(place) and not (place / "config.toml").is_file():
        raise UserError(f"{place} is neither a run folder nor a hub folder: `init` takes one of them or a file.")
    if not (place / WEIGHTS).is_file():
        raise UserError(f"{place} has no {WEIGHTS}: has its training finished?")
    return str(place), read_tensors(place / WEIGHTS)


def _timm_pretrained(name: str) -> dict[str, Tensor]:
    if not name.startswith("timm:"):
        raise UserError(f"`init={PRETRAINED}` is for timm models (`model=timm:NAME`), not for {name}: name a file.")
    timm = import_timm(name)
    try:
        tensors: dict[str, Tensor] = timm.create_model(name.removeprefix("timm:"), pretrained=True).state_dict()
        return tensors
    except Exception as error:  # a download fails in as many ways as there are networks
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise UserError(f"The pretrained weights of {name} could not be fetched: {reason[0]}") from error


def _match_names(found: dict[str, Tensor], wanted: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Names as in `Sequential(normalization, network)`, with the normalization that a timm network expects."""
    inside = {f"1.{name}": tensor for name, tensor in found.items()}
    if len(inside.keys() & wanted.keys()) <= len(found.keys() & wanted.keys()):
        return found
    expected = getattr(_body(model), "pretrained_cfg", None) or {}
    for buffer in ("mean", "std"):
        if expected.get(buffer):
            inside[f"0.{buffer}"] = torch.tensor(expected[buffer], dtype=torch.float32).view(-1, 1, 1)
    return inside


def _body(model: nn.Module) -> nn.Module:
    """The network behind the normalization layer."""
    return model[1] if isinstance(model, nn.Sequential) and len(model) == 2 else model


def find_head(model: nn.Module) -> list[str]:
    """The modules that turn features into classes: what timm calls the classifier, else the last linear layer."""
    names = {module: name for name, module in model.named_modules()}
    classifier: Any = getattr(_body(model), "get_classifier", None)
    if classifier is not None:
        found = classifier()
        heads = [module for module in (found if isinstance(found, tuple | list) else [found]) if module in names]
        if heads:
            return [names[module] for module in heads]
    layers = [name for module, name in names.items() if isinstance(module, nn.Linear | nn.Conv2d)]
    return layers[-1:]


def _check_fit(where: str, found: dict[str, Tensor], wanted: dict[str, Tensor], optional: set[str]) -> None:
    missing, extra = sorted(wanted.keys() - found.keys() - optional), sorted(found.keys() - wanted.keys())
    if missing or extra:
        what = f"has no '{missing[0]}'" if missing else f"has '{extra[0]}', which the model lacks"
        raise UserError(
            f"{where} does not fit the model: it {what} ({len(missing)} tensors missing, {len(extra)} too many); "
            "choose the `model` that it was made for."
        )
    for name, tensor in found.items():
        if tensor.shape != wanted[name].shape:
            raise UserError(
                f"{where} does not fit the model: '{name}' has shape {tuple(tensor.shape)}, "
                f"the model expects {tuple(wanted[name].shape)}."
            )
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise UserError(f"{where} is damaged: '{name}' holds values that are not finite.")


def _digest(tensors: dict[str, Tensor]) -> str:
    sha = hashlib.sha256()
    for name in sorted(tensors):
        sha.update(name.encode())
        sha.update(tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def freeze(model: nn.Module, patterns: str) -> list[nn.Module]:
    """Turn off the gradients of what `patterns` matches; returns the batch norms in it, which must stay in eval mode.

    `patterns` are comma-separated names in the model or inside its network ("stages.0", "layer?.*"), each with all
    modules below it; or "body": everything but the head. "" freezes nothing.
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
    norms = [module for name, module in model.named_modules() if _has_statistics(module) and is_frozen(name)]
    for word, was_used in used.items():
        if not was_used:
            parts = ", ".join(name for name, _ in _body(model).named_children())
            raise UserError(
                f"`freeze={word}` matches nothing in this model: its parts are {parts} (or {BODY}: all but the head)."
            )
    if words and not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError(f"`freeze={patterns}` leaves nothing to train.")
    return norms


def _matches(name: str, pattern: str) -> bool:
    """Whether a dotted name or one of its parents matches; the network's own prefix "1." may be left out."""
    for full in {name, name.removeprefix("1.")}:
        parts = full.split(".")
        if any(fnmatchcase(".".join(parts[:depth]), pattern) for depth in range(1, len(parts) + 1)):
            return True
    return False


def _has_statistics(module: nn.Module) -> bool:
    return getattr(module, "running_mean", None) is not None
