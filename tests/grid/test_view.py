"""What a user sees of a grid: its plan, and its runs while they go on."""

import io

import pytest

from dign.corruptions import SEVERITIES
from dign.evaluation.result_parts import Summary
from dign.evaluation.result_pools import PooledCalibration
from dign.grid.job import DONE, FAILED, Outcome
from dign.grid.plan import make_plan
from dign.grid.state import Stage, State
from dign.grid.storage import LocalStore
from dign.grid.view import RunningView, plan_summary, plan_table
from dign.metrics import CalibrationScores
from dign.metrics.aggregation import MCA_N_CORRUPTIONS


@pytest.fixture
def plan():
    return make_plan({"data": "digits", "seed": [0, 1, 2, 3]})


def new(plan):
    return {run.name: State(Stage.NEW) for run in plan.runs}


SCORES = CalibrationScores(10, 90.0, 5.0, 5.0, 5.0, None)
NOISES = dict.fromkeys(MCA_N_CORRUPTIONS, SEVERITIES)
SUMMARY = Summary(90.0, 70.0, 60.0, {"noise": 60.0}, PooledCalibration(SCORES, noise=SCORES), NOISES)


def test_without_a_terminal_events_are_plain_lines(plan, tmp_path, capsys):
    names = [run.name for run in plan.runs]
    states = {**new(plan), names[3]: State(Stage.DONE), names[2]: State(Stage.BEGUN)}
    with RunningView(plan, states, LocalStore(tmp_path)) as view:
        view.on_start(names[0])
        view.on_start(names[2])
        view.on_busy(names[2])
        view.on_busy(names[2])
        view.on_end(names[0], Outcome(DONE, summary=SUMMARY, seconds=61))
        view.on_end(names[1], Outcome(FAILED, "There is [no] disk.", seconds=1))
        view.on_tick()
    assert capsys.readouterr().err.splitlines() == [
        f"{names[0]}: starts",
        f"{names[2]}: resumed",
        f"{names[2]}: another process works on it; waiting",
        f"[2/4] {names[0]}: clean 90.0 %, mCA-N 60.0 %, ECE-N 5.0 % (61 s)",
        f"[3/4] {names[1]}: failed: There is [no] disk. (1 s)",
    ]


def test_the_live_table_shows_how_far_runs_are(plan, tmp_path):
    import time

    from rich.console import Console

    names = [run.name for run in plan.runs]
    view = RunningView(plan, new(plan), LocalStore(tmp_path), quiet=True)
    view.on_start(names[0])
    view.on_start(names[1])
    view.on_end(names[2], Outcome(FAILED, "No disk."))
    record = tmp_path / ".grid" / names[0] / "progress.json"
    record.parent.mkdir(parents=True)
    record.write_text(f'{{"stage": "training", "fraction": 0.5, "time": {time.time() + 1}}}')
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(view.table())
    text = console.export_text()
    assert "training" in text and "50 %" in text
    assert names[1] not in text, "no worker has taken it up yet"
    assert "failed: No disk." in text and "0 of 4 done, 1 failed, 2 waiting" in text


def test_the_plan_counts_what_is_left(plan):
    from rich.console import Console

    names = [run.name for run in plan.runs]
    states = {**new(plan), names[0]: State(Stage.DONE), names[1]: State(Stage.BEGUN)}
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(plan_table(plan, states, {}, None))
    assert "0, 1, 2, 3" in (text := console.export_text()) and "2 to run, 1 to resume, 1 done" in text
    assert plan_summary(plan, states, {names[1]: 0.5}, None, 2, 1) == (
        "4 runs, 1 done. Left: 3 runs, 10.0 Standard-equivalents; 2 at once with 1 thread each."
    )
