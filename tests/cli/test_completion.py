"""`dign completion`."""

import os
import subprocess
import sys


def test_completion_scripts_and_completions(dign_command, monkeypatch):
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = dign_command("completion", shell)
        assert code == 0 and "_DIGN_COMPLETE" in out
    script = "from dign.cli import main; main()"
    environment = {
        "_DIGN_COMPLETE": "bash_complete",
        "COMP_WORDS": "dign train digits --method dign+aug",
        "COMP_CWORD": "4",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["plain,dign+augmix", "plain,dign+augmax"]
