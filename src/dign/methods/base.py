"""What a training method is: a model and a batch in, a loss out, in any training loop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from dign.core.derivatives import track, trainable_parameter
from dign.core.divergences import at_least_float32
from dign.core.errors import UserError
from dign.core.outputs import logits_of
from dign.data.dataset import Split
from dign.methods.batch_checks import (
    check_class_axis,
    check_images,
    check_labels,
    class_rows,
    is_time_to_look,
    warn_of_probabilities,
    warn_of_range,
)
from dign.methods.labels import Labels, cross_entropy
from dign.methods.outcome import Outcome
from dign.methods.passes import Cost, forward
from dign.methods.reach import Edit, Pass, Reach


@dataclass(frozen=True)
class Material:
    """What a step is made of, before the model sees any of it.

    Attributes:
        x: The batch, after what the methods' `augment` made of it: what "clean" means to their terms.
        y: The labels of what the model returns: mixed if images are, before it or inside it.
        y_of_x: The labels of `x` as it is: unlike `y`, not mixed where images are mixed inside the model.
        views: The further batches, for each of the method's `losses`.
    """

    x: Tensor
    y: Labels
    y_of_x: Labels
    views: list[list[Tensor]]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A training method: `method(model, x, y, generator=generator).loss.backward()`.

    A method is three functions, none of which it has to have. `augment` changes the batch and, where it mixes images,
    its labels; `views` makes the further batches that the model has to see; and `terms` turns the logits of the batch
    and of those views into the named terms of the loss. The passes themselves are made here, so that a sum of methods
    shares them. Logits that reach `terms` are (N,C); for segmentation, where the model returns (N,C,H,W) and labels are
    (N,H,W), every pixel is an example, and N counts pixels.

    Args:
        label_smoothing: Label smoothing of every cross-entropy.
        together: Pass all views through the model as one batch, which is faster, and in which batch norm takes its
            statistics over all of them; otherwise each is a batch of its own.

    >>> from dign.methods import AugMix, DiGN
    >>> method = DiGN(sigma_max=0.1) + AugMix()
    >>> method.title, method.cost.standard_steps
    ('DiGN+AugMix', 6.0)
    """

    key: ClassVar[str]
    """The name in the registry and on the command line."""
    title: ClassVar[str]
    """The name in tables and figures."""
    sees_clean: ClassVar[bool] = True
    """Whether the clean batch itself, as `augment` leaves it, goes through the model."""
    moves_pixels: ClassVar[bool] = False
    """Whether images are warped or mixed, so that their pixels no longer match the labels of pixels."""
    mixes_inside: ClassVar[bool] = False
    """Whether images are mixed inside the model, by the shares of the labels that `augment` has mixed last."""
    differentiates: ClassVar[bool] = False
    """Whether `penalties` differentiates the logits of the clean batch with respect to its images."""
    published: ClassVar[dict[str, dict[str, object]]] = {}
    """Published settings by data set, where they differ from the defaults (which are those for CIFAR-10)."""

    label_smoothing: float = 0.0
    together: bool = True

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        """The batch that takes the place of `x`, and its labels (`MixedLabels` where images are mixed)."""
        return x, y

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        """The further batches that the model has to see, of the shape of `x`."""
        return []

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        """The weighted terms of the loss, from logits (N,C): by default the cross-entropy of the clean batch.

        `clean` is None unless `sees_clean`.
        """
        assert clean is not None  # sees_clean
        return {"cross_entropy": self.cross_entropy(clean, y)}

    def penalties(
        self, model: nn.Module, x: Tensor, y: Labels, clean: Tensor | None, generator: torch.Generator | None
    ) -> dict[str, Tensor]:
        """Further weighted terms, which need more than logits: derivatives of the model with respect to the images.

        `x` is the clean batch and `clean` its logits (N,C). If the method `differentiates`, they are parts of one
        graph, so that a gradient of the clean loss needs no further forward pass, and `y` are the labels of these
        logits; otherwise those of `x`, which are not mixed where images are mixed inside the model.
        """
        return {}

    def reach(self, model: nn.Module) -> list[tuple[nn.Module, Edit]]:
        """Layers of the model whose input the method changes while a batch passes, and how."""
        return []

    def draw_inside(self, x: Tensor, generator: torch.Generator | None) -> Tensor | None:
        """Numbers that the changes inside the model have in common in a step, as `Pass.drawn` gives them."""
        return None

    def predict(self, model: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Class probabilities at test time, (N,C), or (N,C,H,W) for segmentation.

        Args:
            model: Any module from images to logits, as for `__call__`.
            x: Images (N,3,H,W) in [0,1].
            generator: For methods whose predictions are random (RSE).

        Raises:
            UserError: The images or the model's output have a shape or type that cannot be right.
        """
        check_images(x)
        return torch.softmax(at_least_float32(check_class_axis(logits_of(model(x)))), dim=1)

    @property
    def parts(self) -> tuple[Method, ...]:
        """The methods this one is the sum of: itself alone, unless it is a `Sum`."""
        return (self,)

    def at(self, progress: float) -> Method:
        """The method as it is when the fraction `progress` of training is done: itself, unless it ramps up."""
        return self

    def settle(self, folder: Path, train: Split, *, seed: int, device: torch.device) -> Method:
        """The method as a run uses it: what it needs beside the model is made in the run's folder, or found there.

        Args:
            folder: The run's folder.
            train: Its training images.
            seed: Its seed.
            device: Where it trains.
        """
        return self

    @property
    def probe_images(self) -> int:
        """How many images of each epoch `probing` is to see before `adapted` is asked; 0 for most methods."""
        return 0

    def probing(self) -> Method:
        """The method as it is while it measures what it adapts itself by."""
        return self

    def measure(self, x: Tensor, views: Sequence[Tensor]) -> dict[str, Tensor]:
        """What `adapted` goes by, from the batch and its views: scalars, each a mean over the batch."""
        return {}

    def adapted(self, measured: Mapping[str, float]) -> Method:
        """The method for the rest of an epoch, from the mean of what was measured at its start."""
        return self

    @property
    def cost(self) -> Cost:
        """Passes through the model per image and step: by default one, forward and backward."""
        return Cost(forward=1, backward=1)

    def __call__(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        *,
        generator: torch.Generator | None = None,
        reach: Reach | None = None,
    ) -> Outcome:
        """The loss of a batch.

        Args:
            model: Any module from images to logits (N,C), or to an object, dictionary or tuple with logits in it
                (`dign.core.outputs.logits_of`).
            x: Float images (N,3,H,W) in [0,1].
            y: Class indices (N,); for segmentation (N,H,W).
            generator: The source of all random numbers, on the device of `x`; torch's own by default.
            reach: Hooks that are on the model already, for a step that is compiled (`dign.methods.reach`); by default
                they are put on the model, where the method needs any, and removed again.

        Raises:
            UserError: The images, the labels or the model's output have a shape or type that cannot be right.
        """
        check_images(x)
        y = check_labels(y, x)
        look = is_time_to_look()
        if look:
            warn_of_range(x)
        self._check_pixels_stay(y)
        try:
            if reach is not None or torch.compiler.is_compiling():
                outcome = self._outcome(model, x, y, generator, reach or self._no_reach(model))
            else:
                with self.attach(model) as hooks:
                    outcome = self._outcome(model, x, y, generator, hooks)
        except IndexError as error:  # what torch says of a label on the CPU; on a GPU the kernel stops
            if not re.match(r"Target -?\d+ is out of bounds", str(error)):
                raise
            raise UserError(
                f"labels go from {int(y.min())} to {int(y.max())}, but the model returns fewer logits per image: "
                "expected one for each class, and labels from 0 on."
            ) from error
        if look:
            warn_of_probabilities(outcome.logits)
        return outcome

    @contextmanager
    def attach(self, model: nn.Module) -> Iterator[Reach]:
        """Have the hooks of the method on a model until the block ends."""
        hooks = Reach([edit for part in self.parts for edit in part.reach(model)])
        with hooks.attach():
            yield hooks

    def _no_reach(self, model: nn.Module) -> Reach:
        """For compiled code, which cannot put hooks on a model."""
        if any(part.reach(model) for part in self.parts):
            raise UserError(
                f"a compiled step of {self.title} needs its hooks: compile a function that is given `reach=hooks`, and "
                "call it inside `with method.attach(model) as hooks`."
            )
        return Reach([])

    def prepare(self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator | None) -> Material:
        """Augment a batch and make the views of it; what is drawn is drawn here."""
        labels: Labels = y
        of_x: Labels = y
        for part in self.parts:
            x, labels = part.augment(x, labels, generator)
            of_x = of_x if part.mixes_inside else labels
        return Material(x, labels, of_x, [part.views(model, x, of_x, generator) for part in self.losses])

    def judge(self, clean: Tensor | None, views: Sequence[Sequence[Tensor]], y: Labels) -> dict[str, Tensor]:
        """The terms of all losses, from logits (N,C) of the clean batch and of each one's views."""
        terms: dict[str, Tensor] = {}
        for part, seen in zip(self.losses, views, strict=True):
            new = part.terms(clean, seen, y)
            assert terms.keys() & new.keys() <= {"cross_entropy"}, "only the clean cross-entropy is shared"
            terms |= new
        return terms

    @property
    def losses(self) -> tuple[Method, ...]:
        """The parts whose terms make the loss: all but augmentations, or one of these if there is nothing else."""
        return tuple(part for part in self.parts if not isinstance(part, Augmentation)) or self.parts[:1]

    def _outcome(
        self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator | None, reach: Reach
    ) -> Outcome:
        made = self.prepare(model, x, y, generator)
        differentiates = any(part.differentiates for part in self.losses)
        x = track(made.x, trainable_parameter(model)) if differentiates else made.x
        batches = [x] if self.sees_clean else []
        batches += [view for views in made.views for view in views]
        owners = ("",) * self.sees_clean
        owners += tuple(part.key for part, views in zip(self.losses, made.views, strict=True) for _ in views)
        drawn = {part.key: part.draw_inside(x, generator) for part in self.parts} if reach.edits else {}
        logits = forward(
            model,
            batches,
            together=self.together,
            reach=reach,
            passing=Pass(len(x), owners, made.y, drawn, generator),
            release_hooks=differentiates,
        )
        remaining = iter([class_rows(each, y) for each in logits])
        clean = next(remaining) if self.sees_clean else None
        seen = [[next(remaining) for _ in views] for views in made.views]
        terms = self.judge(clean, seen, made.y.flatten())
        measured: dict[str, Tensor] = {}
        for part, views in zip(self.losses, made.views, strict=True):
            terms |= part.penalties(model, x, made.y if part.differentiates else made.y_of_x, clean, generator)
            measured |= part.measure(made.x, views)
        loss = torch.stack(list(terms.values())).sum()
        shown = {name: term.detach() for name, term in terms.items()}
        return Outcome(loss, shown, logits[0].detach(), {name: each.detach() for name, each in measured.items()})

    def __add__(self, other: Method) -> Method:
        if not isinstance(other, Method):
            raise UserError(f"methods are added to methods, as in DiGN() + AugMix(), not to {other!r}.")
        return Sum(parts=(*self.parts, *other.parts))

    def __radd__(self, other: object) -> Method:
        """`sum([DiGN(), AugMix()])` starts from 0."""
        if isinstance(other, int) and other == 0:
            return self
        raise UserError(f"methods are added to methods, as in DiGN() + AugMix(), not to {other!r}.")

    def cross_entropy(self, logits: Tensor, y: Labels) -> Tensor:
        """The mean cross-entropy of logits (N,C) with label smoothing, in float32 at least."""
        return cross_entropy(logits, y, label_smoothing=self.label_smoothing)

    def _check_pixels_stay(self, y: Tensor) -> None:
        if y.dim() > 1:
            for part in self.parts:
                if part.moves_pixels:
                    raise UserError(
                        f"{part.title} moves or mixes pixels, so labels (N,H,W) do not fit its images: use DiGN."
                    )


class Augmentation(Method):
    """A method that changes the batch and leaves the loss as it is: Standard training on what `augment` returns.

    In a sum it changes the batch for all the others, and adds no term and no pass.

    >>> from dign.methods import DiGN, MixUp
    >>> (MixUp() + DiGN()).cost.standard_steps
    4.0
    """


class Sum(Method):
    """The sum of several methods, as `DiGN() + AugMix()` or `CutMix() + DiGN()` makes it.

    Its loss is the sum of its methods' losses on one batch. First the batch is augmented, by each method that does so,
    in the order in which they are written; every method then takes the result, with its labels, for the clean batch.
    It passes through the model once, and the clean cross-entropy that the methods share counts once: terms of the same
    name are the same term. An `Augmentation` adds no term of its own.

    Args:
        parts: The methods. They agree in `together` and `label_smoothing`.

    Raises:
        UserError: A method appears twice, or the parts disagree.

    >>> from dign.methods import AugMix, DiGN
    >>> Sum([DiGN(), AugMix()]) == DiGN() + AugMix()
    True
    """

    _parts: tuple[Method, ...]

    def __init__(self, parts: Sequence[Method]) -> None:
        keys = [part.key for part in parts]
        if len(set(keys)) < len(keys):
            raise UserError(f"a sum takes each method once, not {' + '.join(keys)}.")
        for name in ("together", "label_smoothing"):
            if len({getattr(part, name) for part in parts}) > 1:
                raise UserError(f"the methods of a sum must agree in '{name}': set it on each of them.")
        for number, part in enumerate(parts):
            if part.mixes_inside and any(type(later).augment is not Method.augment for later in parts[number + 1 :]):
                raise UserError(
                    f"{part.title} mixes images inside the network, after all others: write {part.title} last."
                )
        super().__init__(label_smoothing=parts[0].label_smoothing, together=parts[0].together)
        object.__setattr__(self, "_parts", tuple(parts))
        object.__setattr__(self, "key", "+".join(keys))
        object.__setattr__(self, "title", "+".join(part.title for part in parts))
        object.__setattr__(self, "sees_clean", any(part.sees_clean for part in self.losses))

    @property
    def parts(self) -> tuple[Method, ...]:
        return self._parts

    @property
    def cost(self) -> Cost:
        shared = max(sum(part.sees_clean for part in self.losses) - 1, 0)
        total = sum((part.cost for part in self.losses), start=Cost(0, 0))
        return replace(total, forward=total.forward - shared, backward=total.backward - shared)

    def at(self, progress: float) -> Method:
        return Sum([part.at(progress) for part in self.parts])

    def settle(self, folder: Path, train: Split, *, seed: int, device: torch.device) -> Method:
        return Sum([part.settle(folder, train, seed=seed, device=device) for part in self.parts])

    @property
    def probe_images(self) -> int:
        return max(part.probe_images for part in self.parts)

    def probing(self) -> Method:
        return Sum([part.probing() if part.probe_images else part for part in self.parts])

    def adapted(self, measured: Mapping[str, float]) -> Method:
        return Sum([part.adapted(measured) if part.probe_images else part for part in self.parts])

    def predict(self, model: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """As the first part that overrides `predict` does (RSE's ensemble), otherwise in one plain pass."""
        special = [part for part in self.parts if type(part).predict is not Method.predict]
        return (special or self.parts)[0].predict(model, x, generator)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)
