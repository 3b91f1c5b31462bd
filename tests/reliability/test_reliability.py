"""The long-running scripts at a small size: deaths, mutated files, and leaks. docs/reliability.md has the full runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def run_script(name, *words):
    done = subprocess.run([sys.executable, TESTS / name, *words], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="adopts orphans and reads /proc as Linux has them")
def test_killed_processes_leave_what_undisturbed_ones_do(tmp_path):
    run_script("crash.py", "--kills", "6", "--seed", "1", "--out", tmp_path / "outcome.json")
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    assert outcome["faults"] == [] and outcome["kills"] >= 6


@pytest.mark.slow
def test_mutated_files_are_valid_or_refused_in_one_sentence():
    assert ", 0 faults" in run_script("fuzz.py", "--inputs", "500", "--seed", "1")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc as Linux has it")
def test_rounds_of_training_and_evaluating_leak_nothing(tmp_path):
    import soak

    first, second = soak.soak(0, 2, tmp_path)
    assert {name: second[name] for name in soak.COUNTS} == {name: first[name] for name in soak.COUNTS}
    assert first["files_left"] == 0


def test_the_verdict_of_a_soak_names_what_grew():
    import soak

    calm = [dict.fromkeys(soak.COUNTS, 5) | {"memory_kb": 1000 + n % 3, "seconds": n} for n in range(40)]
    assert soak.verdict(calm)["leaks"] == []
    leaking = [{**record, "memory_kb": 1000 + n, "open_files": n} for n, record in enumerate(calm)]
    assert soak.verdict(leaking)["leaks"] == ["memory_kb", "open_files"]


@pytest.mark.slow
def test_the_fuzzer_sees_what_it_should(tmp_path):
    """A reader that raises, one that hangs and one that reads outside its folder are each named."""
    script = f"""
import sys; sys.path.insert(0, {str(TESTS)!r})
from pathlib import Path
import fuzz
from types import SimpleNamespace
fuzz.LIMIT = 1.0
def make(folder): (folder / "a.json").write_text("[1, 2]")
def broken(kind):
    calls = []
    def read(folder):
        calls.append(1)
        if len(calls) == 1: return  # the valid one
        if kind == "raises": raise KeyError("x")
        if kind == "hangs":
            while True: pass
        if kind == "outside": open("/etc/hostname").close()
        if kind == "program": __import__("subprocess").run(["true"])
    return read
kinds = [
    SimpleNamespace(name=kind, make=make, read=broken(kind), mutated="*", weight=1)
    for kind in ("raises", "hangs", "outside", "program")
]
tallies = fuzz.fuzz(kinds, 8, 0, Path({str(tmp_path)!r}), say=lambda text: None)
print([sorted(tally.faults) for tally in tallies.values()])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    found = done.stdout
    assert "KeyError in ?" in found and "Hang in ?" in found and found.count("Outside") == 2, found + done.stderr
