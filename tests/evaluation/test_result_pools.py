"""Pools, temperatures and calibrators of a file: written as they are read, refused where they make no sense."""

import copy

import pytest
import torch

from dign.evaluation.json_values import BrokenResults
from dign.evaluation.result_pools import CalibratorResult, PooledCalibration, TemperatureResult
from dign.metrics import Calibration


def make_pools():
    metric = Calibration(4)
    metric.update(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), torch.tensor([0, 0]))
    return PooledCalibration(metric.compute(), noise=metric.compute()), metric


def test_what_is_written_is_read():
    pools, metric = make_pools()
    assert PooledCalibration.from_json(pools.to_json(), "pools") == pools
    fitted = CalibratorResult("temperature", 0.8, "clean", "digits", 100, pools, None, {"clean": metric})
    again = CalibratorResult.from_json(fitted.to_json())
    assert again == fitted and again.bins["clean"] == metric and again.name == "temperature 0.80"
    older = {key: value for key, value in fitted.to_json().items() if key != "bins"}
    assert CalibratorResult.from_json(older).bins == {}
    scaled = TemperatureResult(1.5, pools, "validation", 100, {"before": 1.0, "after": 0.9})
    assert TemperatureResult.from_json(scaled.to_json()) == scaled


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.update(value=0), "temperature.value"),
        (lambda r: r.update(nll={"before": None}), "temperature.nll"),
        (lambda r: r.pop("clean"), "temperature.clean is missing"),
    ],
)
def test_a_temperature_that_makes_no_sense(change, reason):
    value = copy.deepcopy(TemperatureResult(1.5, make_pools()[0]).to_json())
    change(value)
    with pytest.raises(BrokenResults, match=reason):
        TemperatureResult.from_json(value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.pop("kind"), "does not say what it is"),
        (lambda r: r.update(images=-1), "lacks a number"),
        (lambda r: r["bins"].update(noise={}), "calibrator.bins.noise"),
        (lambda r: r.update(bins=[]), "calibrator.bins"),
    ],
)
def test_a_calibrator_that_makes_no_sense(change, reason):
    pools, metric = make_pools()
    value = CalibratorResult("temperature", 0.8, "clean", "digits", 100, pools, None, {"clean": metric}).to_json()
    change(value)
    with pytest.raises(BrokenResults, match=reason):
        CalibratorResult.from_json(value)
