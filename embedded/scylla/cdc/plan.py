"""How one version of a table is logged: where each base column goes in a log row, and how its values are
encoded.

Comes in: a base table, its log table and options. Goes out: a `LogPlan`, made once for each version of the
schema. A log row is built as the list of its columns' cells, each as on the wire (length and bytes), in the
order of `SELECT *`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Any, Literal

from connector.values import ListType, MapType, SetType, UserType, native, order_key
from embedded.scylla.cdc.log_schema import (
    BATCH_SEQ_NO,
    DELETED,
    DELETED_ELEMENTS,
    END_OF_BATCH,
    OPERATION,
    STREAM_ID,
    TIME,
    TTL,
)
from embedded.scylla.cdc.options import CdcOptions
from embedded.scylla.schema import Column, Table

pack_int = Struct(">i").pack
_pack_ttl = Struct(">iq").pack
NULL_CELL = pack_int(-1)
TRUE_CELL = pack_int(1) + b"\x01"
_LENGTHS = [pack_int(length) for length in range(1024)]

Kind = Literal["atom", "map", "set", "user"]


def cell(raw: bytes) -> bytes:
    """A value on the wire."""
    length = len(raw)
    return (_LENGTHS[length] if length < 1024 else pack_int(length)) + raw


def ttl_cell(ttl: int) -> bytes:
    return _pack_ttl(8, ttl) if ttl else NULL_CELL


def operation_cell(operation: int) -> bytes:
    return pack_int(1) + operation.to_bytes(1, "big", signed=True)


class ColumnPlan:
    """One static or regular column of the base: its places in a log row (`elements_at` -1 for a single
    cell)."""

    __slots__ = ("deleted_at", "elements_at", "fields", "kind", "name", "order", "value_at")

    def __init__(self, column: Column, places: Mapping[str, int]) -> None:
        self.name = column.name
        self.value_at = places[column.name]
        self.deleted_at = places[DELETED + column.name]
        self.elements_at = places.get(DELETED_ELEMENTS + column.name, -1) if column.multi_cell else -1
        self.kind: Kind = "atom"
        self.order: Callable[[bytes], Any] = bytes
        self.fields = 0
        if not column.multi_cell:
            return
        if isinstance(column.type, UserType):
            self.kind, self.fields = "user", len(column.type.fields)
        elif isinstance(column.type, SetType):
            self.kind, self.order = "set", order_key(column.type.element)
        elif isinstance(column.type, MapType):
            self.kind, self.order = "map", order_key(column.type.key)
        elif isinstance(column.type, ListType):
            self.kind, self.order = "map", order_key(native("timeuuid"))

    def collection(self, elements: Mapping[bytes, bytes]) -> bytes:
        """The frozen value of a multi-cell column, on the wire."""
        if self.kind == "user":
            fields = (elements.get(index.to_bytes(2, "big")) for index in range(self.fields))
            return cell(b"".join([NULL_CELL if raw is None else cell(raw) for raw in fields]))
        keys = sorted(elements, key=self.order)
        if self.kind == "set":
            return self.key_set(keys)
        parts = [pack_int(len(keys))]
        for key in keys:
            parts += [cell(key), cell(elements[key])]
        return cell(b"".join(parts))

    def key_set(self, keys: Iterable[bytes]) -> bytes:
        """A frozen set of element keys, on the wire: `cdc$deleted_elements_X`."""
        ordered = sorted(keys, key=self.order)
        return cell(b"".join([pack_int(len(ordered)), *map(cell, ordered)]))


class LogPlan:
    """Places of everything in a log row, and the row that nothing is written into yet."""

    def __init__(self, base: Table, log: Table, options: CdcOptions) -> None:
        self.base, self.log, self.options = base, log, options
        places = {column.name: place for place, column in enumerate(log.ordered_columns)}
        self.empty_row = [NULL_CELL] * len(places)
        self.stream_at, self.time_at, self.number_at = places[STREAM_ID], places[TIME], places[BATCH_SEQ_NO]
        self.operation_at, self.ttl_at, self.end_at = places[OPERATION], places[TTL], places[END_OF_BATCH]
        self.partition_key_at = tuple(places[column.name] for column in base.partition_key)
        self.clustering_at = tuple(places[column.name] for column in base.clustering)
        self.static = tuple(ColumnPlan(column, places) for column in base.static)
        self.regular = tuple(ColumnPlan(column, places) for column in base.regular)
        self.by_name = {column.name: column for column in self.static + self.regular}
        #: Columns of a single cell, for the short way of ordinary inserts and updates.
        self.simple = {
            column.name: (column.value_at, column.deleted_at) for column in self.regular if column.kind == "atom"
        }
        self.full_delta = options.delta == "full"
