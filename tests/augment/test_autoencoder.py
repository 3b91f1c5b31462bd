"""An autoencoder that reproduces images after a short training, the same for the same seed."""

import pytest
import torch

from dign.augment.autoencoder import load_autoencoder, make_weights, reproduce, save_autoencoder, train_weights
from dign.core.errors import UserError
from dign.core.pixels import to_float
from dign.data.loading import load


@pytest.fixture(scope="module")
def images():
    return load("digits", size=9).train.images[:400]


@pytest.mark.slow
def test_it_learns_to_reproduce_images(images):
    x = to_float(images[:50])
    weights = train_weights(images[50:].__getitem__, 350, steps=60)
    before, after = ((reproduce(x, each) - x).abs().mean().item() for each in (make_weights(), weights))
    assert reproduce(x, weights).shape == x.shape, "also of odd sides"
    assert after < 0.4 * before
    assert all(not value.requires_grad for value in weights.values())


def test_a_seed_decides_it(images):
    first, again, other = (train_weights(images.__getitem__, 400, seed=seed, steps=3) for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_it_is_stored_and_a_file_that_is_none_is_one_sentence(tmp_path):
    weights = make_weights(3)
    save_autoencoder(tmp_path / "a.safetensors", weights)
    loaded = load_autoencoder(tmp_path / "a.safetensors")
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
    save_autoencoder(tmp_path / "b.safetensors", {"head.weight": torch.zeros(2)})
    (tmp_path / "c.safetensors").write_bytes(b"x")
    for name, sentence in (
        ("b", "is not an autoencoder of this version"),
        ("c", "not a readable"),
        ("d", "not a readable"),
    ):
        with pytest.raises(UserError, match=sentence):
            load_autoencoder(tmp_path / f"{name}.safetensors")
