"""How fast the corruptions are: per image beside two packages from PyPI, and for a whole CIFAR-10-C.

    python benchmarks/corruptions.py                                  dign alone
    python benchmarks/corruptions.py --peer /path/to/python           beside what that interpreter can import of
                                                                      imagecorruptions and imagenet-c (PyPI)
    python benchmarks/corruptions.py --whole 10000                    write a whole benchmark of 10 000 images of 32x32
    python benchmarks/corruptions.py --whole 60 --whole-size 224 --workers 1 --workers 2
    python benchmarks/corruptions.py --cores 2                        two cores against one, as threads and as processes

The peers want other versions of NumPy and scikit-image than dign, so they run in interpreters of their own, which
`--peer` names (it may be given more than once: the first in which a corruption works counts). Where none works, the
table says so. Every time is CPU time of one thread per image, the mean over five severities, with the same parameters
("imagenet", the only ones that the peers have). A peer is called once per image, as its interface wants it; dign gets
the images as one batch, in a process that keeps its memory, as dign's commands do. The two take turns, `--rounds` times
for each corruption and severity, and the least time of each counts, so that whatever else the machine does hits both
alike.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time

PEERS = {"imagecorruptions": "imagecorruptions", "imagenet_c": "imagenet-c"}
SEVERITIES = (1, 2, 3, 4, 5)


def test_pictures(count: int, size: int):
    """(count,size,size,3) uint8: smooth shapes with some noise."""
    import numpy as np

    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 220, (count, 8, 8, 3), dtype=np.uint8)
    coarse = coarse.repeat(-(-size // 8), axis=1).repeat(-(-size // 8), axis=2)[:, :size, :size]
    return coarse + rng.integers(0, 36, (count, size, size, 3), dtype=np.uint8)


def serve_peer(package: str, size: int, images: int) -> None:
    """In the peer's own interpreter: for every line "NAME SEVERITY" read, print the seconds per image, or why none."""
    import importlib

    try:
        module = importlib.import_module(package)
        _restore_old_names(module)
    except Exception as error:  # whatever an import may raise is the answer
        module, failure = None, _reason(error)
    pictures = test_pictures(images, size)
    for line in sys.stdin:
        name, severity = line.split()
        try:
            if module is None:
                raise RuntimeError(failure)
            if name not in module.corruption_dict:
                raise RuntimeError("not offered")
            start = time.process_time()
            for picture in pictures:
                module.corrupt(picture, severity=int(severity), corruption_name=name)
            answer: float | str = (time.process_time() - start) / images
        except Exception as error:
            answer = _reason(error)
        print(json.dumps(answer), flush=True)


class Peer:
    """A package in an interpreter of its own."""

    def __init__(self, python: str, package: str, size: int, images: int) -> None:
        words = [python, "-W", "ignore", __file__, "--as-peer", package, str(size), str(images)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"}
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )

    def time(self, name: str, severity: int) -> float | str:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{name} {severity}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:  # a peer may print of its own accord
            try:
                return json.loads(line)
            except ValueError:
                continue
        return "it ended"

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def _restore_old_names(module) -> None:
    """Let imagecorruptions run with a NumPy and a scikit-image that have dropped a name and an argument of theirs."""
    import inspect

    import numpy as np

    if not hasattr(np, "float_"):
        np.float_ = np.float64
    corruptions = sys.modules.get(f"{module.__name__}.corruptions")
    gaussian = getattr(corruptions, "gaussian", None)
    if gaussian is None or "multichannel" in inspect.signature(gaussian).parameters:
        return

    def translated(image, *args, multichannel=False, **settings):
        return gaussian(image, *args, channel_axis=-1 if multichannel else None, **settings)

    corruptions.gaussian = translated


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:80]}" if str(error) else type(error).__name__


Times = dict[str, float | str]


def take_turns(size: int, images: int, pythons: list[str], peer_images: int, rounds: int) -> tuple[Times, list[Times]]:
    """Seconds per image and corruption: ours, and those of every package, in the first interpreter where it works."""
    import torch

    from dign.core.allocator import reuse_memory
    from dign.corruptions import NAMES, corrupt, engine
    from dign.corruptions.settings import get_parameters

    # At any size the peers use the parameters for 224 pixels, and so does dign here.
    engine.get_parameters = lambda name, severity, profile, side: get_parameters(name, severity, profile)
    reuse_memory()
    torch.set_num_threads(1)
    pictures = torch.from_numpy(test_pictures(images, size)).permute(0, 3, 1, 2).contiguous()
    peers = [[Peer(python, package, size, peer_images) for python in pythons] for package in PEERS]
    ours: Times = {}
    theirs: list[Times] = [{} for _ in PEERS]
    for name in NAMES:
        for severity in SEVERITIES:  # tables, kernels and frost pictures are made once
            corrupt(pictures[:1], name, severity, profile="imagenet")
        chosen = [_first_that_works(package, name) for package in peers]
        least = [[math.inf] * len(SEVERITIES) for _ in range(1 + len(PEERS))]
        for _ in range(rounds):
            for place, severity in enumerate(SEVERITIES):
                start = time.process_time()
                corrupt(pictures, name, severity, profile="imagenet")
                least[0][place] = min(least[0][place], (time.process_time() - start) / images)
                for package, peer in enumerate(chosen, 1):
                    if isinstance(peer, Peer):
                        least[package][place] = min(least[package][place], peer.time(name, severity))
        ours[name] = sum(least[0]) / len(SEVERITIES)
        for package, peer in enumerate(chosen):
            theirs[package][name] = sum(least[package + 1]) / len(SEVERITIES) if isinstance(peer, Peer) else peer
    for peer in (peer for package in peers for peer in package):
        peer.close()
    return ours, theirs


def _first_that_works(peers: list[Peer], name: str) -> Peer | str:
    answer: float | str = "not measured"
    for peer in peers:
        answer = peer.time(name, 1)
        if isinstance(answer, float):
            return peer
    return answer


def write_whole(count: int, size: int, workers: int) -> dict[str, float]:
    """Write a benchmark of `count` images: all nineteen, five severities."""
    import torch

    from dign.core.allocator import reuse_memory
    from dign.corruptions import write_benchmark

    reuse_memory()  # as `dign corrupt` does
    pictures = torch.from_numpy(test_pictures(count, size)).permute(0, 3, 1, 2).contiguous()
    with tempfile.TemporaryDirectory() as folder, PeakMemory() as peak:
        wall, cpu = time.perf_counter(), sum(os.times()[:4])
        write_benchmark(pictures, torch.zeros(count, dtype=torch.int64), folder, classes=["none"], workers=workers)
        wall, cpu = time.perf_counter() - wall, sum(os.times()[:4]) - cpu
    return {"wall": wall, "cpu": cpu, "peak_bytes": peak.bytes}


class PeakMemory:
    """The most memory that this process and its children have had at once, looked at ten times a second.

    Memory that they share counts once (Linux: "proportional set size"); elsewhere only this process is counted.
    """

    def __enter__(self) -> PeakMemory:
        self.bytes, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            self.bytes = max(self.bytes, _measure_memory())


def _measure_memory() -> int:
    tasks = pathlib.Path("/proc/self/task")
    if not tasks.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    processes = {"self"}.union(*(path.read_text().split() for path in tasks.glob("*/children")))
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):  # it has ended
            lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


_pictures = threading.local()  # of a worker


def _adopt_pictures(pictures) -> None:
    _pictures.all = pictures


def _corrupt_part(name: str, severity: int, first: int, last: int) -> None:
    from dign.corruptions import corrupt

    corrupt(_pictures.all[first:last], name, severity, profile="imagenet", first=first)


def print_cores(size: int, images: int, cores: int, rounds: int) -> None:
    """How much faster several cores are than one: as threads of one process, and as processes."""
    import torch

    from dign.core.allocator import reuse_memory
    from dign.corruptions import NAMES
    from dign.parallel.workers import open_workers

    reuse_memory()
    pictures = torch.from_numpy(test_pictures(images, size)).permute(0, 3, 1, 2).contiguous()
    _adopt_pictures(pictures)
    whole = [(severity, 0, images) for severity in SEVERITIES]
    middle = images // 2
    halves = [(severity, *half) for severity in SEVERITIES for half in ((0, middle), (middle, images))]
    print(f"\n## {size}x{size}, {images} images: {cores} cores against one (five severities)\n")
    print("| corruption | one core, ms per image | threads | processes |\n|---|---:|---:|---:|")
    sums = [0.0, 0.0, 0.0]
    with open_workers(cores, _adopt_pictures, pictures) as workers:

        def measure(way: int, name: str) -> float:
            torch.set_num_threads(cores if way == 1 else 1)
            start = time.perf_counter()
            parts = zip(*(halves if way == 2 else whole), strict=True)
            list((workers.map if way == 2 else map)(_corrupt_part, itertools.repeat(name), *parts))
            return time.perf_counter() - start

        for name in NAMES:
            turns = [[measure(way, name) for way in range(3)] for _ in range(rounds + 1)]
            least = [min(times) for times in zip(*turns, strict=True)]
            sums = [total + seconds for total, seconds in zip(sums, least, strict=True)]
            _print_cores_row(name, least, images)
    _print_cores_row("all", sums, images)


def _print_cores_row(name: str, seconds: list[float], images: int) -> None:
    one, threads, processes = seconds
    print(f"| {name} | {one * 1e3 / images / len(SEVERITIES):.4f} | {one / threads:.2f} | {one / processes:.2f} |")


def in_interpreter(python: str, *words: object) -> dict:
    """This file again, in another process: what it prints last is JSON."""
    run = subprocess.run([python, __file__, *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{python} failed: {run.stderr.strip().splitlines()[-1] if run.stderr.strip() else run.returncode}")
    return json.loads(run.stdout.splitlines()[-1])


def print_table(size: int, ours: Times, theirs: list[Times]) -> None:
    print(f"\n## {size}x{size}, milliseconds of CPU time per image (mean over five severities)\n")
    heading = "".join(f" {title} | ratio |" for title in PEERS.values())
    print(f"| corruption | dign |{heading}\n|---|---:|{'---:|---:|' * len(PEERS)}")
    notes: dict[str, list[str]] = {}
    for name, seconds in ours.items():
        cells = ""
        for title, times in zip(PEERS.values(), theirs, strict=True):
            if isinstance(times[name], float):
                cells += f" {times[name] * 1e3:.3f} | {times[name] / seconds:.1f} |"
            else:
                cells += " - | - |"
                notes.setdefault(f"{title}: {times[name]}", []).append(name)
        print(f"| {name} | {seconds * 1e3:.4f} |{cells}")
    print(_total_row("all", ours, theirs, ()))
    print(_total_row("all but glass_blur", ours, theirs, ("glass_blur",)))
    for reason, names in notes.items():
        print(f"\nNo time: {reason} ({', '.join(names)})")


def _total_row(title: str, ours: Times, theirs: list[Times], without: tuple[str, ...]) -> str:
    """The sums over the corruptions that a peer manages, and their ratio."""
    cells = ""
    for times in theirs:
        done = [name for name in ours if isinstance(times[name], float) and name not in without]
        peer, same = sum(times[name] for name in done), sum(ours[name] for name in done)
        cells += f" {peer * 1e3:.2f} ({len(done)} of them) | {peer / same:.1f} |" if done else " - | - |"
    return f"| {title} | {sum(value for name, value in ours.items() if name not in without) * 1e3:.3f} |{cells}"


def print_whole(count: int, size: int, workers: list[int]) -> None:
    print(f"\n## A whole benchmark: {count} images of {size}x{size}, all nineteen, five severities, written as .npy\n")
    walls = []
    for number in workers:
        cost = in_interpreter(sys.executable, "--as-writer", count, size, number)
        per_image = cost["cpu"] / (count * 19 * 5)
        walls.append(cost["wall"])
        print(
            f"{number} workers: {cost['wall']:.1f} s, {cost['cpu']:.1f} s CPU ({per_image * 1e6:.0f} us per image), "
            f"peak memory {cost['peak_bytes'] / 1e6:.0f} MB; {walls[0] / cost['wall']:.2f} times {workers[0]}"
        )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], metavar="PYTHON", help="an interpreter with the peers")
    parser.add_argument("--size", type=int, action="append", help="side of the images (default: 32 and 224)")
    parser.add_argument("--images", type=int, default=256, help="images in a batch of 32x32, fewer when larger")
    parser.add_argument("--peer-images", type=int, default=3, help="the peers are slow: images per turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns, of which the fastest counts")
    parser.add_argument("--whole", type=int, default=0, metavar="N", help="only write a benchmark of N images")
    parser.add_argument("--whole-size", type=int, default=32, metavar="SIDE", help="of the images of --whole")
    parser.add_argument("--workers", type=int, action="append", help="processes that write it (default: all cores)")
    parser.add_argument("--cores", type=int, default=0, metavar="N", help="only compare N cores with one")
    parser.add_argument("--as-peer", nargs=3, metavar=("PACKAGE", "SIZE", "IMAGES"), help=argparse.SUPPRESS)
    parser.add_argument("--as-writer", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_peer:
        package, size, images = options.as_peer
        serve_peer(package, int(size), int(images))
    elif options.as_writer:
        print(json.dumps(write_whole(*options.as_writer)))
    elif options.cores:
        for size in options.size or (32, 224):
            print_cores(size, max(48, options.images * 64**2 // size**2), options.cores, options.rounds)
    elif options.whole:
        print_whole(options.whole, options.whole_size, options.workers or [_cores()])
    else:
        print(f"# Corruptions on {platform.machine()}, {_cores()} cores, Python {platform.python_version()}")
        for size in options.size or (32, 224):
            images = max(16, options.images * 32 * 32 // size**2)
            print_table(size, *take_turns(size, images, options.peer, options.peer_images, options.rounds))


if __name__ == "__main__":
    main()
