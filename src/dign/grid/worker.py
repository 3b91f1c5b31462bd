"""A process that runs one job: `python -m dign.grid.worker`, the job on standard input, the outcome on standard output.

It stops, after saving a checkpoint, when standard input closes: a grid that dies leaves no process behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from dign.core.allocator import reuse_memory
from dign.grid.job import Job, run_job


def main() -> None:
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to the log
    job = Job(**json.loads(sys.stdin.readline()))
    reuse_memory()
    threading.Thread(target=_stop_when_orphaned, daemon=True).start()
    json.dump(run_job(job).to_json(), answer)
    answer.close()


def _stop_when_orphaned() -> None:
    while os.read(0, 1024):  # not sys.stdin: its lock would be held when the interpreter ends
        pass
    signal.raise_signal(signal.SIGTERM)  # not os.kill, which on Windows ends a process at once


if __name__ == "__main__":
    main()
