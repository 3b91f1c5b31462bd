"""A real Ray on this machine: a worker is killed in the middle of a run, and the results are those of a calm one."""

import json
import os
import signal

import pytest
import torch
from safetensors.torch import load_file

from dign.grid.engines.ray import RayEngine
from dign.grid.job import DONE, Job, run_job
from dign.grid.scheduling import collect_failures, read_states, run_plan
from dign.grid.state import Stage

pytestmark = pytest.mark.slow

pytest.importorskip("ray", reason="Ray is not installed: pip install 'dign[ray]'")


class Killer:
    """A view that kills the worker of a run, with signal 9, as soon as that has a checkpoint."""

    def __init__(self, out, name):
        self.out, self.name, self.killed = out, name, None

    def on_start(self, name): ...

    def on_busy(self, name): ...

    def on_end(self, name, outcome): ...

    def on_tick(self):
        if self.killed is None and (self.out / self.name / "checkpoint.safetensors").exists():
            self.killed = pid_of(self.out, self.name)
            os.kill(self.killed, signal.SIGKILL)


def pid_of(out, name):
    return json.loads((out / ".grid" / name / "progress.json").read_text())["pid"]


@pytest.fixture(scope="module")
def engine():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # else the other tests, which keep the cores busy, all go first
        engine = RayEngine(threads=1, retries=2, max_parallel=2)
        yield engine
        engine.close()


def test_a_killed_worker_is_retried_by_ray_and_the_results_are_those_of_the_local_engine(engine, small, tmp_path):
    plan = small(method=["standard", "dign"], epochs=10)
    out, calm = tmp_path / "ray", tmp_path / "calm"
    killer = Killer(out, plan.runs[1].name)
    outcomes = run_plan(plan.runs, read_states(plan.runs, out), engine, out, killer)
    assert not collect_failures(outcomes)
    assert killer.killed and pid_of(out, plan.runs[1].name) != killer.killed, "another worker finished the run"
    assert all(state.stage is Stage.DONE for state in read_states(plan.runs, out).values())
    for run in plan.runs:
        reference = run_job(Job.of(run, calm, 1))
        assert outcomes[run.name].summary == reference.summary
        ours, theirs = (load_file(where / run.name / "model.safetensors") for where in (out, calm))
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_results_land_at_a_url(engine, small, tmp_path):
    plan = small()
    url = f"file://{tmp_path}/bucket"
    outcomes = run_plan(plan.runs, read_states(plan.runs, url), engine, url, Killer(tmp_path, "nobody"))
    assert [outcome.state for outcome in outcomes.values()] == [DONE]
    assert (tmp_path / "bucket" / plan.runs[0].name / "results.json").exists()


def test_a_measurement_happens_on_the_cluster_with_the_threads_of_a_run(engine):
    threads, pid = engine.measure(threads_and_pid)
    assert threads == 1 and pid != os.getpid()


def threads_and_pid():
    return torch.get_num_threads(), os.getpid()
