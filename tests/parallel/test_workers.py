"""Workers are processes where that is possible, share memory as it was, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from dign.parallel.workers import open_workers

here = threading.local()
linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are threads elsewhere")


def adopt(images: torch.Tensor) -> None:
    here.images = images


def total(factor: int) -> tuple[int, int, int]:
    return int(here.images.sum()) * factor, os.getpid(), torch.get_num_threads()


def fail(number: int) -> None:
    raise ValueError(f"task {number}")


@pytest.mark.parametrize("count, fork", [(1, True), (2, False), pytest.param(2, True, marks=linux)])
def test_workers_see_what_they_are_given_and_have_one_thread(count: int, fork: bool) -> None:
    before = torch.get_num_threads()
    with open_workers(count, adopt, torch.arange(5), fork=fork) as workers:
        results = list(workers.map(total, range(20)))
    assert [result[0] for result in results] == [10 * factor for factor in range(20)]
    assert ({result[1] for result in results} == {os.getpid()}) == (count == 1 or not fork)
    assert {result[2] for result in results} == {1} and torch.get_num_threads() == before


@linux
def test_an_error_of_a_task_is_raised_and_threads_are_restored() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="task 0"), open_workers(2, adopt, None) as workers:
        list(workers.map(fail, range(100)))
    assert torch.get_num_threads() == before


PROGRAM = """
import os, time
from dign.parallel.workers import open_workers
with open_workers(2, print) as workers:
    print(*{workers.submit(os.getpid).result() for _ in range(20)}, flush=True)
    time.sleep(60)
"""


@linux
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_a_killed_parent(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = next(line.split() for line in parent.stdout if line.strip())
        parent.send_signal(how)
        parent.wait()
        deadline = time.monotonic() + 20
        while any(os.path.exists(f"/proc/{worker}") for worker in workers):
            assert time.monotonic() < deadline
            time.sleep(0.05)
