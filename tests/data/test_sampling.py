"""The order of an epoch: every image once, or every class equally often."""

import torch

from dign.core.seeds import make_generator
from dign.data.sampling import draw_order

LABELS = torch.tensor([0] * 50 + [1] * 5 + [3] * 8)


def test_every_image_comes_once_in_an_order_of_its_own_for_every_epoch():
    first, again, next_epoch = (draw_order(LABELS, epoch, seed=3) for epoch in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, next_epoch)
    assert first.sort().values.tolist() == list(range(63))
    assert torch.equal(first, torch.randperm(63, generator=make_generator(3, "order", 0))), "as it always was"


def test_balanced_classes_come_equally_often_and_so_do_the_images_of_a_class():
    order = draw_order(LABELS, 0, seed=0, balance=True)
    assert len(order) == 63
    assert LABELS[order].bincount(minlength=4).tolist() == [21, 21, 0, 21]
    times = order.bincount(minlength=63)
    assert times[:50].max() == 1 and set(times[50:55].tolist()) == {4, 5} and set(times[55:].tolist()) == {2, 3}


def test_what_does_not_divide_evenly_goes_to_other_classes_every_epoch():
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2])
    counts = [labels[draw_order(labels, epoch, seed=0, balance=True)].bincount().tolist() for epoch in range(20)]
    assert all(sorted(each) == [2, 2, 3] for each in counts) and len(set(map(tuple, counts))) == 3


def test_all_images_of_a_frequent_class_are_seen_over_the_epochs():
    seen = torch.cat([draw_order(LABELS, epoch, seed=0, balance=True) for epoch in range(12)])
    assert len(seen.unique()) == 63
