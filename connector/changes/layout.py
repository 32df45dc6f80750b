"""Where things are in a page of a log: the join of a page's columns with the table's description.

In: a ``TableDescription``, names and type spellings of a page's columns. Out: a ``LogLayout`` with the
position of each cell, made once per version of a table and shared by all its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, assert_never

from connector.changes.description import Column, TableDescription
from connector.errors import FatalSourceError, RetriableSourceError
from connector.values import CqlType, ListType, MapType, SetType, UserType, freeze, is_multi_cell, native, parse_type

DELETED: Final = "cdc$deleted_"
DELETED_ELEMENTS: Final = "cdc$deleted_elements_"
_TIMEUUID: Final = native("timeuuid")


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """A base column and its cells in a row of the log: positions, or None where the page has no such cell."""

    column: Column
    value: int | None
    deleted: int | None = None
    deleted_elements: int | None = None

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def log_type(self) -> CqlType:
        """The type of the value cell."""
        return log_type(self.column.type)


@dataclass(frozen=True, eq=False)
class LogLayout:
    """A page's layout. ``places`` are in byte-wise order of the columns' names, as the log has them.

    ``unknown`` names columns of the page that the description lacks: they count as regular columns, and the description
    should be read again. ``snapshot``: what `source.snapshot` says of all rows with this layout; none is of a log then.
    """

    description: TableDescription
    columns: tuple[str, ...]
    stream_id: int
    time: int
    batch_seq_no: int
    operation: int
    ttl: int
    end_of_batch: int
    places: tuple[ColumnPlace, ...]
    unknown: tuple[str, ...] = ()
    snapshot: str = "false"
    keys: tuple[ColumnPlace, ...] = field(init=False)
    partition_key: tuple[ColumnPlace, ...] = field(init=False)
    clustering_key: tuple[ColumnPlace, ...] = field(init=False)
    #: Columns that are static, or may be: nobody knows yet what an unknown one is. And those that are regular.
    static: tuple[ColumnPlace, ...] = field(init=False)
    regular: tuple[ColumnPlace, ...] = field(init=False)
    key_of: Callable[[Sequence[Any]], Any] = field(init=False)
    #: Where the cells of the key are.
    key_at: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        by_name = {place.name: place for place in self.places}
        partition = tuple(by_name[column.name] for column in self.description.partition_key)
        clustering = tuple(by_name[column.name] for column in self.description.clustering_key)
        object.__setattr__(self, "partition_key", partition)
        object.__setattr__(self, "clustering_key", clustering)
        object.__setattr__(self, "keys", partition + clustering)
        others = [place for place in self.places if not place.column.is_key]
        static = [place for place in others if place.column.kind == "static" or place.name in self.unknown]
        object.__setattr__(self, "static", tuple(static))
        object.__setattr__(self, "regular", tuple(place for place in others if place not in static))
        cells = tuple(place.value or 0 for place in self.keys)
        object.__setattr__(self, "key_at", cells)
        object.__setattr__(self, "key_of", itemgetter(*cells))


def log_type(type_: CqlType) -> CqlType:
    """The type that a column of a base table has in the log."""
    if not is_multi_cell(type_):
        return type_
    if isinstance(type_, ListType):
        return MapType(_TIMEUUID, freeze(type_.element), frozen=True)
    return freeze(type_)


def deleted_elements_type(type_: CqlType) -> SetType | None:
    """The type of the ``cdc$deleted_elements_`` cell of a column, or None if it has none."""
    if not is_multi_cell(type_):
        return None
    match type_:
        case ListType():
            return SetType(_TIMEUUID, frozen=True)
        case SetType():
            return SetType(freeze(type_.element), frozen=True)
        case MapType():
            return SetType(freeze(type_.key), frozen=True)
        case UserType():
            return SetType(native("smallint"), frozen=True)
        case _:
            assert_never(type_)


# As many as `native.blocks` keeps plans of: these are of layouts.
@lru_cache(maxsize=4096)
def layout_of(description: TableDescription, columns: tuple[tuple[str, str], ...]) -> LogLayout:
    """The layout of pages whose columns have these names and type spellings.

    A column that the log has and the description not (yet) counts as regular. Where its kind cannot be told from the
    log alone, ``RetriableSourceError`` asks for a newer description.
    """
    positions = {name: at for at, (name, _) in enumerate(columns)}
    spelled = dict(columns)
    for required in ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation"):
        if required not in positions:
            raise FatalSourceError(f"the log of {description.full_name} has no column {required}")
    for key in (*description.partition_key, *description.clustering_key):
        if key.name not in positions:
            raise RetriableSourceError(f"the log of {description.full_name} has no column {key.name} (any more)")
    found = [column for column in description.columns if column.name in positions]
    names = {column.name for column in found}
    unknown = [name for name in positions if not name.startswith("cdc$") and name not in names]
    found += [_unknown_column(description, name, spelled) for name in unknown]
    return LogLayout(
        description=description,
        columns=tuple(positions),
        stream_id=positions["cdc$stream_id"],
        time=positions["cdc$time"],
        batch_seq_no=positions["cdc$batch_seq_no"],
        operation=positions["cdc$operation"],
        ttl=positions.get("cdc$ttl", -1),
        end_of_batch=positions.get("cdc$end_of_batch", -1),
        places=tuple(
            ColumnPlace(
                column,
                positions.get(column.name),
                positions.get(DELETED + column.name),
                # Of a column "elements_a" the flag is called as the removed elements of a column "a" would be.
                positions.get(DELETED_ELEMENTS + column.name) if is_multi_cell(column.type) else None,
            )
            for column in sorted(found, key=lambda column: column.name.encode())
        ),
        unknown=tuple(unknown),
    )


def _unknown_column(description: TableDescription, name: str, spelled: dict[str, str]) -> Column:
    user_types = {used.name: used for used in description.user_types}
    # Drivers spell vectors by their class, and no type on the wire says whether it is frozen.
    spelling = spelled[name].replace("org.apache.cassandra.db.marshal.VectorType<", "vector<")
    try:
        type_ = freeze(parse_type(spelling, user_types))
    except ValueError as error:
        raise RetriableSourceError(f"new column {name} of {description.full_name}: {error}") from error
    if not spelled.get(DELETED_ELEMENTS + name, "boolean").startswith(("frozen<set<", "set<")):
        return Column(name, type_)
    if isinstance(type_, MapType) and type_.key == _TIMEUUID:
        # list<T> and map<timeuuid, T> look the same in the log.
        raise RetriableSourceError(
            f"new column {name} of {description.full_name}: the log does not show whether it is a list or a map"
        )
    if isinstance(type_, MapType):
        return Column(name, MapType(type_.key, type_.value))
    if isinstance(type_, SetType):
        return Column(name, SetType(type_.element))
    if isinstance(type_, UserType):
        return Column(name, UserType(type_.keyspace, type_.name, type_.fields))
    return Column(name, type_)
