"""Time UUIDs as ScyllaDB orders them: raw cells in, sortable keys, milliseconds and exact query bounds out.

A ``cdc$time`` cell is 16 bytes: a version-1 UUID whose low 64 bits are random. ScyllaDB compares the 60-bit
time first and then the low 8 bytes as *signed* bytes, which neither ``uuid.UUID``'s order nor a comparison of
the raw bytes is.
"""

from __future__ import annotations

import struct
import uuid

# 100-ns ticks between the start of the Gregorian calendar (the epoch of version-1 UUIDs) and 1970-01-01.
EPOCH_TICKS = 0x01B21DD213814000
TICKS_PER_MS = 10_000
# Flipping the top bit of each byte turns ScyllaDB's signed comparison of the low 8 bytes into an unsigned
# one.
_SIGNS = 0x8080808080808080
# The smallest low word in that order is therefore eight times the byte -128.
_LOWEST = _SIGNS
_WORDS = struct.Struct(">IHHQ")
_MAX_TICKS = (1 << 60) - 1


def _ticks(raw: bytes) -> int:
    low, mid, high, _ = _WORDS.unpack(raw)
    return int((high & 0x0FFF) << 48 | mid << 32 | low)


def time_key(raw: bytes) -> int:
    """A number that sorts as ScyllaDB sorts the time UUID ``raw``."""
    low, mid, high, rest = _WORDS.unpack(raw)
    return int(((high & 0x0FFF) << 48 | mid << 32 | low) << 64 | (rest ^ _SIGNS))


def millis_of(raw: bytes) -> int:
    """The millisecond (since 1970, rounded down) that a time UUID lies in."""
    return (_ticks(raw) - EPOCH_TICKS) // TICKS_PER_MS


def micros_of(raw: bytes) -> int:
    """The write timestamp in microseconds since 1970 that a ``cdc$time`` stands for."""
    return (_ticks(raw) - EPOCH_TICKS) // 10


def lowest_uuid(ms: int) -> bytes:
    """The smallest time UUID of a millisecond: inclusive lower and exclusive upper bound of every exact read.

    Built from integers only: floating point seconds lose microseconds. There is deliberately no "highest
    UUID": the one that drivers build ends in a byte that is negative to ScyllaDB, so rows of the same tick
    sort behind it.
    """
    ticks = ms * TICKS_PER_MS + EPOCH_TICKS
    if not 0 <= ticks <= _MAX_TICKS:
        raise ValueError(f"{ms} ms lies outside of what a time UUID can say")
    return _WORDS.pack(ticks & 0xFFFFFFFF, (ticks >> 32) & 0xFFFF, 0x1000 | ((ticks >> 48) & 0x0FFF), _LOWEST)


def uuid_text(raw: bytes) -> str:
    return str(uuid.UUID(bytes=raw))


def uuid_bytes(text: str) -> bytes:
    return uuid.UUID(text).bytes
