"""The tables in which CDC readers look for streams: vnode generations and the stream sets of tablets tables.

In: the stream service, seen as the answering node knows it (a stale node shows an earlier state). Out: rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from connector.timeuuid import EPOCH_TICKS
from connector.values import order_key
from embedded.scylla.schema import Table
from embedded.scylla.streams.ids import IGNORE_MSB, stream_order
from embedded.scylla.system_tables.definition import Row, Scan, system_table
from embedded.scylla.tokens import cdc_token

if TYPE_CHECKING:
    from embedded.scylla.system_tables.state import ClusterState


class StreamOrdered(Table):
    """ScyllaDB shows `system.cdc_streams` in the order of the tokens, although the column's type says otherwise."""

    @property
    def _orders(self) -> tuple[Callable[[bytes], Any], ...]:
        return (*(order_key(column.type) for column in self.clustering[:-1]), stream_order)


def _stream_ordered(table: Table) -> Table:
    return StreamOrdered(**{field.name: getattr(table, field.name) for field in fields(table)})


GENERATION_TIMESTAMPS: Final = system_table(
    "system_distributed",
    "cdc_generation_timestamps",
    "key text, time timestamp, expired timestamp",
    ["key"],
    ["time"],
    descending=["time"],
)
STREAMS_DESCRIPTIONS: Final = system_table(
    "system_distributed",
    "cdc_streams_descriptions_v2",
    "time timestamp, range_end bigint, streams frozen<set<blob>>",
    ["time"],
    ["range_end"],
)
TIMESTAMPS: Final = system_table(
    "system",
    "cdc_timestamps",
    "keyspace_name text, table_name text, timestamp timestamp",
    ["keyspace_name", "table_name"],
    ["timestamp"],
    descending=["timestamp"],
)
STREAMS: Final = _stream_ordered(
    system_table(
        "system",
        "cdc_streams",
        "keyspace_name text, table_name text, timestamp timestamp, stream_state tinyint, stream_id blob",
        ["keyspace_name", "table_name"],
        ["timestamp", "stream_state", "stream_id"],
    )
)
# Since 2026.2 nothing writes to it any more; readers that look here for a finished upgrade find no row.
CDC_LOCAL: Final = system_table("system", "cdc_local", "key text, streams_timestamp timestamp, uuid uuid", ["key"])
GENERATIONS: Final = system_table(
    "system",
    "cdc_generations_v3",
    "key text, id timeuuid, range_end bigint, ignore_msb tinyint, streams frozen<set<blob>>",
    ["key"],
    ["id", "range_end"],
)
STREAMS_STATE: Final = system_table(
    "system",
    "cdc_streams_state",
    "table_id uuid, last_token bigint, stream_id blob, timestamp timestamp",
    ["table_id"],
    ["last_token"],
    static=["timestamp"],
)
STREAMS_HISTORY: Final = system_table(
    "system",
    "cdc_streams_history",
    "table_id uuid, timestamp timestamp, stream_state tinyint, last_token bigint, stream_id blob",
    ["table_id"],
    ["timestamp", "stream_state", "last_token"],
)
TIMESTAMPS_KEY: Final = "timestamps"
_CURRENT: Final = 0


def generation_id(timestamp: int) -> uuid.UUID:
    """A version 1 UUID of this millisecond; always the same one."""
    ticks = timestamp * 10_000 + EPOCH_TICKS
    parts = (ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF, 0x80, 0, 0)
    return uuid.UUID(fields=parts, version=1)


class StreamTables:
    """Rows of the tables above."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def scans(self) -> list[tuple[Table, Scan]]:
        return [
            (GENERATION_TIMESTAMPS, self.generation_timestamps),
            (STREAMS_DESCRIPTIONS, self.streams_descriptions),
            (TIMESTAMPS, self.timestamps),
            (STREAMS, self.streams),
            (CDC_LOCAL, lambda: ()),
            (GENERATIONS, self.generations),
            (STREAMS_STATE, self.streams_state),
            (STREAMS_HISTORY, self.streams_history),
        ]

    @property
    def _as_of(self) -> int | None:
        return self._cluster.answering.stale_as_of

    def generation_timestamps(self) -> Iterator[Row]:
        for timestamp in self._cluster.streams.generation_timestamps(self._as_of):
            yield {"key": TIMESTAMPS_KEY, "time": timestamp}

    def streams_descriptions(self) -> Iterator[Row]:
        for timestamp, range_end, streams in self._cluster.streams.generation_streams(self._as_of):
            yield {"time": timestamp, "range_end": range_end, "streams": streams}

    def generations(self) -> Iterator[Row]:
        for timestamp, range_end, streams in self._cluster.streams.generation_streams(self._as_of):
            yield {
                "key": "cdc_generations",
                "id": generation_id(timestamp),
                "range_end": range_end,
                "ignore_msb": IGNORE_MSB,
                "streams": streams,
            }

    def timestamps(self) -> Iterator[Row]:
        for keyspace, table, timestamp in self._cluster.streams.table_timestamps(self._as_of):
            yield {"keyspace_name": keyspace, "table_name": table, "timestamp": timestamp}

    def streams(self) -> Iterator[Row]:
        for keyspace, table, timestamp, state, stream in self._cluster.streams.table_streams(self._as_of):
            yield {
                "keyspace_name": keyspace,
                "table_name": table,
                "timestamp": timestamp,
                "stream_state": state,
                "stream_id": stream,
            }

    def streams_state(self) -> Iterator[Row]:
        tablets = self._cluster.streams.tablets
        for history in tablets.tables.values():
            oldest = history.sets[0]
            for token, stream in zip(oldest.tokens, oldest.streams):
                yield {
                    "table_id": history.log_id,
                    "last_token": token,
                    "stream_id": stream,
                    "timestamp": oldest.timestamp,
                }

    def streams_history(self) -> Iterator[Row]:
        streams = self._cluster.streams
        for keyspace, table, timestamp, state, stream in streams.table_streams(self._as_of):
            history = streams.tablets.tables[keyspace, table]
            if state != _CURRENT and timestamp != history.sets[0].timestamp:
                yield {
                    "table_id": history.log_id,
                    "timestamp": timestamp,
                    "stream_state": state,
                    "last_token": cdc_token(stream),
                    "stream_id": stream,
                }
