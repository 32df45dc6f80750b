"""A batch: all rows of a log with one stream and one ``cdc$time``.

ScyllaDB writes one batch per partition and write timestamp of a statement (or CQL batch); it is delivered
as a whole or not at all. In: rows of one layout. Out: the rows with what they share.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from typing import Final

from connector.changes.layout import LogLayout

Row = tuple[bytes | None, ...]

GREGORIAN_TICKS: Final = 0x01B21DD213814000
_WORDS: Final = struct.Struct(">IHH8x").unpack


def timestamp_us(time: bytes) -> int:
    """The write timestamp in microseconds that the 16 bytes of a ``cdc$time`` stand for."""
    low, middle, high = _WORDS(time)
    ticks: int = (high & 0x0FFF) << 48 | middle << 32 | low
    return (ticks - GREGORIAN_TICKS) // 10


@dataclass(slots=True, eq=False)
class Batch:
    """Complete: no row of this stream and time is missing. ``rows`` are in order of ``cdc$batch_seq_no``."""

    layout: LogLayout
    stream_id: bytes
    time: bytes
    rows: list[Row]

    @property
    def timestamp_us(self) -> int:
        return timestamp_us(self.time)

    @property
    def timeuuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.time)
