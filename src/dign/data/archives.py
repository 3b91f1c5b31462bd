"""Read members of an untrusted archive into memory: nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NoReturn, Protocol

from dign.core.errors import UserError
from dign.data.decoding import replace_unprintable

MAX_TOTAL = 2 * 2**30
"""Bytes of an unpacked archive: no supported data set reaches it."""
MAX_MEMBER = 256 * 2**20
MAX_MEMBERS = 1_000_000


def is_archive(path: Path) -> bool:
    """Whether the name is that of a tar or zip archive."""
    return path.name.lower().endswith((".tar.gz", ".tgz", ".tar", ".zip"))


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, contents) of the regular members whose name is `wanted`, in the archive's order.

    An archive with `..`, an absolute path, a link or a device anywhere in it, or with more in it than the limits
    above, is refused; so is one that is damaged or ends too early.
    """
    members = _read_zip if path.name.lower().endswith(".zip") else _read_tar
    try:
        yield from members(path, wanted)
    except (UserError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # archive readers raise anything for a damaged file
        raise UserError(f"{path} is truncated or damaged: remove it and fetch it again.") from error


class _Limits:
    """Counts what an archive claims to contain, before any of it is unpacked."""

    def __init__(self, path: Path) -> None:
        self.path, self.members, self.total = path, 0, 0

    def check(self, name: str, size: int) -> None:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in name.split("/")[0]:
            self.refuse(f"its member '{replace_unprintable(name)}' points outside the archive")
        self.members += 1
        self.total += size
        if self.members > MAX_MEMBERS or size > MAX_MEMBER or self.total > MAX_TOTAL:
            self.refuse("it is a decompression bomb: it unpacks to more than any supported data set")

    def refuse(self, reason: str) -> NoReturn:
        raise UserError(f"{self.path} is refused: {reason}.")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _LimitedStream:
    """A decompressed stream that fails before it fills the memory."""

    def __init__(self, stream: _Readable, limits: _Limits) -> None:
        self.stream, self.limits, self.total, self.reads_past_end = stream, limits, 0, 0

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.reads_past_end += not data
        if self.reads_past_end > 100:  # tarfile would skip a member of 2^80 bytes, which is not there, piece by piece
            raise EOFError
        self.total += len(data)
        if self.total > MAX_TOTAL:
            self.limits.refuse("it is a decompression bomb: it unpacks to more than any supported data set")
        return data


def _read_tar(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    limits = _Limits(path)
    opener = open if path.name.lower().endswith(".tar") else gzip.open
    with opener(path, "rb") as raw:
        stream = _LimitedStream(raw, limits)
        yield from _read_tar_stream(stream, limits, wanted)
        while stream.read(2**20):  # to the end, where gzip keeps its checksum
            pass


def _read_tar_stream(
    stream: _LimitedStream, limits: _Limits, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]  # it needs read alone
        for member in archive:
            limits.check(member.name, member.size)
            if not (member.isreg() or member.isdir()):
                limits.refuse(f"its member '{replace_unprintable(member.name)}' is a link or a device")
            if member.isreg() and wanted(member.name):
                yield member.name, archive.extractfile(member).read()
            archive.members = []  # tarfile remembers every member otherwise


def _read_zip(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    limits = _Limits(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            limits.check(member.filename, member.file_size)
            kind = member.external_attr >> 28
            if kind not in (0, 0o10, 0o04):  # unknown, regular file, folder
                limits.refuse(f"its member '{replace_unprintable(member.filename)}' is a link or a device")
            if not member.is_dir() and wanted(member.filename):
                with archive.open(member) as file:
                    yield member.filename, file.read(member.file_size + 1)
