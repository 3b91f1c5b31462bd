"""A data set checks its splits when it is created."""

import pytest
import torch

from dign.core.errors import UserError
from dign.data.dataset import DataSet, Split


def split(count=2, dtype=torch.uint8, shape=(3, 4, 6), labels=(0, 1)):
    return Split(torch.zeros(count, *shape).to(dtype), torch.tensor(labels))


def test_the_image_size_is_height_and_width():
    assert DataSet("mine", ("cat", "dog"), split(), split(), split()).image_size == (4, 6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": torch.float32}, r"mine: test images must be uint8 \(N,3,H,W\), not torch.float32"),
        ({"shape": (1, 4, 6)}, r"not torch.uint8 \(2, 1, 4, 6\)"),
        ({"count": 3}, "3 test images but 2 labels"),
        ({"labels": (0, 2)}, r"test label is outside 0\.\.1, the 2 classes"),
        ({"labels": (-1, 0)}, r"outside 0\.\.1"),
    ],
)
def test_a_split_of_the_wrong_shape_type_or_range_is_refused(changes, message):
    with pytest.raises(UserError, match=message):
        DataSet("mine", ("cat", "dog"), split(), split(), split(**changes))
