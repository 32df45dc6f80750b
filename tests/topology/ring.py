"""A small ring of tokens with streams in it: places 1 .. 128 and the parts of stream ids in, tokens and raw ids out."""

from __future__ import annotations

import struct

from connector.topology.streams import MAX_TOKEN, MIN_TOKEN

PLACES = 128
STEP = 1 << 57


def token_at(place: int) -> int:
    """Place 1 .. 128 around the ring; the last one is the ring's end."""
    return MAX_TOKEN if place == PLACES else MIN_TOKEN + place * STEP


def make_stream(token: int, random_bits: int, index: int = 0) -> bytes:
    """A version-1 id with the given parts, as ScyllaDB builds them."""
    low = (random_bits & ((1 << 38) - 1)) << 26 | (index & 0x3FFFFF) << 4 | 1
    return struct.pack(">qQ", token, low)
