"""Fabric is made for the devices and the precision that exist."""

import pytest
import torch

from dign.core.errors import UserError
from dign.parallel.fabric import make_fabric


@pytest.mark.parametrize("device", ["cpu:0", "mps"])
def test_several_processes_need_a_kind_of_device_and_not_one_of_them(device):
    with pytest.raises(UserError, match="is for one process"):
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
    monkeypatch.setattr("dign.parallel.fabric.check_precision", lambda precision, device: None)  # computes on it
    monkeypatch.setattr("lightning_fabric.Fabric", record)
    with pytest.raises(Recorded, match=expected):
        make_fabric("cuda:1", "auto")


def test_a_million_processes_are_refused_before_the_first_is_started(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("subprocess.Popen", lambda *arguments, **keywords: pytest.fail("a process was started"))
    with pytest.raises(UserError, match="1000000 processes are too many for the 2 cores of this machine: use 2"):
        make_fabric("cpu", "32", devices=1_000_000)
