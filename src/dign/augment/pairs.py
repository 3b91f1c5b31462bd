"""Which image of a batch goes with which."""

from torch import Tensor


def partners(values: Tensor, turn: float = 0.5) -> Tensor:
    """For each image of a batch, what belongs to its partner: the image `turn` of the batch further on.

    Batches are shuffled, so that a fixed distance pairs images as randomly as a drawn order does. And where several
    processes share a batch (each holds every k-th image), partners are in the same process: half a batch on, if each
    process holds an even number of images, and a quarter on, if it is a multiple of four.

    Args:
        values: Images, labels or numbers, one for each image of the batch along the first axis.
        turn: The distance, as a fraction of the batch.

    >>> import torch
    >>> partners(torch.tensor([10, 11, 12, 13])).tolist(), partners(torch.tensor([10, 11, 12, 13]), 0.25).tolist()
    ([12, 13, 10, 11], [11, 12, 13, 10])
    """
    return values.roll(-int(turn * len(values)), 0)
