"""Calibrating a model: on held-out images alone, clean or with the method's noise, stored as part of the model."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.data.dataset import Split
from dign.methods import DiGN, PatchGaussian, Standard
from dign.runs.calibrate import calibrate_model, fit_calibrator, make_noisy
from dign.runs.calibrator import read_calibrator, write_calibrator
from dign.runs.classifier import load_model
from dign.training.train import train


class Overconfident(nn.Module):
    """Three times the logits of the mean color; labels are drawn from the logits themselves."""

    def forward(self, x):
        return 3 * logits_of(x)


def logits_of(x):
    return 8 * (x.mean((2, 3)) - 0.5)


@pytest.fixture(scope="module")
def split():
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (4000, 3, 1, 1), dtype=torch.uint8, generator=generator)
    return Split(images, torch.multinomial(logits_of(images.float() / 255).softmax(1), 1, generator=generator)[:, 0])


def test_the_temperature_of_an_overconfident_model_is_found(split):
    fitted = fit_calibrator(Overconfident(), Standard(), split, data="made up")
    assert fitted.temperature == pytest.approx(3, rel=0.1) and fitted.nll_after < fitted.nll_before
    assert (fitted.kind, fitted.on, fitted.images, fitted.data) == ("temperature", "clean", 4000, "made up")
    held = fitted.held_out
    assert float(held.confidence.mean()) == pytest.approx(float(held.correct.float().mean()), abs=0.02)


@pytest.mark.parametrize("kind", ["vector", "histogram"])
def test_other_kinds_are_fitted_too(split, kind):
    fitted = fit_calibrator(Overconfident(), Standard(), split, kind=kind)
    assert fitted.kind == kind and fitted.nll_after < fitted.nll_before - 0.05


def test_the_method_s_noise_is_that_of_its_training(split):
    x = torch.full((2000, 3, 2, 2), 0.5)
    noisy = make_noisy(DiGN(sigma_max=0.3), x, torch.Generator().manual_seed(0))
    assert float((noisy - x).var()) == pytest.approx(0.03, rel=0.1)
    masked = make_noisy(DiGN(sigma_max=0.3, density=0.2) + PatchGaussian(), x, torch.Generator().manual_seed(0))
    assert float((masked != x).double().mean()) == pytest.approx(0.2, rel=0.1)
    fixed = make_noisy(DiGN(sigma_max=0.3, levels="fixed"), x, torch.Generator().manual_seed(0))
    assert float((fixed - x).var()) == pytest.approx(0.09, rel=0.1)
    assert make_noisy(Standard(), x, torch.Generator()) is None
    with pytest.raises(UserError, match="Standard trains without the noise of DiGN"):
        fit_calibrator(Overconfident(), Standard(), split, on="noise")
    fits = {on: fit_calibrator(Overconfident(), DiGN(sigma_max=0.3), split, on=on) for on in ("clean", "noise", "both")}
    values = {on: fit.temperature for on, fit in fits.items()}
    assert values["clean"] < values["both"] < values["noise"], "noise makes it wrong more often"
    assert [fit.on for fit in fits.values()] == ["clean", "noise", "both"]


def test_wrong_names_and_no_images_are_refused(split):
    for wrong in ({"kind": "magic"}, {"on": "fog"}):
        with pytest.raises(UserError):
            fit_calibrator(Overconfident(), Standard(), split, **wrong)
    with pytest.raises(UserError, match="held-out images"):
        fit_calibrator(Overconfident(), Standard(), Split(split.images[:0], split.labels[:0]))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard"}
    return train(settings, tmp_path_factory.mktemp("calibrate") / "run", quiet=True)


def test_training_calibrates_and_calibrating_again_gives_the_same(run):
    by_training = read_calibrator(run.path, 10)
    outcome = calibrate_model(run.path)
    assert outcome.calibrator.temperature == pytest.approx(by_training.temperature, rel=1e-4)
    assert outcome.left_out == 1293 and outcome.calibrator.images == 145
    assert "ECE" in outcome.describe() and "held_out" not in outcome.to_json()
    calibrate_model(run.path, kind="vector")
    assert load_model(run.path).calibrator.kind == "vector"


def test_calibrating_again_on_the_same_images_keeps_the_numbers(run):
    fitted = calibrate_model(run.path).calibrator
    for factor, kept in ((1 + 1e-7, True), (1.01, False)):
        write_calibrator(run.path, replace(fitted, transform=fitted.temperature * factor))
        again = calibrate_model(run.path).calibrator
        assert (again.temperature == fitted.temperature * factor) == kept
        assert again.temperature == pytest.approx(fitted.temperature, rel=1e-6)


def test_training_without_validation_images_fits_nothing_and_says_what_to_do(tmp_path):
    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard", "validation": 0.0}
    run = train(settings, tmp_path / "run", quiet=True)
    assert load_model(run.path).calibrator is None
    assert any("not calibrated: set `validation`" in note for note in run.info["notes"])
    with pytest.raises(UserError, match=r"trained on all 1438 training images of digits.*folder:PATH"):
        calibrate_model(run.path)
    with pytest.raises(UserError, match="trained on all"):
        calibrate_model(run.path, "digits")


def test_a_damaged_calibrator_is_made_again(run):
    (run.path / "calibration.json").write_text("{")
    with pytest.raises(UserError, match="dign calibrate"):
        load_model(run.path)
    calibrate_model(run.path)
    assert load_model(run.path).calibrator.kind == "temperature"
