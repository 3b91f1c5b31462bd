"""The models that come with the project: they work, and their figures are those that were measured."""

import json
import re
from pathlib import Path

import pytest
import torch

from dign.evaluation.results import Results
from dign.methods.factory import settings_of
from dign.publish.model_card import card_text
from dign.runs.classifier import load_model

ROOT = Path(__file__).parents[2]
SHIPPED = {"cifar10": "allout-cifar10", "cifar10-hybrid": "hybrid-cifar10"}
"""Model to the folder of its results."""


@pytest.fixture(params=SHIPPED)
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return ROOT / "models" / name


@pytest.fixture
def results(name):
    return Results.load(ROOT / "results" / SHIPPED[name])


def test_it_is_small_and_tells_ten_classes_apart(model):
    assert sum(path.stat().st_size for path in model.iterdir()) <= 10_000_000
    classifier = load_model(model)
    assert classifier.classes[0] == "airplane" and len(classifier.classes) == 10
    with torch.no_grad():
        probabilities = classifier.method.predict(classifier.model, torch.rand(2, 3, *classifier.image_size))
    torch.testing.assert_close(probabilities.sum(1), torch.ones(2))


def test_its_card_is_made_of_the_results_file(model, results):
    config = json.loads((model / "config.json").read_text())
    opened = load_model(model)
    settings = settings_of(opened.method)
    about = {"model": config, "method": opened.method.title, "settings": settings, "calibrator": opened.calibrator}
    card = (model / "README.md").read_text(encoding="utf-8")
    text = card.split("---\n", 2)[2]
    assert text.strip() == card_text(about, results).strip()


def test_what_the_pages_say_of_it_was_measured(name, results):
    errors = results.calibration.clean.ece, results.calibration.noise.ece, results.calibration.all.ece
    row = " | ".join(f"{value:.1f}" for value in (results.clean.accuracy, results.mca_n, results.mca, *errors))
    in_words = f"{results.clean.accuracy:.1f} % clean, {results.mca_n:.1f} % under noise"
    assert in_words in (ROOT / "README.md").read_text(encoding="utf-8")
    for page in ("docs/cifar10-model.md", f"results/{SHIPPED[name]}/README.md"):
        assert row in re.sub(r"\*\*", "", (ROOT / page).read_text(encoding="utf-8")), page
