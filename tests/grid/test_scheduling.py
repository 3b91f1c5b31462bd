"""The order of things while a grid runs, with an engine that only pretends."""

import pytest

import dign.grid.scheduling
from dign.grid.job import BUSY, DONE, FAILED, INTERRUPTED, Outcome
from dign.grid.plan import make_plan
from dign.grid.scheduling import collect_failures, run_plan
from dign.grid.state import Stage, State
from dign.grid.storage import LocalStore


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

    def poll(self, timeout):
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
    outcomes = run_plan(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.most == 3
    assert [outcome.state for outcome in outcomes.values()] == [DONE] * 4


def test_a_failure_does_not_stop_the_others_and_is_told_at_the_end(plan, tmp_path):
    first = plan.runs[0].name
    engine = Pretence(1, {first: [Outcome(FAILED, "The loss is not finite.")]})
    outcomes = run_plan(plan.runs, new(plan), engine, tmp_path, Silence())
    assert len(outcomes) == 4
    assert collect_failures(outcomes) == {first: "The loss is not finite."}


def test_what_is_done_is_not_even_started(plan, tmp_path):
    states = {**new(plan), plan.runs[1].name: State(Stage.DONE)}
    engine = Pretence(1, {})
    run_plan(plan.runs, states, engine, tmp_path, Silence())
    assert plan.runs[1].name not in engine.started and len(engine.started) == 3


@pytest.mark.slow
def test_a_run_of_another_process_is_looked_at_again_later(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(dign.grid.scheduling, "WAIT_FOR_OTHERS", 0.01)
    first = plan.runs[0].name
    engine = Pretence(1, {first: [Outcome(BUSY), Outcome(BUSY), Outcome(DONE)]})
    outcomes = run_plan(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.started.count(first) == 3
    assert outcomes[first].state == DONE and not collect_failures(outcomes)


def test_ctrl_c_stops_the_engine(plan, tmp_path):
    engine = Pretence(2, {plan.runs[0].name: [KeyboardInterrupt()]})
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.stopped


def test_an_interrupted_run_counts_as_not_done():
    assert collect_failures({"a": Outcome(INTERRUPTED), "b": Outcome(DONE)}) == {"a": "It was interrupted."}


@pytest.mark.slow
def test_no_worker_is_started_for_what_another_process_works_on_or_has_done(small, tmp_path):
    from dign.grid.job import Job, run_job
    from dign.runs.folder import lock_run

    plan = small()
    with lock_run(tmp_path / ".grid" / plan.runs[0].name):
        assert dign.grid.scheduling._check_outcome(LocalStore(tmp_path), plan.runs[0]).state == BUSY
    assert dign.grid.scheduling._check_outcome(LocalStore(tmp_path), plan.runs[0]) is None
    done = run_job(Job.of(plan.runs[0], tmp_path, 1))
    engine = Pretence(1, {})
    outcomes = run_plan(plan.runs, new(plan), engine, tmp_path, Silence())
    assert engine.started == [] and outcomes[plan.runs[0].name].summary == done.summary
