"""The preload as the admin interface and the Python API offer it.

Comes in: a request as JSON values. Goes out: the filled log, and a JSON summary from which `ExpectedRows`
tells, without the server, every change that the log must now show, and the rows of the base table.
"""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from connector.values import UserType, decoder, parse_type, split_cells
from embedded.scylla.cdc.changes import INSERT, UPDATE
from embedded.scylla.cdc.log_schema import value_type
from embedded.scylla.cdc.tables import Cdc
from embedded.scylla.engine import Engine
from embedded.scylla.logstore import LogStore
from embedded.scylla.mutation import Cell, CollectionMutation, Marker, PartitionMutation
from embedded.scylla.preload import Preloaded, Preloader, StreamAt
from embedded.scylla.preload_rows import PreloadSpec, RowSource
from embedded.scylla.schema import Column, Table, partition_key_bytes
from embedded.scylla.spelling import element_spelling
from embedded.scylla.store import TableStore

#: After so many rows somebody else is served.
_BREATH = 500
_SPEC_OPTIONS = {each.name for each in dataclasses.fields(PreloadSpec)}


async def preload(engine: Engine, cdc: Cdc, options: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a request: `table` ("ks.t"), the fields of `PreloadSpec`, `base` (also write the base table's
    rows).

    The oldest stream set of the table is made to count from before the first row, so preload before a reader
    starts. Other clients are served in between; what the table's schema has become then ends the preload.
    """
    keyspace, _, name = str(options.get("table", "")).rpartition(".")
    unknown = options.keys() - _SPEC_OPTIONS - {"table", "base"}
    if unknown:
        known = ", ".join(sorted({"table", "base", *_SPEC_OPTIONS}))
        raise ValueError(f"unknown option {', '.join(sorted(unknown))} (options: {known})")
    logged = cdc.logged(keyspace, name)
    if logged is None:
        raise ValueError(f"{keyspace}.{name} is no table with CDC")
    for each in dataclasses.fields(PreloadSpec):
        value = options.get(each.name, each.default)
        kinds = {"int": int, "bool": bool}.get(str(each.type), (int, float))
        if value is not dataclasses.MISSING and (
            not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool)
        ):
            raise ValueError(f"{each.name} cannot be {value!r}")
    given = {option: value for option, value in options.items() if option in _SPEC_OPTIONS}
    spec = PreloadSpec(**{"end_us": engine.clock.now_us(), "rows": 0, **given})
    source = RowSource(logged.plan.base, spec)
    store = engine.stores[logged.plan.log.id]
    if not isinstance(store, LogStore):
        raise ValueError(f"{logged.plan.log.full_name} has no log store")
    preloader = Preloader(logged, source, _stream_at(cdc, keyspace, name, spec.start_us // 1000))
    done = Preloaded()
    base = bool(options.get("base"))
    steps = [preloader.filling(store, done, keep_state=base)]
    if base:
        steps.append(_writing_base(engine.stores[logged.plan.base.id], logged.plan.base, preloader, source))
    for _ in chain(*steps):
        await asyncio.sleep(0)
        if any(engine.schema.table(keyspace, each.name) is not each for each in (logged.plan.base, logged.plan.log)):
            raise ValueError(f"{keyspace}.{name} was altered or dropped while its log was being filled")
    return _summary(logged.plan.base, spec, done, len(preloader.live) if options.get("base") else None)


def _stream_at(cdc: Cdc, keyspace: str, table: str, start_ms: int) -> StreamAt:
    tablets, vnodes = cdc.streams.tablets, cdc.streams.vnodes
    if (keyspace, table) in tablets.tables:
        tablets.backdate(keyspace, table, start_ms)
        sets = [(each.timestamp * 1000, each.stream_for) for each in tablets.tables[keyspace, table].sets]
    else:
        vnodes.backdate(start_ms)
        sets = [(each.timestamp * 1000, each.stream_for) for each in vnodes.generations]
    newest_us, newest = sets[-1]

    def stream_at(token: int, micros: int) -> bytes:
        if micros >= newest_us:
            return newest(token)
        return next(pick for start, pick in reversed(sets) if start <= micros)(token)

    return stream_at


def _writing_base(store: TableStore, table: Table, preloader: Preloader, source: RowSource) -> Iterator[None]:
    spec = source.spec
    for at, ((partition, row), (number, marked)) in enumerate(preloader.live.items()):
        if not at % _BREATH:
            yield
        mutation = PartitionMutation(table, partition_key_bytes(source.partition_key(partition)))
        written = mutation.row(source.clustering_key(row))
        micros = spec.time_of(number // spec.batch_rows)
        if marked:
            written.marker = Marker(micros)
        for column, raw in zip(source.columns, source.values(number)):
            if column.multi_cell:
                written.cells[column.name] = CollectionMutation(micros - 1, _elements(column, raw, micros))
            else:
                written.cells[column.name] = Cell(micros, raw)
        store.apply(mutation)


def _elements(column: Column, raw: bytes | None, micros: int) -> dict[bytes, Cell]:
    """The cells of a multi-cell column, from its frozen value in the log."""
    if raw is None:
        return {}
    if isinstance(column.type, UserType):
        fields = _fields(raw)
        return {at.to_bytes(2, "big"): Cell(micros, each) for at, each in enumerate(fields) if each is not None}
    per_entry = 1 if value_type(column).cql().startswith("frozen<set") else 2
    parts = [each or b"" for each in split_cells(raw, per_entry)]
    values = parts[1::2] if per_entry == 2 else [b""] * len(parts)
    spell = element_spelling(column.type) or bytes
    return {spell(key): Cell(micros, value) for key, value in zip(parts[::per_entry], values)}


def _fields(raw: bytes) -> list[bytes | None]:
    fields: list[bytes | None] = []
    at = 0
    while at < len(raw):
        length = int.from_bytes(raw[at : at + 4], "big", signed=True)
        at += 4
        fields.append(None if length < 0 else raw[at : at + length])
        at += max(0, length)
    return fields


def _summary(table: Table, spec: PreloadSpec, done: Preloaded, base_rows: int | None) -> dict[str, Any]:
    user_types: dict[str, list[list[str]]] = {}
    for column in table.columns:
        _collect_types(column.type, user_types)
    return {
        "table": table.full_name,
        "rows": done.rows,
        "batches": done.batches,
        "operations": {str(code): count for code, count in sorted(done.operations.items())},
        "streams": {stream.hex(): count for stream, count in sorted(done.streams.items())},
        "first_us": done.first_us,
        "last_us": done.last_us,
        "base_rows": base_rows,
        "spec": dataclasses.asdict(spec),
        "columns": [[each.name, each.type.cql(), each.kind, each.position, each.order] for each in table.columns],
        "types": user_types,
    }


def _collect_types(type_: Any, found: dict[str, list[list[str]]]) -> None:
    """User types inside a type, the innermost first."""
    if isinstance(type_, UserType):
        for _, inner in type_.fields:
            _collect_types(inner, found)
        found.setdefault(type_.name, [[name, inner.cql()] for name, inner in type_.fields])
        return
    for name in ("element", "key", "value"):
        if hasattr(type_, name):
            _collect_types(getattr(type_, name), found)
    for inner in getattr(type_, "elements", ()):
        _collect_types(inner, found)


class ExpectedChange(NamedTuple):
    """A change that the log must show once: its time, operation, key, and the values of the other columns (as
    the log shows them; None is null). Deletes have no values."""

    time_us: int
    operation: int
    key: dict[str, Any]
    values: dict[str, Any]


class ExpectedRows:
    """What a preload wrote, made again from its summary (counts by operation and stream are in `summary`). Values are
    Python's, as `connector.values.binary` decodes."""

    def __init__(self, summary: Mapping[str, Any]) -> None:
        self.summary = summary
        user_types: dict[str, UserType] = {}
        for name, fields in summary["types"].items():
            parsed = tuple((field, parse_type(text, user_types)) for field, text in fields)
            user_types[name] = UserType("", name, parsed)
        columns = [
            Column(name, parse_type(text, user_types), kind, position, order)
            for name, text, kind, position, order in summary["columns"]
        ]
        keyspace, _, name = summary["table"].rpartition(".")
        self.table = Table(uuid.UUID(int=0), keyspace, name, tuple(columns))
        self.source = RowSource(self.table, PreloadSpec(**summary["spec"]))

    def changes(self) -> Iterator[ExpectedChange]:
        """Every change, images left out, in the order of time (within one batch in the order of
        generation)."""
        spec, source = self.source.spec, self.source
        decode = [decoder(value_type(column)) for column in source.columns]
        names = [column.name for column in source.columns]
        for write in source.writes():
            values: dict[str, Any] = {}
            if write.operation in (INSERT, UPDATE):
                raw_values = source.values(write.number)
                values = {
                    name: None if raw is None else read(raw) for name, read, raw in zip(names, decode, raw_values)
                }
            key = self._key(write.partition, write.row)
            yield ExpectedChange(spec.time_of(write.batch), write.operation, key, values)

    def base_rows(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The base table after all changes: primary key → values. Rows that only updates with nulls made are
        not there."""
        rows: dict[tuple[Any, ...], tuple[bool, dict[str, Any]]] = {}
        for change in self.changes():
            key = tuple(_hashable(value) for value in change.key.values())
            before = rows.pop(key, (False, {}))
            if change.operation in (INSERT, UPDATE):
                marked = before[0] or change.operation == INSERT
                if marked or any(value is not None for value in change.values.values()):
                    rows[key] = (marked, change.values)
        return {key: values for key, (_, values) in rows.items()}

    def _key(self, partition: int, row: int) -> dict[str, Any]:
        raw = self.source.partition_key(partition) + self.source.clustering_key(row)
        return {column.name: decoder(column.type)(each) for column, each in zip(self.table.primary_key, raw)}


def _hashable(value: Any) -> Any:
    return tuple(_hashable(part) for part in value) if isinstance(value, list | tuple) else value
