"""A Ray cluster of two hosts whose results go to an S3 bucket: a host dies, the grid ends with the local results."""

import json
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch
from hosts_common import wait_for
from safetensors.torch import load

from dign.grid.job import Job, run_job
from dign.grid.plan import read_plan

pytestmark = pytest.mark.slow

pytest.importorskip("ray", reason="Ray is not installed: pip install 'dign[ray]'")
pytest.importorskip("moto", reason="there is no S3 server: pip install moto flask flask-cors")
s3fs = pytest.importorskip("s3fs", reason="S3 cannot be written to: pip install s3fs")

SECRET = "wJalrXUtnFEMI-a-secret-of-this-test"
GRID = """
data = "digits"
size = 8
method = ["standard", "dign"]
epochs = 12
batch_size = 128
validate_every = 0
checkpoint_seconds = 1
threads = 1
device = "cpu"
track = "none"
[evaluate]
only = "shot_noise"
severity = 3
"""
RAY = str(Path(sys.executable).with_name("ray"))


@pytest.fixture
def short_folder():
    """Ray's sockets lie in it, whose paths may not be long."""
    with tempfile.TemporaryDirectory(prefix="dg", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.fixture
def bucket(two_hosts, tmp_path):
    """A bucket on an S3 server of this machine, and what a client needs to know, all of it in the environment."""
    address = two_hosts[-1]
    with socket.socket() as free:
        free.bind((address, 0))
        port = free.getsockname()[1]
    program = f"from moto.server import main; main(['-H', '{address}', '-p', '{port}'])"
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    environment = {"AWS_ENDPOINT_URL": f"http://{address}:{port}", "AWS_ACCESS_KEY_ID": "testing",
                   "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as trial:
                if trial.connect_ex((address, port)) == 0:
                    break
            assert time.monotonic() < deadline and server.poll() is None, "the S3 server did not start"
            time.sleep(0.2)
        files = s3fs.S3FileSystem(
            key="testing", secret=SECRET, client_kwargs={"endpoint_url": environment["AWS_ENDPOINT_URL"]}
        )
        files.mkdir("study")
        yield files, environment
    finally:
        server.kill()
        server.wait()


def test_a_host_dies_and_the_grid_ends_with_the_local_results(two_hosts, bucket, tmp_path, short_folder):
    first, second, _ = two_hosts
    files, environment = bucket
    environment |= {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # of this cluster alone
    (tmp_path / "grid.toml").write_text(GRID)
    for host in (first, second):  # a host of its own has a temporary folder of its own
        (tmp_path / host.name).mkdir()
    address = f"{first.address}:6399"
    places = {host: {**environment, "TMPDIR": str(tmp_path / host.name)} for host in (first, second)}
    ray = [RAY, "start", "--block", "--num-cpus=1", "--disable-usage-stats", "--object-store-memory=80000000"]
    head = ["--head", "--port=6399", "--include-dashboard=false", f"--temp-dir={short_folder}"]
    running = first.start(*ray, *head, f"--node-ip-address={first.address}", folder=tmp_path, **places[first])
    wait_for(lambda: "Ray runtime started" in first.said(tmp_path), running, first, tmp_path)
    joining = [f"--address={address}", f"--node-ip-address={second.address}"]
    running = second.start(*ray, *joining, folder=tmp_path, **places[second])
    wait_for(lambda: "Ray runtime started" in second.said(tmp_path), running, second, tmp_path)
    words = ["grid", tmp_path / "grid.toml", "--engine", "ray", "--address", address, "--gpus", "0", "--no-measure"]
    dign = [sys.executable, "-m", "dign", *words, "--out", "s3://study/runs"]
    grid = first.start(*dign, folder=tmp_path, **places[first])
    plan = read_plan(tmp_path / "grid.toml")
    scratch = tmp_path / second.name
    wait_for(lambda: list(scratch.rglob("checkpoint.safetensors")), grid, first, tmp_path)
    second.kill_all()
    assert grid.wait(timeout=300) == 0, first.said(tmp_path)[-3000:]

    files.invalidate_cache()
    for run in plan.runs:
        reference = run_job(Job.of(run, tmp_path / "calm", 1))
        results = json.loads(files.cat_file(f"study/runs/{run.name}/results.json"))
        assert results["summary"] == json.loads((tmp_path / "calm" / run.name / "results.json").read_text())["summary"]
        ours = load(files.cat_file(f"study/runs/{run.name}/model.safetensors"))
        theirs = load((tmp_path / "calm" / run.name / "model.safetensors").read_bytes())
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
        assert reference.state == "done"
    stored = files.find("study")
    assert stored and not [name for name in stored if SECRET.encode() in files.cat_file(name)]
