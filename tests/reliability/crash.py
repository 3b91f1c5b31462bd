"""Kill processes with SIGKILL at random moments, take the work up again, and compare with an undisturbed run.

    python tests/reliability/crash.py --kills 50 --seed 0  random moments, spread over all scenarios
    python tests/reliability/crash.py --every 1       before every single change to the disk, one after the other

Every scenario of crash_scenarios.py is done once undisturbed; then again and again with deaths in it, by the clock or
right before one of its changes to the disk (files opened to be written, synced, renamed, removed, folders made). The
same command is given until it succeeds. Then all files must equal the undisturbed ones bit for bit, fields that are
times apart, and none may be there that is not there otherwise. The exit code is 1 if one differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
if __name__ == "__main__":
    sys.modules["torchmetrics"] = None  # Fabric looks whether it is there, which takes ten seconds if it is

import torch
from crash_scenarios import Command, Scenario, outcome, prepare, run_command, scenarios, server
from forks import Moment, Tripwire, adopt_orphans, children_of, no_process_left, start, wait

KILLED = -signal.SIGKILL
LOADED = (
    *(f"dign.cli.{name}" for name in ("corrupt", "data", "evaluate", "grid", "hub", "list", "report", "train")),
    *("dign.evaluation.evaluate", "dign.grid.worker", "dign.publish.hub", "dign.report.make", "dign.training.train"),
    *("lightning_fabric", "torch._dynamo"),
)
"""What the parent imports for all its children."""


@dataclass
class Calm:
    """How a scenario goes when nobody dies."""

    files: dict[str, str]
    seconds: float
    changes: dict[str, int]


@dataclass
class Tally:
    cases: int = 0
    kills: int = 0
    faults: list[str] = field(default_factory=list)


class Crashes:
    """The scenarios in a folder of their own, and what came of them."""

    def __init__(self, folder: Path, spare: set[int]) -> None:
        self.folder, self.spare = folder, spare
        self.log = folder / "log.txt"
        self.sources: dict[str, object] = {}
        shared = folder / "shared"
        self.sources = prepare(shared, self._undisturbed)
        self.scenarios = scenarios(shared)
        self.calm: dict[str, Calm] = {}
        self.tallies = {scenario.name: Tally() for scenario in self.scenarios}

    def _undisturbed(self, words: Command, place: Path) -> None:
        code = self._attempt(words, place, None)[0]
        assert code == 0, f"dign {' '.join(words)} ended with {code}: {self.log.read_text()[-2000:]}"

    def _attempt(self, words: Command, place: Path, moment: Moment | None, amend=lambda: None) -> tuple[int, int]:
        """The exit code of a command, and how many processes were killed."""
        tripwire = Tripwire(place, self.folder / "counts", moment)

        def work() -> None:
            amend()
            run_command(words, tripwire, self.sources)

        pid = start(work, self.log, place)
        kills = self._kill_later(pid, moment) if moment and moment.seconds is not None else 0
        code = wait(pid)
        for file in tripwire.files.values():
            os.close(file)
        if not no_process_left(self.spare):
            raise AssertionError(f"dign {' '.join(words)} left a process behind")
        if moment and moment.change is not None:
            kills = int((self.folder / "counts" / moment.role).stat().st_size >= moment.change)
        return code, kills

    def _kill_later(self, pid: int, moment: Moment) -> int:
        time.sleep(moment.seconds)
        victims = children_of(pid) if moment.role == "worker" else [pid]
        for victim in victims[:1]:
            os.kill(victim, signal.SIGKILL)
        return len(victims[:1])

    @contextmanager
    def place(self, scenario: Scenario) -> Iterator[Path]:
        place = self.folder / "place"
        place.mkdir()
        scenario.equip(place)
        try:
            yield place
        finally:
            shutil.rmtree(place)

    def calm_run(self, scenario: Scenario) -> Calm:
        if scenario.name not in self.calm:
            with self.place(scenario) as place:
                started = time.monotonic()
                self._undisturbed(scenario.next_command(place), place)
                seconds = time.monotonic() - started
                changes = {role: (self.folder / "counts" / role).stat().st_size for role in ("command", "worker")}
                self.calm[scenario.name] = Calm(outcome(place), seconds, changes)
        return self.calm[scenario.name]

    def case(self, scenario: Scenario, moments: Iterable[Moment]) -> None:
        """Die at each of the moments, one in each attempt; then go on to the end, and compare."""
        calm, tally = self.calm_run(scenario), self.tallies[scenario.name]
        tally.cases += 1
        told = []
        with self.place(scenario) as place:
            for attempt, moment in enumerate([*moments, None]):
                amend = scenario.amend if attempt else lambda: None
                words = scenario.next_command(place)
                code, kills = self._attempt(words, place, moment, amend)
                tally.kills += kills
                told += [str(moment)] if kills else []
                if code not in (0, KILLED):
                    tally.faults.append(f"{scenario.name}, killed {told}: `dign {' '.join(words)}` ended with {code}")
                    return
                if code == 0:
                    break
            for name in difference(calm.files, outcome(place)):
                tally.faults.append(f"{scenario.name}, killed {told}: {name}")

    def random_moment(self, scenario: Scenario, chance: random.Random) -> Moment:
        calm = self.calm_run(scenario)
        role = "worker" if calm.changes["worker"] and chance.random() < 0.7 else "command"
        if chance.random() < 0.4:
            return Moment(seconds=chance.uniform(0, calm.seconds), role=role)
        return Moment(change=chance.randint(1, calm.changes[role]), role=role, torn=chance.random() < 0.5)

    def random_kills(self, kills: int, seed: int) -> None:
        """Cases with one death or several until there were so many; one scenario after the other."""
        chance = random.Random(seed)
        order = list(self.scenarios)
        while sum(tally.kills for tally in self.tallies.values()) < kills:
            scenario = order.pop(0)
            order.append(scenario)
            deaths = 1 + (chance.random() < 0.35) + (chance.random() < 0.15)
            self.case(scenario, [self.random_moment(scenario, chance) for _ in range(deaths)])

    def every_change(self, step: int) -> None:
        """Die before each (or every so manieth) change to the disk, in turn with a whole and a torn file."""
        for scenario in self.scenarios:
            for role, count in self.calm_run(scenario).changes.items():
                for number in range(1, count + 1, step):
                    self.case(scenario, [Moment(change=number, role=role, torn=number // step % 2 == 1)])


def difference(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    changes = [f"{name} is missing" for name in expected.keys() - found.keys()]
    changes += [f"{name} is left over" for name in found.keys() - expected.keys()]
    return sorted(changes + [f"{name} differs" for name in expected if name in found and expected[name] != found[name]])


@contextmanager
def crashes(folder: Path) -> Iterator[Crashes]:
    """Everything set up in `folder`."""
    torch.set_num_threads(1)
    for name in LOADED:
        import_module(name)
    adopt_orphans()
    (folder / "shared").mkdir(parents=True)
    others = set(children_of(os.getpid()))
    with server(folder / "shared") as pid:
        yield Crashes(folder, {pid, *others})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, metavar="N", help="instead: before every Nth change to the disk")
    parser.add_argument("--only", help="scenarios whose name begins so")
    parser.add_argument("--out", type=Path, help="JSON file for the outcome")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dign-crash-") as folder, crashes(Path(folder)) as test:
        if options.only:
            test.scenarios = [each for each in test.scenarios if each.name.startswith(options.only)]
        if options.every:
            test.every_change(options.every)
        else:
            test.random_kills(options.kills, options.seed)
    faults = [fault for tally in test.tallies.values() for fault in tally.faults]
    told = {
        name: {"cases": tally.cases, "kills": tally.kills, "faults": len(tally.faults)}
        for name, tally in test.tallies.items()
    }
    result = {
        "command": " ".join(["python", "tests/reliability/crash.py", *sys.argv[1:]]),
        "kills": sum(tally.kills for tally in test.tallies.values()),
        "faults": faults,
        "scenarios": told,
        "seconds": round(time.monotonic() - started),
    }
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
