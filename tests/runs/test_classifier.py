"""Trained classifiers: a module that knows its classes and predicts as its method does."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.methods import RSE, Standard
from dign.runs.classifier import Classifier, load_model
from dign.runs.folder import load_run
from dign.training.train import train


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "digits"
    train({"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard"}, path, quiet=True)
    return path


def test_a_run_is_loaded_as_a_module_in_eval_mode(run_folder):
    classifier, run = load_model(run_folder), load_run(run_folder)
    images = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    assert isinstance(classifier, nn.Module) and not classifier.training and not classifier.model.training
    assert (classifier.name, classifier.classes, classifier.image_size) == ("digits", run.classes, (8, 8))
    assert classifier.method == run.method()
    logits, temperature = run.model()(images), classifier.calibrator.temperature
    assert temperature != 1 and torch.equal(classifier(images), logits / temperature), "calibrated by training"
    assert torch.equal(classifier.predict_raw(images), logits.softmax(1))
    torch.testing.assert_close(classifier.predict(images), classifier(images).softmax(1))


def test_the_network_keeps_the_names_of_its_tensors(run_folder):
    classifier = load_model(str(run_folder))
    assert classifier.model.state_dict().keys() == load_run(run_folder).untrained_model().state_dict().keys()


def test_predictions_are_those_of_the_method():
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    images = torch.rand(3, 3, 2, 2)
    method = RSE(sigma=0.3, ensemble=4)
    found = Classifier(network, method, ["a", "b"], (2, 2)).predict(images, torch.Generator().manual_seed(1))
    assert torch.equal(found, method.predict(network, images, torch.Generator().manual_seed(1)))
    assert not torch.equal(found, Classifier(network, Standard(), ["a", "b"], (2, 2)).predict(images))


def test_predictions_carry_no_graph():
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    classifier = Classifier(network, Standard(), ["a", "b"], (2, 2))
    assert classifier(torch.rand(1, 3, 2, 2)).requires_grad
    assert not classifier.predict(torch.rand(1, 3, 2, 2)).requires_grad


@pytest.mark.parametrize("where", ["nowhere", "hub:nowhere"])
def test_what_is_not_a_model_is_named(where):
    with pytest.raises(UserError, match="nowhere is not a model: expected a run folder"):
        load_model(where)
