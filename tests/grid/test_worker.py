"""A worker: one job from standard input, its outcome on standard output."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest

from dign.evaluation.results import Results
from dign.grid.job import DONE, Job, Outcome

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "dign.grid.worker"]


def start(job):
    pipe = subprocess.PIPE
    process = subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    process.stdin.write(json.dumps(asdict(job)) + "\n")
    process.stdin.flush()
    return process


def test_the_outcome_is_all_that_a_worker_prints(small, tmp_path):
    (run,) = small(epochs=1).runs
    with start(Job.of(run, tmp_path, threads=1)) as process:
        outcome = Outcome.from_json(json.loads(process.stdout.read()))
        assert (outcome.state, process.wait()) == (DONE, 0)
    assert outcome.summary == Results.load(tmp_path / run.name).summary
