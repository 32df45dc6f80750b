"""Stream ids: 16 raw bytes in, what they say about token, vnode and layout out.

Everywhere else in this room a stream is its raw id (``bytes``), because that is what queries bind and what
rows carry.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MIN_TOKEN = -(1 << 63)
MAX_TOKEN = (1 << 63) - 1
_WORDS = struct.Struct(">qQ")
_VERSION = 1


def token_of(stream: bytes) -> int:
    """The token of the log's partition: the first 8 bytes, signed."""
    if len(stream) != 16:
        raise ValueError(f"a stream id has 16 bytes, this one {len(stream)}: 0x{stream.hex()}")
    return int.from_bytes(stream[:8], "big", signed=True)


@dataclass(frozen=True, slots=True)
class StreamId:
    """A stream id taken apart. ``index`` is the vnode's number, always 0 for tablets, None for unversioned
    old ids."""

    token: int
    index: int | None
    version: int | None

    @classmethod
    def parse(cls, stream: bytes) -> StreamId:
        if len(stream) != 16:
            raise ValueError(f"a stream id has 16 bytes, this one {len(stream)}: 0x{stream.hex()}")
        token, low = _WORDS.unpack(stream)
        # Ids made before versions existed have random low bits: anything that is not version 1 says nothing.
        if low & 0xF != _VERSION:
            return cls(token=token, index=None, version=None)
        return cls(token=token, index=(low >> 4) & 0x3FFFFF, version=_VERSION)
