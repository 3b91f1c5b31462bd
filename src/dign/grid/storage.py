"""Where a grid's runs are stored: a local folder, or any URL that fsspec can write to (s3://, gs://, ...)."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from dign.core.errors import UserError
from dign.core.files import parse_json

RECORDS = ".grid"
"""Folder beside the runs for locks, progress and logs; hidden, so that a report does not mistake it for a run."""
CHECKPOINT = "checkpoint.safetensors"
FIRST_TO_ARRIVE = ("run.json", "training_images.txt", "config.toml")
"""Uploaded before everything else, in this order: with the last of them a run has begun, and not before."""
LAST_TO_ARRIVE = (CHECKPOINT, "model.safetensors", "results.json")
"""Uploaded after everything else, in this order: a run never looks more complete than it is."""
REMOVED = (CHECKPOINT, "best.safetensors")
"""Files that exist only during training."""


class Store(Protocol):
    """Runs by name. A job always works in a local folder."""

    location: str

    def read(self, name: str, file: str) -> str | None:
        """A text file of a run, or None if it does not exist."""
        ...

    def exists(self, name: str, file: str) -> bool: ...

    def records(self, name: str) -> Path:
        """The local folder for the lock, the progress and the log of a run."""
        ...

    def progress(self, name: str) -> dict[str, Any] | None:
        """The last progress that the run's job reported."""
        ...

    def open_folder(self, name: str, *, every: float) -> Any:
        """A context with the local folder to work in; what is written there is stored."""
        ...


def open_store(out: Path | str) -> Store:
    return RemoteStore(str(out)) if "://" in str(out) else LocalStore(Path(out))


class LocalStore:
    """Run folders under `root`, in which jobs work directly."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.location = str(self.root)

    def read(self, name: str, file: str) -> str | None:
        try:
            return (self.root / name / file).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            raise UserError(f"{self.root / name / file} is not text: the run folder is damaged.") from error

    def exists(self, name: str, file: str) -> bool:
        return (self.root / name / file).exists()

    def records(self, name: str) -> Path:
        return self.root / RECORDS / name

    def progress(self, name: str) -> dict[str, Any] | None:
        return _parse(self.read(f"{RECORDS}/{name}", "progress.json"))

    @contextmanager
    def open_folder(self, name: str, *, every: float) -> Iterator[Path]:
        yield self.root / name


class RemoteStore:
    """Run folders under a URL: a job works in a scratch folder that is downloaded first and uploaded regularly."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        try:
            self.files, self.root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise UserError(f"Results cannot be written to {url}: {error}.") from error
        self.location = url.rstrip("/")
        identity = hashlib.sha256(self.location.encode()).hexdigest()[:12]
        self.scratch = Path(tempfile.gettempdir()) / f"dign-grid-{_user()}-{identity}"

    def _path(self, name: str, file: str) -> str:
        return f"{self.root.rstrip('/')}/{name}/{file}"

    def read(self, name: str, file: str) -> str | None:
        try:
            return self.files.cat_file(self._path(name, file)).decode()
        except FileNotFoundError:
            return None

    def exists(self, name: str, file: str) -> bool:
        self.files.invalidate_cache()
        return self.files.exists(self._path(name, file))

    def records(self, name: str) -> Path:
        return self.scratch / RECORDS / name

    def progress(self, name: str) -> dict[str, Any] | None:
        return _parse(self.read(f"{RECORDS}/{name}", "progress.json"))

    @contextmanager
    def open_folder(self, name: str, *, every: float) -> Iterator[Path]:
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        self._fetch(name, folder)
        mirror = _Mirror(self, name, folder)
        try:
            with _repeat(mirror.send, max(every, 1.0)):
                yield folder
        finally:  # an interrupted run has a checkpoint to upload
            mirror.send(final=True)
            shutil.rmtree(folder, ignore_errors=True)

    def _fetch(self, name: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.files.invalidate_cache()
        start = self._path(name, "")
        for path in self.files.find(start) if self.files.exists(start.rstrip("/")) else []:
            relative = path.removeprefix(start).lstrip("/")
            if not relative.endswith(".partial"):
                (folder / relative).parent.mkdir(parents=True, exist_ok=True)
                self.files.get_file(path, str(folder / relative))

    def send(self, local: Path, target: str) -> None:
        """Upload under a temporary name, then rename: a reader never sees half a file."""
        self.files.makedirs(target.rpartition("/")[0], exist_ok=True)
        self.files.put_file(str(local), f"{target}.partial")
        self.files.mv(f"{target}.partial", target)


class _Mirror:
    """Keeps a run under a URL equal to its scratch folder by uploading what has changed."""

    def __init__(self, store: RemoteStore, name: str, folder: Path) -> None:
        self.store, self.name, self.folder = store, name, folder
        self.sent: dict[str, tuple[int, int]] = {}
        self.kept = folder / ".checkpoint.kept"

    def send(self, *, final: bool = False) -> None:
        self._keep_checkpoint()
        for path in self._files():
            relative = path.relative_to(self.folder).as_posix()
            with suppress(FileNotFoundError):  # replaced or removed by the job at this moment
                local = self.kept if relative == CHECKPOINT else path
                status = local.stat()
                stamp = (status.st_mtime_ns, status.st_size)
                if self.sent.get(relative) != stamp:
                    self.store.send(local, self.store._path(self.name, relative))
                    self.sent[relative] = stamp
        progress = self.store.records(self.name) / "progress.json"
        if progress.exists():
            self.store.send(progress, self.store._path(f"{RECORDS}/{self.name}", "progress.json"))
        for name in REMOVED if final else ():
            gone = self.store._path(self.name, name)
            if not (self.folder / name).exists() and self.store.files.exists(gone):
                self.store.files.rm_file(gone)

    def _keep_checkpoint(self) -> None:
        """Keep this moment's checkpoint: files uploaded before it may be newer than it, never older."""
        self.kept.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            try:
                os.link(self.folder / CHECKPOINT, self.kept)  # the job replaces the file, and does not write into it
            except OSError:  # a file system without links, or no checkpoint
                shutil.copy2(self.folder / CHECKPOINT, self.kept)

    def _files(self) -> list[Path]:
        files = [path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
        order = {name: place for place, name in enumerate(FIRST_TO_ARRIVE, -len(FIRST_TO_ARRIVE))}
        order |= {name: place for place, name in enumerate(LAST_TO_ARRIVE, 1)}
        return sorted(files, key=lambda path: order.get(path.name, 0))


@contextmanager
def _repeat(action: Any, seconds: float) -> Iterator[None]:
    """Call `action` regularly in the background; a failure is retried the next time."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(seconds):
            with suppress(Exception):  # the caller calls it once more at the end, and then it must succeed
                action()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _parse(text: str | None) -> dict[str, Any] | None:
    with suppress(ValueError):
        value = parse_json(text or "")
        return value if isinstance(value, dict) else None
    return None


def _user() -> str:
    import getpass

    with suppress(Exception):  # no name for this user id, as in some containers
        return getpass.getuser()
    return "user"
