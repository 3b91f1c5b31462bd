"""Workers for tasks of many small tensor operations, which threads would spend waiting for the interpreter lock."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any


@contextmanager
def open_workers(
    count: int, initializer: Callable[..., None], *arguments: Any, fork: bool = True
) -> Iterator[Executor]:
    """Yield an executor of `count` workers with one of torch's threads each.

    On Linux they are processes, forked when the first task is submitted: they share what this process has in memory
    by then. Elsewhere, with `fork=False` (for tasks that use a GPU) and for a single worker they are threads.

    Args:
        count: Workers.
        initializer: What each worker calls first, in the thread that does its tasks, with `arguments`.
        arguments: Not pickled.
        fork: Whether the tasks may run in a forked process.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # forked processes and new threads take it over
    try:
        with _create_executor(count, initializer, arguments, fork) as executor:
            try:
                yield executor
            except BaseException:
                executor.shutdown(cancel_futures=True)
                raise
    finally:
        torch.set_num_threads(threads)


def _create_executor(count: int, initializer: Callable[..., None], arguments: tuple[Any, ...], fork: bool) -> Executor:
    daemon = multiprocessing.current_process().daemon  # which may not have processes of its own
    if count == 1 or not fork or daemon or sys.platform != "linux":
        return ThreadPoolExecutor(count, initializer=initializer, initargs=arguments)
    context = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(count, context, _start_process, (initializer, *arguments))


def _start_process(initializer: Callable[..., None], *arguments: Any) -> None:
    end_with_parent()
    initializer(*arguments)


def end_with_parent() -> None:
    """End this process, which `multiprocessing` has started, with its parent, however that ends; ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
