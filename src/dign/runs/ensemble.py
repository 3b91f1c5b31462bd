"""Deep ensembles (Lakshminarayanan et al., 2017): several trained classifiers that predict as one."""

from __future__ import annotations

import glob
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from dign.core.errors import UserError, join_names
from dign.methods.base import Method
from dign.runs.classifier import Classifier, load_model

ENSEMBLE_PREFIX = "ensemble:"


class Ensemble(Classifier):
    """Several classifiers as one: its probabilities are the mean of theirs.

    Each member predicts as its method does, and is calibrated if it has a calibrator. Calling the ensemble gives the
    logarithm of the mean of the members' softmax, which are logits of that mean: it can be exported as one graph. An
    ensemble of networks that differ in their seed alone is more accurate than each of them, and better calibrated.

    Args:
        members: Classifiers, or the folders that `dign.load_model` opens: at least two.
        name: What tables call it; by default the members' names.

    Raises:
        UserError: There are fewer than two members, or they differ in classes, image size or framing.

    Attributes:
        members: The classifiers.

    Example:
        >>> from dign.methods import Standard
        >>> def train(seed):
        ...     network = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
        ...     return Classifier(network, Standard(), ["cat", "dog"], (2, 2), f"seed-{seed}")
        >>> ensemble = Ensemble([train(seed) for seed in range(3)])
        >>> ensemble.name, ensemble.predict(torch.zeros(5, 3, 2, 2)).shape
        ('ensemble of seed-0, seed-1, seed-2', torch.Size([5, 2]))
    """

    def __init__(self, members: Sequence[Classifier | str | Path], name: str | None = None) -> None:
        if isinstance(members, str | Path):
            raise UserError(f"members must be a list of classifiers or folders, not {str(members)!r} alone.")
        opened = [each if isinstance(each, Classifier) else load_model(each) for each in members]
        _check_agreement(opened)
        first = opened[0]
        name = name or f"ensemble of {', '.join(member.name for member in opened)}"
        super().__init__(
            _Mean(opened), make_ensemble_method(opened), first.classes, first.image_size, name, first.framing
        )
        # not .train(), which would change the mode of classifiers that belong to the caller
        self.training = self.model.training = any(member.training for member in opened)

    @property
    def members(self) -> list[Classifier]:
        return list(self.model.members)  # type: ignore[arg-type]


class _Mean(nn.Module):
    """The logarithm of the mean of the members' probabilities."""

    def __init__(self, members: Sequence[Classifier]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, images: Tensor) -> Tensor:
        each = torch.stack([member(images).log_softmax(dim=-1) for member in self.members])
        return torch.logsumexp(each, dim=0) - math.log(len(self.members))


@dataclass(frozen=True, kw_only=True)
class EnsembleMethod(Method):
    """How an ensemble predicts: the mean of what its members predict, each as its own method does."""

    key = "ensemble"
    title = "Ensemble"

    def predict(self, model: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        members: list[Classifier] = list(model.members)  # type: ignore[arg-type]
        return torch.stack([member.predict(x, generator) for member in members]).mean(0)


def make_ensemble_method(members: Sequence[Classifier]) -> EnsembleMethod:
    """The method of an ensemble, whose title says what its members are."""
    titles = {member.method.title for member in members}
    method = EnsembleMethod()
    object.__setattr__(method, "title", f"{len(members)} x {titles.pop()}" if len(titles) == 1 else "Ensemble")
    return method


def _check_agreement(members: Sequence[Classifier]) -> None:
    if len(members) < 2:
        raise UserError(f"an ensemble has at least two members, not {len(members)}: name two models or more.")
    first = members[0]
    for other in members[1:]:
        if other.classes != first.classes:
            raise UserError(
                f"{other.name} knows the classes {join_names(other.classes)}, but {first.name} knows "
                f"{join_names(first.classes)}: the members of an ensemble must know the same, in the same order."
            )
        if other.image_size != first.image_size:
            sizes = ["x".join(map(str, each.image_size)) for each in (other, first)]
            raise UserError(
                f"{other.name} takes images of {sizes[0]} pixels, but {first.name} of {sizes[1]}: the members of an "
                "ensemble must take the same."
            )
        if other.framing != first.framing:
            raise UserError(
                f"{other.name} frames pictures otherwise than {first.name} (`fit`, `crop_fraction`, `interpolation`): "
                "the members of an ensemble must do it alike."
            )


def split_members(where: str | Path) -> list[str] | None:
    """The folders that `ensemble:A,B` or `ensemble:runs/seed-*` names; None for a single model.

    Raises:
        UserError: A pattern matches nothing, nothing is named, or one folder twice.

    >>> split_members("ensemble:runs/a,runs/b"), split_members("runs/a")
    (['runs/a', 'runs/b'], None)
    """
    if not str(where).startswith(ENSEMBLE_PREFIX):
        return None
    found: list[str] = []
    for place in filter(None, str(where).removeprefix(ENSEMBLE_PREFIX).split(",")):
        matching = sorted(glob.glob(place)) if glob.has_magic(place) else [place]
        if not matching:
            raise UserError(f"no folder matches '{place}' of {where}: expected run folders or hub folders.")
        found += matching
    if not found:
        raise UserError(f"{where} names no members: expected run folders or hub folders, as in ensemble:runs/a,runs/b.")
    twice = [place for place in found if found.count(place) > 1]
    if twice:
        raise UserError(f"{twice[0]} is twice in {where}: the members of an ensemble are different models.")
    return found


def open_classifier(where: str | Path) -> Classifier:
    """What `dign.load_model` opens, or an ensemble of that: `ensemble:runs/a,runs/b`."""
    places = split_members(where)
    return load_model(where) if places is None else Ensemble(places).eval()
