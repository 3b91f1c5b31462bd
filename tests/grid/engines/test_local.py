"""Real processes: killed, orphaned, two grids at once, and the command line around them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dign.cli import main
from dign.core.errors import UserError
from dign.grid.engines.local import LocalEngine, split_cores
from dign.grid.job import DONE, FAILED, Job, run_job
from dign.runs.folder import load_run

GRID = """
data = "digits"
size = 8
method = ["standard", "rse"]
epochs = 6
batch_size = 128
checkpoint_seconds = 0
threads = 1
[evaluate]
only = "shot_noise"
severity = 3
[for.rse]
lr = 1e30
"""
"""Two runs, of which the second fails."""


def wait_until(condition, seconds=300.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def pid_in_training(out, name):
    """The process that trains a run, once it has a checkpoint."""
    try:
        progress = json.loads((out / ".grid" / name / "progress.json").read_text())
    except (OSError, ValueError):
        return None
    return progress["pid"] if (out / name / "checkpoint.safetensors").exists() else None


def collect(engine):
    return wait_until(lambda: engine.poll(0.5))[0]


def test_cores_are_shared_out(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    assert split_cores(27, max_parallel=None, threads=None, gpus=0) == (8, 1)
    assert split_cores(3, max_parallel=None, threads=None, gpus=0) == (3, 2)
    assert split_cores(27, max_parallel=2, threads=None, gpus=0) == (2, 4)
    assert split_cores(27, max_parallel=None, threads=4, gpus=0) == (2, 4)
    assert split_cores(27, max_parallel=None, threads=None, gpus=4) == (4, 2)
    assert split_cores(27, max_parallel=3, threads=16, gpus=0) == (3, 16), "what the user asks for"


@pytest.mark.slow
def test_a_killed_worker_is_taken_up_again_to_the_same_weights(small, tmp_path):
    plan = small(epochs=5)
    name = plan.runs[0].name
    engine = LocalEngine(slots=1, threads=1, retries=1)
    engine.start(Job.of(plan.runs[0], tmp_path / "killed", 1))
    pid = wait_until(lambda: pid_in_training(tmp_path / "killed", name))
    os.kill(pid, signal.SIGKILL)
    ended, outcome = collect(engine)
    assert (ended, outcome.state) == (name, DONE)
    assert pid_in_records(tmp_path / "killed", name) != pid
    run_job(Job.of(plan.runs[0], tmp_path / "calm", 1))
    killed, calm = (load_file(tmp_path / where / name / "model.safetensors") for where in ("killed", "calm"))
    assert all(torch.equal(killed[key], calm[key]) for key in calm)


def pid_in_records(out, name):
    return json.loads((out / ".grid" / name / "progress.json").read_text())["pid"]


@pytest.mark.slow
def test_a_measurement_happens_in_a_process_with_the_threads_of_a_run():
    engine = LocalEngine(slots=1, threads=1)
    threads, pid = engine.measure(threads_and_pid)
    assert threads == 1 and pid != os.getpid()
    with pytest.raises(UserError, match="process that measured it died"):
        engine.measure(os._exit, 3)
    assert engine.measure(threads_and_pid)[0] == 1, "one that died is replaced"
    engine.close()


def threads_and_pid():
    return torch.get_num_threads(), os.getpid()


@pytest.mark.slow
def test_a_killed_grid_leaves_no_measuring_process_behind(tmp_path):
    here, program = (
        str(Path(__file__).parent),
        (
            "import os, sys\nfrom dign.grid.engines.local import LocalEngine\n"
            "if __name__ == '__main__':\n"
            "    print(LocalEngine(slots=1, threads=1).measure(os.getpid), flush=True)\n    os.kill(os.getpid(), 9)\n"
        ),
    )
    (tmp_path / "grid.py").write_text(program)
    done = subprocess.run([sys.executable, str(tmp_path / "grid.py")], capture_output=True, text=True, cwd=here)
    child = int(done.stdout)
    wait_until(lambda: not _alive(child))


def _alive(pid):
    """Whether the process is there and is more than the entry that a dead one leaves."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_that_always_dies_fails_with_a_sentence(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    engine = LocalEngine(slots=1, threads=1, retries=2)
    engine.start(Job.of(small().runs[0], tmp_path, 1))
    _, outcome = collect(engine)
    assert outcome.state == FAILED
    assert outcome.error.startswith("Its process died 3 times")


@pytest.mark.slow
def test_a_killed_grid_leaves_no_process_and_resumes_when_it_is_started_again(tmp_path, capsys):
    """kill -9 of the grid itself; then the same command goes on, and a run that fails does not stop it."""
    file, out = tmp_path / "grid.toml", tmp_path / "runs"
    file.write_text(GRID)
    words = ["grid", str(file), "--out", str(out), "--no-measure", "--max-parallel", "1"]
    grid = subprocess.Popen([sys.executable, "-m", "dign", *words], stderr=subprocess.DEVNULL)
    first = out / "digits-tinynet-standard-seed0"
    pid = wait_until(lambda: pid_in_training(out, first.name))
    grid.kill()
    grid.wait()
    wait_until(lambda: is_gone(pid))
    assert not load_run(first).finished
    started = load_run(first).info["started"]
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 1
    assert load_run(first).finished and (first / "results.json").exists()
    assert load_run(first).info["started"] == started, "it was resumed, not started again"
    said = capsys.readouterr().err
    assert f"{first.name}: resumed" in said and f"{first.name} failed" not in said
    assert "dign: digits-tinynet-rse-seed0 failed: " in said and "not finite" in said


def is_gone(pid):
    """Whether a process has ended; nobody may have asked yet how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
