"""The handwritten digits that ship inside scikit-learn: always there, for a first try and for the tests."""

from __future__ import annotations

from importlib.util import find_spec
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
    """1 797 gray 8x8 digits with values 0..16, made uint8 with three equal channels, enlarged smoothly.

    Shown as they were written, dark ink on white paper: on a black ground shot and speckle noise would do nothing.
    They have no official split: a fifth of every class, drawn once and for all, is the test split.
    """

    def read(self, root: Path, size: int | None, report: ProgressCallback) -> OfficialSplits:
        images, labels = _load()
        pixels = np.stack(list(resize(255 - images, size or DEFAULT_SIZE)))
        everything = Split(torch.from_numpy(pixels), torch.from_numpy(labels))
        train, test = cut_split(everything, TEST_FRACTION, seed=0, purpose="digits test split")
        return OfficialSplits(tuple("0123456789"), train, test, location="scikit-learn (embedded)")

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        if origin is not None:
            raise UserError("digits comes with scikit-learn and from nowhere else: leave --from out.")
        return "digits ships with scikit-learn: there is nothing to fetch."

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]:
        images, labels = _load()
        against = "the SHA-256 known to dign"
        return [
            Check("images", hash_array(images[:, 0]) == IMAGES_SHA256, against),
            Check("labels", hash_array(labels.astype(np.uint8)) == LABELS_SHA256, against),
        ]


def _load() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797,3,8,8) uint8 and labels (1797,) int64."""
    table = _table()
    gray = np.rint(table[:, :64].reshape(-1, 1, 8, 8) * (255 / 16)).astype(np.uint8)
    return gray.repeat(3, axis=1), table[:, 64].astype(np.int64)


def _table() -> np.ndarray:
    """(1797,65): 64 values 0..16 and the label. Read from scikit-learn's file, since to import it takes seconds."""
    spec = find_spec("sklearn")
    file = Path(spec.origin).with_name("datasets") / "data" / "digits.csv.gz" if spec and spec.origin else None
    if file and file.is_file():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits  # the file may move, its own reader will find it

    values, labels = load_digits(return_X_y=True)
    return np.column_stack([values, labels])
