"""How a process was started is read as Lightning Fabric reads it; what several processes cannot do is refused."""

import os
import signal

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.data import load
from dign.parallel.batch_norm import SynchronizedBatchNorm, synchronize_batch_norm
from dign.parallel.devices import pick_device
from dign.parallel.fabric import make_fabric
from dign.parallel.launching import (
    exit_code_for_rank,
    is_rank_zero,
    is_slurm,
    is_torchrun,
    local_rank,
    resolve_process_counts,
    torchrun_job_id,
)
from dign.parallel.team import Team
from dign.runs.config import RunConfig
from dign.runs.folder import begun_by, create_run
from dign.training.interrupts import interruptible

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
    with pytest.raises(UserError, match="say --devices 3 --nodes 2"):
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
    with pytest.raises(UserError, match="say --devices 3 --nodes 2"):
        resolve_process_counts(1, 1)  # perhaps a shell in which nobody else runs: not to be waited for
    started({"SLURM_JOB_NAME": "interactive"})
    assert not is_slurm() and not SLURMEnvironment.detect(), "there a person starts the processes"


def test_processes_that_devices_made_leave_failing_to_the_first(started):
    started(BY_HAND)
    assert local_rank() == 1 and not is_rank_zero() and exit_code_for_rank(130) == 0


def test_a_mistake_that_all_processes_make_is_told_by_the_first_and_fails_in_it_alone(started, dign_command):
    """Fabric kills the first process when another that it made fails, perhaps before it has said anything."""
    code, _, said = dign_command("list", "nosuch")
    assert code == 2 and said.count("\n") == 1
    started(BY_HAND)
    assert dign_command("list", "nosuch") == (0, "", "")


@pytest.mark.parametrize("device", ["cpu:0", "mps"])
def test_several_processes_need_a_kind_of_device_and_not_one_of_them(device):
    with pytest.raises(UserError, match="is one device"):
        make_fabric(device, "32", devices=2)


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "32-true"), ((8, 0), "bf16-mixed")])
def test_bfloat16_is_taken_where_the_gpu_has_it_and_not_where_torch_imitates_it(monkeypatch, capability, expected):
    class Recorded(Exception):
        pass

    def record(**options):
        raise Recorded(options["precision"])

    monkeypatch.setattr("dign.parallel.fabric.pick_device", lambda name: torch.device("cuda:1"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    monkeypatch.setattr("lightning_fabric.Fabric", record)
    with pytest.raises(Recorded, match=expected):
        make_fabric("cuda:1", "auto")


def test_a_device_without_float64_is_refused(monkeypatch):
    def zeros(*size, dtype=None, **options):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype.") if dtype is torch.float64 else AssertionError

    monkeypatch.setattr(torch, "zeros", zeros)
    with pytest.raises(UserError, match=r"'mps' cannot be used here \(Cannot convert a MPS Tensor to float64 dtype\)"):
        pick_device("mps")


def test_a_batch_that_does_not_divide_is_refused():
    Team(rank=0, world_size=3).check_divides(12)
    with pytest.raises(UserError, match="choose a --batch-size that 3 divides"):
        Team(rank=0, world_size=3).check_divides(13)


def test_a_run_is_taken_up_by_the_job_that_began_it_alone(tmp_path):
    config = RunConfig.from_mapping({"data": "digits", "size": 8})
    assert not begun_by("job", config, tmp_path / "run")
    create_run(tmp_path / "run", config, load("digits", size=8), [0.5] * 3, [0.2] * 3, job="job")
    assert begun_by("job", config, tmp_path / "run")
    assert not begun_by("another", config, tmp_path / "run") and not begun_by(None, config, tmp_path / "run")
    assert not begun_by("job", RunConfig.from_mapping({"data": "digits", "size": 8, "seed": 1}), tmp_path / "run")


def test_synchronizing_keeps_parameters_names_and_modes():
    norm = nn.BatchNorm2d(3, momentum=0.3, eps=1e-3).eval()
    norm.weight.requires_grad = False
    model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sequential(norm, nn.ReLU()))
    names = list(model.state_dict())
    made = synchronize_batch_norm(model, Team(world_size=2))[1][0]
    assert isinstance(made, SynchronizedBatchNorm) and list(model.state_dict()) == names
    assert made.weight is norm.weight and made.running_var is norm.running_var and not made.training
    assert (made.momentum, made.eps) == (0.3, 1e-3)
    assert synchronize_batch_norm(nn.Sequential(norm), Team())[0] is norm, "alone there is nothing to synchronize"


def test_a_batch_norm_of_its_own_kind_cannot_be_synchronized():
    class Own(nn.BatchNorm2d):
        pass

    with pytest.raises(UserError, match="not this model's Own"):
        synchronize_batch_norm(nn.Sequential(Own(3)), Team(world_size=2))


def test_ctrl_c_and_then_sigterm_is_one_wish_but_the_same_twice_is_impatience():
    with interruptible() as received:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGINT, signal.SIGTERM]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_million_processes_are_refused_before_the_first_is_started(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("subprocess.Popen", lambda *arguments, **keywords: pytest.fail("a process was started"))
    with pytest.raises(
        UserError, match="1000000 processes are too many for the 2 cores of this machine: say --devices 2"
    ):
        make_fabric("cpu", "32", devices=1_000_000)
