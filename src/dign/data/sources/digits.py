"""Handwritten digits that ship with the package, for a first try and for the tests; source and license: digits.md."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback
from dign.data.cache import hash_array
from dign.data.dataset import Check, OfficialSplits, Split
from dign.data.decoding import resize
from dign.data.splits import cut_split

DEFAULT_SIZE = 16
TEST_FRACTION = 0.2
IMAGES_SHA256 = "b41ca9fd335466eee997366c2e6f6bbe0a1b4582afe091fc4eba35f4a254182f"
LABELS_SHA256 = "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0"


class Digits:
    """1 797 gray 8x8 digits with values 0..16, scaled to uint8 with three equal channels and resized smoothly.

    They are dark ink on white paper, as written: on a black ground shot and speckle noise would do nothing.
    There is no official split: a fixed fifth of every class is the test split.
    """

    def read(self, root: Path, size: int | None, report: ProgressCallback) -> OfficialSplits:
        images, labels = _load()
        pixels = np.stack(list(resize(255 - images, size or DEFAULT_SIZE)))
        everything = Split(torch.from_numpy(pixels), torch.from_numpy(labels))
        train, test = cut_split(everything, TEST_FRACTION, seed=0, purpose="digits test split")
        return OfficialSplits(tuple("0123456789"), train, test, location="included in dign")

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        if origin is not None:
            raise UserError("digits is included in dign: it cannot be fetched from elsewhere.")
        return "digits is included in dign: there is nothing to fetch."

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]:
        images, labels = _load()
        against = "the SHA-256 known to dign"
        return [
            Check("images", hash_array(images[:, 0]) == IMAGES_SHA256, against),
            Check("labels", hash_array(labels.astype(np.uint8)) == LABELS_SHA256, against),
        ]


def _load() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797,3,8,8) uint8 and labels (1797,) int64."""
    with (
        files("dign.data.sources").joinpath("digits.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as data,
    ):
        ink, labels = data["images"], data["labels"]
    gray = np.rint(ink[:, None] * (255 / 16)).astype(np.uint8)
    return gray.repeat(3, axis=1), labels.astype(np.int64)
