"""A data set checks its splits when it is created."""

import pytest
import torch

from dign.core.errors import UserError
from dign.data.dataset import DataSet, Split, join_splits


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


def test_joined_splits_read_only_what_is_taken():
    class Stored:
        """Ten images, each of its number; remembers which were asked for."""

        shape, dtype, taken = torch.Size((10, 3, 4, 4)), torch.uint8, ()

        def __len__(self):
            return 10

        def __getitem__(self, which):
            self.taken = torch.arange(10)[which].tolist()
            return torch.tensor(self.taken, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 4, 4)

    first, second = (Split(Stored(), torch.full((10,), label)) for label in (0, 1))
    few = second.select(torch.tensor([7, 2, 5]))
    joined = join_splits([few, few.select(torch.tensor([], dtype=torch.long)), first])
    assert len(joined) == 13 and joined.shape == (13, 3, 4, 4) and joined.labels.tolist() == [1] * 3 + [0] * 10
    assert joined.take(torch.tensor([4, 0, 12, 2]))[:, 0, 0, 0].tolist() == [1, 7, 9, 5]
    assert first.stored.taken == [1, 9] and second.stored.taken == [7, 5]
    assert joined.take(slice(2, 5))[:, 0, 0, 0].tolist() == [5, 0, 1]
