"""What is decided once per version of a table: how a change becomes a key, a value and headers.

In: a ``LogLayout`` and the output options. Out: a ``RecordPlan``, whose callables are run per record;
``legacy`` and ``advanced`` build it. Here are the parts that both share: the ``source`` block, the end of
the envelope, key columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from connector import __version__
from connector.changes import Change, ColumnPlace, LogLayout, Row
from connector.config import OutputConfig
from connector.formats.record import Schema
from connector.timeuuid import micros_of
from connector.values import Render, RenderingRules, render_uuid

#: From a row of the log to the value of one field.
Field = Callable[[Row], Any]
#: From a change to a row that its record shows, or None.
RowOf = Callable[[Change], Row | None]
Source = Callable[[Change], dict[str, Any]]
Headers = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class RecordPlan:
    """``key`` and ``value`` give structs (or None for no key); ``value`` takes the time now in nanoseconds."""

    topic: str
    key_schema: Schema | None
    value_schema: Schema
    key: Callable[[Change], dict[str, Any] | None]
    value: Callable[[Change, int], dict[str, Any]]
    headers: Callable[[Change], Headers] | None = None


def rules_of(options: OutputConfig) -> RenderingRules:
    return RenderingRules(options.strict, options.collections == "delta")


def row_field(place: ColumnPlace, render: Render) -> Field:
    """The bare value of a column in a row; None where the row has none."""
    at = place.value
    if at is None:
        return lambda row: None

    def value(row: Row) -> Any:
        raw = row[at]
        return None if raw is None else render(raw)

    return value


def struct_of(fields: Sequence[tuple[str, Field]]) -> Callable[[Row], dict[str, Any]]:
    """A struct whose fields are all made from one row."""
    return lambda row: {name: value(row) for name, value in fields}


def nanoseconds(ms: int) -> int:
    """``ts_ns`` as in the Java connector's records: cut to milliseconds, and before 1677 or after 2262 gone round."""
    found = ms * 1_000_000
    return found if -(2**63) <= found < 2**63 else (found + 2**63) % 2**64 - 2**63


def source_times(change: Change) -> tuple[int, int, int]:
    """``ts_ms``, ``ts_us`` and ``ts_ns`` of the ``source`` block."""
    us = micros_of(change.batch.time)
    # Java divides towards zero: it shows before 1970 only.
    ms = us // 1000 if us >= 0 else -(-us // 1000)
    return ms, us, nanoseconds(ms)


def metadata_of(change: Change) -> dict[str, Any]:
    """What `cdc.include.metadata` appends to the ``source`` block: what the row of the log says of itself."""
    return {
        "stream_id": change.stream_id.hex(),
        "time": render_uuid(change.time),
        "batch_seq_no": change.batch_seq_no,
        "operation": change.code,
        "ttl": change.ttl,
    }


def source_of(layout: LogLayout, options: OutputConfig) -> Source:
    """The ``source`` block of a change."""
    keyspace, table, prefix = layout.description.keyspace, layout.description.name, options.topic_prefix

    def source(change: Change) -> dict[str, Any]:
        ms, us, ns = source_times(change)
        return {
            "version": __version__,
            "connector": "scylla",
            "name": prefix,
            "ts_ms": ms,
            "snapshot": change.snapshot,
            "db": keyspace,
            "sequence": None,
            "ts_us": us,
            "ts_ns": ns,
            "keyspace_name": keyspace,
            "table_name": table,
        }

    if not options.metadata:
        return source

    def source_with_metadata(change: Change) -> dict[str, Any]:
        return source(change) | metadata_of(change)

    return source_with_metadata
