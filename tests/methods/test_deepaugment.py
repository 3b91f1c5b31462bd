import pytest
import torch

from dign.augment.autoencoder import make_weights, save_autoencoder
from dign.core.errors import UserError
from dign.methods import DeepAugment
from dign.training.train import train


def test_deepaugment(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(DeepAugment(share=0.5), recorder, x, y)
    changed = (seen != x).flatten(1).any(1).tolist()
    assert changed == [True] * 3 + [False] * 3
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)


@pytest.fixture(scope="module")
def autoencoder(tmp_path_factory):
    path = tmp_path_factory.mktemp("autoencoder") / "a.safetensors"
    save_autoencoder(path, make_weights(1))
    return str(path)


def test_edited_autoencoders_distort_the_first_part_of_the_batch(recorder, x, y, autoencoder):
    method = DeepAugment(networks="autoencoder", autoencoder=autoencoder, share=0.5)
    (made,) = method.views(recorder, x, y, torch.Generator().manual_seed(0))
    assert torch.equal(made[3:], x[3:]) and not torch.isclose(made[:3], x[:3]).all()
    assert made.min() >= 0 and made.max() <= 1
    method(recorder, x, y).loss.backward()


def test_an_autoencoder_that_is_missing_is_one_sentence(recorder, x, y):
    with pytest.raises(UserError, match="needs an autoencoder of the training images"):
        DeepAugment(networks="autoencoder")(recorder, x, y)
    with pytest.raises(UserError, match="networks"):
        DeepAugment(networks="edsr")


@pytest.mark.slow
def test_a_run_makes_its_autoencoder_and_a_resumed_run_finds_it(tmp_path, monkeypatch):
    monkeypatch.setattr("dign.augment.autoencoder.STEPS", 5)
    settings = {"deepaugment": {"networks": "autoencoder"}}
    config = {
        "data": "digits",
        "size": 8,
        "epochs": 1,
        "batch_size": 256,
        "method": "deepaugment",
        "settings": settings,
    }
    run = train(config, tmp_path / "run", quiet=True)
    file = run.path / "autoencoder.safetensors"
    written = file.stat().st_mtime_ns
    assert run.finished and str(tmp_path) not in (run.path / "config.toml").read_text()
    settled = run.method().settle(run.path, run.data().train, seed=0, device=torch.device("cpu"))
    assert settled.autoencoder == str(file) and file.stat().st_mtime_ns == written


def test_an_autoencoder_that_is_not_there_is_named(recorder, x, y, tmp_path):
    method = DeepAugment(networks="autoencoder", autoencoder=str(tmp_path / "none.safetensors"))
    with pytest.raises(UserError, match=r"none.safetensors is not a readable autoencoder"):
        method(recorder, x, y)


def test_edited_networks_flip_features_so_that_labels_of_pixels_do_not_fit(x):
    labels = torch.zeros(len(x), *x.shape[-2:], dtype=torch.long)
    with pytest.raises(UserError, match="moves or mixes pixels"):
        DeepAugment(networks="autoencoder")(torch.nn.Conv2d(3, 2, 1), x, labels)
    DeepAugment()(torch.nn.Conv2d(3, 2, 1), x, labels)
