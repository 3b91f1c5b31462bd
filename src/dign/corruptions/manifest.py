"""`manifest.json`: what a benchmark folder holds, how it was made, and the SHA-256 of every part.

It says nothing about when or where the folder was made: an interrupted and resumed run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dign.errors import UserError
from dign.files import write_json

FILE = "manifest.json"
SCHEMA = 1
NPY, FOLDERS = "npy", "folders"
LABELS = "labels.npy"
_BLOCK = 2**20


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder, or None where it has none, as the published benchmarks do."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        complete = manifest["schema"] == SCHEMA and isinstance(manifest["parts"], dict)
        complete = complete and manifest["layout"] in (NPY, FOLDERS) and isinstance(manifest["severities"], list)
    except (ValueError, KeyError, TypeError):
        complete = False
    if not complete:
        raise UserError(f"{path} is not a manifest that this version can read: make the benchmark again.")
    return manifest


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    write_json(folder / FILE, manifest)


def part_name(layout: str, corruption: str, severity: int | None = None) -> str:
    """What the manifest calls a part: `fog.npy`, or `fog/3` for a folder of images."""
    return f"{corruption}.npy" if layout == NPY else f"{corruption}/{severity}"


def digest(path: Path) -> str:
    """The SHA-256 of a file, or of the names and contents of all files in a folder, in the order of their names."""
    total = hashlib.sha256()
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for file in files:
        if file != path:
            total.update(file.relative_to(path).as_posix().encode() + b"\0")
        with open(file, "rb") as stream:
            while block := stream.read(_BLOCK):
                total.update(block)
    return total.hexdigest()


def check_parts(folder: Path, manifest: dict[str, Any]) -> None:
    """Compare every part with its checksum; a `UserError` names the first that is missing or altered."""
    for part, entry in manifest["parts"].items():
        if not (folder / part).exists():
            raise UserError(f"{folder / part} is missing, though {FILE} lists it: run `dign corrupt` again to mend it.")
        if digest(folder / part) != entry["sha256"]:
            raise UserError(f"{folder / part} is not what {FILE} says it is: run `dign corrupt` again to mend it.")
