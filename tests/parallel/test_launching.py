"""How a process was started is read as Lightning Fabric reads it; what several processes cannot do is refused."""

import os
import signal

import pytest

from dign.core.errors import UserError
from dign.data import load
from dign.parallel.launching import (
    exit_code_for_rank,
    is_rank_zero,
    is_slurm,
    is_torchrun,
    local_rank,
    resolve_process_counts,
    torchrun_job_id,
)
from dign.runs.config import RunConfig
from dign.runs.folder import create_run, was_started_by
from dign.training.interrupts import catch_signals

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "job", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "3", "RANK": "4", "LOCAL_RANK": "1",
    "GROUP_RANK": "1",
}  # fmt: skip
SLURM = {
    "SLURM_NTASKS": "6", "SLURM_NTASKS_PER_NODE": "3", "SLURM_NNODES": "2", "SLURM_PROCID": "4", "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1", "SLURM_JOB_NAME": "train", "SLURM_JOB_ID": "1234", "SLURM_NODELIST": "node[3-4]",
}  # fmt: skip
BY_HAND = {"LOCAL_RANK": "1"}
"""What Fabric gives to the processes that `--devices` makes."""


@pytest.fixture
def started(monkeypatch):
    """Say how this process was started."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "TORCHELASTIC_")) or name in (*TORCHRUN, "NODE_RANK"):
            monkeypatch.delenv(name)

    def by(variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return by


def test_a_process_that_nobody_launched_is_alone(started):
    assert resolve_process_counts(1, 1) == (1, 1) and resolve_process_counts(4, 2) == (4, 2), "what was asked for"
    assert is_rank_zero() and local_rank() == 0 and torchrun_job_id() is None and exit_code_for_rank(2) == 2


@pytest.mark.parametrize("variables", [TORCHRUN, SLURM], ids=["torchrun", "slurm"])
def test_a_launcher_says_how_many_there_are_and_which_one_this_is(started, variables):
    started(variables)
    assert resolve_process_counts(3, 2) == (3, 2)
    assert not is_rank_zero() and local_rank() == 1 and exit_code_for_rank(2) == 2
    with pytest.raises(UserError, match="use devices 3 and nodes 2"):
        resolve_process_counts(2, 1)
    started({"RANK": "0", "SLURM_PROCID": "0"})
    assert is_rank_zero()


def test_torchrun_is_what_fabric_takes_for_torchrun(started):
    from lightning_fabric.plugins.environments import TorchElasticEnvironment

    assert not is_torchrun() and not TorchElasticEnvironment.detect()
    started(TORCHRUN)
    found = TorchElasticEnvironment()
    assert is_torchrun() and TorchElasticEnvironment.detect()
    assert (found.global_rank(), found.local_rank(), found.world_size()) == (4, 1, 6)
    assert resolve_process_counts(1, 1) == (3, 2), "nothing needs to be said twice"
    found.validate_settings(*resolve_process_counts(1, 1))


def test_slurm_is_what_fabric_takes_for_slurm(started):
    from lightning_fabric.plugins.environments import SLURMEnvironment

    assert not is_slurm() and not SLURMEnvironment.detect()
    started(SLURM)
    found = SLURMEnvironment()
    assert is_slurm() and SLURMEnvironment.detect() and found.creates_processes_externally
    assert (found.global_rank(), found.local_rank(), found.node_rank(), found.world_size()) == (4, 1, 1, 6)
    assert (found.main_address, found.main_port) == ("node3", 16234), "found alike by all, without being told"
    found.validate_settings(*resolve_process_counts(3, 2))
    with pytest.raises(UserError, match="use devices 3 and nodes 2"):
        resolve_process_counts(1, 1)  # perhaps a shell in which nobody else runs: not to be waited for
    started({"SLURM_JOB_NAME": "interactive"})
    assert not is_slurm() and not SLURMEnvironment.detect(), "there the user starts the processes"


def test_processes_that_devices_made_leave_failing_to_the_first(started):
    started(BY_HAND)
    assert local_rank() == 1 and not is_rank_zero() and exit_code_for_rank(130) == 0


def test_a_mistake_that_all_processes_make_is_told_by_the_first_and_fails_in_it_alone(started, dign_command):
    """Fabric kills the first process when another that it made fails, perhaps before it has said anything."""
    code, _, said = dign_command("list", "nosuch")
    assert code == 2 and said.count("\n") == 1
    started(BY_HAND)
    assert dign_command("list", "nosuch") == (0, "", "")


def test_a_run_is_taken_up_by_the_job_that_began_it_alone(tmp_path):
    config = RunConfig.from_mapping({"data": "digits", "size": 8})
    assert not was_started_by("job", config, tmp_path / "run")
    create_run(tmp_path / "run", config, load("digits", size=8), [0.5] * 3, [0.2] * 3, job="job")
    assert was_started_by("job", config, tmp_path / "run")
    assert not was_started_by("another", config, tmp_path / "run")
    assert not was_started_by(None, config, tmp_path / "run")
    assert not was_started_by("job", RunConfig.from_mapping({"data": "digits", "size": 8, "seed": 1}), tmp_path / "run")


def test_ctrl_c_and_then_sigterm_is_one_wish_but_the_same_twice_is_impatience():
    with catch_signals() as received:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGINT, signal.SIGTERM]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
