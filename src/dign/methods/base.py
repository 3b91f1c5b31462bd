"""What a training method is: images in, a loss out, in anybody's loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.core.errors import UserError


@dataclass(frozen=True)
class Outcome:
    """What a method made of a batch: call `.loss.backward()` on it.

    `terms` are the parts of the loss, weighted and detached, for logging: they add up to the loss.
    `logits` belong to the clean batch; a method that never shows the clean batch to the model (RSE, for
    example) gives those of the batch it trains on, which costs no extra pass.
    """

    loss: Tensor
    terms: dict[str, Tensor]
    logits: Tensor


@dataclass(frozen=True)
class Cost:
    """Passes through the model per training step and image: Standard is (1, 1).

    `input_only` of the backward passes go to the input and leave the parameters out, as in an attack: about
    half the work of a whole one.
    """

    forward: float
    backward: float
    input_only: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.forward + other.forward, self.backward + other.backward, self.input_only + other.input_only)

    @property
    def standard_steps(self) -> float:
        """In steps of Standard training, a backward pass taken as twice a forward pass."""
        return (self.forward + 2 * self.backward - self.input_only) / 3


@dataclass(frozen=True, kw_only=True)
class Method:
    """A training method: `method(model, x, y, generator=g).loss.backward()`.

    A method says which further `views` of a batch it wants to see through the model, and turns the logits of
    the clean batch and of those views into named `terms`. The passes themselves are made here, so that a sum
    of methods shares them.

    `model` is any module from images (N,3,H,W) in [0,1] to logits (N,C); `y` are class indices (N,).
    `together` sends all views through the model as one batch (faster; batch norm sees them as one), otherwise
    each is a batch of its own. `label_smoothing` applies to every cross-entropy.
    """

    key: ClassVar[str]
    """The name in the registry and on the command line."""
    title: ClassVar[str]
    """The name in tables and figures."""
    sees_clean: ClassVar[bool] = True
    """Whether the clean batch itself goes through the model."""
    published: ClassVar[dict[str, dict[str, object]]] = {}
    """Published settings by data set, where they differ from the defaults (which are those for CIFAR-10)."""

    label_smoothing: float = 0.0
    together: bool = True

    def views(self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator | None) -> list[Tensor]:
        """The further batches that the model has to see, of images of the shape of those in `x`."""
        return []

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Tensor) -> dict[str, Tensor]:
        """The weighted parts of the loss, from logits; `clean` is None unless `sees_clean`."""
        raise NotImplementedError

    def predict(self, model: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Class probabilities (N,C) at test time."""
        return torch.softmax(model(x).float(), dim=-1)

    @property
    def parts(self) -> tuple[Method, ...]:
        """The methods this one is the sum of: itself alone, unless it is a `Sum`."""
        return (self,)

    def at(self, progress: float) -> Method:
        """The method as it is when the fraction `progress` of training is done: itself, unless it ramps up."""
        return self

    @property
    def cost(self) -> Cost:
        raise NotImplementedError

    def __call__(self, model: nn.Module, x: Tensor, y: Tensor, *, generator: torch.Generator | None = None) -> Outcome:
        wanted = [part.views(model, x, y, generator) for part in self.parts]
        batches = [x] if self.sees_clean else []
        batches += [view for views in wanted for view in views]
        logits = forward(model, batches, together=self.together)
        remaining = iter(logits)
        clean = next(remaining) if self.sees_clean else None
        terms: dict[str, Tensor] = {}
        for part, views in zip(self.parts, wanted, strict=True):
            new = part.terms(clean, [next(remaining) for _ in views], y)
            assert terms.keys() & new.keys() <= {"cross_entropy"}, "only the clean cross-entropy is shared"
            terms |= new
        loss = torch.stack(list(terms.values())).sum()
        return Outcome(loss, {name: term.detach() for name, term in terms.items()}, logits[0].detach())

    def __add__(self, other: Method) -> Method:
        if not isinstance(other, Method):
            return NotImplemented
        return Sum(parts=(*self.parts, *other.parts))

    def cross_entropy(self, logits: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(logits.float(), y, label_smoothing=self.label_smoothing)


class Sum(Method):
    """The sum of several methods' losses.

    The clean batch passes through the model once, and the clean cross-entropy that the parts share is counted
    once: a term is known by its name.
    """

    _parts: tuple[Method, ...]

    def __init__(self, parts: Sequence[Method]) -> None:
        keys = [part.key for part in parts]
        if len(set(keys)) < len(keys):
            raise UserError(f"A sum takes each method once, not {' + '.join(keys)}.")
        for name in ("together", "label_smoothing"):
            if len({getattr(part, name) for part in parts}) > 1:
                raise UserError(f"The methods of a sum must agree in '{name}': set it on each of them.")
        super().__init__(label_smoothing=parts[0].label_smoothing, together=parts[0].together)
        object.__setattr__(self, "_parts", tuple(parts))
        object.__setattr__(self, "key", "+".join(keys))
        object.__setattr__(self, "title", "+".join(part.title for part in parts))
        object.__setattr__(self, "sees_clean", any(part.sees_clean for part in parts))

    @property
    def parts(self) -> tuple[Method, ...]:
        return self._parts

    @property
    def cost(self) -> Cost:
        shared = max(sum(part.sees_clean for part in self.parts) - 1, 0)
        total = sum((part.cost for part in self.parts), start=Cost(0, 0))
        return Cost(total.forward - shared, total.backward - shared, total.input_only)

    def at(self, progress: float) -> Method:
        return Sum([part.at(progress) for part in self.parts])

    def predict(self, model: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """As the first part with a way of its own to predict (RSE's ensemble), else in one plain pass."""
        special = [part for part in self.parts if type(part).predict is not Method.predict]
        return (special or self.parts)[0].predict(model, x, generator)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


def forward(model: nn.Module, batches: Sequence[Tensor], *, together: bool) -> list[Tensor]:
    """The logits of each batch: from one pass over all of them, or from one pass each."""
    if not together or len(batches) == 1:
        return [model(batch) for batch in batches]
    return list(model(torch.cat(list(batches))).split([len(batch) for batch in batches]))
