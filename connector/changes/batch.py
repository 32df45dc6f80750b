"""A batch: all rows of a log with one stream and one ``cdc$time``.

ScyllaDB writes one batch per partition and write timestamp of a statement (or CQL batch); it is delivered
as a whole or not at all. In: rows of one layout. Out: the rows with what they share.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from connector.changes.layout import LogLayout
from connector.timeuuid import micros_of

Row = tuple[bytes | None, ...]


@dataclass(slots=True, eq=False)
class Batch:
    """Complete: no row of this stream and time is missing. ``rows`` are in order of ``cdc$batch_seq_no``."""

    layout: LogLayout
    stream_id: bytes
    time: bytes
    rows: list[Row]

    @property
    def timestamp_us(self) -> int:
        return micros_of(self.time)

    @property
    def timeuuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.time)
