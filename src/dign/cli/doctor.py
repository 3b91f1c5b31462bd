"""`dign doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from dign.cli.messages import say
from dign.cli.options import json_option, print_json, quiet_option

if TYPE_CHECKING:
    from dign.doctor.self_test import Outcome


@click.command("doctor", short_help="What dign sees of this machine, and a self-test of a device.")
@click.option("--device", default="auto", help="the device to test: auto, cpu, cuda, cuda:1, ..., mps  [default: auto]")
@click.option("--test/--no-test", default=True, help="run the self-test, which takes about ten seconds")
@quiet_option
@json_option
def command(device: str, test: bool, quiet: bool, as_json: bool) -> None:
    """What dign sees of this machine, and a self-test: a step of every method and a batch of every corruption.

    The results are compared with the CPU's. This is what to run first on a new machine, and to paste into an issue.

    \b
    Examples:
      dign doctor
      dign doctor --device cuda:1
      dign doctor --json > machine.json
    """
    from dign.doctor.machine import describe_machine
    from dign.parallel.devices import pick_device

    target = pick_device(device)
    machine = describe_machine()
    quiet = quiet or as_json
    if not quiet:
        say(_describe(machine), err=False)
    outcomes = _run(target, quiet=quiet) if test else []
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if as_json:
        print_json({**machine, "tested": str(target), "self_test": [asdict(outcome) for outcome in outcomes]})
    elif test and not quiet:
        seconds = sum(outcome.seconds for outcome in outcomes)
        summary = f"{len(outcomes) - len(failed)} of {len(outcomes)} tests passed on {target}"
        click.echo(f"{summary} ({seconds:.1f} s without the first run of each).")
    if failed:
        click.get_current_context().exit(1)


def _run(device: Any, *, quiet: bool) -> list[Outcome]:
    from dign.doctor.self_test import run_self_test

    outcomes = []
    for outcome in run_self_test(device):
        outcomes.append(outcome)
        if not quiet and not outcome.passed:
            say(f"FAILED {outcome.name}: {outcome.problem}", err=False)
    return outcomes


def _describe(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    lines = [versions, f"{machine['system']}, cores: {machine['cores']}, threads: {machine['threads']}"]
    for name, device in machine["devices"].items():
        memory = f" {device['memory_gb']} GB;" if device["memory_gb"] else ""
        compiles = "compiles" if device["compiles"] else device["compile_problem"]
        model = "" if device["model"] == name else f" {device['model']},"
        lines.append(f"device {name}:{model}{memory} precision {', '.join(device['precisions'])}; {compiles}")
    cache = machine["cache"]
    data = f"; holds {', '.join(cache['data'])}" if cache["data"] else "; empty"
    writable = "" if cache["writable"] else ", NOT WRITABLE: set DIGN_DATA to another folder"
    lines.append(f"cache {cache['folder']}: {cache['free_gb']} GB free{writable}{data}")
    broken = machine["broken_extras"]
    found = [name for name, there in machine["extras"].items() if there and name not in broken]
    missing = [name for name, there in machine["extras"].items() if not there]
    lines.append(f"extras: {', '.join(found) or 'none'}; not installed: {', '.join(missing) or 'none'}")
    lines += [f"extra {name} cannot be used: {problem}" for name, problem in broken.items()]
    return "\n".join(lines)
