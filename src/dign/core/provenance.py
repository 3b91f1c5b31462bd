"""Provenance of results: the commit, the versions, the time."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def git_commit() -> str | None:
    """Return the commit of the source tree this package runs from, with '+' if it has changes; None outside one."""
    try:
        this = Path(__file__)
        folder = this.parents[1]
        # Installed into a virtualenv inside another repository, the package is not tracked there.
        known = ["git", "ls-files", "--error-unmatch", str(this.relative_to(folder))]
        subprocess.run(known, cwd=folder, capture_output=True, check=True)
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
        dirty = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "."], cwd=folder, capture_output=True)
        return head.stdout.strip() + ("+" if dirty.returncode else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on, and of Python."""
    packages = {name: version(name) for name in ("dign", "torch", "numpy", "lightning-fabric")}
    return {**packages, "python": platform.python_version()}


def now() -> str:
    """Return the time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
