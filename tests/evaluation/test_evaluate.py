"""`evaluate`: what it measures, on any model and any data, and that it leaves both as they were."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import dign.data
from dign.core.errors import UserError
from dign.corruptions import corrupt, write_benchmark
from dign.corruptions.benchmark.read import open_benchmark
from dign.data.dataset import Split
from dign.evaluation.conditions import Conditions
from dign.evaluation.evaluate import evaluate
from dign.evaluation.results import Results
from dign.methods import RSE, Standard
from dign.metrics import Calibration, apply_temperature
from dign.metrics.calibration_bins import calibration
from dign.runs.classifier import load_model

FOG = Conditions(corruptions=("fog",), severities=(2,))


def test_counts_equal_a_plain_computation(model, split, noise):
    measured = evaluate(model, split, noise, batch_size=90)
    for name, severity in noise.pairs:
        noisy = corrupt(split.images, name, severity, profile="imagenet", seed=0).float() / 255
        expected = (model(noisy).argmax(1) == split.labels).float().mean().item() * 100
        assert measured.corruptions[name].severities[severity].accuracy == pytest.approx(expected)
    clean = (model(split.images.float() / 255).argmax(1) == split.labels).float().mean().item() * 100
    assert measured.clean.accuracy == measured.summary.clean_accuracy == pytest.approx(clean)


def test_the_batch_size_does_not_matter(model, split, noise):
    whole, pieces = (evaluate(model, split, noise, batch_size=size) for size in (90, 7))
    assert whole.mca_n == pieces.mca_n
    for name in noise.corruptions:
        counts = [part.corruptions[name].severities[5].calibration.state()["correct"] for part in (whole, pieces)]
        assert torch.equal(*counts)


def test_the_batch_size_does_not_matter_to_a_method_that_draws_noise(model, split, noise):
    predict = partial(RSE(sigma=0.3).predict, model)
    whole, pieces = (evaluate(predict, split, noise, batch_size=size) for size in (90, 7))
    for name in noise.corruptions:
        states = [part.corruptions[name].severities[5].calibration.state() for part in (whole, pieces)]
        assert all(torch.equal(states[0][key], states[1][key]) for key in ("correct", "counts"))


def test_the_seed_matters(model, split, noise):
    other = Conditions(corruptions=noise.corruptions, severities=(5,), profile="imagenet", seed=1, jpeg=None)
    found = [evaluate(model, split, each).corruptions["shot_noise"].severities[5] for each in (noise, other)]
    assert found[0] != found[1]


def test_calibration_is_pooled_over_conditions_without_gaussian_noise(model, split, noise):
    measured = evaluate(model, split, noise)
    pool = Calibration()
    for name in ("shot_noise", "impulse_noise", "speckle_noise"):
        for condition in measured.corruptions[name].severities.values():
            pool.merge(condition.calibration)
    assert measured.calibration.noise == pool.compute()
    assert pool.compute().count == 3 * 2 * 90


def test_a_model_is_left_as_it_was(split):
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(192), nn.Dropout(), nn.Linear(192, 4)).train()
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    evaluate(model, split, FOG)
    assert [module.training for module in model.modules()] == [True, True, False, True, True]
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Subtracting(nn.Module):
    """A model that works in place, as `nn.ReLU(inplace=True)` does."""

    def forward(self, images):
        return images.sub_(0.5).mul_(100).mean((2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8])
def test_nothing_is_written_into_the_caller_s_tensors(dtype):
    """The label is the brightest channel, which the model finds: all are right, and the images stay as they were."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (30,), generator=generator)
    images = 0.3 * torch.rand(30, 3, 8, 8, generator=generator)
    images[torch.arange(30), labels] += 0.5
    images = (images * 255).to(torch.uint8) if dtype == torch.uint8 else images.to(dtype)
    before, labels_before = images.clone(), labels.clone()
    for data in ((images, labels), Split(images, labels), TensorDataset(images, labels), [(images, labels)]):
        results = evaluate(Subtracting(), data, Conditions(corruptions=("brightness",), severities=(1,)))
        assert results.clean.accuracy == 100 and results.corruptions["brightness"].accuracy == 100
    assert torch.equal(images, before) and torch.equal(labels, labels_before)


class Streamed(IterableDataset):
    def __init__(self, split):
        self.split = split

    def __iter__(self):
        return zip(self.split.images, self.split.labels.tolist(), strict=True)


class Arrays(Dataset):
    """Images as NumPy arrays, labels as plain numbers."""

    def __init__(self, split):
        self.split = split

    def __len__(self):
        return len(self.split)

    def __getitem__(self, index):
        return self.split.images[index].numpy(), int(self.split.labels[index])


def test_all_forms_of_the_same_images_give_the_same_results(model, split):
    images, labels = split.images, split.labels
    tensors = TensorDataset(images, labels)
    expected = evaluate(model, split, FOG, batch_size=16)
    for data in (
        (images, labels),
        [images.numpy(), labels.numpy().astype(np.int32)],
        (images.float() / 255, labels),
        tensors,
        DataLoader(tensors, batch_size=16),
        DataLoader(tensors, batch_size=11),
        Arrays(split),
        DataLoader(Streamed(split), batch_size=16),
        iter(DataLoader(tensors, batch_size=16)),
    ):
        results = evaluate(model, data, FOG, batch_size=16)
        assert results.clean.accuracy == expected.clean.accuracy
        assert results.clean.ece == pytest.approx(expected.clean.ece, abs=1e-6)
        assert results.corruptions["fog"].accuracies == expected.corruptions["fog"].accuracies
        assert results.evaluation.images == 90 and results.classes == ("0", "1", "2", "3")


def test_a_data_set_gives_its_test_images_and_its_classes():
    digits = dign.data.load("digits", size=8)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    results = evaluate(net, digits, FOG, name="linear")
    assert results.clean == evaluate(net, digits.test, FOG).clean
    assert results.classes == digits.classes and results.evaluation.split == "test"
    assert (results.run.data, results.run.title, results.run.parameters) == ("digits", "linear", 1930)


def test_a_function_takes_images_alone_or_with_a_generator(model, split):
    def alone(images):
        return torch.softmax(model(images), 1)

    def with_generator(images, generator):
        assert isinstance(generator, torch.Generator)
        return torch.softmax(model(images), 1)

    class Predicting:
        predict = staticmethod(alone)

    expected = evaluate(model, split, FOG)
    for function in (alone, with_generator, Predicting()):
        assert evaluate(function, split, FOG).corruptions == expected.corruptions


def test_certain_predictions_by_hand(split, noise):
    results = evaluate(lambda x: torch.eye(4)[torch.zeros(len(x), dtype=torch.long)], split, noise)
    share = (split.labels == 0).float().mean().item() * 100
    assert results.clean.accuracy == pytest.approx(share) and results.mca_n == pytest.approx(share)
    assert results.clean.ece == pytest.approx(100 - share)


@pytest.mark.slow
def test_a_classifier_predicts_as_its_method_does(run, noise):
    classifier = load_model(run.path)
    results = evaluate(classifier, run.data(), noise)
    assert (results.run.method, results.run.title) == ("rse", "RSE")
    raw = evaluate(partial(run.method().predict, run.model()), run.data().test, noise)
    assert results.calibrator.calibration == raw.calibration and results.calibrator.images == 145
    assert results.clean.accuracy == raw.clean.accuracy, "a temperature changes no answer"
    assert results.clean != evaluate(run.model(), run.data().test, noise).clean


class WithLogits(nn.Module):
    def __init__(self, inner, form):
        super().__init__()
        self.inner, self.form = inner, form

    def forward(self, images):
        return self.form(self.inner(images))


@pytest.mark.parametrize(
    "form", [lambda x: (x, "more"), lambda x: {"logits": x}, lambda x: type("O", (), {"logits": x})]
)
def test_logits_are_found_in_whatever_a_module_returns(model, split, form):
    assert evaluate(WithLogits(model, form), split, FOG).clean == evaluate(model, split, FOG).clean


def test_a_temperature_changes_confidence_alone(model, split):
    results = evaluate(model, split, FOG, temperature=3.0)
    with torch.no_grad():
        probabilities = torch.softmax(model(split.images.float() / 255), 1)
    expected = calibration(apply_temperature(probabilities, 3.0), split.labels)
    assert results.temperature.value == 3.0
    assert results.temperature.calibration.clean.ece == pytest.approx(expected.ece, abs=1e-5)
    assert results.temperature.calibration.all.accuracy == results.calibration.all.accuracy


def test_a_stored_benchmark_is_read(model, split, tmp_path):
    write_benchmark(split.images, split.labels, tmp_path / "c", classes=list("abcd"), names=("fog",), severities=(2,))
    seen = []
    benchmark = open_benchmark(tmp_path / "c")
    stored = evaluate(model, split, benchmark, progress=lambda done, total: seen.append((done, total)))
    assert stored.corruptions == evaluate(model, split, FOG).corruptions
    assert stored.evaluation.benchmark == "c" and seen[-1] == (180, 180)


def test_progress_counts_every_prediction(model, split, noise):
    seen = []
    evaluate(model, split, noise, batch_size=40, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (90 * 9, 90 * 9) and len(seen) == 3 * 9
    loader = DataLoader(Streamed(split), batch_size=50)
    evaluate(model, loader, FOG, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (180, None), "how many there are is not known"


def test_what_is_saved_is_what_was_measured(model, split, noise, tmp_path):
    results = evaluate(model, split, noise, temperature=2.0, name="linear")
    assert results.save(tmp_path / "new" / "folder") == tmp_path / "new" / "folder" / "results.json"
    assert Results.load(tmp_path / "new" / "folder") == results


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: {"data": (x.float(), y)}, r"must be in \[0,1\], not from 0 to 255"),
        (lambda x, y: {"data": (x.float() / 255 - 0.5, y)}, r"must be in \[0,1\]"),
        (lambda x, y: {"data": (x.float() * float("nan"), y)}, r"must be in \[0,1\]"),
        (lambda x, y: {"data": (x.int(), y)}, "must be uint8, or float"),
        (lambda x, y: {"data": (x[0], y)}, r"images \(N,C,H,W\) and labels"),
        (lambda x, y: {"data": (x, y[:-1])}, r"images \(N,C,H,W\) and labels"),
        (lambda x, y: {"data": (x.permute(0, 2, 3, 1), y)}, "move the channels to the front"),
        (lambda x, y: {"data": (x, y.float())}, "labels must be class indices"),
        (lambda x, y: {"data": (x, y + 1)}, "labels are from 1 to 4: expected 0 to 3, as the model has 4 classes"),
        (lambda x, y: {"data": (x[:0], y[:0])}, "no images"),
        (lambda x, y: {"data": []}, "no images"),
        (lambda x, y: {"data": [(x, y, y)]}, "pairs of images and labels, not 3 parts"),
        (lambda x, y: {"data": 3}, "data must be a DataLoader"),
        (lambda x, y: {"data": x}, "data must be a DataLoader"),
        (lambda x, y: {"data": "cifar10"}, "data must be a DataLoader.*dign.load_data loads one by its name"),
        (lambda x, y: {"model": 3}, "model must be an nn.Module"),
        (lambda x, y: {"model": "runs/dign"}, "not a str; dign.load_model opens a run folder"),
        (
            lambda x, y: {"model": nn.Sequential(nn.Flatten(), nn.Linear(192, 1))},
            "one logit per image: expected one for",
        ),
        (lambda x, y: {"model": lambda x: x}, r"gives \(90, 3, 8, 8\) for 90 images"),
        (lambda x, y: {"model": lambda x: torch.ones(len(x), 4)}, "add up to 1"),
        (lambda x, y: {"model": lambda x: [1]}, "float tensor"),
        (lambda x, y: {"model": nn.Linear(3, 4)}, "fails on images of shape"),
        (lambda x, y: {"batch_size": 0}, "batch_size"),
        (lambda x, y: {"bins": 0}, "bins"),
        (lambda x, y: {"temperature": -1.0}, "temperature must be positive"),
        (lambda x, y: {"temperature": "warm"}, "temperature must be positive, not 'warm'"),
        (lambda x, y: {"conditions": ["fog"]}, "conditions must be dign.Conditions or an open benchmark, not a list"),
        (lambda x, y: {"device": "abacus"}, "There is no device 'abacus' here"),
    ],
)
def test_what_cannot_be_evaluated_is_one_clear_error(model, split, change, message):
    given = {"model": model, "data": split, **change(split.images, split.labels)}
    with pytest.raises(UserError, match=message):
        evaluate(**{"conditions": FOG, **given})


def test_a_module_that_ends_in_softmax_is_refused(model, split):
    with pytest.raises(UserError, match="leave out its softmax"):
        evaluate(nn.Sequential(model, nn.Softmax(1)), split, FOG)


def test_a_data_set_of_pictures_that_are_not_tensors_is_refused(model):
    from PIL import Image

    class Pictures(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return Image.new("RGB", (8, 8)), 0

    with pytest.raises(UserError, match="images as tensors"):
        evaluate(model, Pictures(), FOG)


def test_a_method_s_predict_is_a_predictor(model, split):
    assert evaluate(partial(Standard().predict, model), split, FOG).clean == evaluate(model, split, FOG).clean


def test_a_model_computes_in_the_precision_that_is_asked_for(model, split):
    exact, mixed = (evaluate(model, split, FOG, precision=name) for name in ("32", "bf16"))
    assert (exact.evaluation.precision, mixed.evaluation.precision) == ("32", "bf16")
    confidences = [each.images.conditions["fog", 2].confidence for each in (exact, mixed)]
    assert np.abs(confidences[0] - confidences[1]).max() < 0.01 and not np.array_equal(*confidences)
