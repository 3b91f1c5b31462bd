"""Change valid files of every format that dign reads, and read them: valid data, or one sentence, and nothing else.

    python tests/reliability/fuzz.py --inputs 100000 --seed 0  changes drawn at random, all formats in turn
    python tests/reliability/fuzz.py --atheris "run configuration"  changes led by coverage (pip install atheris, Linux)

A reader may return what its checks call valid, or raise a `UserError` whose message is one line. Any other exception is
a fault; so is taking longer than the limit, and opening anything, writing, connecting or starting a program outside the
folder that it was given. The exit code is 1 if there was a fault; --keep FOLDER keeps the inputs that led to one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
if __name__ == "__main__":
    sys.modules["torchmetrics"] = None  # Fabric looks whether it is there, which takes ten seconds if it is

PACKAGE = Path(find_spec("dign").origin).parent
LIMIT = 20.0
"""Seconds for one input."""
MEMORY = 8 * 2**30
"""Bytes of address space: a reader that wants more than is left of it fails."""
FORBIDDEN = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.spawn")
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")


class Hang(BaseException):
    """A reader took too long."""


class Outside(BaseException):
    """A reader touched something outside its folder."""


class Guard:
    """Sees, through Python's audit events, what is opened, changed or started while a reader is at work."""

    def __init__(self) -> None:
        self.inside: str | None = None
        self.seen: str | None = None
        programs = (sys.prefix, sys.base_prefix, *filter(None, sys.path), str(Path(__file__).parents[2] / "src"))
        self.harmless = (*map(os.path.realpath, programs), *programs, "/proc/", "/sys/", os.devnull, "/dev/urandom")
        sys.addaudithook(self._hook)
        signal.signal(signal.SIGALRM, self._too_long)

    @contextmanager
    def watching(self, inside: Path) -> Iterator[None]:
        self.inside, self.seen = str(inside), None
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.inside = None
        if self.seen:
            raise Outside(self.seen)

    def _too_long(self, number: int, frame: object) -> None:
        raise Hang(f"more than {LIMIT:.0f} s")

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.inside is None or not (event == "open" or event in FORBIDDEN or event in CHANGES):
            return
        path = arguments[0]
        if event in FORBIDDEN:
            self.seen = f"{event} {arguments}"
        elif isinstance(path, str | bytes | os.PathLike) and not self._allowed(
            os.path.abspath(os.fsdecode(path)), event
        ):
            self.seen = f"{event} {os.fsdecode(path)}"

    def _allowed(self, path: str, event: str) -> bool:
        if path.startswith(self.inside):
            return True
        return event == "open" and path.startswith(self.harmless)


@dataclass
class Tally:
    inputs: int = 0
    valid: int = 0
    refused: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)


class Sample:
    """A valid folder of a format, and how to put it back."""

    def __init__(self, kind: Any, place: Path) -> None:
        self.kind, self.folder = kind, place / "sample"
        self.folder.mkdir(parents=True)
        kind.make(self.folder)
        self.files = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        self.stamps = {path: _stamp(path) for path in self.files}
        kind.read(self.folder)  # which may change what lies there
        self.restore()
        self.targets = sorted(path for path in self.folder.glob("**/" + kind.mutated) if path in self.files)
        assert self.targets, kind.name

    def restore(self) -> None:
        for parent, _, names in os.walk(self.folder):
            for path in (Path(parent, name) for name in names):
                if path not in self.files:
                    path.unlink()
        for path, data in self.files.items():
            if _stamp(path) != self.stamps[path]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                self.stamps[path] = _stamp(path)

    def try_one(self, path: Path, data: bytes, guard: Guard, tally: Tally) -> str | None:
        """Read the folder with `data` in the file `path`; the fault, if it is one."""
        from dign.core.errors import UserError

        tally.inputs += 1
        path.write_bytes(data)
        try:
            with guard.watching(self.folder.parent.parent):
                self.kind.read(self.folder)
            tally.valid += 1
        except UserError as error:
            if "\n" in str(error) or not str(error).strip():
                return self._fault(tally, "a message that is not one line", repr(str(error)))
            if guard.seen:
                return self._fault(tally, "Outside", guard.seen)
            tally.refused += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            where = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
            place = f"{Path(where[-1].filename).name}:{where[-1].name}" if where else "?"
            return self._fault(tally, f"{type(error).__name__} in {place}", str(error)[:300])
        finally:
            self.restore()
        return None

    def _fault(self, tally: Tally, what: str, detail: str) -> str:
        tally.faults[what] += 1
        tally.first.setdefault(what, detail)
        return what


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
        return status.st_mtime_ns, status.st_size
    except OSError:
        return None


def chosen(kinds: list[Any], only: str | None) -> list[Any]:
    """Those whose name is this, or else contains it."""
    exact = [kind for kind in kinds if kind.name == only]
    return exact or [kind for kind in kinds if only is None or only.lower() in kind.name.lower()]


def shares(kinds: list[Any], inputs: int) -> dict[str, int]:
    """How many inputs each format gets, by its weight, and at least one."""
    total = sum(kind.weight for kind in kinds)
    return {kind.name: max(1, round(inputs * kind.weight / total)) for kind in kinds}


def fuzz(
    kinds: list[Any], inputs: int, seed: int, place: Path, keep: Path | None = None, say=print
) -> dict[str, Tally]:
    """`inputs` mutated files, shared out among the formats; input number n of a format is the same for a same seed."""
    from fuzz_mutations import mutated

    os.chdir(place)  # a name relative to a folder that was opened looks to the guard as if it lay here
    guard, tallies = Guard(), {}
    for kind in kinds:
        started = time.monotonic()
        sample = Sample(kind, place / kind.name.replace(" ", "-"))
        tally = tallies[kind.name] = Tally()
        for number in range(shares(kinds, inputs)[kind.name]):
            chance = random.Random(f"{seed}/{kind.name}/{number}")
            path = chance.choice(sample.targets)
            data = mutated(sample.files[path], path.name, chance)
            fault = sample.try_one(path, data, guard, tally)
            if fault and keep and tally.faults[fault] <= 3:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{kind.name}-{number}-{path.name}".replace("/", "-")).write_bytes(data)
        faults = f", FAULTS {dict(tally.faults)} {tally.first}" if tally.faults else ""
        seconds = time.monotonic() - started
        say(f"{kind.name}: {tally.inputs} ({tally.valid} valid, {tally.refused} refused) in {seconds:.0f} s{faults}")
        shutil.rmtree(sample.folder.parent)
    return tallies


def led_by_coverage(name: str, arguments: list[str]) -> None:
    """One format under atheris, which never returns: stop it with Ctrl-C, or with -runs=N."""
    import atheris

    with atheris.instrument_imports(include=["dign", "tomllib"]):
        from fuzz_formats import formats
    (kind,) = chosen(formats(), name)
    guard, tally = Guard(), Tally()
    folder = Path(tempfile.mkdtemp(prefix="dign-fuzz-"))
    sample = Sample(kind, folder / "work")
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, path in enumerate(sample.targets):
        (corpus / str(number)).write_bytes(bytes([number]) + sample.files[path])

    def test(data: bytes) -> None:
        path = sample.targets[data[0] % len(sample.targets)] if data else sample.targets[0]
        fault = sample.try_one(path, data[1:], guard, tally)
        if fault:
            raise RuntimeError(f"{fault}: {tally.first[fault]}")

    atheris.Setup([sys.argv[0], *arguments, str(corpus)], test)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="formats whose name contains this")
    parser.add_argument("--keep", type=Path, help="folder for inputs that led to a fault")
    parser.add_argument("--out", type=Path, help="JSON file for the outcome")
    parser.add_argument("--atheris", metavar="FORMAT", help="one format, led by coverage; more words go to libFuzzer")
    options, rest = parser.parse_known_args()
    if options.atheris:
        led_by_coverage(options.atheris, rest)
    import torch
    from fuzz_formats import formats

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dign-fuzz-") as place:
        tallies = fuzz(chosen(formats(), options.only), options.inputs, options.seed, Path(place), options.keep)
    told = {
        name: {"inputs": tally.inputs, "valid": tally.valid, "refused": tally.refused, "faults": dict(tally.faults)}
        for name, tally in tallies.items()
    }
    total = sum(tally.inputs for tally in tallies.values())
    faults = sum(sum(tally.faults.values()) for tally in tallies.values())
    print(f"{total} inputs, {faults} faults, {time.monotonic() - started:.0f} s")
    if options.out:
        result = {
            "command": f"python tests/reliability/fuzz.py --inputs {options.inputs} --seed {options.seed}",
            "inputs": total,
        }
        result |= {"faults": faults, "seconds": round(time.monotonic() - started), "formats": told}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
