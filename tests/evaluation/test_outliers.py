"""Known images against others: a model that tells them apart, one that cannot, and every kind of others."""

import json

import pytest
import torch
from PIL import Image
from torch import nn

from dign.core.errors import UserError
from dign.data.dataset import Split
from dign.data.framing import MIDDLE
from dign.evaluation.outliers import detect_outliers, load_outliers, save_outliers
from dign.methods import Standard
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
    with pytest.raises(UserError):
        detect_outliers(CLASSIFIER, FLAT, "nothing-like-it", device="cpu")


BINS = HistogramBinning(((0.9,), (0.1,)), ((0.2, 0.8), (0.2, 0.8)))


def test_the_energy_is_that_of_the_network_whatever_calibrates_it():
    """Histogram binning gives log-probabilities, whose energy is 0 for every image."""
    binned = Calibrator("histogram", BINS, "flat", 10, "clean", 1.0, 1.0)
    model = Classifier(Contrast(), Standard(), ["a", "b"], (8, 8), calibrator=binned)
    found = detect_outliers(model, FLAT, "noise", device="cpu")
    assert found.scores["energy"] == detect_outliers(CLASSIFIER, FLAT, "noise", device="cpu").scores["energy"]
    assert found.scores["energy"].auroc == 100


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
