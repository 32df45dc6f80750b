"""Time UUIDs as ScyllaDB orders them: raw cells in, sortable keys, times and exact query bounds out.

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
_time_words = struct.Struct(">IHH8x").unpack
_MAX_TICKS = (1 << 60) - 1
#: The last time that a time UUID can have, in ms since 1970.
LAST_MS = (_MAX_TICKS - EPOCH_TICKS) // TICKS_PER_MS


def ticks_of(raw: bytes) -> int:
    """100-ns ticks since 1970."""
    low, mid, high = _time_words(raw)
    return int((high & 0x0FFF) << 48 | mid << 32 | low) - EPOCH_TICKS


def time_uuid(ticks: int, low: int) -> bytes:
    """The version-1 UUID of a time in 100-ns ticks since 1970, with these low 64 bits."""
    stamp = ticks + EPOCH_TICKS
    return _WORDS.pack(stamp & 0xFFFFFFFF, stamp >> 32 & 0xFFFF, stamp >> 48 & 0x0FFF | 0x1000, low)


def time_key(raw: bytes) -> int:
    """A number that sorts as ScyllaDB sorts the time UUID ``raw``."""
    low, mid, high, rest = _WORDS.unpack(raw)
    return int(((high & 0x0FFF) << 48 | mid << 32 | low) << 64 | (rest ^ _SIGNS))


def millis_of(raw: bytes) -> int:
    """The millisecond (since 1970, rounded down) that a time UUID lies in."""
    return ticks_of(raw) // TICKS_PER_MS


def micros_of(raw: bytes) -> int:
    """The write timestamp in microseconds since 1970 that a ``cdc$time`` stands for."""
    # Not by `ticks_of`: it is asked for with every record.
    low, mid, high = _time_words(raw)
    stamp: int = (high & 0x0FFF) << 48 | mid << 32 | low
    return (stamp - EPOCH_TICKS) // 10


def lowest_uuid(ms: int) -> bytes:
    """The smallest time UUID of a millisecond: inclusive lower and exclusive upper bound of every exact read.

    Built from integers only: floating point seconds lose microseconds. There is deliberately no "highest
    UUID": the one that drivers build ends in a byte that is negative to ScyllaDB, so rows of the same tick
    sort behind it.
    """
    if not 0 <= ms * TICKS_PER_MS + EPOCH_TICKS <= _MAX_TICKS:
        raise ValueError(f"{ms} ms is outside the range of a time UUID")
    return time_uuid(ms * TICKS_PER_MS, _LOWEST)


def made_ticks(text: str) -> int | None:
    """When what has this id was made, in 100-ns ticks since 1970; None if the id does not tell."""
    try:
        known = uuid.UUID(text)
    except ValueError:
        return None
    return ticks_of(known.bytes) if known.version == 1 else None


def uuid_text(raw: bytes) -> str:
    return str(uuid.UUID(bytes=raw))


def uuid_bytes(text: str) -> bytes:
    return uuid.UUID(text).bytes
