"""Corruptions as transforms of single images or batches: `Corrupt` and `RandomCorruption`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from dign.core.errors import UserError, unknown_name
from dign.corruptions.engine import corrupt
from dign.corruptions.sets import ALL_NAMES, get_parameters
from dign.corruptions.settings import NAMES, PROFILES, SEVERITIES, check_profile

if TYPE_CHECKING:
    from PIL.Image import Image

Picture = TypeVar("Picture", bound="Tensor | np.ndarray | Image")
_MODES = ("RGB", "L", "I;16")


class Corrupt(nn.Module):
    """Corrupt images of any kind, as a transform: in a `Compose` of torchvision, in a `Dataset`, or called by itself.

    An image is a tensor (C,H,W), a batch (N,C,H,W), a PIL image (RGB, L or I;16), or an array (H,W,3), (H,W) or
    (N,H,W,3); uint8, uint16, or float in [0,1]. What comes back is of the same kind and type.

    Args:
        name: One of `dign.corruptions.ALL_NAMES`.
        severity: 1 to 5, or 0 for the image as it is.
        profile: As of `dign.corrupt`.
        seed: None: every call draws anew, from torch's global generator. A number: what an image gets depends on the
            number and on the image alone, so that it is the same in every epoch and process.

    Raises:
        UserError: There is no such corruption or severity; an image is none of these.

    >>> clean = np.full((32, 32, 3), 128, dtype=np.uint8)
    >>> foggy = Corrupt("fog", 3, seed=0)
    >>> foggy(clean).shape, bool((foggy(clean) == foggy(clean)).all())
    ((32, 32, 3), True)
    """

    def __init__(self, name: str, severity: int, *, profile: str | None = None, seed: int | None = None) -> None:
        super().__init__()
        _check(name, severity, profile)
        self.name, self.severity, self.profile, self.seed = name, severity, profile, seed

    def forward(self, image: Picture) -> Picture:
        """Return the corrupted image, or images."""
        made: Picture = _apply(image, self._corrupt)
        return made

    def _corrupt(self, images: Tensor) -> Tensor:
        if self.seed is None:
            first = int(torch.randint(2**40, ()))
            return corrupt(images, self.name, self.severity, profile=self.profile, first=first)
        made = [
            corrupt(image, self.name, self.severity, profile=self.profile, seed=self.seed, first=_number_of(image))
            for image in images
        ]
        return torch.stack(made) if made else images.clone()

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.name!r}, {self.severity}"


class RandomCorruption(nn.Module):
    """Corrupt every image by one of several corruptions, drawn at random, as an augmentation.

    A model that is trained with a corruption has seen it: its accuracy under that corruption says nothing any more
    about corruptions that nobody thought of. Train with some, and measure with a set that has none of them.

    Args:
        names: Corruptions to draw from, by default the nineteen common ones.
        severities: Severities to draw from.
        p: Probability that an image is corrupted at all.
        profile: As of `dign.corrupt`.

    Raises:
        UserError: There is no such corruption or severity, or nothing to draw from; an image is of another kind than
            `Corrupt` takes.

    >>> _ = torch.manual_seed(0)
    >>> augment = RandomCorruption(["fog", "snow"], severities=[1, 2])
    >>> augment(torch.full((4, 3, 32, 32), 128, dtype=torch.uint8)).shape
    torch.Size([4, 3, 32, 32])
    """

    def __init__(
        self,
        names: Sequence[str] = NAMES,
        severities: Sequence[int] = SEVERITIES,
        *,
        p: float = 1.0,
        profile: str | None = None,
    ) -> None:
        super().__init__()
        if isinstance(names, str):
            raise UserError(f"names must be a list, e.g. ['fog'], not '{names}'.")
        pairs = [(name, severity) for name in names for severity in severities]
        if not pairs:
            raise UserError("names and severities must not be empty: there is nothing to draw from.")
        for name, severity in pairs:
            _check(name, severity, profile)
        if not 0 <= p <= 1:
            raise UserError(f"p must be a probability from 0 to 1, not {p}.")
        self.names, self.severities, self.p, self.profile = tuple(names), tuple(severities), p, profile
        self._pairs = pairs

    def forward(self, image: Picture) -> Picture:
        """Return the image, or images, each corrupted in its own way."""
        made: Picture = _apply(image, self._corrupt)
        return made

    def _corrupt(self, images: Tensor) -> Tensor:
        made = images.clone()
        chosen = torch.randint(len(self._pairs), (len(images),)).tolist()
        applied = (torch.rand(len(images)) < self.p).tolist()
        for place, number in enumerate(chosen):
            if applied[place]:
                name, severity = self._pairs[number]
                first = int(torch.randint(2**40, ()))
                made[place] = corrupt(images[place], name, severity, profile=self.profile, first=first)
        return made

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{len(self.names)} corruptions, severities {list(self.severities)}, p={self.p}"


def _check(name: str, severity: int, profile: str | None) -> None:
    if name not in ALL_NAMES:
        raise unknown_name("corruption", name, ALL_NAMES)
    if profile is not None:
        check_profile(profile)
    if severity != 0 or isinstance(severity, bool | float):
        get_parameters(name, severity, profile or next(iter(PROFILES)))


def _number_of(image: Tensor) -> int:
    """A number that belongs to an image's values, wherever it is."""
    return zlib.crc32(image.detach().cpu().contiguous().numpy().tobytes())


def _apply(image: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Call `change` with the image as a batch (N,C,H,W), and give its result the form of the image."""
    if isinstance(image, Tensor):
        if image.dim() not in (3, 4):
            raise UserError(f"An image to corrupt must be (C,H,W) or (N,C,H,W), not {tuple(image.shape)}.")
        return change(image) if image.dim() == 4 else change(image[None])[0]
    if isinstance(image, np.ndarray):
        return _apply_to_array(image, change)
    if hasattr(image, "mode") and hasattr(image, "getbands"):
        if image.mode not in _MODES:
            raise UserError(
                f"A PIL image to corrupt must be RGB, L or I;16, not {image.mode}: use image.convert('RGB')."
            )
        from PIL import Image

        return Image.fromarray(_apply_to_array(np.array(image), change))
    raise UserError(
        f"An image to corrupt must be a tensor (C,H,W), a PIL image or an array (H,W,3), not a {type(image).__name__}."
    )


def _apply_to_array(array: np.ndarray, change: Callable[[Tensor], Tensor]) -> np.ndarray:
    gray = array.ndim == 2
    channels_last = array[..., None] if gray else array
    if channels_last.ndim not in (3, 4) or channels_last.shape[-1] not in (1, 3):
        raise UserError(
            f"An array to corrupt must be (H,W,3), (H,W,1), (H,W) or (N,H,W,3), channels last, not {array.shape}."
        )
    images = torch.from_numpy(np.moveaxis(channels_last, -1, -3).copy())  # torch warns of arrays that are read-only
    made = change(images if images.dim() == 4 else images[None]).numpy()
    made = np.ascontiguousarray(np.moveaxis(made, -3, -1))
    return made.reshape(array.shape)
