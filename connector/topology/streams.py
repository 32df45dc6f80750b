"""Stream ids: 16 raw bytes in, what they say about token, vnode and layout out.

Everywhere else in this room a stream is its raw id (``bytes``), because that is what queries bind and what
rows carry.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

MIN_TOKEN = -(1 << 63)
MAX_TOKEN = (1 << 63) - 1
RING = ((MIN_TOKEN, MAX_TOKEN),)
# Who has tokens all around the ring but for gaps smaller than this has the ring.
SMALL_GAP = 1 << 61
_WORDS = struct.Struct(">qQ")
_VERSION = 1


def token_of(stream: bytes) -> int:
    """The token of the log's partition: the first 8 bytes, signed."""
    if len(stream) != 16:
        raise ValueError(f"a stream id has 16 bytes, this one {len(stream)}: 0x{stream.hex()}")
    return int.from_bytes(stream[:8], "big", signed=True)


def arcs_of(tokens: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The shortest arc of the ring with all of the ``tokens``, both ends included: in one piece or, across the ring's
    end, in two."""
    ordered = sorted(tokens)
    if not ordered:
        return ()
    gaps = [(after - before, before, after) for before, after in pairwise(ordered)]
    widest, before, after = max(gaps, default=(0, 0, 0))
    across = ordered[0] - MIN_TOKEN + MAX_TOKEN - ordered[-1] + 1
    if max(widest, across) < SMALL_GAP:
        return RING
    if across >= widest:
        return ((ordered[0], ordered[-1]),)
    return ((MIN_TOKEN, before), (after, MAX_TOKEN))


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
