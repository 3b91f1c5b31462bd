"""Risk-coverage curves and promises by severity, from results that keep their images."""

import json

import torch
from torch import nn

import dign
from dign.data.dataset import Split
from dign.methods import Standard
from dign.report.analysis.study import Group, Study
from dign.report.html.page import build_page
from dign.report.html.unsure_section import unsure_parts
from dign.report.load import Run
from dign.runs.calibrate import fit_calibrator
from dign.runs.classifier import Classifier


def make_study(tmp_path):
    torch.manual_seed(0)
    images = torch.randint(256, (300, 3, 8, 8), dtype=torch.uint8)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    labels = network(images.float() / 255).argmax(1)
    labels[::7] = (labels[::7] + 1) % 3
    classifier = Classifier(network, Standard(), ["a", "b", "c"], (8, 8))
    classifier.calibrator = fit_calibrator(network, Standard(), Split(images[:150], labels[:150]))
    conditions = dign.Conditions(corruptions=["shot_noise", "impulse_noise", "speckle_noise"], severities=[1, 5])
    results = dign.evaluate(classifier, (images[150:], labels[150:]), conditions)
    run = Run(tmp_path, dign.Results.parse(json.dumps(results.to_json())))
    return Study("custom", (Group("Standard", "Standard", "linear", (run,)),))


def test_curves_and_promises_are_drawn_from_the_images(tmp_path):
    study = make_study(tmp_path)
    (part,) = unsure_parts(study)
    assert [title for title, _ in part.content["curves"]] == ["Clean images", "Noise"]
    assert "coverage" in {key for key, _, _ in part.content["promises"]}
    assert all((">promised<" in chart) == (key != "answered") for key, _, chart in part.content["promises"])
    page = build_page(study)
    for text in ("Risk and coverage", "Promises under corruptions", "Knowing when it is unsure", "whisker"):
        assert text in page
    assert "Clean images, before" in page and "Noise, after" in page


def test_older_results_have_no_such_section(demo_runs):
    from dign.report.make import study_of

    assert unsure_parts(study_of([demo_runs])) == []
    assert 'id="unsure"' not in build_page(study_of([demo_runs]))
