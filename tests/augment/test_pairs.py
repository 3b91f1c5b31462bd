import pytest
import torch

from dign.augment.pairs import partners


@pytest.mark.parametrize(("turn", "images"), [(0.5, 24), (0.25, 24), (0.5, 6)])
def test_partners_are_in_the_same_process(turn, images):
    """Rank r of three holds images r, r + 3, ...: its pairs are those of one process that holds them all."""
    numbers = torch.arange(images)
    together = partners(numbers, turn)
    assert not (together == numbers).any() and sorted(together.tolist()) == numbers.tolist()
    for rank in range(3):
        assert torch.equal(partners(numbers[rank::3], turn), together[rank::3])


def test_an_image_alone_is_its_own_partner():
    assert partners(torch.tensor([7])).tolist() == [7]
