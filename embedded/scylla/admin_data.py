"""What the admin endpoints show and change, in plain JSON values.

In: the cluster and checked options. Out: dictionaries and lists; `ValueError` for what cannot be done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embedded.scylla.clock import Clock
from embedded.scylla.results import RequestContext, Rows, SchemaChange, SetKeyspace
from embedded.scylla.streams.tablets import StreamSet

if TYPE_CHECKING:
    from embedded.scylla.cluster import Cluster


def clock(shown: Clock) -> dict[str, Any]:
    return {"now_ms": shown.now_ms(), "offset_ms": shown.offset_us // 1000, "frozen": shown.frozen}


def move_clock(moved: Clock, options: Mapping[str, Any]) -> None:
    """Applied in this order: reset, set_ms, move_ms, freeze, resume."""
    if options["reset"]:
        moved.reset()
    if options["set_ms"] is not None:
        moved.set(round(options["set_ms"] * 1000))
    if options["move_ms"] is not None:
        moved.move(round(options["move_ms"] * 1000))
    if options["freeze"]:
        moved.freeze()
    if options["resume"] or options["freeze"] is False:
        moved.resume()


def stream_set(shown: StreamSet) -> dict[str, Any]:
    return {
        "timestamp": shown.timestamp,
        "streams": [{"stream_id": raw.hex(), "token": token} for raw, token in zip(shown.streams, shown.tokens)],
    }


def streams(cluster: Cluster) -> dict[str, Any]:
    service = cluster.streams
    return {
        "generations": [
            {
                "timestamp": generation.timestamp,
                "ranges": [
                    {"range_end": end, "streams": [raw.hex() for raw in of_range]}
                    for end, of_range in zip(generation.range_ends, generation.streams)
                ],
            }
            for generation in service.vnodes.generations
        ],
        "tables": {
            f"{keyspace}.{table}": [stream_set(shown) for shown in history.sets]
            for (keyspace, table), history in service.tablets.tables.items()
        },
    }


def change_tablets(cluster: Cluster, keyspace: str, table: str, options: Mapping[str, Any]) -> StreamSet | None:
    """One change of a table's stream set; which one is told by the options given."""
    tablets = cluster.streams.tablets
    partial = options["close"] is not None or options["open"] is not None
    wanted = [options["tablets"] is not None, bool(options["replace"]), partial, options["random"] is not None]
    if sum(wanted) != 1:
        raise ValueError("give one of: tablets; replace; close and open; random")
    if (keyspace, table) not in tablets.tables:
        raise ValueError(f"{keyspace}.{table} is no table with CDC in a tablets keyspace")
    if options["tablets"] is not None:
        return tablets.resize(keyspace, table, options["tablets"])
    if options["replace"]:
        return tablets.replace_all(keyspace, table)
    if options["random"] is not None:
        return tablets.random_change(keyspace, table, seed=options["random"])
    close = [bytes.fromhex(text) for text in options["close"] or ()]
    tokens = [int(token) for token in options["open"] or ()]
    return tablets.change(keyspace, table, close=close, open_tokens=tokens)


def connections(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        {"node": node.number, "shard": shard, **dataclasses.asdict(link.client())}
        for node in cluster.nodes
        for link, shard in node.links.items()
    ]


def run_cql(cluster: Cluster, statement: str, keyspace: str | None, timestamp: int | None) -> dict[str, Any]:
    """Carry out one statement as a client without a driver would."""
    cluster.answering = next(iter(cluster.nodes))
    context = RequestContext(keyspace=keyspace, default_timestamp=timestamp, node=cluster.answering)
    result = cluster.engine.execute(statement, (), context)
    shown: dict[str, Any] = {"warnings": list(result.warnings)}
    if isinstance(result, SetKeyspace):
        shown["keyspace"] = result.keyspace
    elif isinstance(result, SchemaChange):
        shown["schema_change"] = dataclasses.asdict(result.event)
    elif isinstance(result, Rows):
        shown["columns"] = [column.name for column in result.columns]
        shown["rows"] = _decoded_rows(result)
    return shown


def _decoded_rows(rows: Rows) -> list[list[Any]]:
    from connector.values import decoder

    decoders = [decoder(column.type) for column in rows.columns]
    return [
        [None if raw is None else _plain(decode(raw)) for decode, raw in zip(decoders, row)] for row in _cells(rows)
    ]


def _cells(rows: Rows) -> list[list[bytes | None]]:
    """The rows cell by cell, also where they are encoded already."""
    if rows.body is None:
        return [list(row) for row in rows.rows]
    from embedded.scylla.protocol.primitives import Reader

    reader = Reader(rows.body)
    return [[reader.optional_bytes() for _ in rows.columns] for _ in range(rows.row_count)]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
