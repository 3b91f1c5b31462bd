"""Packed bytes come back as they were; other texts are refused, and none grows without bounds."""

import base64
import zlib

import pytest

from dign.core.packing import pack_bytes, unpack_bytes


def test_round_trip():
    for data in (b"", b"a", bytes(range(256)) * 9):
        assert unpack_bytes(pack_bytes(data), len(data)) == data


@pytest.mark.parametrize(
    "text",
    [None, 3, "!!", "AAAA", "ä", pack_bytes(b"abc"), base64.b64encode(zlib.compress(bytes(10**7))).decode()],
    ids=range(7),
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):
        unpack_bytes(text, 4)
