"""Devices that cannot be used are refused with a reason."""

import pytest
import torch

from dign.core.errors import UserError
from dign.parallel.devices import (
    check_precision,
    describe_device,
    find_device,
    list_devices,
    pick_device,
    resolve_precision,
    warn_of_emulation,
)

CPU = torch.device("cpu")


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Tesla T4 number {device.index}")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))


@pytest.mark.parametrize("name", ["abacus", "cuda", "cuda:0", "mps"])
def test_a_device_that_is_not_there_lists_those_there_are(name):
    with pytest.raises(UserError, match=rf"no device '{name}' here: this machine has 'cpu'\."):
        pick_device(name)


def test_gpus_are_listed_with_their_names(two_gpus):
    assert list_devices() == ["cuda:0", "cuda:1", "cpu"]
    with pytest.raises(UserError, match=r"'cuda:0' \(Tesla T4 number 0\), 'cuda:1' \(Tesla T4 number 1\), 'cpu'\."):
        find_device("cuda:2")


def test_there_is_one_cpu():
    with pytest.raises(UserError, match="use the device 'cpu'"):
        pick_device("cpu:1")


def test_an_apple_gpu_is_used_when_asked_for(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch, "zeros", lambda *size, **options: torch.ones(1))
    assert find_device("mps").type == "mps" and find_device("auto").type == "cpu"


def test_a_device_that_fails_is_refused_with_its_reason(monkeypatch):
    def zeros(*size, **options):
        raise RuntimeError("no kernel image is available. Compile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(torch, "zeros", zeros)
    with pytest.raises(UserError, match=r"'cpu' cannot be used here \(no kernel image is available\)"):
        find_device("cpu")


def test_a_cpu_without_instructions_for_bfloat16_says_that_it_is_slow(monkeypatch):
    def have(**capabilities):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)

    have(avx512_f=True, avx512_bf16=False)
    (warning,) = warn_of_emulation("bf16", CPU)
    assert "no instructions for bfloat16" in warning and '`precision="32"`' in warning
    assert not warn_of_emulation("32", CPU) and not warn_of_emulation("bf16", torch.device("cuda"))
    have(avx512_f=True, avx512_bf16=True)
    assert not warn_of_emulation("bf16", CPU)
    have(neon=True, bf16=True)
    assert not warn_of_emulation("bf16", CPU)
    monkeypatch.delattr(torch.cpu, "get_capabilities")  # an older torch
    assert not warn_of_emulation("bf16", CPU)


def test_precision_auto_is_float32_on_a_cpu_and_anything_else_stays():
    assert [resolve_precision(name, CPU) for name in ("auto", "32", "bf16", "16")] == ["32", "32", "bf16", "16"]
    assert describe_device("auto", CPU) == {"device": "cpu", "precision": "32"}


def test_a_gpu_without_bfloat16_says_what_it_has(two_gpus):
    with pytest.raises(UserError, match=r"Tesla T4 number 0 does not compute in bfloat16: choose `precision=16`"):
        check_precision("bf16", torch.device("cuda:0"))
    assert resolve_precision("auto", torch.device("cuda:0")) == "32"


def test_a_precision_that_fails_on_the_device_is_refused(monkeypatch):
    def conv2d(*args):
        raise RuntimeError("not implemented for 'Half'")

    check_precision("16", CPU)
    monkeypatch.setattr(torch.nn.functional, "conv2d", conv2d)
    with pytest.raises(UserError, match=r"'cpu' cannot compute in `precision=16` \(not implemented for 'Half'\)"):
        check_precision("16", CPU)
