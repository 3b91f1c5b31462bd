"""Ensembles: the mean of their members' probabilities, and members that agree."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.data.framing import Framing
from dign.methods import RSE, Standard
from dign.runs.calibrator import Calibrator
from dign.runs.classifier import Classifier
from dign.runs.ensemble import Ensemble, open_classifier, split_members
from dign.training.train import train


def member(seed, classes=("a", "b", "c"), size=(2, 2), method=None, **more):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * size[0] * size[1], len(classes)))
    return Classifier(network, method or Standard(), classes, size, f"seed-{seed}", **more)


@pytest.fixture
def images():
    return torch.rand(5, 3, 2, 2, generator=torch.Generator().manual_seed(0))


def test_its_probabilities_and_the_softmax_of_its_logits_are_the_mean_of_the_members_softmax(images):
    members = [member(seed) for seed in range(3)]
    expected = sum(each.model(images).double().softmax(1) for each in members) / 3
    ensemble = Ensemble(members)
    torch.testing.assert_close(ensemble.predict(images).double(), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(ensemble(images).double().exp(), expected, atol=1e-6, rtol=0)
    assert ensemble.members == members and ensemble.method.title == "3 x Standard"
    assert ensemble.name == "ensemble of seed-0, seed-1, seed-2" and Ensemble(members, "mine").name == "mine"


def test_members_predict_calibrated_and_as_their_methods_do(images):
    calibrator = Calibrator("temperature", 2.0, "digits", 100, "clean", 0.5, 0.4)
    one, other = member(0, calibrator=calibrator), member(1, method=RSE(sigma=0.3, ensemble=2))
    ensemble = Ensemble([one, other])
    generator = torch.Generator().manual_seed(3)
    noisy = other.predict(images, generator)
    expected = ((one.model(images) / 2).softmax(1) + noisy) / 2
    torch.testing.assert_close(ensemble.predict(images, torch.Generator().manual_seed(3)), expected)
    assert ensemble.method.title == "Ensemble" and ensemble.calibrator is None


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"classes": ("a", "c", "b")}, "seed-1 knows the classes a, c, b, but seed-0 knows a, b, c"),
        ({"size": (4, 2)}, "seed-1 takes images of 4x2 pixels, but seed-0 of 2x2"),
        ({"framing": Framing("pad")}, "frames pictures otherwise"),
    ],
)
def test_members_that_do_not_agree_are_one_sentence(other, sentence):
    with pytest.raises(UserError, match=sentence):
        Ensemble([member(0), member(1, **other)])


def test_the_mode_of_its_members_stays_as_it_was():
    one, other = member(0).eval(), member(1).train()
    assert Ensemble([one, other]).training and not one.training and other.training
    assert not Ensemble([one, member(2).eval()]).training


def test_one_member_is_no_ensemble():
    with pytest.raises(UserError, match="at least two members, not 1"):
        Ensemble([member(0)])


def test_members_are_named_by_commas_and_patterns(tmp_path):
    for name in ("seed-1", "seed-0", "other"):
        (tmp_path / name).mkdir()
    assert split_members(f"ensemble:{tmp_path}/seed-*,x") == [f"{tmp_path}/seed-0", f"{tmp_path}/seed-1", "x"]
    assert split_members(tmp_path) is None
    with pytest.raises(UserError, match="no folder matches 'nowhere-\\*'"):
        split_members("ensemble:nowhere-*")
    with pytest.raises(UserError, match="ensemble: names no members"):
        split_members("ensemble:")
    with pytest.raises(UserError, match="a is twice in ensemble:a,b,a"):
        split_members("ensemble:a,b,a")


def test_runs_are_opened_as_one(tmp_path):
    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard"}
    for seed in range(2):
        train({**settings, "seed": seed}, tmp_path / f"seed-{seed}", quiet=True)
    ensemble = open_classifier(f"ensemble:{tmp_path}/seed-*")
    assert not ensemble.training and [each.name for each in ensemble.members] == ["seed-0", "seed-1"]
    assert all(each.calibrator is not None for each in ensemble.members)
    assert ensemble.predict(torch.rand(2, 3, 8, 8)).shape == (2, 10)
    assert open_classifier(tmp_path / "seed-0").name == "seed-0"
    assert not Ensemble([tmp_path / "seed-0", tmp_path / "seed-1"]).training, "as its members are"
    with pytest.raises(UserError, match="members must be a list"):
        Ensemble(str(tmp_path / "seed-0"))
