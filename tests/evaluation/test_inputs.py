"""Images in any form are streamed and never held."""

import pytest
import torch
from torch.utils.data import Dataset

from dign.core.errors import UserError
from dign.evaluation.inputs import check_batch, open_images

LABELS = torch.tensor([0, 1])


class Counting(Dataset):
    """Remembers which images were asked for."""

    def __init__(self):
        self.seen = []

    def __len__(self):
        return 10

    def __getitem__(self, index):
        self.seen.append(index)
        return torch.zeros(3, 8, 8), index


def test_a_data_set_is_read_batch_by_batch():
    data = Counting()
    stream = open_images(data, 4)
    assert stream.count == 10 and data.seen == [], "nothing is read before it is asked for"
    batches = iter(stream.batches)
    next(batches)
    assert data.seen == [0, 1, 2, 3]
    assert [len(labels) for _, labels in batches] == [4, 2]


def test_a_generator_of_batches_is_a_stream_of_unknown_length():
    stream = open_images((batch for batch in [(torch.zeros(2, 1, 8, 8), LABELS)]), 4)
    assert stream.count is None and [images.shape for images, _ in stream.batches] == [(2, 1, 8, 8)]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64, torch.bfloat16])
def test_types_of_images_are_kept(dtype):
    images, labels = check_batch((torch.ones(2, 3, 8, 8, dtype=dtype), LABELS.to(torch.uint8)))
    assert images.dtype == dtype and labels.dtype == torch.int64


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (torch.zeros(2, 3, 8), LABELS, r"\(N,3,H,W\) or \(N,1,H,W\), not \(2, 3, 8\)"),
        (torch.zeros(2, 2, 8, 8), LABELS, "not"),
        (torch.zeros(2, 3, 8, 8), LABELS[:1], "one label for each of the 2 images"),
        (torch.zeros(2, 3, 8, 8), LABELS[:, None], "one label for each"),
        (torch.zeros(2, 3, 8, 8), LABELS.bool(), "class indices"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.int32), LABELS, "uint8, or float"),
        (torch.full((2, 3, 8, 8), 1.001), LABELS, r"in \[0,1\]"),
        (torch.full((2, 3, 8, 8), float("inf")), LABELS, r"in \[0,1\]"),
    ],
)
def test_wrong_batches_are_named(images, labels, message):
    with pytest.raises(UserError, match=message):
        check_batch((images, labels))
