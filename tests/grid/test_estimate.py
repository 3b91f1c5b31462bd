"""Cost and time of a grid, worked out by hand."""

import pytest

from dign.core.errors import UserError
from dign.grid.estimate import Expected, estimate_run, estimate_times, get_extent, makespan, time_left
from dign.grid.measure import Extent, Speed
from dign.grid.plan import make_plan
from dign.grid.state import Stage, State
from dign.training.cost import standard_equivalents, work_curve


def test_time_of_a_run_follows_from_its_parts():
    (run,) = make_plan({"data": "cifar10", "epochs": 3, "evaluate": {"only": "noise", "severity": [1, 2]}}).runs
    expected = estimate_run(run, Extent(1100, 100, (32, 32), 10), Speed(step=0.5, predict=0.01, corrupt=0.02))
    assert expected.training == 3 * 2 * 512 * 0.5, "the last partial batch of 512 is dropped"
    assert expected.evaluation == pytest.approx(100 * (9 * 0.01 + 2 * 0.02))
    assert expected.left(Stage.BEGUN, 0.25) == pytest.approx(0.75 * 1536 + 13)
    assert expected.left(Stage.TRAINED, 0.0) == pytest.approx(13)
    assert expected.left(Stage.DONE, 1.0) == 0


def test_workers_take_the_next_run_as_soon_as_they_are_free():
    assert makespan([3, 3, 3], 1) == 9
    assert makespan([4, 1, 1, 1], 2) == 4
    assert makespan([1, 1, 1, 4], 2) == 5, "the long one comes last"
    assert makespan([], 2) == 0


def test_what_is_done_takes_no_time_and_what_is_unknown_stays_unknown():
    runs = make_plan({"data": "cifar10", "seed": [0, 1]}).runs
    states = {runs[0].name: State(Stage.DONE), runs[1].name: State(Stage.NEW)}
    assert time_left(runs, states, {}, {runs[1].name: Expected(10, 5)}, 2) == 15
    assert time_left(runs, states, {}, {runs[1].name: "no data"}, 2) is None


def test_data_that_is_not_here_is_planned_by_its_known_extent():
    (run,) = make_plan({"data": "tiny-imagenet", "validation": 0.1}).runs
    assert get_extent(run.config) == Extent(90_000, 10_000, (64, 64), 200)
    assert get_extent(run.config, "validation") == Extent(90_000, 10_000, (64, 64), 200)
    (small,) = make_plan({"data": "cifar10", "method": "standard"}).runs
    assert [get_extent(small.config, split).evaluated for split in ("train", "validation")] == [45_000, 5_000]
    (digits,) = make_plan({"data": "digits", "method": "standard"}).runs
    assert get_extent(digits.config, "validation").evaluated < get_extent(digits.config).evaluated == 359


def test_each_kind_of_run_is_measured_once():
    plan = make_plan(
        {"data": "cifar10", "method": ["standard", "dign"], "seed": [0, 1], "lr": [0.1, 0.2],
         "settings": {"dign": {"samples": [1, 3], "weight": [1, 2]}}}
    )  # fmt: skip
    calls = []

    def measure(function, config, *others):
        calls.append((config.method, config.settings.get("dign", {}).get("samples")))
        return Speed(1, 1, 1)

    expected = estimate_times(plan.runs, measure)
    assert calls == [("standard", None), ("dign", 1), ("dign", 3)]
    assert len(expected) == len(plan.runs) == 4 + 16


def test_a_part_of_the_images_takes_its_part_of_the_time():
    def evaluation(**table):
        plan = make_plan({"data": "cifar10", "evaluate": {"only": "fog", "severity": 3, **table}})
        (expected,) = estimate_times(plan.runs, lambda *_: Speed(step=1, predict=0.01, corrupt=0.02)).values()
        return expected.evaluation

    assert evaluation() == pytest.approx(10_000 * (2 * 0.01 + 0.02))
    assert evaluation(images=200) == pytest.approx(200 * (2 * 0.01 + 0.02))
    assert evaluation(images=20_000) == evaluation()


def test_steps_that_are_cheaper_at_first_are_reckoned_so():
    (small,) = make_plan({"data": "cifar10", "method": "standard", "small_first": 0.5}).runs
    assert standard_equivalents(small.config) == pytest.approx(0.5 * 9 / 16 + 0.5)
    late = {"dign": {"samples": 1, "start": 0.5}}
    (both,) = make_plan(
        {"data": "cifar10", "method": "dign", "small_first": 0.75, "settings": late, "epochs": 1, "batch_size": 500}
    ).runs
    cost = 0.5 * 9 / 16 + 0.25 * 2 * 9 / 16 + 0.25 * 2
    assert standard_equivalents(both.config) == pytest.approx(cost)
    expected = estimate_run(both, Extent(50_000, 10_000, (32, 32), 10), Speed(step=1, predict=0, corrupt=0))
    assert expected.training == pytest.approx(50_000 * cost / 2), "what is measured is a step of two passes"
    assert work_curve(both.config)(0.5) == pytest.approx(0.5 * 9 / 16 / cost), "the first half is the cheaper one"
    assert (work_curve(both.config)(0), work_curve(both.config)(1)) == (0, 1)
    left = time_left([both], {both.name: State(Stage.BEGUN)}, {both.name: 0.5}, {both.name: expected}, 1)
    assert left == pytest.approx(50_000 * (cost - 0.5 * 9 / 16) / 2)


def test_a_measurement_that_fails_gives_a_sentence():
    def measure(*arguments):
        raise UserError("There is no CUDA device here.")

    (run,) = make_plan({"data": "cifar10"}).runs
    assert estimate_times([run], measure) == {run.name: "There is no CUDA device here."}


@pytest.mark.parametrize("kind", [ValueError, AssertionError, NotImplementedError])
def test_a_model_that_cannot_take_the_images_ends_no_grid(kind):
    def measure(*arguments):
        raise kind("Expected more than 1 value per channel")

    (run,) = make_plan({"data": "cifar10"}).runs
    assert "more than 1 value" in estimate_times([run], measure)[run.name]
