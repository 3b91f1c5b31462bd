"""Members of a strange archive, read into memory: nothing is ever unpacked to disk under a name it chose."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn

from dign.core.errors import UserError
from dign.data.decoding import replace_unprintable

LARGEST_TOTAL = 2 * 2**30
"""Bytes that an archive may hold in all when unpacked: no known data set of ours reaches it."""
LARGEST_MEMBER = 256 * 2**20
MOST_MEMBERS = 1_000_000


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith((".tar.gz", ".tgz", ".tar", ".zip"))


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of the regular members whose name is `wanted`, in the archive's order.

    An archive with `..`, an absolute path, a link or a device anywhere in it, or with more in it than the limits
    above, is refused; so is one that is damaged or ends too early.
    """
    members = _zip_members if path.name.lower().endswith(".zip") else _tar_members
    try:
        yield from members(path, wanted)
    except (UserError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # decompressors and archive readers fail in a dozen ways
        raise UserError(f"{path} is truncated or damaged: remove it and fetch it again.") from error


class _Limits:
    """Counts what an archive claims to hold, before any of it is unpacked."""

    def __init__(self, path: Path) -> None:
        self.path, self.members, self.total = path, 0, 0

    def check(self, name: str, size: int) -> None:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in name.split("/")[0]:
            self.refuse(f"its member '{replace_unprintable(name)}' points outside the archive")
        self.members += 1
        self.total += size
        if self.members > MOST_MEMBERS or size > LARGEST_MEMBER or self.total > LARGEST_TOTAL:
            self.refuse("it unpacks to more than any known data set holds")

    def refuse(self, reason: str) -> NoReturn:
        raise UserError(f"{self.path} is refused: {reason}.")


class _LimitedStream:
    """A decompressed stream that ends with an error, not with a full memory."""

    def __init__(self, stream: IO[bytes], limits: _Limits) -> None:
        self.stream, self.limits, self.total, self.reads_past_end = stream, limits, 0, 0

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.reads_past_end += not data
        if self.reads_past_end > 100:  # tarfile would skip a member of 2^80 bytes, which is not there, piece by piece
            raise EOFError
        self.total += len(data)
        if self.total > LARGEST_TOTAL:
            self.limits.refuse("it unpacks to more than any known data set holds")
        return data


def _tar_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    limits = _Limits(path)
    opener = open if path.name.lower().endswith(".tar") else gzip.open
    with opener(path, "rb") as raw:
        stream = _LimitedStream(raw, limits)
        yield from _stream_members(stream, limits, wanted)
        while stream.read(2**20):  # to the end, where gzip keeps its checksum
            pass


def _stream_members(
    stream: _LimitedStream, limits: _Limits, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            limits.check(member.name, member.size)
            if not (member.isreg() or member.isdir()):
                limits.refuse(f"its member '{replace_unprintable(member.name)}' is a link or a device")
            if member.isreg() and wanted(member.name):
                yield member.name, archive.extractfile(member).read()
            archive.members = []  # tarfile remembers every member otherwise


def _zip_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
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
