"""The model that comes with the project: it works, and its figures are those that were measured."""

import json
import re
from pathlib import Path

import torch

from dign.evaluation.results import Results
from dign.methods.factory import settings_of
from dign.publish.model_card import card_text
from dign.runs.classifier import load_model

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "cifar10"
RESULTS = Results.load(ROOT / "results" / "allout-cifar10")


def test_it_is_small_and_tells_ten_classes_apart():
    assert sum(path.stat().st_size for path in MODEL.iterdir()) <= 10_000_000
    classifier = load_model(MODEL)
    assert classifier.classes[0] == "airplane" and len(classifier.classes) == 10
    with torch.no_grad():
        probabilities = classifier.method.predict(classifier.model, torch.rand(2, 3, *classifier.image_size))
    torch.testing.assert_close(probabilities.sum(1), torch.ones(2))


def test_its_card_is_made_of_the_results_file():
    config = json.loads((MODEL / "config.json").read_text())
    model = load_model(MODEL)
    settings = settings_of(model.method)
    about = {"model": config, "method": model.method.title, "settings": settings, "calibrator": model.calibrator}
    card = (MODEL / "README.md").read_text(encoding="utf-8")
    text = card.split("---\n", 2)[2]
    assert text.strip() == card_text(about, RESULTS).strip()


def test_what_the_pages_say_of_it_was_measured():
    errors = RESULTS.calibration.clean.ece, RESULTS.calibration.noise.ece
    measured = [RESULTS.clean.accuracy, RESULTS.mca_n, RESULTS.mca, *errors]
    row = " | ".join(f"{value:.1f}" for value in measured)
    clean, noisy = measured[:2]
    assert f"({clean:.1f} % clean, {noisy:.1f} % under noise)" in (ROOT / "README.md").read_text(encoding="utf-8")
    for page in ("docs/cifar10-model.md", "results/allout-cifar10/README.md"):
        assert row in re.sub(r"\*\*", "", (ROOT / page).read_text(encoding="utf-8")), page
