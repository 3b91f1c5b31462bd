"""The seventeen edits, and images through edited networks: seeded, in [0,1], the same in several processes."""

from itertools import product

import numpy
import pytest
import torch
from scipy.signal import correlate2d

from dign.augment.autoencoder import BLOCKS, WIDTH, make_weights, save_autoencoder
from dign.augment.edited_networks import (
    EDITS,
    Draws,
    _edit_features,
    _edit_inside,
    distort,
    edit_weights,
    edited_networks,
    keep_largest,
)
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


def correlated(weights, kernel):
    """What a convolution of kernels (O,I,3,3), as images, with others (J,I,3,3) gives: slowly, by SciPy."""
    made = [[sum(map(correlate_same, image, filter)) for filter in kernel.numpy()] for image in weights.numpy()]
    return torch.tensor(numpy.array(made))


def correlate_same(image, filter):
    return correlate2d(image, filter, mode="same")


def one_layer(which):
    """The name of a random block's layer."""
    return lambda by: f"body.{by.integer(BLOCKS)}.{which}.weight"


first, second = one_layer("first"), one_layer("second")


def either(by):
    return second(by) if by.integer(2) else first(by)


def each_tap(weights, factors):
    """Kernels times nine numbers, row by row."""
    return torch.stack([weights[..., i // 3, i % 3] * factor for i, factor in enumerate(factors)], -1).view_as(weights)


def expect_shift(w, by):
    name = first(by)
    places, heads = by.uniform(WIDTH, 9), by.uniform(WIDTH, 1)
    kernel = torch.zeros(WIDTH, WIDTH, 3, 3)
    for channel in range(WIDTH):
        row, column = divmod(int(places[channel].argmax()), 3)
        kernel[:, channel, row, column] = 1.0 if heads[channel] < 0.5 else -1.0
    return {name: correlated(w[name], kernel)}


def expect_random_blur(w, by):
    name = first(by)
    drawn = by.uniform(WIDTH, WIDTH, 3, 3)
    return {name: correlated(w[name], (2 * drawn * by.fraction() - 1) / 6)}


def expect_dirichlet_blur(w, by):
    name = second(by)
    return {name: correlated(w[name], by.dirichlet(WIDTH, WIDTH, 9, alpha=0.1).view(WIDTH, WIDTH, 3, 3))}


def expect_scale(w, by):
    name = second(by)
    u = by.fraction()
    return {name: w[name] + w[name] * 4 * u * by.uniform(*w[name].shape)}


def expect_noise(w, by):
    name = second(by)
    return {name: w[name] + (by.uniform(*w[name].shape) - 0.5)}


def expect_rotated(w, by):
    made = {}
    for _ in range(5):
        name, turns = either(by), 1 + by.integer(3)
        value, in_space = made.get(name, w[name]), by.integer(2)
        for _ in range(turns):  # a quarter: transpose, then reverse the first of the two axes
            value = value.transpose(2, 3).flip(2) if in_space else value.transpose(0, 1).flip(0)
        made[name] = value
    return made


def expect_five(change, layer=first):
    def expect(w, by):
        made = {}
        for _ in range(5):
            name = layer(by)
            made[name] = change(made.get(name, w[name]), by)
        return made

    return expect


def largest_alone(value, by):
    made = torch.zeros_like(value)
    for o, i in product(range(value.shape[0]), range(value.shape[1])):
        row, column = divmod(int(value[o, i].argmax()), 3)
        made[o, i, row, column] = value[o, i, row, column]
    return made


def with_bias(change):
    def expect(w, by):
        name = first(by)
        return {each: change(w[each]) for each in (name, name.replace("weight", "bias"))}

    return expect


def expect_flipped(w, by):
    block = f"body.{by.integer(BLOCKS)}."
    return {name: torch.stack(list(reversed(list(w[name])))) for name in w if name.startswith(block)}


def expect_bent(w, by):
    block = f"body.{by.integer(BLOCKS)}."
    names = [name for name in w if name.startswith(block) and name.endswith("weight")]
    return {name: -w[name] * 0.5 * (1 + torch.erf(w[name] / 2**0.5)) for name in names}


def expect_mirrored(w, by):
    block = f"body.{by.integer(BLOCKS)}."
    return {f"{block}first.weight": w[f"{block}first.weight"][..., [2, 1, 0]],
            f"{block}second.weight": -w[f"{block}second.weight"]}  # fmt: skip


def taps(*factors):
    def expect(w, by):
        name = first(by)
        return {name: each_tap(w[name], factors)}

    return expect


EXPECTED = {
    "flip_filters": expect_flipped,
    "negate": with_bias(lambda value: -value),
    "zero": with_bias(lambda value: 0 * value),
    "bend": expect_bent,
    "laplace": taps(0, 1, 0, 1, -4, 1, 0, 1, 0),
    "contrast_neighbors": taps(-1, -1, -1, -1, 8, -1, -1, -1, -1),
    "scale": expect_scale,
    "mirror": expect_mirrored,
    "shift": expect_shift,
    "blur_randomly": expect_random_blur,
    "blur_by_dirichlet": expect_dirichlet_blur,
    "add_noise": expect_noise,
    "rotate": expect_rotated,
    "sign_randomly": expect_five(lambda w, by: torch.where(by.uniform(*w.shape) > 0.5, w, -w)),
    "drop_randomly": expect_five(lambda w, by: torch.where(by.uniform(*w.shape) > 0.5, w, 0)),
    "negate_filters": expect_five(
        lambda w, by: torch.where(by.uniform(WIDTH, 1, 1, 1) < 1 - (1 - 1 / WIDTH) ** (WIDTH // 2), -w, w)
    ),
    "keep_largest": expect_five(largest_alone, either),
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edit_is_what_plain_code_makes_of_the_same_numbers(edit):
    weights = make_weights(1)
    for number, name in enumerate(weights):
        if name.endswith("bias"):
            weights[name] = torch.rand(weights[name].shape, generator=torch.Generator().manual_seed(number))
    for seed in (0, 1):
        edited = dict(weights)
        edit(edited, draws(seed))
        expected = {**weights, **EXPECTED[edit.__name__](weights, draws(seed))}
        for name in weights:
            torch.testing.assert_close(edited[name], expected[name], rtol=1e-4, atol=1e-5)


def test_edits_after_the_head():
    features = torch.rand(2, WIDTH, 3, 3, generator=torch.Generator().manual_seed(0)) + 0.1
    noise = torch.rand(2, WIDTH, 3, 3, generator=torch.Generator().manual_seed(1))
    found = set()
    for seed in range(40):
        made, option = _edit_features(features, draws(seed), noise), draws(seed).integer(4)
        found.add(option)
        if option == 0:  # channels change places
            assert sorted(made[0, :, 0, 0].tolist()) == sorted(features[0, :, 0, 0].tolist())
        elif option == 1:  # zero where the noise is below 0.05
            assert torch.equal(made, torch.where(noise < 0.05, 0, features))
        elif option == 2:  # negative where it is below 0.025
            assert torch.equal(made, torch.where(noise < 0.025, -features, features))
        else:
            assert torch.equal(made, features)
    assert found == {0, 1, 2, 3}


def test_edits_inside_the_body():
    features = torch.randn(2, 4, 3, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(_edit_inside(features, 0, draws()), -features)
    bent = [_edit_inside(features, 1, draws(seed)) for seed in range(12)]
    gelu = 0.5 * features * (1 + torch.erf(features / 2**0.5))
    assert {torch.equal(each, features.clamp(min=0)) for each in bent} == {True, False}
    assert all(torch.equal(each, features.clamp(min=0)) or torch.allclose(each, gelu, atol=1e-6) for each in bent)
    flipped = [_edit_inside(features, 2, draws(seed)) for seed in range(12)]
    ways = (features[:, [3, 2, 1, 0]][:, :, [2, 1, 0]], features[:, [3, 2, 1, 0]][..., [4, 3, 2, 1, 0]])
    assert all(any(torch.equal(each, way) for way in ways) for each in flipped)
    assert all(any(torch.equal(each, way) for each in flipped) for way in ways)
    assert torch.equal(_edit_inside(features, 4, draws()), features)


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
