"""What exists in the server: keyspaces, tables, columns, user types, as immutable values, and the registry of them.

In: finished values from DDL execution (and from the CDC room, for log tables). Out: lookups, the schema
version that drivers compare, and a call to every listener for each change, in the order of the changes.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from connector.values import CqlType, UserType, is_multi_cell, order_key
from embedded.scylla.spelling import row_spelling
from embedded.scylla.tokens import Partitioner, cdc_token, murmur3_token

Kind = Literal["partition_key", "clustering", "static", "regular"]
Order = Literal["asc", "desc", "none"]
MURMUR3 = "org.apache.cassandra.dht.Murmur3Partitioner"
CDC_PARTITIONER = "com.scylladb.dht.CDCPartitioner"
SYSTEM_KEYSPACES = frozenset(
    (
        "system",
        "system_auth",
        "system_distributed",
        "system_distributed_everywhere",
        "system_schema",
        "system_traces",
        "system_virtual_schema",
    )
)
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Descending:
    """Turns an order key round, for CLUSTERING ORDER BY (c DESC)."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __lt__(self, other: object) -> bool:
        return bool(other.key < self.key) if isinstance(other, Descending) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return bool(other.key > self.key) if isinstance(other, Descending) else NotImplemented

    def __repr__(self) -> str:
        return f"Descending({self.key!r})"


@dataclass(frozen=True, slots=True)
class Keyspace:
    """`tablets` is None for a vnodes keyspace, else the options (`initial`, …) of its tablets."""

    name: str
    replication: Mapping[str, str]
    durable_writes: bool = True
    tablets: Mapping[str, str] | None = None

    @property
    def uses_tablets(self) -> bool:
        return self.tablets is not None


@dataclass(frozen=True, slots=True)
class Column:
    """`position` counts inside the key for key columns and is -1 otherwise; `order` is "none" but for clustering."""

    name: str
    type: CqlType
    kind: Kind = "regular"
    position: int = -1
    order: Order = "none"

    @property
    def multi_cell(self) -> bool:
        """Whether the value lives in one cell per element: a non-frozen collection or user type, outside the key."""
        return self.kind in ("static", "regular") and is_multi_cell(self.type)


class DroppedColumn(NamedTuple):
    """A row of `system_schema.dropped_columns`; the time is in microseconds."""

    name: str
    type: CqlType
    kind: Kind
    dropped_us: int


class Index(NamedTuple):
    """A row of `system_schema.indexes`, of an index that another service keeps by reading the table's log."""

    name: str
    options: Mapping[str, str]


def _by_name(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(sorted(columns, key=lambda column: column.name.encode()))


@dataclass(frozen=True)
class Table:
    """A table. `columns` may come in any order; the accessors give them in ScyllaDB's.

    `cdc` is the map given in `WITH cdc = {…}` as text, or None if there never was one. `options` are the other
    properties with the values they print with; `extensions` as in `system_schema.tables`.
    """

    id: uuid.UUID
    keyspace: str
    name: str
    columns: tuple[Column, ...]
    options: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    cdc: Mapping[str, str] | None = None
    comment: str = ""
    default_time_to_live: int = 0
    extensions: Mapping[str, bytes] = field(default_factory=lambda: _NOTHING)
    flags: frozenset[str] = frozenset({"compound"})
    dropped: tuple[DroppedColumn, ...] = ()
    indexes: tuple[Index, ...] = ()
    partitioner: str = MURMUR3
    version: uuid.UUID = field(default_factory=uuid.uuid1)

    @cached_property
    def partition_key(self) -> tuple[Column, ...]:
        keys = (column for column in self.columns if column.kind == "partition_key")
        return tuple(sorted(keys, key=lambda column: column.position))

    @cached_property
    def clustering(self) -> tuple[Column, ...]:
        keys = (column for column in self.columns if column.kind == "clustering")
        return tuple(sorted(keys, key=lambda column: column.position))

    @cached_property
    def static(self) -> tuple[Column, ...]:
        return _by_name(column for column in self.columns if column.kind == "static")

    @cached_property
    def regular(self) -> tuple[Column, ...]:
        return _by_name(column for column in self.columns if column.kind == "regular")

    @cached_property
    def primary_key(self) -> tuple[Column, ...]:
        return self.partition_key + self.clustering

    @cached_property
    def ordered_columns(self) -> tuple[Column, ...]:
        """The order of `SELECT *`."""
        return self.primary_key + self.static + self.regular

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def _orders(self) -> tuple[Callable[[bytes], Any], ...]:
        def descending(key: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
            return lambda raw: Descending(key(raw))

        keys = []
        for column in self.clustering:
            key = order_key(column.type)
            keys.append(descending(key) if column.order == "desc" else key)
        return tuple(keys)

    @cached_property
    def sort_key(self) -> Callable[[tuple[bytes, ...]], tuple[Any, ...]]:
        """Clustering key (or a prefix of one) → a tuple that sorts in storage order. Equal tuples are one row."""
        orders = self._orders
        if len(orders) == 1:
            only = orders[0]
            return lambda key: (only(key[0]),) if key else ()
        return lambda key: tuple([order(raw) for order, raw in zip(orders, key)])

    @cached_property
    def row_spelling(self) -> Callable[[tuple[bytes, ...]], tuple[bytes, ...]] | None:
        """What clustering keys go through before they become keys of a dictionary; None if nothing need be done."""
        return row_spelling(tuple(column.type for column in self.clustering))

    @cached_property
    def token_of(self) -> Partitioner:
        """Serialised partition key → token, by the table's own partitioner."""
        return cdc_token if self.partitioner == CDC_PARTITIONER else murmur3_token

    @property
    def full_name(self) -> str:
        return f"{self.keyspace}.{self.name}"

    def changed(self, **changes: Any) -> Table:
        """A copy with other values and a new version."""
        return replace(self, **{"version": uuid.uuid1(), **changes})


def partition_key_bytes(values: tuple[bytes, ...]) -> bytes:
    """The serialised partition key: the value itself, or for several each with its length before and a zero after."""
    if len(values) == 1:
        return values[0]
    return b"".join([len(value).to_bytes(2, "big") + value + b"\0" for value in values])


def partition_key_values(table: Table, key: bytes) -> tuple[bytes, ...]:
    """The inverse of `partition_key_bytes`."""
    count = len(table.partition_key)
    if count == 1:
        return (key,)
    values, at = [], 0
    for _ in range(count):
        length = int.from_bytes(key[at : at + 2], "big")
        values.append(key[at + 2 : at + 2 + length])
        at += 3 + length
    return tuple(values)


@dataclass(frozen=True, slots=True)
class SchemaEvent:
    """What drivers are told: `change` is CREATED, UPDATED or DROPPED, `target` KEYSPACE, TABLE or TYPE."""

    change: Literal["CREATED", "UPDATED", "DROPPED"]
    target: Literal["KEYSPACE", "TABLE", "TYPE"]
    keyspace: str
    name: str = ""


Listener = Callable[[SchemaEvent], None]


@dataclass(frozen=True, slots=True)
class Remembered:
    """All that existed at one moment."""

    version: uuid.UUID
    keyspaces: dict[str, Keyspace]
    tables: dict[str, dict[str, Table]]
    types: dict[str, dict[str, UserType]]


class Schema:
    """The registry. Every change gives a new `version` and is told to every listener, after it has happened."""

    def __init__(self) -> None:
        self.keyspaces: dict[str, Keyspace] = {}
        self.version = uuid.uuid4()
        # While it is as it was for somebody.
        self._newest: uuid.UUID | None = None
        self._tables: dict[str, dict[str, Table]] = {}
        self._types: dict[str, dict[str, UserType]] = {}
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def remembered(self) -> Remembered:
        """What there is now, for a node that hears of no change any more."""
        tables = {name: dict(each) for name, each in self._tables.items()}
        types = {name: dict(each) for name, each in self._types.items()}
        return Remembered(self.version, dict(self.keyspaces), tables, types)

    def version_by(self, past: Remembered | None) -> uuid.UUID:
        """What somebody tells who knows so much; None: everything."""
        return past.version if past is not None else self._newest or self.version

    @contextlib.contextmanager
    def as_of(self, past: Remembered | None) -> Iterator[None]:
        """Meanwhile it is as it was then; what is changed meanwhile is forgotten."""
        if past is None:
            yield
            return
        now = self.version, self.keyspaces, self._tables, self._types
        self._newest = self.version
        self.version, self.keyspaces, self._tables, self._types = past.version, past.keyspaces, past.tables, past.types
        try:
            yield
        finally:
            self.version, self.keyspaces, self._tables, self._types = now
            self._newest = None

    def _tell(self, event: SchemaEvent) -> None:
        self.version = uuid.uuid4()
        for listener in self._listeners:
            listener(event)

    def keyspace(self, name: str) -> Keyspace | None:
        return self.keyspaces.get(name)

    def put_keyspace(self, keyspace: Keyspace) -> None:
        change: Literal["CREATED", "UPDATED"] = "UPDATED" if keyspace.name in self.keyspaces else "CREATED"
        self.keyspaces[keyspace.name] = keyspace
        self._tables.setdefault(keyspace.name, {})
        self._types.setdefault(keyspace.name, {})
        self._tell(SchemaEvent(change, "KEYSPACE", keyspace.name))

    def drop_keyspace(self, name: str) -> None:
        """Its tables and types must be gone before."""
        del self.keyspaces[name], self._tables[name], self._types[name]
        self._tell(SchemaEvent("DROPPED", "KEYSPACE", name))

    def table(self, keyspace: str, name: str) -> Table | None:
        return self._tables.get(keyspace, {}).get(name)

    def tables(self, keyspace: str) -> list[Table]:
        return sorted(self._tables.get(keyspace, {}).values(), key=lambda table: table.name)

    def all_tables(self) -> list[Table]:
        return [table for keyspace in sorted(self._tables) for table in self.tables(keyspace)]

    def put_table(self, table: Table) -> None:
        tables = self._tables[table.keyspace]
        change: Literal["CREATED", "UPDATED"] = "UPDATED" if table.name in tables else "CREATED"
        tables[table.name] = table
        self._tell(SchemaEvent(change, "TABLE", table.keyspace, table.name))

    def drop_table(self, keyspace: str, name: str) -> None:
        del self._tables[keyspace][name]
        self._tell(SchemaEvent("DROPPED", "TABLE", keyspace, name))

    def user_types(self, keyspace: str) -> Mapping[str, UserType]:
        return self._types.get(keyspace, {})

    def put_type(self, user_type: UserType) -> None:
        types = self._types[user_type.keyspace]
        change: Literal["CREATED", "UPDATED"] = "UPDATED" if user_type.name in types else "CREATED"
        types[user_type.name] = user_type
        self._tell(SchemaEvent(change, "TYPE", user_type.keyspace, user_type.name))

    def drop_type(self, keyspace: str, name: str) -> None:
        del self._types[keyspace][name]
        self._tell(SchemaEvent("DROPPED", "TYPE", keyspace, name))
