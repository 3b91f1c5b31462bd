"""What every metric can do: reset, merge, move, be gathered, and count without waiting for its device."""

import pickle

import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import (
    AUGRC,
    AURC,
    AUROC,
    FPR95,
    NLL,
    Accuracy,
    AccuracyAtCoverage,
    AdaptiveECE,
    BalancedAccuracy,
    Brier,
    Calibration,
    ClasswiseECE,
    Confusion,
    DebiasedRMSE,
    SmoothECE,
    Temperature,
)

METRICS = [
    Accuracy, Calibration, Temperature, NLL, Brier, ClasswiseECE, AdaptiveECE, DebiasedRMSE, SmoothECE, AURC, AUGRC,
    AUROC, FPR95,
]  # fmt: skip


def batch(seed):
    generator = torch.Generator().manual_seed(seed)
    probabilities = torch.softmax(torch.randn(20, 4, generator=generator), 1)
    return probabilities, torch.randint(4, (20,), generator=generator)


@pytest.mark.parametrize("kind", METRICS)
def test_parts_merge_to_the_whole_by_any_way_of_gathering(kind):
    whole, total = kind(), kind()
    for seed in range(3):
        whole.update(*batch(seed))
        part = kind()
        part.update(*batch(seed))
        sent = part if seed == 0 else kind.from_state(part.state()) if seed == 1 else pickle.loads(pickle.dumps(part))
        assert total.merge(sent) is total
    assert total == whole and total.compute() == whole.compute()


@pytest.mark.parametrize("kind", METRICS)
def test_reset_forgets_everything(kind):
    metric = kind()
    metric.update(*batch(0))
    assert metric != kind()
    metric.reset()
    assert metric == kind()
    with pytest.raises(UserError):
        metric.compute()


@pytest.mark.parametrize("kind", METRICS)
def test_a_state_is_a_copy(kind):
    metric = kind()
    metric.update(*batch(0))
    expected = metric.compute()
    for value in metric.state().values():
        value.zero_()
    assert metric.compute() == expected


@pytest.mark.parametrize("kind", METRICS)
def test_update_does_not_wait_for_the_device(kind):
    """Tensors on the meta device have no values: whatever asks for one fails."""
    metric = kind().to("meta")
    probabilities, labels = batch(0)
    metric.update(probabilities.to("meta"), labels.to("meta"))
    metric.update(probabilities.to("meta"), labels.to("meta"))
    assert {value.device.type for value in metric.state().values()} == {"meta"}


@pytest.mark.parametrize("kind", METRICS)
def test_wrong_values_are_refused_at_once_on_the_cpu_and_count_nothing(kind):
    metric = kind()
    probabilities, labels = batch(0)
    for wrong in (labels - 4, labels + 4):
        with pytest.raises(UserError, match="class indices"):
            metric.update(probabilities, wrong)
    for shape in (probabilities[:3], probabilities[:, 0]):
        with pytest.raises(UserError, match=r"scores \(N,C\) and labels \(N,\)"):
            metric.update(shape, labels)
    assert metric == kind()


def test_wrong_values_on_another_device_are_an_error_of_compute(monkeypatch):
    """What a GPU has counted, merged and moved to the CPU."""
    metric = Calibration()
    metric.update(*batch(0))
    state = metric.state()
    state["invalid"][1] = 3
    merged = Calibration().merge(Calibration.from_state(state))
    for ask in (merged.compute, merged.reliability):
        with pytest.raises(UserError, match="apply softmax"):
            ask()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (AdaptiveECE(5), AdaptiveECE(10)),
        (DebiasedRMSE(5), DebiasedRMSE(10)),
        (AccuracyAtCoverage(0.8), AccuracyAtCoverage(0.9)),
        (Calibration(5), Calibration(10)),
        (Brier(5), Brier(10)),
        (BalancedAccuracy(5), BalancedAccuracy(10)),
        (Confusion(5), Confusion(10)),
    ],
    ids=lambda metric: type(metric).__name__,
)
def test_metrics_of_other_settings_are_neither_equal_nor_merged(one, other):
    assert one != other
    with pytest.raises(UserError, match="make both with the same"):
        one.merge(other)


def test_a_coverage_survives_its_state():
    metric = AccuracyAtCoverage(1 / 3)
    metric.update(*batch(0))
    assert metric.merge(AccuracyAtCoverage.from_state(metric.state())).coverage == 1 / 3


@pytest.mark.parametrize("metric", [AdaptiveECE(4), DebiasedRMSE(4), AccuracyAtCoverage(0.3)])
def test_a_restored_metric_computes_what_it_did(metric):
    draws = torch.Generator().manual_seed(0)
    metric.update(torch.rand(200, 5, generator=draws).softmax(1), torch.randint(5, (200,), generator=draws))
    restored = type(metric).from_state(metric.state())
    assert restored.compute() == metric.compute()
    assert type(metric).from_state({name: value.tolist() for name, value in metric.state().items()}) is not None
