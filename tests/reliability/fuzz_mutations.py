"""Changes that an attacker, a bad disk or a broken download makes to a file."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import struct
import zipfile
import zlib
from typing import Any

WEIRD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -0.0, 1e-320, 1e308, float("nan"), float("inf"),
    "", "0", "1e999", "../../../../etc/passwd", "/etc/passwd", "..", ".", "a/b", "C:\\x", "\x00", "\ud800", "x" * 3000,
    "<script>alert(1)</script>", "{0}", "%s", "[bold]", [], {}, [[]], [None], {"": {}}, [0] * 300, ["a"] * 300,
    "digits", "dign+dign", "npy", "folders", "timm:", "tinynet", "1", "5",
]  # fmt: skip
OPCODES = b"().0123456789FGHIJKLMNPQRSTUVXY]abcdeghijlopqrstu}\x80\x81\x82\x85\x86\x87\x88\x8a\x8b\x8c\x8f\x90\x93\x94"
TOKENS = [
    b"..", b"/etc/passwd", b"cos\nsystem\n", b"cbuiltins\neval\n", b"\x00" * 8, b"\xff" * 8, b"{" * 500, b"[" * 3000,
    b'{"a":' * 3000, b"nan", b"-1", b"1e999", b"9" * 5000, b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\n", b"<script>",
]  # fmt: skip


def mutated(data: bytes, name: str, chance: random.Random) -> bytes:
    """One change or a few to the contents of a file called `name`."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        structured = _structured(name) if chance.random() < 0.6 else None
        changed = structured(data, chance) if structured else None
        data = _plain(data, chance) if changed is None else changed
    return data


def _structured(name: str) -> Any:
    ends = {
        ".json": _json, ".jsonl": _lines_of_json, ".safetensors": _safetensors, ".npy": _npy, ".toml": _words,
        ".txt": _words, ".tar": _tar, ".tar.gz": _tar_gz,
        ".zip": _zip, ".png": _png,
    }  # fmt: skip
    for end, change in ends.items():
        if name.endswith(end):
            return change
    return _pickle if "." not in name or name == "batches.meta" else None


def _plain(data: bytes, chance: random.Random) -> bytes:
    """Flipped, lost, repeated, inserted or foreign bytes."""
    here = chance.randrange(len(data) + 1)
    there = min(len(data), here + chance.choice((1, 2, 8, 64, 1000)))
    kind = chance.randrange(8)
    if kind == 0:
        return data[:here]
    if kind == 1:
        return data[:here] + data[there:]
    if kind == 2:
        return data[:here] + data[here:there] * chance.choice((2, 3, 50)) + data[there:]
    if kind == 3:
        return data[:here] + chance.choice(TOKENS) + data[here:]
    if kind == 4:
        return data[:here] + chance.randbytes(there - here) + data[there:]
    if kind == 5 and chance.random() < 0.05:
        return b""
    if kind == 6 and len(data) > 8:
        number = struct.pack(chance.choice("<> ").strip() + "I", chance.choice((0, 1, 2**31 - 1, 2**32 - 1, 65536)))
        return data[:here] + number + data[here + 4 :]
    flipped = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20)) if data else 0):
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def _json(data: bytes, chance: random.Random) -> bytes | None:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return json.dumps(_changed(tree, chance)).encode()


def _changed(tree: Any, chance: random.Random) -> Any:
    """A tree with one place in it changed: another value, a key less, an item twice, or a level more."""
    here, path = tree, []
    while isinstance(here, dict | list) and here and (not path or chance.random() < 0.8):
        path.append(chance.choice(list(here) if isinstance(here, dict) else range(len(here))))
        here = here[path[-1]]
    if not path:
        return chance.choice(WEIRD)
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    kind = chance.randrange(6)
    if kind == 0:
        del parent[path[-1]]
    elif kind == 1 and isinstance(parent, list):
        parent.append(here)
    elif kind == 2:
        parent[path[-1]] = [here] if chance.random() < 0.5 else {"a": here}
    elif kind == 3 and isinstance(here, int | float):
        parent[path[-1]] = -here if chance.random() < 0.5 else here * 1000 + 1
    else:
        parent[path[-1]] = chance.choice(WEIRD)
    return tree


def _lines_of_json(data: bytes, chance: random.Random) -> bytes | None:
    lines = data.splitlines()
    if not lines:
        return None
    number = chance.randrange(len(lines))
    lines[number] = _json(lines[number], chance) or b"{"
    return b"\n".join(lines) + b"\n"


def _safetensors(data: bytes, chance: random.Random) -> bytes | None:
    """A header that says something else, of the length that it claims; or numbers that are none."""
    if len(data) < 8 or not 0 < struct.unpack("<Q", data[:8])[0] < len(data):
        return None
    length = struct.unpack("<Q", data[:8])[0]
    header, body = data[8 : 8 + length], data[8 + length :]
    if chance.random() < 0.3 and len(body) > 8:
        here = chance.randrange(0, len(body) - 4, 4)
        odd = chance.choice((float("nan"), float("inf"), -1e30, 0.0))
        return data[: 8 + length] + body[:here] + struct.pack("<f", odd) + body[here + 4 :]
    header = _json(header, chance) if chance.random() < 0.7 else _words(header, chance)
    return None if header is None else struct.pack("<Q", len(header)) + header + body


def _npy(data: bytes, chance: random.Random) -> bytes | None:
    if data[:6] != b"\x93NUMPY" or len(data) < 10:
        return None
    length = struct.unpack("<H", data[8:10])[0]
    header = _words(data[10 : 10 + length].strip(), chance)[:60000] + b"\n"
    if chance.random() < 0.5:
        kind = chance.choice((b"|O", b"<f8", b"<i2", b"|u1", b"<U4", b">i8", b"|V3"))
        header = re.sub(rb"'descr': *'[^']*'", b"'descr': '" + kind + b"'", header)
    return data[:8] + struct.pack("<H", len(header)) + header + data[10 + length :]


def _words(data: bytes, chance: random.Random) -> bytes:
    """A number, a name or a quoted text replaced; or a line gone, twice, or elsewhere."""
    if chance.random() < 0.3:
        lines = data.split(b"\n")
        moved = lines.pop(chance.randrange(len(lines)))
        for _ in range(chance.randrange(3)):
            lines.insert(chance.randrange(len(lines) + 1), moved)
        return b"\n".join(lines)
    found = list(re.finditer(rb'"[^"]*"|[\w.+-]+', data))
    if not found:
        return data + b"="
    place = chance.choice(found)
    weird = chance.choice(WEIRD)
    plain = isinstance(weird, str) and chance.random() < 0.5
    text = weird.encode("utf-8", "surrogatepass") if plain else json.dumps(weird).encode()
    return data[: place.start()] + text + data[place.end() :]


def _pickle(data: bytes, chance: random.Random) -> bytes:
    here = chance.randrange(len(data) + 1)
    inserted = bytes(chance.choice(OPCODES) for _ in range(chance.choice((1, 1, 2, 5))))
    return data[:here] + inserted + data[here + chance.randrange(3) :]


def _tar(data: bytes, chance: random.Random) -> bytes | None:
    """A member's name, size, type or link changed, with the checksum that belongs to it."""
    headers = [place for place in range(0, len(data) - 511, 512) if data[place + 257 : place + 262] == b"ustar"]
    if not headers:
        return None
    place = chance.choice(headers)
    header = bytearray(data[place : place + 512])
    start, size, values = chance.choice((
        (0, 100, (b"../../../tmp/escaped", b"/etc/passwd", b"a" * 100, b"data_batch_1", b"")),
        (124, 12, (b"00000000000\0", b"77777777777\0", b"\x80" + b"\xff" * 11, b"-1\0", b"00000001000\0")),
        (156, 1, (b"1", b"2", b"3", b"5", b"L", b"K", b"x", b"g", b"S", b"\0")),
        (157, 100, (b"/etc/passwd", b"../../x")),
    ))  # fmt: skip
    header[start : start + size] = chance.choice(values)[:size].ljust(size, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:place] + bytes(header) + data[place + 512 :]


def _tar_gz(data: bytes, chance: random.Random) -> bytes | None:
    try:
        inside = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None
    changed = _tar(inside, chance) if chance.random() < 0.5 else None
    return gzip.compress(_plain(inside, chance) if changed is None else changed, 1)


def _png(data: bytes, chance: random.Random) -> bytes | None:
    """A chunk changed, with the checksum that belongs to it."""
    places, here = [], 8
    while here + 12 <= len(data):
        length = struct.unpack(">I", data[here : here + 4])[0]
        places.append((here, length))
        here += 12 + length
    if not places:
        return None
    here, length = chance.choice(places)
    kind, body = data[here + 4 : here + 8], data[here + 8 : here + 8 + length]
    if kind == b"IDAT" and chance.random() < 0.5:
        try:
            body = zlib.compress(_plain(zlib.decompress(body), chance))
        except zlib.error:
            return None
    else:
        body = _plain(body, chance)[:100_000]
    checked = kind + body
    chunk = struct.pack(">I", len(body)) + checked + struct.pack(">I", zlib.crc32(checked))
    return data[:here] + chunk + data[here + 12 + length :]


def _zip(data: bytes, chance: random.Random) -> bytes | None:
    """A name changed wherever it stands, or a field of the directory."""
    if chance.random() < 0.3:
        return _zip_with_another_member(data, chance)
    names = sorted(set(re.findall(rb"[\w.-]+/[\w./-]+\.(?:txt|JPEG)", data)))
    if names and chance.random() < 0.5:
        name = chance.choice(names)
        other = chance.choice((b"../" * 40 + b"x", b"/" + b"etc/" * 40, chance.choice(names), b"a\\..\\" * 40))
        return data.replace(name, other[: len(name)].ljust(len(name), b"x"))
    places = [match.start() for match in re.finditer(rb"PK\x01\x02|PK\x03\x04|PK\x05\x06", data)]
    if not places:
        return None
    here = chance.choice(places) + chance.randrange(4, 46)
    return data[:here] + chance.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x01\0\0\0")) + data[here + 4 :]


def _zip_with_another_member(data: bytes, chance: random.Random) -> bytes | None:
    """Packed again, with one member changed."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return None
    name = chance.choice(list(members))
    members[name] = mutated(members[name], name, chance)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, contents in members.items():
            archive.writestr(member, contents)
    return packed.getvalue()
