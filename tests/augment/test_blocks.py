import pytest
import torch

from dign.augment import blocks as module
from dign.augment.blocks import block_size, blocks
from dign.augment.chains import OPERATIONS, chains, mix


@pytest.mark.parametrize("count", [0, 1, 64, 65, 66, 200])
def test_blocks_cover_the_batch_once(count):
    images = torch.zeros(count, 3, 32, 32)
    numbers = [number for part in blocks(images) for number in range(count)[part]]
    assert numbers == list(range(count))
    assert all(part.stop - part.start <= block_size(images) for part in blocks(images))


def test_an_image_that_is_too_large_is_a_block_of_its_own():
    assert block_size(torch.zeros(4, 3, 1024, 1024)) == 1


def test_what_is_done_block_by_block_is_the_same_bit_for_bit(monkeypatch):
    x = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))

    def views():
        draw = torch.Generator().manual_seed(1)
        made = chains(x, 3, severity=5.0, operations=OPERATIONS, generator=draw)
        return made, mix(x, made, torch.rand(40, 3, generator=draw), torch.rand(40, generator=draw))

    in_one = views()
    monkeypatch.setattr(module, "BLOCK_VALUES", 7 * 192)
    for first, second in zip(in_one, views(), strict=True):
        assert torch.equal(first, second)
