"""Several processes that share a batch see, together, the random numbers that one process would see."""

import pytest
import torch
from torch import nn

from dign.augment.chains import OPERATIONS
from dign.augment.train_transforms import TrainTransforms
from dign.core.image_rng import (
    global_batch_size,
    local_count,
    local_slice,
    make_placed_generator,
    make_shared_generator,
    normal_like,
    uniform,
)
from dign.core.seeds import make_generator
from dign.methods import (
    AT,
    METHODS,
    PRIME,
    AugMax,
    AugMix,
    CutMix,
    DeepAugment,
    DiGN,
    MixedLabels,
    MixUp,
    TrivialAugment,
)

RANKS = 3
VARIANTS = [
    *(method() for method in METHODS.values()),
    AT(start="uniform"),
    AT(norm="l2", start="uniform"),
    AugMix(operations=OPERATIONS, severity=3.0, depth=2),
    AugMax(operations=OPERATIONS, steps=2),
    DeepAugment(share=0.3),  # 7 of 24 images: three, two and two
    CutMix() + MixUp() + DiGN(),
    TrivialAugment(noise=True),
    DiGN(density=0.2),
    DiGN() + PRIME(depth=2),
    DeepAugment(share=0.05) + DiGN(),  # one process has no image to distort, and must draw for DiGN all the same
]


def shared(rank, purpose="test"):
    return make_shared_generator(7, purpose, 0, torch.device("cpu"), rank, RANKS)


def test_every_process_keeps_the_numbers_of_its_own_images():
    everything = torch.rand(4, 9, generator=make_generator(7, "test"))
    parts = [uniform(4, 3, generator=shared(rank), device=torch.device("cpu"), images=1) for rank in range(RANKS)]
    assert torch.equal(torch.stack(parts, dim=-1).flatten(1), everything)
    noise = torch.randn(9, 2, generator=make_generator(7, "test"))
    parts = [normal_like(torch.zeros(3, 2), shared(rank)) for rank in range(RANKS)]
    assert torch.equal(torch.stack(parts, dim=1).flatten(0, 1), noise)


def test_the_first_images_of_the_batch_are_the_first_of_every_process():
    assert [local_count(7, shared(rank)) for rank in range(RANKS)] == [3, 2, 2] and local_count(7, None) == 7
    assert global_batch_size(4, shared(1)) == 12 and global_batch_size(4, None) == 4
    assert local_slice(torch.arange(7), shared(1)).tolist() == [1, 4]


@pytest.mark.parametrize("method", VARIANTS, ids=[method.key for method in VARIANTS])
def test_the_views_of_a_share_are_the_share_of_the_views(method):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 10))
    x, y = torch.rand(24, 3, 8, 8), torch.randint(10, (24,))

    def views(x, y, generator):
        made = method.prepare(model, x, y, generator)
        labels = [made.y.classes, made.y.shares] if isinstance(made.y, MixedLabels) else [made.y]
        return [made.x, *labels, *(view for views in made.views for view in views)]

    together = views(x, y, make_generator(7, "test"))
    for rank in range(RANKS):
        mine = slice(rank, None, RANKS)
        for view, part in zip(together, views(x[mine], y[mine], shared(rank)), strict=True):
            torch.testing.assert_close(part, view[mine], rtol=0, atol=1e-5)


def test_the_transforms_of_a_share_are_the_share_of_the_transforms():
    x = torch.rand(9, 3, 8, 8)
    together = TrainTransforms()(x, make_generator(7, "test"))
    for rank in range(RANKS):
        torch.testing.assert_close(TrainTransforms()(x[rank::RANKS], shared(rank)), together[rank::RANKS])


def test_what_an_image_of_a_data_set_gets_does_not_depend_on_its_batch():
    def draw(first, count):
        generator = make_placed_generator(0, "test", first, "cpu")
        sigma = uniform(count, 1, generator=generator, device=torch.device("cpu"))
        return torch.cat([sigma, normal_like(torch.empty(count, 3), generator)], dim=1)

    whole = draw(0, 300)
    assert torch.equal(whole, torch.cat([draw(first, 100) for first in (0, 100, 200)]))
    levels = whole[:, 0]
    assert levels.min() >= 0 and levels.max() < 1 and abs(levels.mean() - 0.5) < 0.06 and len(levels.unique()) == 300
