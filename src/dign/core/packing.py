"""Arrays of numbers as short texts inside JSON files: zlib and base64, and back without trusting the text."""

from __future__ import annotations

import base64
import binascii
import zlib


def pack_bytes(data: bytes) -> str:
    """Bytes as text.

    >>> unpack_bytes(pack_bytes(b"dign"), 4)
    b'dign'
    """
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpack_bytes(text: object, size: int) -> bytes:
    """The `size` bytes that `pack_bytes` made a text of.

    Raises:
        ValueError: The text is anything else; it is never unpacked to more than `size` bytes and one.
    """
    if not isinstance(text, str):
        raise ValueError("it is not a text")
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError("it is not packed") from error
    if len(data) != size:
        raise ValueError(f"it does not hold {size} bytes")
    return data
