"""Training in float64, where nothing but the order of a sum makes two runs differ, and by little.

python double_precision.py train ...        is `dign train ...`, in float64
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

import dign.parallel.fabric


@contextmanager
def double_precision() -> Iterator[None]:
    """Models that are trained in this block have float64 weights and compute with them."""
    original = dign.parallel.fabric._precision
    dign.parallel.fabric._precision = lambda precision, device: {"precision": "64-true"}
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        dign.parallel.fabric._precision = original


if __name__ == "__main__":
    from dign.cli import main

    with double_precision():
        main(sys.argv[1:])
