"""One thread per test process, since the tensors are tiny and the processes share the cores; and the command line."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the commands that tests start

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def dign_command(capsys):
    """Run a command line in this process; gives (exit code, standard output, standard error)."""
    from dign.cli import main

    def run(*args):
        with pytest.raises(SystemExit) as stop:
            main(list(map(str, args)))
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run
