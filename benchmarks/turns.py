"""Contenders that set up their process in different ways take turns, each in a process of its own."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection

import torch

Make = Callable[[], Callable[[], object]]
"""What sets up the process and gives what is to be timed; it is sent there by its name."""


def take_turns_in_processes(contenders: Mapping[str, Make], repeats: int) -> dict[str, float]:
    """Median seconds of each: processor time on one thread, the clock's on several.

    Two rounds do not count, in which code is compiled and memory settles.
    """
    context = multiprocessing.get_context("spawn")
    calls: dict[str, Connection] = {}
    for name, make in contenders.items():
        calls[name], theirs = context.Pipe()
        context.Process(target=_run_on_call, args=(theirs, make, torch.get_num_threads()), daemon=True).start()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 2):
        for name, call in calls.items():
            call.send(True)
            took = call.recv()
            if turn > 1:
                seconds[name].append(took)
    for call in calls.values():
        call.send(False)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _run_on_call(calls: Connection, make: Make, threads: int) -> None:
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    run = make()
    while calls.recv():
        start = clock()
        run()
        calls.send(clock() - start)
