"""Methods that reach into the network: they change what chosen layers are given while a batch passes.

It is done by hooks that are there during a step and gone after it, also if the step fails: the model's modules, tensors
and their names stay what they are. A compiled step cannot put hooks on by itself; `dign.training.compiling` does it
before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError, join_names
from dign.methods.labels import Labels


@dataclass(frozen=True)
class Pass:
    """A batch on its way through the network: `images` images, once for each of `owners`.

    Attributes:
        images: Images of the training batch.
        owners: For each batch of that many images, one after the other, the key of the method whose view it is; "" for
            the clean batch.
        labels: The labels of the images; None in a prediction.
        drawn: What each method has drawn for the step (`Method.draw_inside`), by its key.
        generator: The source of random numbers.
        numbers: For each batch, which of its owner's views it is: 0, 1, ...
    """

    images: int
    owners: tuple[str, ...]
    labels: Labels | None = None
    drawn: Mapping[str, Tensor | None] = field(default_factory=dict)
    generator: torch.Generator | None = None
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.numbers:
            counted = tuple(self.owners[:place].count(owner) for place, owner in enumerate(self.owners))
            object.__setattr__(self, "numbers", counted)

    def split(self) -> list[Pass]:
        """The same batches on their way one after the other."""
        each = zip(self.owners, self.numbers, strict=True)
        return [replace(self, owners=(owner,), numbers=(number,)) for owner, number in each]


Edit = Callable[[Tensor, Pass], Tensor]
"""What a method makes of the input of a layer."""


class Reach:
    """The hooks of a method on a model. They work while `current` says what passes.

    Args:
        edits: Layers, and what is done to their first input.

    >>> layer = nn.Identity()
    >>> reach = Reach([(layer, lambda features, passing: features + len(passing.owners))])
    >>> reach.current = Pass(2, ("", "dign"))
    >>> with reach.attach():
    ...     layer(torch.zeros(4)).tolist()
    [2.0, 2.0, 2.0, 2.0]
    >>> layer(torch.zeros(1)).tolist()
    [0.0]
    """

    def __init__(self, edits: Sequence[tuple[nn.Module, Edit]]) -> None:
        self.edits = list(edits)
        self.current: Pass | None = None
        self._hooks = [(layer, self._make_hook(edit)) for layer, edit in self.edits]

    def _make_hook(self, edit: Edit) -> Callable[..., Any]:
        def hook(layer: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if self.current is None:  # an attack's pass, for example
                return None
            return (edit(inputs[0], self.current), *inputs[1:])

        return hook

    @contextmanager
    def attach(self) -> Iterator[None]:
        """Have the hooks on their layers until the block ends."""
        handles = [layer.register_forward_pre_hook(hook) for layer, hook in self._hooks]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def as_names(layers: str | Sequence[str]) -> tuple[str, ...]:
    """Names of layers: of one, or several, as a list from a configuration file.

    >>> as_names("conv1"), as_names(["conv1", "conv2"])
    (('conv1',), ('conv1', 'conv2'))
    """
    return (layers,) if isinstance(layers, str) else tuple(layers)


def find_layers(model: nn.Module, names: Sequence[str]) -> list[nn.Module]:
    """The layers of a model with these names, as `model.named_modules()` has them.

    Names are those of the network itself: wrappers around it (Fabric's, a compiled model's, `dign.Normalized`) need not
    be named.

    Raises:
        UserError: The model has no layer of a name.

    >>> find_layers(nn.Sequential(nn.Flatten(), nn.Linear(2, 2)), ["1"])
    [Linear(in_features=2, out_features=2, bias=True)]
    """
    known = dict(model.named_modules())
    found = []
    for name in names:
        matching = [path for path in known if path == name or path.endswith(f".{name}")]
        if not matching:
            names = join_names(list(filter(None, known)), 8)
            raise UserError(f"the model has no layer '{name}': expected a name such as {names}.")
        found.append(known[min(matching, key=len)])
    return found


def edit_rows(features: Tensor, passing: Pass, owner: str, edit: Callable[[Tensor], Tensor]) -> Tensor:
    """Features of which the rows of a method's own views are edited.

    Raises:
        UserError: The layer's input does not have the images on its first axis.
    """
    check_rows(features, passing)
    parts = features.split(passing.images)
    edited = [edit(part) if whose == owner else part for part, whose in zip(parts, passing.owners, strict=True)]
    return torch.cat(edited) if len(edited) > 1 else edited[0]


def check_rows(features: Tensor, passing: Pass) -> None:
    """Refuse features that do not have the images of a pass on their first axis."""
    expected = passing.images * len(passing.owners)
    if not isinstance(features, Tensor) or features.dim() == 0 or len(features) != expected:
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise UserError(
            f"a layer is given {shape} where {expected} images pass: name layers, with `layers`, whose input has the "
            "images on its first axis."
        )
