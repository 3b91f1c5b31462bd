"""`python -m dign` is the command line."""

import subprocess
import sys

import dign


def test_python_m_dign_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "dign", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == dign.__version__
