"""One thread per test process, since the tensors are tiny and the processes share the cores; a cache of their own."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the commands that tests start

import pytest
import torch
from fake_runs import demo_runs, fake_run, grid_runs  # noqa: F401 (fixtures)
from hypothesis import settings
from real_torchvision import declare_missing_operators

torch.set_num_threads(1)
torchvision_operators = declare_missing_operators()  # kept alive
settings.register_profile("dign", deadline=None)  # a busy machine is not a failure
settings.load_profile("dign")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory):
    """Tests leave nothing in the user's cache, and find nothing there."""
    monkeypatch.setenv("DIGN_DATA", str(tmp_path_factory.getbasetemp() / "cache"))


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
