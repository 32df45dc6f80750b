"""Rows of a log, made by hand: what ScyllaDB would write, for tests that need no server."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from typing import Any

from connector.changes import (
    Batch,
    BatchAssembler,
    CdcOptions,
    Change,
    Column,
    LogLayout,
    Row,
    TableDescription,
    changes_of,
    layout_of,
)
from connector.changes.layout import deleted_elements_type, log_type
from connector.values.binary import encode
from connector.values.types import CqlType, UserType, parse_type

STREAM = bytes(range(16))
TIME = uuid.UUID("b1b1a3c0-0000-11f0-8000-00000000abcd")


def table(
    columns: Mapping[str, str],
    partition: tuple[str, ...] = ("pk",),
    clustering: tuple[str, ...] = (),
    static: tuple[str, ...] = (),
    types: Mapping[str, UserType] | None = None,
    name: str = "t",
    descending: tuple[str, ...] = (),
) -> TableDescription:
    """A table of the keyspace ``ks`` by its columns' types."""
    made = []
    for column, spelled in columns.items():
        type_ = parse_type(spelled, types or {})
        if column in partition:
            made.append(Column(column, type_, "partition_key", partition.index(column)))
        elif column in clustering:
            order = "desc" if column in descending else "asc"
            made.append(Column(column, type_, "clustering", clustering.index(column), order))
        else:
            made.append(Column(column, type_, "static" if column in static else "regular"))
    return TableDescription("ks", name, "id", tuple(made), CdcOptions(), tuple((types or {}).values()))


def log_columns(description: TableDescription) -> tuple[tuple[str, str], ...]:
    """The columns of the table's log in the order of its pages."""
    first = [("cdc$stream_id", "blob"), ("cdc$time", "timeuuid"), ("cdc$batch_seq_no", "int")]
    rest = {"cdc$end_of_batch": "boolean", "cdc$operation": "tinyint", "cdc$ttl": "bigint"}
    for column in description.columns:
        rest[column.name] = log_type(column.type).cql()
        if column.is_key:
            continue
        rest[f"cdc$deleted_{column.name}"] = "boolean"
        gone = deleted_elements_type(column.type)
        if gone is not None:
            rest[f"cdc$deleted_elements_{column.name}"] = gone.cql()
    return (*first, *sorted(rest.items(), key=lambda item: item[0].encode()))


class Log:
    """The log of one table: makes rows from Python values, and everything that follows from them."""

    def __init__(self, description: TableDescription) -> None:
        self.description = description
        self.layout: LogLayout = layout_of(description, log_columns(description))
        self.types: dict[str, CqlType] = {column.name: log_type(column.type) for column in description.columns}

    def row(
        self,
        operation: int | bytes | None,
        number: int = 0,
        last: bool = False,
        time: uuid.UUID = TIME,
        stream: bytes = STREAM,
        ttl: int | None = None,
        deleted: tuple[str, ...] = (),
        removed: Mapping[str, Any] | None = None,
        raw: Mapping[str, bytes | None] | None = None,
        **values: Any,
    ) -> Row:
        """One row; ``values`` are Python values of columns, ``raw`` overrides cells by name."""
        code = struct.pack(">b", operation) if isinstance(operation, int) else operation
        cells: dict[str, bytes | None] = {
            "cdc$stream_id": stream,
            "cdc$time": time.bytes,
            "cdc$batch_seq_no": struct.pack(">i", number),
            "cdc$operation": code,
            "cdc$end_of_batch": b"\x01" if last else None,
            "cdc$ttl": None if ttl is None else struct.pack(">q", ttl),
        }
        for name, value in values.items():
            cells[name] = None if value is None else encode(self.types[name], value)
        for name in deleted:
            cells[f"cdc$deleted_{name}"] = b"\x01"
        for name, keys in (removed or {}).items():
            kind = deleted_elements_type(self.description.by_name[name].type)
            assert kind is not None
            cells[f"cdc$deleted_elements_{name}"] = encode(kind, keys)
        return tuple((cells | dict(raw or {})).get(column) for column in self.layout.columns)

    def batch(self, *rows: Row) -> Batch:
        assembler = BatchAssembler()
        (batch,) = assembler.feed(self.layout, rows) + assembler.finish()
        return batch

    def changes(self, *rows: Row) -> list[Change]:
        return changes_of(self.batch(*rows))
