import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dign.core.errors import UserError
from dign.data.dataset import Split
from dign.data.splits import cut_split, split_stratified


def test_shares_worked_out_by_hand():
    labels = torch.tensor([0] * 10 + [1] * 25 + [2] * 4 + [3] * 1 + [4] * 2)
    kept, taken = split_stratified(labels, 0.1, seed=0, purpose="test")
    # round(1.0) = 1, round-half-up(2.5) = 3, at least one of 4, none of a single one, one of two
    assert labels[taken].bincount(minlength=5).tolist() == [1, 3, 1, 0, 1]
    assert labels[kept].bincount(minlength=5).tolist() == [9, 22, 3, 1, 1]


@given(
    st.lists(st.integers(0, 4), max_size=60),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 2**31),
)
def test_the_two_parts_make_up_the_whole_in_order(labels, fraction, seed):
    kept, taken = split_stratified(torch.tensor(labels, dtype=torch.int64), fraction, seed, "test")
    assert sorted(kept.tolist() + taken.tolist()) == list(range(len(labels)))
    assert kept.tolist() == sorted(kept.tolist())
    assert taken.tolist() == sorted(taken.tolist())
    assert {labels[index] for index in kept.tolist()} == set(labels)


def test_the_same_seed_cuts_the_same_images_and_another_seed_others():
    labels = torch.arange(10).repeat(50)
    first = split_stratified(labels, 0.1, 3, "test")[1]
    assert torch.equal(first, split_stratified(labels, 0.1, 3, "test")[1])
    assert not torch.equal(first, split_stratified(labels, 0.1, 4, "test")[1])
    assert not torch.equal(first, split_stratified(labels, 0.1, 3, "another purpose")[1])


def test_the_draw_of_a_class_does_not_depend_on_the_others():
    alone = split_stratified(torch.zeros(20, dtype=torch.int64), 0.2, 0, "test")[1]
    beside = split_stratified(torch.tensor([0] * 20 + [1] * 7), 0.2, 0, "test")[1]
    assert alone.tolist() == beside[beside < 20].tolist()


def test_the_draw_never_changes():
    """Figures of old runs stay comparable only if this stays as it is."""
    assert split_stratified(torch.zeros(20, dtype=torch.int64), 0.2, 0, "validation split")[1].tolist() == [0, 3, 7, 18]


def test_fraction_zero_copies_nothing():
    split = Split(torch.zeros(4, 3, 2, 2, dtype=torch.uint8), torch.tensor([0, 0, 1, 1]))
    rest, nothing = cut_split(split, 0, 0, "test")
    assert rest.images.data_ptr() == split.images.data_ptr()
    assert len(nothing) == 0


@pytest.mark.parametrize("fraction", [-0.1, 1.0, 2, float("nan")])
def test_a_fraction_that_is_none_is_refused(fraction):
    with pytest.raises(UserError, match="below 1"):
        split_stratified(torch.zeros(4, dtype=torch.int64), fraction, 0, "test")
