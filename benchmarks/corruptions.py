"""How fast the corruptions are: per image beside two packages from PyPI, and for a whole CIFAR-10-C.

    python benchmarks/corruptions.py                                  dign alone
    python benchmarks/corruptions.py --peer /path/to/python           beside what that interpreter can import of
                                                                      imagecorruptions and imagenet-c (PyPI)
    python benchmarks/corruptions.py --whole 10000                    also write a whole benchmark of 10 000 images

The peers want other versions of NumPy and scikit-image than dign, so they run in interpreters of their own, which
`--peer` names (it may be given more than once: the first in which a corruption works counts). Where none works, the
table says so. Every time is CPU time of one thread per image, the mean over five severities, with the same parameters
("imagenet", the only ones that the peers have), measured in this one run. A peer is called once to warm up and then
once per image, as its interface wants it; dign gets the images as one batch.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time

PEERS = {"imagecorruptions": "imagecorruptions", "imagenet_c": "imagenet-c"}
SEVERITIES = (1, 2, 3, 4, 5)
PUBLISHED_IMAGES = 10_000


def test_pictures(count: int, size: int):
    """(count,size,size,3) uint8: smooth shapes with some noise."""
    import numpy as np

    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 220, (count, 8, 8, 3)).repeat(-(-size // 8), axis=1).repeat(-(-size // 8), axis=2)
    return (coarse[:, :size, :size] + rng.integers(0, 36, (count, size, size, 3))).astype(np.uint8)


def time_peer(package: str, size: int, images: int) -> dict[str, float | str]:
    """Seconds per image and corruption, or the reason why there is none. Runs in the peer's own interpreter."""
    import importlib

    try:
        module = importlib.import_module(package)
    except Exception as error:  # whatever an import may raise is the answer
        return {"*": _reason(error)}
    _translate_multichannel(module)
    pictures = test_pictures(images, size)
    times: dict[str, float | str] = {}
    for name in module.corruption_dict:
        try:
            module.corrupt(pictures[0], severity=1, corruption_name=name)
            start = time.process_time()
            for severity in SEVERITIES:
                for picture in pictures:
                    module.corrupt(picture, severity=severity, corruption_name=name)
            times[name] = (time.process_time() - start) / len(SEVERITIES) / images
        except Exception as error:
            times[name] = _reason(error)
    return times


def _translate_multichannel(module) -> None:
    """Let imagecorruptions' two Gaussian filters run with a scikit-image that has dropped their argument."""
    import inspect

    corruptions = sys.modules.get(f"{module.__name__}.corruptions")
    gaussian = getattr(corruptions, "gaussian", None)
    if gaussian is None or "multichannel" in inspect.signature(gaussian).parameters:
        return

    def translated(image, *args, multichannel=False, **settings):
        return gaussian(image, *args, channel_axis=-1 if multichannel else None, **settings)

    corruptions.gaussian = translated


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:80]}" if str(error) else type(error).__name__


def time_dign(size: int, images: int) -> dict[str, float]:
    import torch

    from dign.corruptions import NAMES, corrupt

    torch.set_num_threads(1)
    pictures = torch.from_numpy(test_pictures(images, size)).permute(0, 3, 1, 2).contiguous()
    times = {}
    for name in NAMES:
        for severity in SEVERITIES:  # tables, kernels and frost pictures are made once
            corrupt(pictures[:1], name, severity, profile="imagenet")
        start = time.process_time()
        for severity in SEVERITIES:
            corrupt(pictures, name, severity, profile="imagenet")
        times[name] = (time.process_time() - start) / len(SEVERITIES) / images
    return times


def write_whole(count: int) -> dict[str, float]:
    """Write a benchmark of `count` 32x32 images: all nineteen, five severities."""
    import torch

    from dign.corruptions import write_benchmark

    pictures = torch.from_numpy(test_pictures(count, 32)).permute(0, 3, 1, 2).contiguous()
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        write_benchmark(pictures, torch.zeros(count, dtype=torch.int64), folder, classes=["none"])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    scale = 1 if sys.platform == "darwin" else 1024
    return {"wall": wall, "cpu": cpu, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale}


def in_interpreter(python: str, *words: object) -> dict:
    """This file again, in another process: what it prints last is JSON."""
    run = subprocess.run([python, __file__, *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{python} failed: {run.stderr.strip().splitlines()[-1] if run.stderr.strip() else run.returncode}")
    return json.loads(run.stdout.splitlines()[-1])


def peer_times(pythons: list[str], size: int, images: int) -> dict[str, dict[str, float | str]]:
    """Per package and corruption the time in the first interpreter where it works, else the last reason."""
    found: dict[str, dict[str, float | str]] = {package: {} for package in PEERS}
    for python in pythons:
        for package, times in found.items():
            for name, value in in_interpreter(python, "--as-peer", package, size, images).items():
                if not isinstance(times.get(name), float):
                    times[name] = value
    return found


def print_table(size: int, ours: dict[str, float], peers: dict[str, dict[str, float | str]]) -> None:
    print(f"\n## {size}x{size}, milliseconds of CPU time per image (mean over five severities)\n")
    heading = "".join(f" {title} | ratio |" for title in PEERS.values())
    print(f"| corruption | dign |{heading}\n|---|---:|{'---:|---:|' * len(PEERS)}")
    notes = []
    for name, seconds in ours.items():
        cells = ""
        for package in PEERS:
            value = peers[package].get(name, peers[package].get("*", "not measured"))
            if isinstance(value, float):
                cells += f" {value * 1e3:.3f} | {value / seconds:.0f} |"
            else:
                cells += " - | - |"
                notes.append(f"{PEERS[package]} {name if name in peers[package] else '(all)'}: {value}")
        print(f"| {name} | {seconds * 1e3:.4f} |{cells}")
    print(_total_row(ours, peers))
    if any(peers.values()):
        print("\nWhere there is no time: " + "; ".join(dict.fromkeys(notes)) if notes else "")


def _total_row(ours: dict[str, float], peers: dict[str, dict[str, float | str]]) -> str:
    """The sums over the corruptions that a peer manages, and their ratio."""
    cells = ""
    for package in PEERS:
        done = [name for name in ours if isinstance(peers[package].get(name), float)]
        theirs, same = sum(peers[package][name] for name in done), sum(ours[name] for name in done)
        cells += f" {theirs * 1e3:.2f} ({len(done)} of them) | {theirs / same:.0f} |" if done else " - | - |"
    return f"| all | {sum(ours.values()) * 1e3:.3f} |{cells}"


def print_whole(count: int, cost: dict[str, float]) -> None:
    per_image = cost["cpu"] / (count * 19 * 5)
    whole = cost["wall"] * PUBLISHED_IMAGES / count
    print(f"\n## A whole benchmark: {count} images of 32x32, nineteen corruptions, five severities, written as .npy\n")
    print(f"{cost['wall']:.1f} s on {_cores()} cores, {cost['cpu']:.1f} s CPU ({per_image * 1e6:.0f} us per image)")
    print(f"peak memory {cost['peak_bytes'] / 1e6:.0f} MB; CIFAR-10-C (950 000 images) at this rate: {whole:.0f} s")


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], metavar="PYTHON", help="an interpreter with the peers")
    parser.add_argument("--size", type=int, action="append", help="side of the images (default: 32 and 224)")
    parser.add_argument("--images", type=int, default=256, help="images per size at 32x32, fewer when larger")
    parser.add_argument("--peer-images", type=int, default=3, help="the peers are slow: images per corruption")
    parser.add_argument("--whole", type=int, default=0, metavar="N", help="also write a benchmark of N images")
    parser.add_argument("--as-peer", nargs=3, metavar=("PACKAGE", "SIZE", "IMAGES"), help=argparse.SUPPRESS)
    parser.add_argument("--as-writer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_peer:
        package, size, images = options.as_peer
        print(json.dumps(time_peer(package, int(size), int(images))))
    elif options.as_writer:
        print(json.dumps(write_whole(options.as_writer)))
    else:
        print(f"# Corruptions on {platform.machine()}, {_cores()} cores, Python {platform.python_version()}")
        for size in options.size or (32, 224):
            images = max(2, options.images * 32 * 32 // size**2)
            print_table(size, time_dign(size, images), peer_times(options.peer, size, options.peer_images))
        if options.whole:
            print_whole(options.whole, in_interpreter(sys.executable, "--as-writer", options.whole))


if __name__ == "__main__":
    main()
