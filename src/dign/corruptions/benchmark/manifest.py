"""`manifest.json`: what a benchmark folder holds, how it was made, and the SHA-256 of every part.

It says nothing about when or where the folder was made: an interrupted and resumed run gives the same bytes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from dign.core.errors import UserError
from dign.core.files import read_json, write_json
from dign.corruptions.sets import ALL_NAMES
from dign.corruptions.settings import SEVERITIES

FILE = "manifest.json"
SCHEMA = 1
NPY, FOLDERS = "npy", "folders"
LABELS = "labels.npy"
_BLOCK = 2**20


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read the manifest of a folder; None if it has none, like the published benchmarks."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        manifest = read_json(path)
        valid = isinstance(manifest, dict) and _is_valid(manifest)
    except (OSError, ValueError):
        valid = False
    if not valid:
        raise UserError(f"{path} is not a manifest that this version can read: write the benchmark again.")
    checked: dict[str, Any] = manifest
    return checked


def _is_valid(manifest: dict[str, Any]) -> bool:
    """Whether all entries are there and valid; the names of parts cannot point outside the folder."""
    layout: Any = manifest.get("layout")
    severities: Any = manifest.get("severities")
    parts: Any = manifest.get("parts")
    if manifest.get("schema") != SCHEMA or layout not in (NPY, FOLDERS):
        return False
    if not _are(severities, int) or not 0 < len(severities) <= 5 or not set(severities) <= set(SEVERITIES):
        return False
    known = {LABELS, *(part_name(layout, name, severity) for name in ALL_NAMES for severity in severities)}
    return (
        isinstance(parts, dict)
        and parts.keys() <= known
        and all(isinstance(entry, dict) and isinstance(entry.get("sha256"), str) for entry in parts.values())
        and _are(manifest.get("names", []), str)
        and _are(manifest.get("classes"), str)
        and isinstance(manifest.get("profile"), str)
        and type(manifest.get("seed")) is int
        and isinstance(manifest.get("frost"), str)
        and (manifest.get("jpeg_quality") is None or type(manifest["jpeg_quality"]) is int)
    )


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest of a folder, atomically."""
    write_json(folder / FILE, manifest)


def part_name(layout: str, corruption: str, severity: int | None = None) -> str:
    """Return the name of a part in the manifest: `fog.npy`, or `fog/3` for a folder of images."""
    return f"{corruption}.npy" if layout == NPY else f"{corruption}/{severity}"


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file, or of the names and contents of all files in a folder, sorted by name."""
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
            raise UserError(f"{folder / part} is missing, though {FILE} lists it: run `dign corrupt` again to fix it.")
        if hash_file(folder / part) != entry["sha256"]:
            raise UserError(
                f"{folder / part} does not match its checksum in {FILE}: run `dign corrupt` again to fix it."
            )
