"""Train and evaluate small runs in one process for an hour, and watch what should not grow.

    python tests/reliability/soak.py --minutes 60 --out soak.json

A round trains one method on the embedded digits, interrupts it halfway and resumes it, evaluates it under corruptions
made on the fly and from a benchmark folder that it writes, reads a folder of pictures, draws the report, and removes
all of that. After each round the process is measured: resident memory, open files, threads, child processes, and files
left in its folders. The outcome is a JSON file with the measurements and the verdict; the exit code is 1 for a leak.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from PIL import Image

import dign.training.loop
from dign.core.provenance import versions
from dign.corruptions import write_benchmark
from dign.data import load
from dign.evaluation.conditions import Conditions, benchmark_for
from dign.evaluation.subjects import evaluate_run
from dign.methods import METHODS
from dign.report.make import study_of, write_report
from dign.runs.config import RunConfig
from dign.training.interrupts import Interrupted
from dign.training.train import resume, train

SMALL = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 128, "track": "none", "validate_every": 1}
COUNTS = ("open_files", "threads", "processes", "files_left")
MOST_GROWTH = 0.02
"""Of the memory, from the second tenth of the rounds (by then everything was used once) to the last."""


def one_round(number: int, place: Path) -> None:
    """All that a user does with a run, in `place`, of which nothing is left."""
    method = list(METHODS)[number % len(METHODS)]
    run_folder = place / "run"
    config = RunConfig.from_mapping({**SMALL, "method": method, "seed": number})
    _train_with_an_interruption(config, run_folder)
    run = resume(run_folder, quiet=True)
    evaluate_run(run, Conditions(("gaussian_noise", "fog"), (3,)), device="cpu", temperature=True)
    data = run.data()
    layout = ("npy", "folders")[number % 2]
    settings = {"classes": data.classes, "names": ("contrast",), "severities": (3,), "layout": layout, "workers": 2}
    write_benchmark(data.test.images, data.test.labels, place / "benchmark", **settings)
    if layout == "npy":
        evaluate_run(run, benchmark_for(run.data(), place / "benchmark", (), None), device="cpu")
    _read_pictures(data.test.images[:20], place)
    write_report(study_of([run_folder]), place / "report.html")
    shutil.rmtree(place)


def _train_with_an_interruption(config: RunConfig, folder: Path) -> None:
    original = dign.training.loop.TrainingLoop._step

    def step_and_interrupt(training: dign.training.loop.TrainingLoop, step: int) -> None:
        original(training, step)
        if step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    dign.training.loop.TrainingLoop._step = step_and_interrupt
    try:
        train(config, folder, quiet=True)
        raise AssertionError("the interruption came to nothing")
    except Interrupted:
        pass
    finally:
        dign.training.loop.TrainingLoop._step = original


def _read_pictures(images: torch.Tensor, place: Path) -> None:
    for number, image in enumerate(images):
        file = place / "pictures" / f"class {number % 2}" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(file)
    pictures = load(f"folder:{place / 'pictures'}", root=place / "cache")
    assert len(pictures.train) + len(pictures.validation) + len(pictures.test) == len(images)


def measure(place: Path) -> dict[str, int]:
    """What the process holds now."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    return {
        "memory_kb": int(status["VmRSS"].split()[0]),
        "open_files": len(os.listdir("/proc/self/fd")),
        "threads": int(status["Threads"]),
        "python_threads": threading.active_count(),
        "processes": len(children.read_text().split()) if children.exists() else 0,
        "files_left": sum(len(files) for _, _, files in os.walk(place)),
    }


def soak(seconds: float, least: int, place: Path, say=lambda text: None) -> list[dict[str, float]]:
    """Rounds until the time is over, at least `least`; one measurement after each."""
    records, started = [], time.monotonic()
    while len(records) < least or time.monotonic() - started < seconds:
        one_round(len(records), place / "round")
        records.append({"seconds": round(time.monotonic() - started, 1), **measure(place)})
        if len(records) % 10 == 1:
            say(json.dumps(records[-1]))
    return records


def verdict(records: list[dict[str, float]]) -> dict[str, object]:
    """How memory and counts went from early on to the end; `leaks` names what grew."""
    tenth = max(1, len(records) // 10)
    early, late = records[tenth : 2 * tenth] or records[:1], records[-tenth:]
    memory = [statistics.median(record["memory_kb"] for record in part) for part in (early, late)]
    leaks = ["memory_kb"] if memory[1] > memory[0] * (1 + MOST_GROWTH) else []
    counts = {}
    for name in COUNTS:
        counts[name] = {"early": max(r[name] for r in early), "late": max(r[name] for r in late)}
        leaks += [name] if counts[name]["late"] > counts[name]["early"] else []
    return {
        "rounds": len(records),
        "seconds": records[-1]["seconds"],
        "memory_mb": {"early": round(memory[0] / 1024, 1), "late": round(memory[1] / 1024, 1)},
        "memory_growth_percent": round(100 * (memory[1] / memory[0] - 1), 2),
        **counts,
        "leaks": leaks,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=1, help="at least so many")
    parser.add_argument("--out", type=Path, help="JSON file for the measurements")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="dign-soak-") as folder:
        place = Path(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(place / "temporary")  # whatever is left there is counted
        Path(tempfile.tempdir).mkdir()
        records = soak(60 * options.minutes, options.rounds, place, lambda text: print(text, flush=True))
    outcome = verdict(records)
    print(json.dumps(outcome, indent=1))
    if options.out:
        thinned = records[:: max(1, len(records) // 60)]
        about = {"command": f"python tests/reliability/soak.py --minutes {options.minutes:g}", "versions": versions()}
        about["system"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, one thread"
        options.out.write_text(json.dumps({**about, "outcome": outcome, "measurements": thinned}, indent=1) + "\n")
    return 1 if outcome["leaks"] else 0


if __name__ == "__main__":
    sys.exit(main())
