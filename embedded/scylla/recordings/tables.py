"""Tables as recordings show them: columns, the log's rows as batches, the base table's rows.

In: a server, keyspace and table. Out: plain values, spelled as in `spelling`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from connector.cql_names import log_name, qualified
from connector.timeuuid import micros_of, time_key
from connector.values import CqlType, ListType, MapType, UserType, freeze, parse_type
from embedded.scylla.recordings.server import Server
from embedded.scylla.recordings.spelling import partition_part, spelled


class LogRow(NamedTuple):
    """A row of the log with where it belongs: the raw key of its partition, its stream and time."""

    partition: tuple[tuple[CqlType, bytes | None], ...]
    stream: bytes
    time: bytes
    row: dict[str, Any]

    @property
    def us(self) -> int:
        return micros_of(self.time)


class _LogColumns(NamedTuple):
    """Columns of a log besides those that each has: the base table's, and by its column what else is told of one."""

    values: list[str]
    deleted: dict[str, str]
    elements: dict[str, str]

    @classmethod
    def of(cls, names: Iterable[str]) -> _LogColumns:
        deleted, elements = "cdc$deleted_", "cdc$deleted_elements_"
        ordered = sorted(names)
        return cls(
            [name for name in ordered if not name.startswith("cdc$")],
            {
                name.removeprefix(deleted): name
                for name in ordered
                if name.startswith(deleted) and not name.startswith(elements)
            },
            {name.removeprefix(elements): name for name in ordered if name.startswith(elements)},
        )


@dataclass(frozen=True)
class Table:
    """A table as the server describes it now."""

    server: Server
    keyspace: str
    name: str

    @cached_property
    def types(self) -> dict[str, CqlType]:
        return {name: kind for name, _, _, kind in self._described(self.name)}

    @cached_property
    def partition_key(self) -> list[str]:
        return self._key("partition_key")

    @cached_property
    def key(self) -> list[str]:
        """The whole primary key."""
        return self.partition_key + self._key("clustering")

    def has_log(self) -> bool:
        return bool(self._described(log_name(self.name)))

    def log(self) -> list[LogRow]:
        """All rows of the log, in the order of their times."""
        types = {name: kind for name, _, _, kind in self._described(log_name(self.name))}
        names, rows = self.server.rows(f"SELECT * FROM {qualified(self.keyspace, log_name(self.name))}")
        columns = _LogColumns.of(names)
        found = [self._log_row(types, columns, dict(zip(names, row, strict=True))) for row in rows]
        return sorted(found, key=lambda each: (time_key(each.time), each.stream, each.row["seq"]))

    def rows(self) -> list[str]:
        """The base table's rows, each as JSON text, sorted."""
        names, rows = self.server.rows(f"SELECT * FROM {qualified(self.keyspace, self.name)}")
        return sorted(
            json.dumps(
                {name: spelled(self.types[name], raw) for name, raw in zip(names, row, strict=True)}, sort_keys=True
            )
            for row in rows
        )

    def _log_row(self, types: dict[str, CqlType], columns: _LogColumns, cells: dict[str, bytes | None]) -> LogRow:
        def meta(name: str) -> Any:
            return spelled(types[name], cells[name])

        row = {
            "seq": meta("cdc$batch_seq_no"),
            "op": meta("cdc$operation"),
            "end": bool(meta("cdc$end_of_batch")),
            "ttl": meta("cdc$ttl"),
            "values": {name: self._log_value(name, types[name], cells[name]) for name in columns.values},
            "deleted": [base for base, name in columns.deleted.items() if meta(name)],
            "elements": {
                base: self._elements(base, meta(name))
                for base, name in columns.elements.items()
                if cells[name] is not None
            },
        }
        # A column that was renamed has left the log; its rows belong to a partition of nulls.
        partition = tuple((self.types[name], cells.get(name)) for name in self.partition_key)
        stream, time = cells["cdc$stream_id"], cells["cdc$time"]
        assert stream is not None and time is not None
        return LogRow(partition, stream, time, row)

    def _log_value(self, name: str, type_: CqlType, raw: bytes | None) -> Any:
        value = spelled(type_, raw)
        if value is not None and self._is_list(name) and isinstance(type_, MapType):
            # Positions are the server's own: their node part is one constant of its process.
            return [element for _, element in value]
        return value

    def _elements(self, name: str, value: list[Any]) -> Any:
        return len(value) if self._is_list(name) else value

    def _is_list(self, name: str) -> bool:
        type_ = self.types.get(name)
        return isinstance(type_, ListType) and not type_.frozen

    def _key(self, kind: str) -> list[str]:
        columns = [(at, name) for name, each, at, _ in self._described(self.name) if each == kind]
        return [name for _, name in sorted(columns)]

    def _described(self, table: str) -> list[tuple[str, str, int, CqlType]]:
        user_types = self._user_types
        found = self.server.texts(
            "SELECT column_name, kind, position, type FROM system_schema.columns"
            " WHERE keyspace_name = %s AND table_name = %s",
            self.keyspace,
            table,
        )
        return [(name, kind, at, parse_type(text, user_types)) for name, kind, at, text in found]

    @cached_property
    def _user_types(self) -> dict[str, UserType]:
        found = self.server.texts(
            "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = %s",
            self.keyspace,
        )
        types: dict[str, UserType] = {}
        waiting = {name: list(zip(names or [], texts or [], strict=True)) for name, names, texts in found}
        while waiting:
            # A type may be made of others, which the server lists in the order of the alphabet.
            known = {}
            for name, fields in waiting.items():
                try:
                    parsed = tuple((field, freeze(parse_type(text, types))) for field, text in fields)
                except ValueError:
                    continue
                known[name] = UserType(self.keyspace, name, parsed)
            if not known:
                break
            types |= known
            waiting = {name: fields for name, fields in waiting.items() if name not in known}
        return types


def partition_texts(row: LogRow) -> tuple[str, ...]:
    """The partition as seeded recordings have it."""
    return tuple(partition_part(type_, raw) for type_, raw in row.partition)


def partition_json(row: LogRow) -> str:
    """The partition as histories have it."""
    return json.dumps([spelled(type_, raw) for type_, raw in row.partition])


def batches(rows: list[LogRow]) -> Iterator[list[dict[str, Any]]]:
    """The rows of one partition and write timestamp, as one list per stream and time."""
    found: dict[tuple[bytes, bytes], list[dict[str, Any]]] = {}
    for each in rows:
        found.setdefault((each.stream, each.time), []).append(each.row)
    for batch in found.values():
        yield sorted(batch, key=lambda row: int(row["seq"]))
