"""One holder at a time, and the lock goes with its process."""

import os
import subprocess
import sys
import threading

import pytest

from dign.core.errors import UserError
from dign.core.locks import lock_folder, wait_for_lock

HOLD = """
import sys, time
from pathlib import Path
from dign.core.locks import lock_folder, wait_for_lock
path = Path(sys.argv[2])
with lock_folder(path, "working in") if sys.argv[1] == "folder" else wait_for_lock(path):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def hold_elsewhere():
    """Start processes that hold a lock: of a folder, or of a path beside which its lock file is."""
    processes = []

    def start(kind, path):
        process = subprocess.Popen([sys.executable, "-c", HOLD, kind, str(path)], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_a_folder_that_another_process_holds_is_refused_until_that_process_dies(hold_elsewhere, tmp_path):
    folder = tmp_path / "deep" / "folder"
    other = hold_elsewhere("folder", folder)
    with pytest.raises(UserError, match="Another process is writing to"), lock_folder(folder, "writing to"):
        pass
    other.kill()
    other.wait()
    with lock_folder(folder, "writing to"):
        assert (folder / ".lock").is_file()
    assert (folder / ".lock").is_file()


def test_who_waits_says_so_once_and_gets_the_lock_as_soon_as_it_is_free(hold_elsewhere, tmp_path):
    remarks = []
    other = hold_elsewhere("path", tmp_path / "deep" / "store")

    def report(what, done, total):
        remarks.append((what, done, total))
        other.kill()
        other.wait()

    with wait_for_lock(tmp_path / "deep" / "store", report):
        assert remarks == [("Waiting for another process that prepares store", 0, None)]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == [".store.lock"]


def test_a_lock_is_free_again_after_an_error_inside(tmp_path):
    with pytest.raises(ValueError, match="inside"), lock_folder(tmp_path, "writing to"):
        raise ValueError("inside")
    with lock_folder(tmp_path, "writing to"):
        pass


def test_threads_take_turns_like_processes(tmp_path):
    inside, most = 0, 0

    def work():
        nonlocal inside, most
        for _ in range(20):
            with wait_for_lock(tmp_path / "store"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_releases_the_lock_nor_keeps_it(tmp_path):
    """The child leaves the block while its parent holds the lock, and another outlives its parent's holding."""
    program = f"""
import os, sys
from pathlib import Path
from dign.core.locks import lock_folder
folder = Path({str(tmp_path)!r})
gate, opened = os.pipe()
with lock_folder(folder, "working in"):
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        second = os.fork()
        if not second:
            os.close(opened)
            os.read(gate, 1)  # until the parent has ended
            os._exit(0)
        try:
            lock_folder(folder, "working in").__enter__()
        except ValueError:
            print("still held", flush=True)
if not first:
    os._exit(0)
with lock_folder(folder, "working in"):
    print("free", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["still held", "free"], done.stderr
