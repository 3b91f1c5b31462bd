"""A data set from arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.pixels import to_uint8
from dign.data.dataset import DataSet, Split
from dign.data.splits import cut_split

TEST_FRACTION = 0.2

Images = np.ndarray | Tensor


def from_arrays(
    name: str,
    images: Images,
    labels: Sequence[int] | np.ndarray | Tensor,
    classes: Sequence[str],
    *,
    test_images: Images | None = None,
    test_labels: Sequence[int] | np.ndarray | Tensor | None = None,
    validation: float = 0.1,
    validation_seed: int = 0,
) -> DataSet:
    """Make a data set from arrays.

    Args:
        name: For messages and results.
        images: (N,3,H,W) or (N,H,W,3); gray ones with one channel, or (N,H,W). uint8, or float in [0,1], which is
            rounded to uint8.
        labels: One whole number from 0 on for each image.
        classes: Names of the classes, in the order of the labels.
        test_images: As `images`. Without them a fixed fifth of every class is the test split.
        test_labels: As `labels`.
        validation: Fraction of the training images to cut off as the validation split.
        validation_seed: Decides which images are cut off.

    Returns:
        The data set, with its three splits.

    Raises:
        UserError: An array has the wrong shape, type or range.

    >>> images = np.zeros((10, 4, 4, 3), dtype=np.uint8)
    >>> data = from_arrays("mine", images, [0, 1] * 5, ["cat", "dog"])
    >>> len(data.train), len(data.validation), len(data.test)
    (6, 2, 2)
    """
    if (test_images is None) != (test_labels is None):
        raise UserError(f"{name}: give test_images and test_labels together.")
    train = _split(name, "images", images, labels)
    if test_images is None:
        train, test = cut_split(train, TEST_FRACTION, seed=0, purpose="test split")
    else:
        test = _split(name, "test_images", test_images, test_labels)
    if train.shape[1:] != test.shape[1:]:
        raise UserError(f"{name}: images and test_images must have the same height and width.")
    train, held_out = cut_split(train, validation, validation_seed, "validation split")
    return DataSet(name, tuple(map(str, classes)), train, held_out, test)


def _split(name: str, what: str, images: Images, labels: object) -> Split:
    pixels = _to_uint8(name, what, _tensor(name, what, images))
    if pixels.dim() == 3:
        pixels = pixels.unsqueeze(1)
    if pixels.dim() == 4 and pixels.shape[1] not in (1, 3) and pixels.shape[3] in (1, 3):
        pixels = pixels.permute(0, 3, 1, 2)
    if pixels.dim() != 4 or pixels.shape[1] not in (1, 3) or 0 in pixels.shape:
        raise UserError(f"{name}: {what} must be (N,3,H,W) or (N,H,W,3) and not empty, not {tuple(pixels.shape)}.")
    numbers = _tensor(name, f"labels of {what}", labels)
    if numbers.shape != pixels.shape[:1] or numbers.is_floating_point() or numbers.is_complex():
        raise UserError(
            f"{name}: {what} need one whole number each as labels, ({len(pixels)},), "
            f"not {numbers.dtype} {tuple(numbers.shape)}."
        )
    return Split(pixels.expand(-1, 3, -1, -1).contiguous(), numbers.long())


def _tensor(name: str, what: str, values: object) -> Tensor:
    try:
        return torch.as_tensor(values).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{name}: the {what} are not an array of numbers ({error}).") from error


def _to_uint8(name: str, what: str, pixels: Tensor) -> Tensor:
    if pixels.dtype == torch.uint8:
        return pixels
    if not pixels.is_floating_point():
        raise UserError(f"{name}: {what} must be uint8, or float in [0,1], not {pixels.dtype}.")
    if bool(pixels.isnan().any()):
        raise UserError(f"{name}: {what} contain NaN: remove or fix those images.")
    if pixels.numel() and not 0 <= float(pixels.min()) <= float(pixels.max()) <= 1:
        raise UserError(f"{name}: {what} contain float pixels outside [0,1]: divide by 255, or pass uint8.")
    return to_uint8(pixels)
