"""A small model of ScyllaDB's merge rules, written from the rules and sharing no code with the landing jobs.

In: operations of a history, in any order. Out: the rows that `SELECT *` would give. Cells are (time, deleted, end,
bytes) and the greatest wins; everything is kept in dictionaries and looked at only at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from connector.values.binary import encode
from connector.values.ordering import order_key
from connector.values.types import CqlType, ListType, MapType, NativeType, SetType, UserType, is_multi_cell

Cell = tuple[int, bool, int, bytes, Any]

STAYS = -1
"""The end of what has no TTL."""
NOW_S = 1_800_000_000
"""What ends earlier has ended."""


@dataclass(frozen=True)
class ModelColumn:
    name: str
    type: CqlType
    static: bool = False


@dataclass
class ModelRow:
    marker: tuple[int, int] = (-1, STAYS)
    deleted: int = -1
    cells: dict[Any, Cell] = field(default_factory=dict)
    tombs: dict[str, int] = field(default_factory=dict)


@dataclass
class ModelPartition:
    deleted: int = -1
    static: ModelRow = field(default_factory=ModelRow)
    rows: dict[Any, ModelRow] = field(default_factory=dict)
    ranges: list[tuple[int, Any, Any]] = field(default_factory=list)


def _put(row: ModelRow, place: Any, time: int, end: int, raw: bytes | None, shown: Any) -> None:
    cell = (time, raw is None, STAYS if raw is None else end, raw or b"", shown)
    before = row.cells.get(place)
    if before is None or cell[:4] > before[:4]:
        row.cells[place] = cell


def lives(end: int) -> bool:
    return end == STAYS or end > NOW_S


class TableModel:
    """`clustering` gives type and direction of each clustering column; keys are tuples of Python values."""

    def __init__(self, clustering: list[tuple[CqlType, bool]], columns: Iterable[ModelColumn]) -> None:
        self.clustering = clustering
        self.columns = {column.name: column for column in columns}
        self.partitions: dict[Any, ModelPartition] = {}

    def order(self, prefix: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(order_key(kind)(encode(kind, value)) for (kind, _), value in zip(self.clustering, prefix))

    def partition(self, key: Any) -> ModelPartition:
        return self.partitions.setdefault(key, ModelPartition())

    def write(
        self,
        key: Any,
        row_key: tuple[Any, ...] | None,
        time: int,
        insert: bool,
        cells: dict[str, Any],
        ttl: int | None = None,
    ) -> None:
        end = STAYS if ttl is None else time // 1_000_000 + ttl
        partition = self.partition(key)
        row = partition.static
        if row_key is not None:
            row = partition.rows.setdefault(self.order(row_key), ModelRow())
            if insert:
                row.marker = max(row.marker, (time, end))
        for name, value in cells.items():
            column = self.columns[name]
            if not is_multi_cell(column.type):
                _put(row, (name, None), time, end, None if value is None else encode(column.type, value), value)
                continue
            overwrite, elements = value
            if overwrite:
                row.tombs[name] = max(row.tombs.get(name, -1), time - 1)
            for element, content in elements:
                place = (name, self.element(column.type, element))
                _put(row, place, time, end, *self.content(column.type, element, content))

    def element(self, type_: CqlType, element: Any) -> Any:
        if isinstance(type_, UserType):
            return element
        kind = self.element_type(type_)
        return order_key(kind)(encode(kind, element))

    @staticmethod
    def element_type(type_: CqlType) -> CqlType:
        if isinstance(type_, ListType):
            return NativeType("timeuuid")
        assert isinstance(type_, SetType | MapType)
        return type_.element if isinstance(type_, SetType) else type_.key

    @staticmethod
    def content(type_: CqlType, element: Any, content: Any) -> tuple[bytes | None, Any]:
        """The bytes that break ties, and what is shown of the element."""
        if content is None:
            return None, None
        if isinstance(type_, UserType):
            return encode(dict(type_.fields)[element], content), content
        if isinstance(type_, SetType):
            return b"", element
        if isinstance(type_, MapType):
            return encode(type_.value, content), (element, content)
        assert isinstance(type_, ListType)
        return encode(type_.element, content), content

    def delete_row(self, key: Any, row_key: tuple[Any, ...], time: int) -> None:
        row = self.partition(key).rows.setdefault(self.order(row_key), ModelRow())
        row.deleted = max(row.deleted, time)

    def delete_partition(self, key: Any, time: int) -> None:
        partition = self.partition(key)
        partition.deleted = max(partition.deleted, time)

    def delete_range(self, key: Any, time: int, start: tuple[Any, bool], end: tuple[Any, bool]) -> None:
        bounds = [(self.order(values), inclusive) for values, inclusive in (start, end)]
        self.partition(key).ranges.append((time, *bounds))

    def covered(self, partition: ModelPartition, place: Any) -> int:
        times = [partition.deleted]
        for time, start, end in partition.ranges:
            if self._inside(place, start, True) and self._inside(place, end, False):
                times.append(time)
        return max(times)

    def _inside(self, place: Any, bound: tuple[Any, bool], is_start: bool) -> bool:
        """Whether a row lies on the inner side of a bound, in storage order."""
        values, inclusive = bound
        for index, value in enumerate(values):
            if place[index] != value:
                after = (place[index] > value) != self.clustering[index][1]
                return after == is_start
        return inclusive

    def rows(self) -> Iterable[tuple[Any, Any, dict[str, Any]]]:
        """(partition key, order key of the row or None, living values by column)."""
        for key, partition in self.partitions.items():
            statics = self._values(partition.static, partition.deleted, static=True)
            shown = 0
            for place, row in partition.rows.items():
                cover = max(row.deleted, self.covered(partition, place))
                values = self._values(row, cover, static=False)
                inserted = row.marker[0] > cover and lives(row.marker[1])
                if inserted or any(value is not None for value in values.values()):
                    shown += 1
                    yield key, place, {**statics, **values}
            if not shown and any(value is not None for value in statics.values()):
                yield key, None, {**statics, **self._values(ModelRow(), -1, static=False)}

    def _values(self, row: ModelRow, cover: int, static: bool) -> dict[str, Any]:
        return {
            name: self._value(row, column, cover) for name, column in self.columns.items() if column.static == static
        }

    def _value(self, row: ModelRow, column: ModelColumn, cover: int) -> Any:
        limit = max(cover, row.tombs.get(column.name, -1))
        alive = {
            element: cell[4]
            for (name, element), cell in row.cells.items()
            if name == column.name and cell[0] > limit and not cell[1] and lives(cell[2])
        }
        if not is_multi_cell(column.type):
            return alive.get(None)
        if not alive:
            return None
        if isinstance(column.type, UserType):
            return [alive.get(name) for name, _ in column.type.fields]
        ordered = sorted(alive.items(), key=lambda item: item[0])
        return [value for _, value in ordered]
