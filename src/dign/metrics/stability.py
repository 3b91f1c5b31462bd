"""How much answers change between two versions of the same images: flips, and the distance of the first five."""

from __future__ import annotations

from torch import Tensor

TOP = 5


def flips(first: Tensor, second: Tensor) -> Tensor:
    """Whether the likeliest class differs, (N,) bool, between two sets of scores (N,classes).

    >>> import torch
    >>> flips(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([[0.6, 0.4], [0.7, 0.3]])).tolist()
    [False, True]
    """
    return first.argmax(1) != second.argmax(1)


def top_distance(first: Tensor, second: Tensor) -> Tensor:
    """The distance (N,) int64 between two rankings of classes, among the first five.

    d = sum_{i=1..5} |min(i, 6) - min(r_i, 6)|, where r_i is the rank in `second` of the class of rank i in `first`
    (Hendrycks and Dietterich, 2019). Of scores (N,classes); 0 where the first five are the same in the same order.

    >>> import torch
    >>> scores = torch.tensor([[0.4, 0.3, 0.2, 0.06, 0.03, 0.01]])
    >>> top_distance(scores, scores).tolist(), top_distance(scores, scores.flip(1)).tolist()
    ([0], [13])
    """
    count = min(TOP, first.shape[1])
    leading = first.argsort(dim=1, descending=True, stable=True)[:, :count]
    ranks = second.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    ranks = ranks.gather(1, leading).clamp(max=TOP)
    places = leading.new_tensor(range(count))
    return (ranks - places).abs().sum(1)
