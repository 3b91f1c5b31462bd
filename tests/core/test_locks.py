"""One holder at a time, and the lock goes with its process."""

import subprocess
import sys
import time

import pytest

from dign.core.locks import LockHeld, hold_lock

HOLD = """
import sys, time
from pathlib import Path
from dign.core.locks import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other_process(tmp_path):
    """A process that holds the lock `tmp_path`/deep/lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "deep" / "lock")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_what_another_process_holds_is_refused_until_that_process_dies(other_process, tmp_path):
    lock = tmp_path / "deep" / "lock"
    with pytest.raises(LockHeld), hold_lock(lock):
        pass
    other_process.kill()
    other_process.wait()
    with hold_lock(lock):
        assert lock.is_file()
    assert lock.is_file()


def test_who_waits_gets_it_as_soon_as_it_is_free(other_process, tmp_path):
    waited = []

    def waiting():
        waited.append(time.monotonic())
        if len(waited) == 2:
            other_process.kill()
            other_process.wait()

    with hold_lock(tmp_path / "deep" / "lock", waiting):
        assert len(waited) == 2


def test_a_lock_is_free_again_after_an_error_inside(tmp_path):
    with pytest.raises(ValueError, match="inside"), hold_lock(tmp_path / "lock"):
        raise ValueError("inside")
    with hold_lock(tmp_path / "lock"):
        pass
