"""Weights of a file matched with a model's tensors: by name, or by order where only the names differ."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from torch import Tensor, nn

from dign.core.errors import UserError, join_names
from dign.models.positions import resample_positions

COUNTER = "num_batches_tracked"
"""A buffer that old files lack and nothing needs."""
NORMALIZATION = ("0.mean", "0.std")


def network_of(model: nn.Module) -> nn.Module:
    """The network behind the normalization layer of a model from `build`."""
    return model[1] if isinstance(model, nn.Sequential) and len(model) == 2 else model


def find_head(model: nn.Module) -> list[str]:
    """The modules that turn features into classes: what timm calls the classifier, else the last linear layer."""
    names = {module: name for name, module in model.named_modules()}
    classifier: Any = getattr(network_of(model), "get_classifier", None)
    if classifier is not None:
        found = classifier()
        heads = [module for module in (found if isinstance(found, tuple | list) else [found]) if module in names]
        if heads:
            return [names[module] for module in heads]
    layers = [name for module, name in names.items() if isinstance(module, nn.Linear | nn.Conv2d)]
    return layers[-1:]


def head_tensors(model: nn.Module) -> set[str]:
    """The names of the head's tensors."""
    head = find_head(model)
    return {name for name in model.state_dict() if any(name.startswith(f"{module}.") for module in head)}


def match_names(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], head: set[str]) -> dict[str, Tensor]:
    """The tensors of a file under the names that the model has for them, as far as they can be matched.

    The file may have the bare network, without the normalization in front. If the names are another library's, but
    kinds and shapes are the same, one after the other, tensors are matched by their order; the head may have another
    number of classes. Position embeddings of transformers are resampled where the images have another size.

    Args:
        found: The file's tensors.
        wanted: The model's tensors, possibly on the meta device.
        head: Names of the head's tensors in the model.
    """
    inside = {f"1.{name}": tensor for name, tensor in found.items()}
    by_name = inside if len(inside.keys() & wanted.keys()) > len(found.keys() & wanted.keys()) else dict(found)
    body = wanted.keys() - head - set(NORMALIZATION)
    if by_name.keys() & body:
        return {name: _fit_positions(name, tensor, wanted) for name, tensor in by_name.items()}
    return _match_order(found, wanted, head) or by_name


def _fit_positions(name: str, found: Tensor, wanted: Mapping[str, Tensor]) -> Tensor:
    if name not in wanted or found.shape == wanted[name].shape:
        return found
    resampled = resample_positions(name, found, tuple(wanted[name].shape))
    return found if resampled is None else resampled


def _match_order(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], head: set[str]) -> dict[str, Tensor] | None:
    theirs = [name for name in found if not name.endswith(COUNTER)]
    ours = [name for name in wanted if not name.endswith(COUNTER) and name not in NORMALIZATION]
    if len(theirs) != len(ours):
        return None
    for their, our in zip(theirs, ours, strict=True):
        same = found[their].shape == wanted[our].shape
        if their.rpartition(".")[2] != our.rpartition(".")[2] or not (same or our in head):
            return None
    return {our: found[their] for their, our in zip(theirs, ours, strict=True)}


def check_match(where: str, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], optional: set[str]) -> None:
    """Check that names and shapes agree, and that all values are finite.

    Args:
        where: What errors call the file.
        found: The file's tensors, under the model's names.
        wanted: The model's tensors.
        optional: Names that may be missing.

    Raises:
        UserError: Lists what does not fit.
    """
    missing = [name for name in wanted if name not in found and name not in optional and not name.endswith(COUNTER)]
    extra = [name for name in found if name not in wanted]
    shapes = [
        f"{name} {_shape(found[name])} instead of {_shape(wanted[name])}"
        for name in found
        if name in wanted and found[name].shape != wanted[name].shape
    ]
    parts = (
        [f"it lacks {_quote(missing)}"] if missing else [],
        [f"it has {_quote(extra)}, which the model lacks"] if extra else [],
        [f"other shapes: {join_names(shapes, 3)}"] if shapes else [],
    )
    reasons = list(chain(*parts))
    if reasons:
        counts = f"{len(missing)} tensors missing, {len(extra)} too many, {len(shapes)} of another shape"
        raise UserError(
            f"{where} does not fit the model: {'; '.join(reasons)} ({counts}, of {len(wanted)}); choose the `model` "
            "that it was made for."
        )
    for name, tensor in found.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise UserError(f"{where} is damaged: '{name}' holds values that are not finite.")


def _quote(names: list[str]) -> str:
    return join_names([f"'{name}'" for name in names], 3)


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"
