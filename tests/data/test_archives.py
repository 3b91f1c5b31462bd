import gzip
import io
import tarfile
import zipfile

import pytest

import dign.data.archives as archives
from dign.core.errors import UserError
from dign.data.archives import read_members


def everything(name: str) -> bool:
    return True


def tar_with(path, member: tarfile.TarInfo, data: bytes = b""):
    with tarfile.open(path, "w:gz") as archive:
        fine = tarfile.TarInfo("fine.txt")
        fine.size = 4
        archive.addfile(fine, io.BytesIO(b"fine"))
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return path


def test_only_what_is_wanted_is_read(tmp_path, tar_of):
    path = tar_of(tmp_path / "a.tar.gz", {"a/x": b"1", "a/y": b"2"})
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a/", b"")
        archive.writestr("a/x", b"1")
        archive.writestr("a/y", b"2")
    for source in (path, tmp_path / "a.zip"):
        assert list(read_members(source, lambda name: name.endswith("y"))) == [("a/y", b"2")]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:/evil", "\\evil"])
def test_paths_that_lead_out_are_refused(tmp_path, name):
    path = tar_with(tmp_path / "a.tar.gz", tarfile.TarInfo(name), b"evil")
    with pytest.raises(UserError, match="points outside"):
        list(read_members(path, everything))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"evil")
    with pytest.raises(UserError, match="points outside"):
        list(read_members(tmp_path / "a.zip", everything))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    member = tarfile.TarInfo("innocent")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(UserError, match="link or a device"):
        list(read_members(tar_with(tmp_path / "a.tar.gz", member), everything))


def test_a_link_in_a_zip_is_refused(tmp_path):
    member = zipfile.ZipInfo("innocent")
    member.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(UserError, match="link or a device"):
        list(read_members(tmp_path / "a.zip", everything))


def test_bombs_are_refused_before_they_go_off(tmp_path, monkeypatch, tar_of):
    monkeypatch.setattr(archives, "MAX_MEMBER", 2000)
    monkeypatch.setattr(archives, "MAX_TOTAL", 20_000)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 30)
    for number, files in enumerate(
        [{"large": bytes(2001)}, {f"f{n}": bytes(1900) for n in range(12)}, {f"f{n}": b"" for n in range(31)}]
    ):
        with pytest.raises(UserError, match="more than any supported"):
            list(read_members(tar_of(tmp_path / f"{number}.tar.gz", files), lambda name: False))
        with zipfile.ZipFile(tmp_path / f"{number}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        with pytest.raises(UserError, match="more than any supported"):
            list(read_members(tmp_path / f"{number}.zip", lambda name: False))


def test_a_bomb_behind_the_end_of_the_archive_is_refused(tmp_path, monkeypatch, tar_of):
    monkeypatch.setattr(archives, "MAX_TOTAL", 50_000)
    path = tar_of(tmp_path / "a.tar.gz", {"a": b"1"})
    path.write_bytes(path.read_bytes() + gzip.compress(bytes(100_000)))
    with pytest.raises(UserError, match="more than any supported"):
        list(read_members(path, everything))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_no_truncation_and_no_flipped_byte_gives_other_contents(tmp_path, tar_of, suffix):
    """What is read is what was written, or an error; never something else."""
    files = {"a/x": bytes(range(256)), "a/y": b"hello"}
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    else:
        tar_of(whole, files)
    good, path = whole.read_bytes(), tmp_path / f"bad{suffix}"
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(UserError, match="truncated or damaged"):
            list(read_members(path, everything))
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        try:
            found = dict(read_members(path, everything))
        except UserError:
            continue
        assert all(found[name] == data for name, data in files.items() if name in found)
        assert suffix == ".zip" or found == files  # gzip's checksum covers the names as well


def test_a_member_that_claims_more_than_there_is_does_not_hang(tmp_path, tar_of):
    """A sparse member of 2^88 bytes: Python's own reader would skip them, piece by piece, for longer than we live."""
    tar_of(tmp_path / "a.tar.gz", {"a/x": b"1", "a/y": b"2"})
    raw = bytearray(gzip.decompress((tmp_path / "a.tar.gz").read_bytes()))
    start = raw.index(b"a/y")
    raw[start + 124 : start + 136] = b"\x80" + b"\xff" * 11
    raw[start + 156 : start + 157] = b"S"
    raw[start + 148 : start + 156] = b" " * 8
    raw[start + 148 : start + 156] = b"%06o\0 " % sum(raw[start : start + 512])
    (tmp_path / "a.tar").write_bytes(raw)
    with pytest.raises(UserError, match="truncated or damaged"):
        list(read_members(tmp_path / "a.tar", everything))
