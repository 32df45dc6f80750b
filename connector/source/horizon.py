"""The horizon of a log's ttl: what a saved position lies behind may be gone.

In: saved marks and positions, descriptions of tables, the time. Out: intervals that may have expired unread. Positions
are never trimmed by it: reading what is gone costs nothing, and a clock that is wrong must not skip what is there.

A table begins with what its log has when it is started, wherever its first streams begin: what is older was never to be
read. What reaches its end soon after does not count either: it would not be there had the table been started later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connector.offsets_entry import OffsetsEntry
from connector.source.descriptions import DescribedTable
from connector.table_name import TableName
from connector.topology import Mark, MarkKey, PositionKey, parse_key, parse_mark, parse_position, ttl_of_unread

STOPPED = "the connector was stopped"
NOT_READ = "they were not read"

# For this part of the log's ttl a table is being started.
START_OF_TTL = 10


@dataclass(frozen=True, slots=True)
class Expired:
    """Rows of ``stream`` (None: of all streams of the slot without a position) in [from_ms, to_ms) may be gone."""

    table: TableName
    slot: int
    stream: bytes | None
    from_ms: int
    to_ms: int
    because: str = STOPPED
    kept_ms: int = 0

    def __str__(self) -> str:
        what = "streams without a position" if self.stream is None else f"stream 0x{self.stream.hex()}"
        seconds = (self.to_ms - self.from_ms) / 1000
        return (
            f"{self.table}, slot {self.slot}, {what}: up to {seconds:.0f} s of changes (from {self.from_ms} ms on) may "
            f"have expired unread: {self.because} for longer than the log's TTL"
        )


def expired(saved: Iterable[OffsetsEntry], tables: Mapping[TableName, DescribedTable], now_ms: int) -> list[Expired]:
    """Each saved place that lies behind its table's horizon, the newest record of each key counting."""
    newest: dict[MarkKey | PositionKey, OffsetsEntry] = {}
    for record in saved:
        key = parse_key(record.key, record.place)
        if isinstance(key, MarkKey | PositionKey):
            newest[key] = record
    marks: dict[tuple[TableName, int], Mark] = {}
    for key, record in newest.items():
        if isinstance(key, MarkKey) and record.value is not None:
            marks[key.table, record.slot] = parse_mark(record.value, record.place)
    found = []
    for key, record in newest.items():
        described = tables.get(key.table)
        if record.value is None or described is None:
            continue
        mark = marks.get((key.table, record.slot))
        ttl = ttl_of_unread(None if mark is None else mark.ttl, described.description.cdc.ttl)
        if not ttl:
            continue
        ttl_ms = ttl * 1000
        began = None if mark is None else mark.began
        if began is not None and now_ms - began < ttl_ms // START_OF_TTL:
            continue
        if isinstance(key, MarkKey):
            assert mark is not None
            stream, read_to, started = None, mark.read_to, mark.read_to > 0
        else:
            stream, read_to, started = key.stream, parse_position(record.value, record.place).read_to, True
        if started and read_to < now_ms - ttl_ms:
            since, why = (read_to, STOPPED) if began is None else (max(read_to, began - ttl_ms), NOT_READ)
            found.append(Expired(key.table, record.slot, stream, since, now_ms - ttl_ms, why, ttl_ms))
    return found
