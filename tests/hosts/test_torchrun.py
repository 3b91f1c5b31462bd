"""torchrun over two hosts: a host that is cut off ends the run with a sentence, and back again it is resumed."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import double_precision
import pytest
import torch
from hosts_common import wait_for
from safetensors.torch import load_file

from dign.training.train import train

pytestmark = pytest.mark.slow

SETTINGS = {
    "data": "digits", "size": 8, "method": "rse", "epochs": 20, "batch_size": 256, "lr": 0.02,
    "sync_batch_norm": True, "validate_every": 0, "checkpoint_seconds": 0.0, "patience": 10.0, "device": "cpu",
}  # fmt: skip
DIGN = Path(double_precision.__file__)
"""`dign`, in float64."""


def options():
    values = {key.replace("_", "-"): value for key, value in SETTINGS.items() if key not in ("data", "sync_batch_norm")}
    return [f"--{key}={value}" for key, value in values.items()]


def launch(hosts, folder, *words):
    """One torchrun on each of the hosts, which find each other at the address of the first."""
    first = hosts[0].address
    common = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1",
              "--master-addr", first, "--master-port", "29511"]  # fmt: skip
    return [
        host.start(*common, "--node-rank", rank, DIGN, "train", *words, "-q", folder=folder)
        for rank, host in enumerate(hosts)
    ]


def test_a_host_that_is_cut_off_ends_the_run_with_a_sentence_and_back_again_it_is_resumed(two_hosts, tmp_path):
    *hosts, _ = two_hosts
    out = tmp_path / "run"
    running = launch(hosts, tmp_path, "digits", *options(), "--sync-batch-norm", "--out", out)
    wait_for((out / "checkpoint.safetensors").exists, running[0], hosts[0], tmp_path)
    hosts[1].cut_off()
    assert running[0].wait(timeout=120) != 0
    said = hosts[0].said(tmp_path)
    sentences = [line for line in said.splitlines() if line.startswith("dign: ")]
    assert sentences == [f"dign: Another of the 2 processes has died, or cannot be reached: resume the run in {out}."]
    hosts[1].kill_all()
    for process in running:
        process.wait(timeout=60)
    assert (out / "checkpoint.safetensors").exists() and not (out / "model.safetensors").exists()

    hosts[1].reconnect(hosts[0])
    running = launch(hosts, tmp_path, "--resume", out)
    with suppress(subprocess.TimeoutExpired):
        for process in running:
            process.wait(timeout=180)
    assert [process.returncode for process in running] == [0, 0], [host.said(tmp_path)[-3000:] for host in hosts]
    with double_precision.double_precision():
        alone = train({**SETTINGS, "sync_batch_norm": False}, tmp_path / "alone", quiet=True)
    ours, theirs = load_file(out / "model.safetensors"), load_file(alone.weights)
    ours, theirs = (torch.cat([tensors[name].flatten() for name in sorted(theirs)]) for tensors in (ours, theirs))
    assert ours.dtype == torch.float64
    assert (ours - theirs).norm() < 1e-9 * theirs.norm(), "a hundred steps of sums in another order, and nothing else"
