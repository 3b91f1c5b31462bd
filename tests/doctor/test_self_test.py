"""The self-test passes where results repeat, and notices where a device computes something else."""

import pytest
import torch

import dign.doctor.self_test
from dign.corruptions import ALL_NAMES
from dign.doctor.self_test import run_self_test
from dign.methods import METHODS

CPU = torch.device("cpu")


@pytest.mark.slow
def test_a_cpu_agrees_with_itself_on_every_method_and_corruption():
    outcomes = list(run_self_test(CPU))
    assert [outcome for outcome in outcomes if not outcome.passed] == []
    names = {outcome.name for outcome in outcomes}
    assert names == {f"method/{name}" for name in METHODS} | {f"corruption/{name}" for name in ALL_NAMES}
    assert all(outcome.difference == 0 for outcome in outcomes)


def few(monkeypatch):
    monkeypatch.setattr(dign.doctor.self_test, "METHODS", {"standard": METHODS["standard"]})
    monkeypatch.setattr(dign.doctor.self_test, "ALL_NAMES", ("contrast",))


def test_a_device_that_computes_something_else_fails(monkeypatch):
    few(monkeypatch)
    right, calls = dign.doctor.self_test.corrupt, []

    def corrupt(images, name, severity):
        calls.append(name)
        return right(images, name, severity) + 3 * (len(calls) % 2)

    monkeypatch.setattr(dign.doctor.self_test, "corrupt", corrupt)
    method, corruption = run_self_test(CPU)
    assert method.passed and not corruption.passed and corruption.difference == 1
    assert "100 % of the pixels differ, by up to" in corruption.problem


def test_an_operation_that_the_device_lacks_is_reported_and_the_others_go_on(monkeypatch):
    few(monkeypatch)

    def forward(*args, **options):
        raise NotImplementedError("aten::conv2d is not there")

    monkeypatch.setattr(dign.doctor.self_test, "forward", forward)
    method, corruption = run_self_test(CPU)
    assert not method.passed and "aten::conv2d is not there" in method.problem
    assert corruption.passed
