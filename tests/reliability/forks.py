"""Commands in forked children of a process that has torch loaded: they start in milliseconds, and die at any moment.

The parent itself computes nothing: a fork of a process with running threads would not be sound.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Moment:
    """When a process dies: `seconds` after its start, or right before its change number `change` to the disk.

    `role` says whose changes count: of the command itself, or of the processes that it starts. With `torn` the file
    that was just being written loses its second half first, as if death had come in the middle of writing.
    """

    seconds: float | None = None
    change: int | None = None
    role: str = "command"
    torn: bool = False

    def __str__(self) -> str:
        when = f"after {self.seconds:.2f} s" if self.change is None else f"before change {self.change}"
        return f"{when} of the {self.role}{', half written' if self.torn else ''}"


class Tripwire:
    """Counts the changes that a process makes to the disk under `place`, and kills it at one of them.

    The count is kept in a file, which all processes of one role append to; each must `act_as` its role.
    """

    def __init__(self, place: Path, counts: Path, moment: Moment | None) -> None:
        self.place, self.moment, self.role = str(place), moment, ""
        counts.mkdir(parents=True, exist_ok=True)
        self.files = {
            role: os.open(counts / role, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC)
            for role in ("command", "worker")
        }

    def install(self) -> None:
        sys.addaudithook(self._hook)
        # Counted, not done: the system outlives the process, and what it keeps in memory is as good as on the disk.
        os.fsync = lambda descriptor: self._count(None)

    def act_as(self, role: str) -> None:
        self.role = role

    def _hook(self, event: str, arguments: tuple) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and self._is_ours(path):
                self._count(path)
        elif event in _CHANGES:
            relative_to_a_folder = event in ("os.remove", "os.rmdir") and arguments[-1] != -1
            if relative_to_a_folder or self._is_ours(arguments[0]):
                self._count(arguments[0])

    def _is_ours(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(self.place)

    def _count(self, path: object) -> None:
        if not self.role:
            return
        file = self.files[self.role]
        os.write(file, b".")
        moment = self.moment
        if moment and moment.role == self.role and os.fstat(file).st_size == moment.change:
            if moment.torn and path is not None:
                _tear(os.fsdecode(path))
            os.kill(os.getpid(), signal.SIGKILL)


def _tear(path: str) -> None:
    with suppress(OSError):
        if path.endswith(".partial") and os.path.isfile(path):
            os.truncate(path, os.path.getsize(path) // 2)


def start(work: Callable[[], object], log: Path, folder: Path) -> int:
    """Do `work` in a forked process with `folder` as working directory; its output goes into `log`."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def wait(pid: int, limit: float = 300.0) -> int:
    """The exit code of a child (minus the signal that ended it); one that hangs is an error."""
    deadline = time.monotonic() + limit
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError(f"a process hung for more than {limit} s")
        time.sleep(0.002)


def adopt_orphans() -> None:
    """Make this process the parent of what its children leave behind, so that `no_process_left` sees it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_of(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def no_process_left(spare: set[int], limit: float = 90.0) -> bool:
    """Whether all children but `spare` end by themselves in time; those that do not are killed."""
    deadline = time.monotonic() + limit
    while others := set(children_of(os.getpid())) - spare:
        for pid in others:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            for pid in others:
                os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.005)
    return True


class ForkedWorker:
    """Stands in for the `subprocess.Popen` of a worker: a function in a fork, spoken to through pipes.

    Of the files that are open only those in `keep` stay so, as with `Popen`: a pipe that a brother holds never closes.
    """

    def __init__(self, work: Callable[[], object], log: int, keep: set[int]) -> None:
        its_input, self_output = os.pipe()
        self_input, its_output = os.pipe()
        self.pid, self.returncode = os.fork(), None
        if not self.pid:
            self._live(work, {0: its_input, 1: its_output, 2: log}, keep)
        os.close(its_input)
        os.close(its_output)
        self.stdin, self.stdout = os.fdopen(self_output, "wb", 0), os.fdopen(self_input, "rb", 0)

    @staticmethod
    def _live(work: Callable[[], object], streams: dict[int, int], keep: set[int]) -> None:
        try:
            os.setsid()
            for target, source in streams.items():
                os.dup2(source, target)
            for descriptor in map(int, os.listdir("/proc/self/fd")):
                if descriptor > 2 and descriptor not in keep:
                    with suppress(OSError):
                        os.close(descriptor)
            sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 (ends with the process)
            work()
            os._exit(0)
        finally:
            os._exit(70)

    def poll(self) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if found else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = wait(self.pid, timeout if timeout is not None else 300.0)
        return self.returncode

    def send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
