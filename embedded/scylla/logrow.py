"""An encoded log row: the cells of a `SELECT *`, each as on the wire, one behind the other.

Comes in: such rows as bytes. Goes out: their place in ScyllaDB's order (time with the signed order of
timeuuids, then number), their cells, and the same rows in another shape after the table was altered. The
first three columns (stream, time, number) always have the same lengths, so that the place can be read without
walking the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from connector.timeuuid import EPOCH_TICKS

_int32 = Struct(">i").unpack_from
_ticks = Struct(">IHH").unpack_from
# XOR with 0x80 turns a comparison of signed bytes into one of unsigned bytes.
_FLIP_SIGNS = bytes(byte ^ 0x80 for byte in range(256))
_HIGH_NIBBLE_OFF = [bytes((byte & 0x0F,)) for byte in range(256)]
_FLIPPED = [bytes((byte ^ 0x80,)) for byte in range(256)]
#: Behind every row that has the prefix it is appended to.
BEHIND = b"\xff" * 5
NULL = b"\xff\xff\xff\xff"


def time_order(raw: bytes) -> bytes:
    """A `cdc$time` as bytes that sort as ScyllaDB sorts timeuuids: time, then the low half as signed
    bytes."""
    return _HIGH_NIBBLE_OFF[raw[6]] + raw[7:8] + raw[4:6] + raw[:4] + raw[8:16].translate(_FLIP_SIGNS)


def number_order(raw: bytes) -> bytes:
    """A `cdc$batch_seq_no` as bytes that sort as the number."""
    return _FLIPPED[raw[0]] + raw[1:]


def row_order(body: bytes) -> bytes:
    """The place of an encoded row within its stream: 20 bytes."""
    return (
        _HIGH_NIBBLE_OFF[body[30]]
        + body[31:32]
        + body[28:30]
        + body[24:28]
        + body[32:40].translate(_FLIP_SIGNS)
        + _FLIPPED[body[44]]
        + body[45:48]
    )


def write_time(body: bytes) -> int:
    """The write timestamp (µs) of all cells of an encoded row: its `cdc$time`."""
    low, middle, high = _ticks(body, 24)
    ticks: int = (high & 0x0FFF) << 48 | middle << 32 | low
    return (ticks - EPOCH_TICKS) // 10


def split_row(body: bytes) -> list[bytes | None]:
    """The cells of an encoded row."""
    cells: list[bytes | None] = []
    at, end = 0, len(body)
    while at < end:
        length: int = _int32(body, at)[0]
        at += 4
        if length < 0:
            cells.append(None)
        else:
            cells.append(body[at : at + length])
            at += length
    return cells


def project_row(body: bytes, places: Sequence[int]) -> bytes:
    """The row with the cells at these places only (-1: null), in this order."""
    spans: list[bytes] = []
    at, end = 0, len(body)
    while at < end:
        length: int = _int32(body, at)[0]
        after = at + 4 + (length if length > 0 else 0)
        spans.append(body[at:after])
        at = after
    return b"".join([NULL if place < 0 else spans[place] for place in places])
