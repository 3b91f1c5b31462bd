"""Known images against others: a model that tells them apart, one that cannot, and every kind of others."""

import json

import pytest
import torch
from PIL import Image
from torch import nn

from dign.core.errors import UserError
from dign.data import load
from dign.data.dataset import DataSet, Split
from dign.data.framing import MIDDLE
from dign.evaluation.outliers import detect_outliers, load_outliers, outliers_subject, save_outliers
from dign.evaluation.predictors import predict_by_logits
from dign.evaluation.result_info import RunInfo
from dign.evaluation.subjects import Subject
from dign.methods import RSE, Standard
from dign.metrics.histogram_binning import HistogramBinning
from dign.runs.calibrator import Calibrator
from dign.runs.classifier import Classifier


class Contrast(nn.Module):
    """Sure where an image is flat, torn where its pixels differ."""

    def forward(self, x):
        sure = (5 - 40 * x.flatten(1).std(1)).clamp(min=0)
        return torch.stack([sure, 0 * sure], 1)


CLASSIFIER = Classifier(Contrast(), Standard(), ["a", "b"], (8, 8), "contrast")
FLAT = Split(torch.full((40, 3, 8, 8), 128, dtype=torch.uint8), torch.zeros(40, dtype=torch.long))


class Blind(nn.Module):
    def forward(self, x):
        return x.new_ones(len(x), 2)


@pytest.mark.parametrize("kind", ["noise", "gaussian"])
def test_noise_is_told_from_flat_images(kind):
    found = detect_outliers(CLASSIFIER, FLAT, kind, data="flat", device="cpu")
    assert found.images == found.others == 40
    blind = detect_outliers(Classifier(Blind(), Standard(), ["a", "b"], (8, 8)), FLAT, kind, device="cpu")
    assert {each.auroc for each in blind.scores.values()} == {50} and set(blind.scores) == {
        "softmax",
        "entropy",
        "energy",
    }
    assert all(each.auroc == 100 and each.fpr95 == 0 for each in found.scores.values())


def test_a_folder_of_any_pictures_and_another_data_set(tmp_path):
    for index in range(3):
        Image.effect_noise((20, 30), 90).convert("RGB").save(tmp_path / f"{index}.png")
    assert load_outliers(f"folder:{tmp_path}", (8, 8), MIDDLE, 40).shape == (3, 3, 8, 8)
    assert load_outliers("digits", (8, 8), MIDDLE, 40).shape[1:] == (3, 8, 8)
    found = detect_outliers(CLASSIFIER, FLAT, "digits", data="flat", images=20, device="cpu")
    assert found.others == 20 and "20 images of flat against 20 of digits" in found.describe()
    saved = save_outliers(tmp_path, found)
    assert saved.name == "ood-digits.json" and json.loads(saved.read_text())["scores"]["softmax"]["auroc"] >= 0
    with pytest.raises(UserError, match=r"Unknown images 'gauss'. Did you mean 'gaussian'\? Known: .*folder.*noise"):
        detect_outliers(CLASSIFIER, FLAT, "gauss", device="cpu")


BINS = HistogramBinning(((0.9,), (0.1,)), ((0.2, 0.8), (0.2, 0.8)))


def test_the_energy_is_that_of_the_network_whatever_calibrates_it():
    """Histogram binning gives log-probabilities, whose energy is 0 for every image."""
    binned = Calibrator("histogram", BINS, "flat", 10, "clean", 1.0, 1.0)
    model = Classifier(Contrast(), Standard(), ["a", "b"], (8, 8), calibrator=binned)
    found = detect_outliers(model, FLAT, "noise", device="cpu")
    assert found.scores["energy"] == detect_outliers(CLASSIFIER, FLAT, "noise", device="cpu").scores["energy"]
    assert found.scores["energy"].auroc == 100


class Flatness(Standard):
    """Predicts otherwise than in one pass: 0.99 for flat images, 0.95 for others."""

    def predict(self, model, x, generator=None):
        sure = torch.where(x.flatten(1).std(1) < 0.1, 0.99, 0.95)
        return torch.stack([sure, 1 - sure], 1)


def test_softmax_and_entropy_are_those_of_the_method_calibrated_and_the_energy_is_the_network_s():
    model = Classifier(Blind(), Flatness(), ["a", "b"], (8, 8))
    found = detect_outliers(model, FLAT, "noise", device="cpu").scores
    assert {kind: each.auroc for kind, each in found.items()} == {"softmax": 100, "entropy": 100, "energy": 50}
    model.calibrator = Calibrator("histogram", BINS, "flat", 10, "clean", 1.0, 1.0)  # 0.8 for both
    found = detect_outliers(model, FLAT, "noise", device="cpu").scores
    assert found["softmax"].auroc == found["entropy"].auroc == 50
    subject = Subject(Blind(), Flatness().predict, RunInfo("mine", "a", "b", "c", "d"))
    found = outliers_subject(subject, DataSet("flat", ("a", "b"), FLAT, FLAT, FLAT), "noise", device="cpu")
    assert found.model == "mine" and found.scores["softmax"].auroc == 100 and found.scores["energy"].auroc == 50


def test_rse_is_measured_by_its_ensemble_whatever_the_batch_size():
    """Under noise of sigma 0.3 flat images are no longer flat: the network is torn, as by the noise itself."""
    alone = Classifier(Contrast(), Standard(), ["a", "b"], (8, 8))
    ensemble = Classifier(Contrast(), RSE(sigma=0.3), ["a", "b"], (8, 8))
    assert detect_outliers(alone, FLAT, "gaussian", device="cpu").scores["softmax"].auroc == 100
    found = [detect_outliers(ensemble, FLAT, "gaussian", device="cpu", batch_size=size) for size in (40, 7)]
    assert found[0].scores["softmax"].auroc == 50 and found[0].scores["energy"].auroc == 100
    assert found[0] == found[1]


def test_images_that_the_model_knows_are_no_outliers(tmp_path):
    data = load("digits", size=8)
    subject = Subject(Blind(), predict_by_logits, RunInfo("mine", "a", "b", "c", "d"))
    for split in ("test", "train"):
        with pytest.raises(UserError, match=r"digits is what mine is measured on.*another data set, folder:PATH or"):
            outliers_subject(subject, data, "digits", split=split, device="cpu")
    for index in range(3):
        Image.fromarray(data.test.images[index].permute(1, 2, 0).numpy()).save(tmp_path / f"{index}.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "black.png")
    with pytest.raises(UserError, match=r"3 of the 4 images of folder:.* are among those of digits"):
        outliers_subject(subject, data, f"folder:{tmp_path}", device="cpu")


def test_a_model_of_probabilities_has_no_energy():
    found = detect_outliers(nn.Sequential(Contrast(), nn.LogSoftmax(1)), FLAT, "noise", device="cpu")
    assert set(found.scores) == {"softmax", "entropy"}


def test_fewer_images_are_spread_over_all():
    """The first half is flat, as a folder's first class may be, and the rest is like the outliers."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(256, (40, 3, 8, 8), generator=generator, dtype=torch.uint8)
    half = Split(torch.cat([FLAT.images, noise]), torch.zeros(80, dtype=torch.long))
    found = detect_outliers(CLASSIFIER, half, "noise", images=40, device="cpu")
    assert found.images == 40 and found.scores["softmax"].auroc == pytest.approx(75, abs=1)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"There is no folder .*nowhere"):
        detect_outliers(CLASSIFIER, FLAT, f"folder:{tmp_path}/nowhere", device="cpu")


def test_known_images_among_the_others_are_found_however_few_are_measured(tmp_path):
    """Two of fifty are measured, at other places than those of the same images in the folder."""
    torch.manual_seed(0)
    images = torch.randint(256, (50, 3, 8, 8), dtype=torch.uint8)
    for index, image in enumerate(images.flip(0)):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / f"{index:02d}.png")
    known = Split(images, torch.zeros(50, dtype=torch.long))
    with pytest.raises(UserError, match=r"2 of the 50 images of folder:.* are among those of mine"):
        detect_outliers(CLASSIFIER, known, f"folder:{tmp_path}", data="mine", images=2, device="cpu")
