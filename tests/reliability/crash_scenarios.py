"""What is done while processes are killed: commands, how each is taken up again, and what must come out."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from forks import ForkedWorker, Tripwire, start
from PIL import Image

Command = list[str]

SMALL = ["digits", "--size", "8", "--batch-size", "128", "--track", "none", "--device", "cpu", "--quiet"]
TRAIN = [*SMALL, "--epochs", "2", "--validate-every", "1", "--keep", "best", "--checkpoint-seconds", "0"]
GRID = """
data = "digits"
size = 8
method = ["standard", "dign"]
epochs = 1
batch_size = 128
checkpoint_seconds = 0
track = "none"
device = "cpu"

[evaluate]
only = ["gaussian_noise"]
severity = "3"
"""


@dataclass(frozen=True)
class Scenario:
    """`next_command(place)` is what a user types in the folder `place`, at first and after every death.

    `equip` puts into an empty folder what has to be there; `amend` changes the process that takes the work up again.
    """

    name: str
    next_command: Callable[[Path], Command]
    equip: Callable[[Path], None] = lambda place: None
    amend: Callable[[], None] = lambda: None


def run_command(words: Command, tripwire: Tripwire, sources: dict[str, object]) -> None:
    """What the `dign` command does, in a process that dies when the tripwire says so."""
    import dign.evaluation.info
    import dign.grid.engines.local as local
    import dign.grid.worker
    import dign.runs.folder
    from dign.cli import main
    from dign.data.loading import SOURCES

    def fork_worker(command: Command, *, stderr: io.BufferedWriter, **ignored: object) -> ForkedWorker:
        def work() -> None:
            tripwire.act_as("worker")
            dign.grid.worker.main()

        return ForkedWorker(work, stderr.fileno(), keep=set(tripwire.files.values()))

    SOURCES.update(sources)
    os.environ["DIGN_DATA"] = "cache"
    # The same commit however others work on the sources meanwhile.
    for module in (dign.runs.folder, dign.evaluation.info):
        module.git_commit = lambda: None
    sys.argv = ["dign", *words]
    tripwire.install()
    tripwire.act_as("command")
    pipes = {"PIPE": subprocess.PIPE, "TimeoutExpired": subprocess.TimeoutExpired}
    local.subprocess = SimpleNamespace(Popen=fork_worker, **pipes)
    main(words)


def scenarios(shared: Path) -> list[Scenario]:
    """All of them; `shared` holds what `prepare` made."""

    def train(place: Path) -> Command:
        if (place / "run" / "config.toml").exists():
            return ["train", "--resume", "run", "--quiet"]
        return ["train", *TRAIN, "--out", "run"]

    def with_run(place: Path) -> None:
        shutil.copytree(shared / "run", place / "run")

    def write_grid(place: Path) -> None:
        (place / "grid.toml").write_text(GRID)

    # One worker is a thread: the tripwire would kill a worker process instead, which the command reports (exit code 2).
    corrupt = ["corrupt", "digits", "--size", "8", "--only", "gaussian_noise", "--only", "contrast", "--quiet"]
    corrupt += ["--workers", "1"]
    grid = ["grid", "grid.toml", "--out", "runs", "--no-measure", "--max-parallel", "1", "--threads", "1", "--quiet"]
    folders = [*corrupt, "--severity", "3", "--layout", "folders", "--out", "made"]
    evaluate = ["evaluate", "run", "--only", "noise", "--severity", "3", "--device", "cpu", "--quiet"]
    return [
        Scenario("train", train),
        Scenario("train, no later checkpoint", train, amend=_never_checkpoint),
        Scenario("evaluate", lambda place: evaluate, with_run),
        Scenario("benchmark as npy", lambda place: [*corrupt, "--severity", "2,4", "--out", "made"]),
        Scenario("benchmark as folders", lambda place: folders),
        Scenario("grid", lambda place: grid, write_grid),
        Scenario("download", lambda place: ["data", "fetch", "tiny-imagenet"]),
        Scenario("read pictures", lambda place: ["data", "show", f"folder:{shared / 'pictures'}"]),
        Scenario("report", lambda place: ["report", "run", "--out", "report.html"], with_run),
        Scenario("hub folder", lambda place: _hub(place), with_run),
    ]


def _hub(place: Path) -> Command:
    """A hub folder that is there is whole, and is not written over: then there is nothing left to do."""
    return ["list", "methods"] if (place / "hub").exists() else ["hub", "save", "run", "hub", "--quiet"]


def _never_checkpoint() -> None:
    """What a run does whose next checkpoint is not due before it ends."""
    import dign.training.loop

    dign.training.loop.TrainingLoop._save_checkpoint = lambda training, done: None


def prepare(shared: Path, nothing_dies: Callable[[Command, Path], None]) -> dict[str, object]:
    """Make a trained and evaluated run, a folder of pictures, and an archive; returns the archive's data source."""
    from dign.data.download import Download
    from dign.data.sources.tiny_imagenet import TinyImageNet

    nothing_dies(["train", *SMALL, "--epochs", "1", "--out", "run"], shared)
    nothing_dies(["evaluate", "run", "--only", "gaussian_noise", "--severity", "3", "--quiet"], shared)
    for number in range(12):
        file = shared / "pictures" / f"class {number % 2}" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_picture("PNG", 16, number))
    archive = shared / "tiny-imagenet-200.zip"
    _write_archive(archive)
    sha = hashlib.sha256(archive.read_bytes()).hexdigest()
    url = f"http://127.0.0.1:{(shared / 'port').read_text()}/tiny-imagenet-200.zip"
    return {"tiny-imagenet": TinyImageNet(archive=Download(url, archive.name, sha))}


def _picture(kind: str, size: int, seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def _write_archive(path: Path) -> None:
    """Tiny-ImageNet with three classes of eight images."""
    wnids = ["n01443537", "n01629819", "n01641577"]
    with zipfile.ZipFile(path, "w") as archive:
        lines = "".join(f"val_{number}.JPEG\t{wnids[number % 3]}\t0\t0\t9\t9\n" for number in range(6))
        archive.writestr("tiny-imagenet-200/wnids.txt", "\n".join(wnids))
        archive.writestr("tiny-imagenet-200/words.txt", "".join(f"{wnid}\tfish {wnid}\n" for wnid in wnids))
        archive.writestr("tiny-imagenet-200/val/val_annotations.txt", lines)
        for number in range(6):
            archive.writestr(f"tiny-imagenet-200/val/images/val_{number}.JPEG", _picture("JPEG", 64, number))
        for number in range(24):
            wnid = wnids[number % 3]
            name = f"tiny-imagenet-200/train/{wnid}/images/{wnid}_{number}.JPEG"
            archive.writestr(name, _picture("JPEG", 64, 100 + number))


@contextmanager
def server(shared: Path) -> Iterator[int]:
    """A process that serves the files in `shared`, slowly, and from where a client left off; gives its id."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            import time

            body = (shared / self.path.strip("/")).read_bytes()
            first = int((re.findall(r"\d+", self.headers.get("Range", "")) or ["0"])[0])
            if first >= len(body):
                return self.send_error(416)
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body) - first))
            self.end_headers()
            for begin in range(first, len(body), 8192):
                self.wfile.write(body[begin : begin + 8192])
                time.sleep(0.01)

        def log_message(self, *ignored: object) -> None:
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    (shared / "port").write_text(str(listening.server_port))
    pid = start(listening.serve_forever, shared / "server.log", shared)
    listening.server_close()
    try:
        yield pid
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def outcome(place: Path) -> dict[str, str]:
    """Every file under `place`, hidden ones too, with the checksum of what it holds, times apart (see `_timeless`)."""
    files = sorted(path for path in place.rglob("*") if path.is_file())
    found = {path.relative_to(place).as_posix(): _checksum(path) for path in files}
    return {**found, **{f"{path.relative_to(place).as_posix()}/": "" for path in place.rglob("*") if path.is_dir()}}


def _checksum(path: Path) -> str:
    return hashlib.sha256(_timeless(path)).hexdigest()[:16]


def _timeless(path: Path) -> bytes:
    """A file's contents without the fields that say when, how long, or by which process."""
    if ".grid" in path.parts:  # locks, the latest news, a log
        return b""
    data = path.read_bytes()
    drop = {
        "run.json": partial(_without, keys=("started", "finished", "seconds")),
        "results.json": partial(_without, keys=("time", "seconds"), inside="evaluation"),
        "metrics.jsonl": partial(_without, keys=("images_per_second",)),
    }.get(path.name)
    return b"\n".join(map(drop, data.splitlines() if path.suffix == ".jsonl" else [data])) if drop else data


def _without(data: bytes, keys: tuple[str, ...], inside: str | None = None) -> bytes:
    record = json.loads(data)
    table = record[inside] if inside else record
    for key in keys:
        table.pop(key, None)
    return json.dumps(record).encode()
