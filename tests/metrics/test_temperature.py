"""Temperature scaling: against a slow search, and on predictions whose temperature is known."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from dign.core.errors import UserError
from dign.metrics import Temperature, apply_temperature, fit_temperature
from dign.metrics.calibration_bins import calibration
from dign.metrics.temperature import HIGHEST, LOWEST


def honest_predictions(count, classes, seed=0):
    """Logits whose softmax is the true distribution of the labels drawn from it."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(logits, 1), 1, generator=generator)[:, 0]
    return logits, labels


@pytest.mark.parametrize("temperature", [0.4, 1.0, 1.7, 5.0])
def test_a_known_temperature_is_found(temperature):
    """Honest logits times T need the temperature T; 40 000 labels leave it uncertain by about a hundredth."""
    logits, labels = honest_predictions(40_000, 5)
    fitted = fit_temperature(logits * temperature, labels)
    assert fitted.value == pytest.approx(temperature, rel=0.02)
    assert fitted.images == 40_000 and fitted.nll_after <= fitted.nll_before


@given(seed=st.integers(0, 1000), scale=st.floats(0.3, 6), count=st.integers(20, 60))
@settings(max_examples=15, deadline=None)
def test_no_temperature_of_a_fine_grid_is_better(seed, scale, count):
    logits, labels = honest_predictions(count, 4, seed)
    fitted = fit_temperature(logits * scale, labels)
    grid = [LOWEST * (HIGHEST / LOWEST) ** (step / 2000) for step in range(2001)]
    losses = [functional.cross_entropy(logits * scale / value, labels).item() for value in grid]
    assert fitted.nll_after <= min(losses) + 1e-9
    best = grid[losses.index(min(losses))]
    assert fitted.value == pytest.approx(best, rel=2 * math.log(HIGHEST / LOWEST) / 2000 + 1e-3)


def test_log_probabilities_and_logits_give_the_same():
    logits, labels = honest_predictions(500, 3)
    assert fit_temperature(3 * logits, labels).value == pytest.approx(
        fit_temperature(torch.log_softmax(3 * logits, 1), labels).value, rel=1e-5
    )


def test_tempered_probabilities_are_those_of_divided_logits():
    logits = honest_predictions(100, 6)[0].float()
    torch.testing.assert_close(apply_temperature(torch.softmax(logits, 1), 2.5), torch.softmax(logits / 2.5, 1))


def test_certainty_stays_a_number():
    """0 and 1 in float32: no logarithm of zero escapes."""
    certain = apply_temperature(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), 20.0)
    assert certain.isfinite().all() and torch.equal(certain.argmax(1), torch.tensor([0, 1]))
    torch.testing.assert_close(certain.sum(1), torch.ones(2))


def test_scaling_corrects_overconfidence():
    logits, labels = honest_predictions(20_000, 5)
    overconfident = torch.softmax(4 * logits, 1)
    before = calibration(overconfident, labels)
    after = calibration(apply_temperature(overconfident, fit_temperature(4 * logits, labels).value), labels)
    assert before.ece > 15 and after.ece < 1.5
    assert before.accuracy == after.accuracy


def test_a_model_that_is_always_right_gets_the_lowest_temperature():
    fitted = fit_temperature(torch.eye(3), torch.arange(3))
    assert fitted.value == pytest.approx(LOWEST, rel=1e-5)


def test_no_images_no_temperature():
    with pytest.raises(UserError, match="there are none"):
        fit_temperature(torch.empty(0, 3), torch.empty(0, dtype=torch.long))


def test_batches_and_processes_give_the_temperature_of_all_predictions():
    logits, labels = honest_predictions(100, 3)
    first, second = Temperature(), Temperature()
    first.update(logits[:30], labels[:30])
    first.update(logits[30:50], labels[30:50])
    second.update(logits[50:], labels[50:])
    merged = Temperature().merge(first).merge(Temperature.from_state(second.state()))
    assert merged.compute() == fit_temperature(logits, labels)
    with pytest.raises(UserError, match="2 classes after 3"):
        merged.update(logits[:, :2], labels.clamp(max=1))


def test_the_fitted_temperature_is_where_scipy_finds_the_smallest_loss():
    from scipy.optimize import minimize_scalar

    logits, labels = honest_predictions(300, 4)

    def loss(log_temperature):
        return functional.cross_entropy(2.5 * logits / math.exp(log_temperature), labels).item()

    found = minimize_scalar(
        loss, bounds=(math.log(LOWEST), math.log(HIGHEST)), method="bounded", options={"xatol": 1e-9}
    )
    assert fit_temperature(2.5 * logits, labels).value == pytest.approx(math.exp(found.x), rel=1e-4)


@pytest.mark.parametrize(
    "labels", [torch.rand(4), torch.zeros(3, dtype=torch.long), torch.zeros(4, 2, dtype=torch.long)]
)
def test_labels_that_are_not_one_class_index_per_row_are_refused(labels):
    with pytest.raises(UserError, match=r"scores \(N,C\) and class indices \(N,\), not \(4, 2\) and"):
        fit_temperature(torch.rand(4, 2), labels)


def test_a_prior_keeps_few_images_that_are_all_right_from_making_the_model_infinitely_sure():
    sure = torch.tensor([[4.0, 0.0]] * 20)
    labels = torch.zeros(20, dtype=torch.long)
    assert fit_temperature(sure, labels).value == pytest.approx(0.05, rel=1e-3)
    assert 0.8 < fit_temperature(sure, labels, prior=0.25).value < 1
    many = torch.tensor([[4.0, 0.0]]).repeat(10_000, 1)
    wrong = (torch.arange(10_000) % 10 == 0).long()
    free = fit_temperature(many, wrong).value
    assert fit_temperature(many, wrong, prior=0.25).value == pytest.approx(free, rel=0.01)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (torch.zeros(2, 3), torch.tensor([0, 3]), "beyond the 3 classes"),
        (torch.tensor([[0.0, float("nan")]]), torch.tensor([0]), "finite scores"),
        (torch.zeros(2, 3).tolist(), torch.tensor([0, 1]), "fitted on tensors or arrays, not list"),
    ],
)
def test_what_no_temperature_can_be_fitted_on_is_one_sentence(scores, labels, message):
    with pytest.raises(UserError, match=message):
        fit_temperature(scores, labels)


def test_labels_of_any_whole_type_are_taken_and_temperatures_are_above_zero():
    scores = torch.tensor([[4.0, 0.0]] * 4)
    assert fit_temperature(scores, torch.tensor([0, 0, 0, 1], dtype=torch.int32)).images == 4
    with pytest.raises(UserError, match="temperature must be above 0"):
        apply_temperature(torch.tensor([[0.5, 0.5]]), 0)


def test_arrays_are_taken_as_well():
    scores, labels = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 3
    assert fit_temperature(scores.numpy(), labels.numpy()) == fit_temperature(scores, labels)
