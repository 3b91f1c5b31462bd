"""The order of things while a grid runs, with an engine that only pretends."""

import io

import pytest

import dign.grid.scheduling
from dign.evaluation.result_parts import PooledCalibration, Summary
from dign.grid.job import BUSY, DONE, FAILED, INTERRUPTED, Outcome
from dign.grid.plan import make_plan
from dign.grid.scheduling import carry_out, failures
from dign.grid.state import Stage, State
from dign.grid.storage import LocalStore
from dign.grid.view import RunningView, plan_summary, plan_table
from dign.metrics import CalibrationScores


class Pretence:
    """Ends one job at a time with the next of its prepared outcomes."""

    threads = 1

    def __init__(self, slots, outcomes):
        self.slots = self.parallel = slots
        self.outcomes = {name: list(each) for name, each in outcomes.items()}
        self.running, self.started, self.most, self.stopped = [], [], 0, False

    def start(self, job):
        self.running.append(job.name)
        self.started.append(job.name)
        self.most = max(self.most, len(self.running))

    def ended(self, timeout):
        name = self.running.pop(0)
        outcome = self.outcomes.get(name, [Outcome(DONE)]).pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return [(name, outcome)]

    def stop(self):
        self.stopped = True


class Silence:
    def __getattr__(self, name):
        return lambda *arguments: None


@pytest.fixture
def plan():
    return make_plan({"data": "digits", "seed": [0, 1, 2, 3]})


def new(plan):
    return {run.name: State(Stage.NEW) for run in plan.runs}


def test_no_more_runs_at_once_than_there_is_room_for(plan, tmp_path):
    engine = Pretence(3, {})
    outcomes = carry_out(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.most == 3
    assert [outcome.state for outcome in outcomes.values()] == [DONE] * 4


def test_a_failure_does_not_stop_the_others_and_is_told_at_the_end(plan, tmp_path):
    first = plan.runs[0].name
    engine = Pretence(1, {first: [Outcome(FAILED, "The loss is not finite.")]})
    outcomes = carry_out(plan.runs, new(plan), engine, tmp_path, Silence())
    assert len(outcomes) == 4
    assert failures(outcomes) == {first: "The loss is not finite."}


def test_what_is_done_is_not_even_started(plan, tmp_path):
    states = {**new(plan), plan.runs[1].name: State(Stage.DONE)}
    engine = Pretence(1, {})
    carry_out(plan.runs, states, engine, tmp_path, Silence())
    assert plan.runs[1].name not in engine.started and len(engine.started) == 3


def test_a_run_of_another_process_is_looked_at_again_later(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(dign.grid.scheduling, "WAIT_FOR_OTHERS", 0.01)
    first = plan.runs[0].name
    engine = Pretence(1, {first: [Outcome(BUSY), Outcome(BUSY), Outcome(DONE)]})
    outcomes = carry_out(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.started.count(first) == 3
    assert outcomes[first].state == DONE and not failures(outcomes)


def test_ctrl_c_stops_the_engine(plan, tmp_path):
    engine = Pretence(2, {plan.runs[0].name: [KeyboardInterrupt()]})
    with pytest.raises(KeyboardInterrupt):
        carry_out(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.stopped


def test_an_interrupted_run_counts_as_not_done():
    assert failures({"a": Outcome(INTERRUPTED), "b": Outcome(DONE)}) == {"a": "It was interrupted."}


SCORES = CalibrationScores(10, 90.0, 5.0, 5.0, 5.0, None)
SUMMARY = Summary(90.0, 70.0, 60.0, {"noise": 60.0}, PooledCalibration(SCORES, noise=SCORES))


def test_without_a_terminal_events_are_plain_lines(plan, tmp_path, capsys):
    names = [run.name for run in plan.runs]
    states = {**new(plan), names[3]: State(Stage.DONE), names[2]: State(Stage.BEGUN)}
    with RunningView(plan, states, LocalStore(tmp_path)) as view:
        view.started(names[0])
        view.started(names[2])
        view.busy(names[2])
        view.busy(names[2])
        view.ended(names[0], Outcome(DONE, summary=SUMMARY, seconds=61))
        view.ended(names[1], Outcome(FAILED, "There is [no] disk.", seconds=1))
        view.tick()
    assert capsys.readouterr().err.splitlines() == [
        f"{names[0]}: starts",
        f"{names[2]}: goes on",
        f"{names[2]}: another process works on it; waiting",
        f"[2/4] {names[0]}: clean 90.0 %, mCA-N 60.0 %, ECE-N 5.0 % (61 s)",
        f"[3/4] {names[1]}: failed: There is [no] disk. (1 s)",
    ]


def test_the_live_table_shows_how_far_runs_are(plan, tmp_path):
    import time

    from rich.console import Console

    names = [run.name for run in plan.runs]
    view = RunningView(plan, new(plan), LocalStore(tmp_path), quiet=True)
    view.started(names[0])
    view.started(names[1])
    view.ended(names[2], Outcome(FAILED, "No disk."))
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
    assert "0, 1, 2, 3" in (text := console.export_text()) and "2 to run, 1 to go on, 1 done" in text
    assert plan_summary(plan, states, {names[1]: 0.5}, None, 2, 1) == (
        "4 runs, 1 done. Left: 3 runs, 10.0 Standard-equivalents; 2 at once with 1 thread each."
    )


def test_no_worker_is_started_for_what_another_process_works_on_or_has_done(small, tmp_path):
    from dign.grid.job import Job, perform
    from dign.runs.folder import locked

    plan = small()
    with locked(tmp_path / ".grid" / plan.runs[0].name):
        assert dign.grid.scheduling._look(LocalStore(tmp_path), plan.runs[0]).state == BUSY
    assert dign.grid.scheduling._look(LocalStore(tmp_path), plan.runs[0]) is None
    done = perform(Job.of(plan.runs[0], tmp_path, 1))
    engine = Pretence(1, {})
    outcomes = carry_out(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.started == [] and outcomes[plan.runs[0].name].summary == done.summary
