"""Memory that is kept is not mapped again: counted in page faults of a process of its own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import resource, sys
import torch
from dign.core.allocator import reuse_memory
if sys.argv[1] == "reuse" and not reuse_memory():
    sys.exit(77)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def use():
    for _ in range(2):
        large = [torch.ones(9 << 20) for _ in range(3)]  # 36 MB each: smaller ones the C library may keep by itself
use()
before = faults()
use()
print(faults() - before)
"""


def faults(how):
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("needs Linux with glibc")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_tensors_of_many_megabytes_are_mapped_once():
    assert faults("reuse") * 20 < faults("leave")
