"""The seventeen edits, and images through edited networks: seeded, in [0,1], the same in several processes."""

import pytest
import torch

from dign.augment.autoencoder import WIDTH, make_weights, save_autoencoder
from dign.augment.edited_networks import EDITS, Draws, distort, edit_weights, edited_networks, keep_largest
from dign.core.image_rng import make_shared_generator


def draws(seed=0):
    return Draws(torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed), torch.zeros(1))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("autoencoder") / "a.safetensors"
    save_autoencoder(file, make_weights(1))
    return str(file)


@pytest.fixture
def x():
    return torch.rand(12, 3, 9, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_every_edit_changes_weights_of_the_body_alone_and_none_in_place(edit):
    weights = make_weights(1)
    for name in weights:
        if name.endswith("bias"):
            weights[name] = torch.rand(weights[name].shape)
    before = {name: value.clone() for name, value in weights.items()}
    edited = dict(weights)
    edit(edited, draws(2))
    changed = [name for name in weights if not torch.equal(edited[name], before[name])]
    assert changed and all(name.startswith("body.") for name in changed)
    assert all(torch.equal(weights[name], before[name]) for name in weights), "not in place"
    assert all(edited[name].shape == before[name].shape and edited[name].isfinite().all() for name in weights)


def test_there_are_seventeen_and_three_are_drawn():
    assert len(EDITS) == 17 and len(set(EDITS)) == 17
    weights = make_weights(1)
    assert {name for name in weights if not torch.equal(edit_weights(weights, draws())[name], weights[name])}


def test_the_largest_tap_alone_is_kept():
    weights = make_weights(1)
    keep_largest(weights, draws())
    names = [name for name, value in weights.items() if (value == 0).float().mean() > 0.8 and name.endswith("weight")]
    assert names
    for name in names:
        assert bool(((weights[name].flatten(2) != 0).sum(-1) <= 1).all())


def test_images_stay_images(x):
    for seed in range(20):
        noise = torch.rand(12, WIDTH, 5, 4)
        made = distort(x, make_weights(1), draws(seed), noise)
        assert made.shape == x.shape and made.isfinite().all() and made.min() >= 0 and made.max() <= 1


def test_the_generator_decides_and_groups_have_networks_of_their_own(x, path):
    same = x[:1].expand(12, -1, -1, -1)
    first, again, other = (
        edited_networks(same, path, redraw=0.25, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)
    means = first.flatten(1).mean(1)
    assert not torch.isclose(means[0], means[4]) and not torch.isclose(means[4], means[8])


def test_several_processes_make_what_one_makes(x, path):
    device = torch.device("cpu")
    alone = edited_networks(x, path, redraw=0.25, generator=make_shared_generator(0, "m", 1, device, 0, 1))
    for rank in range(2):
        here = edited_networks(
            x[rank::2], path, redraw=0.25, generator=make_shared_generator(0, "m", 1, device, rank, 2)
        )
        torch.testing.assert_close(here, alone[rank::2])
