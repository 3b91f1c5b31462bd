"""Images with labels in any form, as a stream of checked batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from dign.core.errors import UserError, summarize_error
from dign.data.dataset import DataSet, Split
from dign.data.names import hide_folder_path
from dign.evaluation.measure import Batches, split_batches

Data = DataSet | Split | Dataset[Any] | Iterable[Any] | tuple[Any, Any]


@dataclass(frozen=True)
class ImageStream:
    """Batches of images with labels; `count` and `classes` are None where they are not known beforehand."""

    batches: Batches
    count: int | None = None
    name: str = "custom"
    classes: tuple[str, ...] | None = None
    split: str | None = None


def open_images(data: Data, batch_size: int) -> ImageStream:
    """The images and labels in a `DataSet` (its test split), `Split`, `DataLoader`, `Dataset` or pair of arrays.

    Any other iterable is taken for batches (images, labels), as a `DataLoader` gives them. A loader or `Dataset` is
    read once, batch by batch, and never held in memory.

    Raises:
        UserError: The data is none of these. Wrong images and labels are errors when their batch is read.
    """
    if isinstance(data, DataSet):
        split = _checked_batches(partial(split_batches, data.test, batch_size))
        return ImageStream(split, len(data.test), hide_folder_path(data.name), data.classes, "test")
    if isinstance(data, tuple | list) and len(data) == 2 and all(map(_is_array, data)):
        data = _pair(*data)
    if isinstance(data, Split):
        return ImageStream(_checked_batches(partial(split_batches, data, batch_size)), len(data))
    if isinstance(data, DataLoader):
        return ImageStream(_checked_batches(partial(iter, data)), _length(data.dataset))
    if isinstance(data, Dataset):
        return ImageStream(_checked_batches(partial(iter, DataLoader(data, batch_size=batch_size))), _length(data))
    if isinstance(data, Iterable) and not isinstance(data, str | dict | Tensor | np.ndarray):
        return ImageStream(_checked_batches(partial(iter, data)))
    hint = "; dign.load_data loads one by its name" if isinstance(data, str) else ""
    raise UserError(
        "data must be a DataLoader or Dataset of (image, label), a pair of arrays (images, labels), or one of dign's "
        f"data sets, not a {type(data).__name__}{hint}."
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)


def _pair(images: Any, labels: Any) -> Split:
    images, labels = torch.as_tensor(images), torch.as_tensor(labels)
    if images.dim() != 4 or labels.dim() != 1 or len(images) != len(labels):
        raise UserError(
            f"data must be images (N,C,H,W) and labels (N,), not {tuple(images.shape)} and {tuple(labels.shape)}."
        )
    return Split(images, labels)


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except TypeError:
        return None


def _checked_batches(start: Callable[[], Iterator[Any]]) -> Iterator[tuple[Tensor, Tensor]]:
    try:
        batches = start()
        while (batch := next(batches, None)) is not None:
            yield check_batch(batch)
    except UserError:
        raise
    except (TypeError, AttributeError) as error:  # PIL images that a Dataset does not convert, for example
        raise UserError(
            f"data must give pairs (image, label) with images as tensors (C,H,W): {summarize_error(error)}"
        ) from error


def check_batch(batch: Any) -> tuple[Tensor, Tensor]:
    """Images (N,C,H,W), uint8 or float in [0,1], and labels (N,) as int64; anything else is a `UserError`."""
    if not isinstance(batch, tuple | list) or len(batch) != 2 or not all(map(_is_array, batch)):
        kind = f"{len(batch)} parts" if isinstance(batch, tuple | list) else f"a {type(batch).__name__}"
        raise UserError(f"data must give pairs of images and labels, not {kind}.")
    images, labels = map(torch.as_tensor, batch)
    if images.dim() != 4 or images.shape[1] not in (1, 3):
        hint = ": move the channels to the front" if images.dim() == 4 and images.shape[-1] in (1, 3) else ""
        raise UserError(f"images must have the shape (N,3,H,W) or (N,1,H,W), not {tuple(images.shape)}{hint}.")
    if labels.shape != images.shape[:1]:
        raise UserError(f"there must be one label for each of the {len(images)} images, not {tuple(labels.shape)}.")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise UserError(f"labels must be class indices, whole numbers, not {labels.dtype}.")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise UserError(f"images must be uint8, or float in [0,1], not {images.dtype}.")
    if images.is_floating_point() and len(images) and not bool(((images >= 0) & (images <= 1)).all()):
        raise UserError(
            f"float images must be in [0,1], not from {float(images.min()):.3g} to {float(images.max()):.3g}: leave "
            "normalization to the model, and divide 0..255 by 255."
        )
    return images, labels.long()
