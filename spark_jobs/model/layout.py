"""The shape of one landed table: which physical columns hold keys, cells and elements.

In: the versions of a source table, oldest first, and the user's declared types. Out: a ``Layout``, from which the
decoder, the fold, the view and the table's DDL are all written. The last version decides what exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from connector.errors import LandingError
from connector.values import CqlType, ListType, MapType, NativeType, SetType, UserType, is_multi_cell
from spark_jobs.model.definitions import Column, TableDefinition
from spark_jobs.model.landed_types import (
    order_is_stored,
    order_key,
    order_type,
    stored_type,
    tie_is_stored,
)
from spark_jobs.model.names import physical

DEAD, POSITIONS, DEFINITIONS = -1, -2, -3
"""Segments of the changelog: merges count up from 1; the negative ones are never merged or purged as a whole."""
KEY_KINDS = ("partition_key", "clustering")


@dataclass(frozen=True, slots=True)
class Key:
    """A key column. Its physical name comes from its place, since CQL can rename key columns."""

    name: str
    names: tuple[str, ...]
    type: CqlType
    place: str
    descending: bool = False

    @property
    def clustering(self) -> bool:
        return self.place.startswith("c")

    @property
    def value(self) -> str:
        return f"k_{self.place}"

    @property
    def identity(self) -> str:
        """The column to group and join by: ScyllaDB's equality, not Spark's."""
        return self.value if self.identity_kind == "value" else f"i_{self.place}"

    @property
    def identity_kind(self) -> str:
        if self.clustering and order_is_stored(self.type):
            return "order"
        if isinstance(self.type, NativeType):
            return "text" if self.type.name in ("float", "double") else "value"
        return "tie"

    @property
    def identity_type(self) -> str:
        return {"order": "binary", "tie": "binary", "text": "string"}.get(self.identity_kind, stored_type(self.type))

    @property
    def many_spellings(self) -> bool:
        """Whether equal keys can look different (1.0 and 1.00): only where the identity comes from the comparator."""
        return self.identity_kind == "order"

    def order_key(self, prefix: str = "") -> str:
        return order_key(self.type, prefix + self.value, prefix + self.identity)

    @property
    def order_type(self) -> str:
        return order_type(self.type)


@dataclass(frozen=True, slots=True)
class Stored:
    """A physical base name, the type of its values, and its role: ``cell``, ``elements`` or ``fields``."""

    physical: str
    type: CqlType
    role: str

    @property
    def value(self) -> str:
        return f"v_{self.physical}"

    @property
    def time(self) -> str:
        return f"t_{self.physical}"

    @property
    def tie(self) -> str | None:
        """The state's column with the stored tie key, for types that need one."""
        return f"x_{self.physical}" if tie_is_stored(self.type) else None

    @property
    def elements(self) -> str:
        return f"e_{self.physical}"

    def element_type(self, timed: bool) -> str:
        """The Spark type of one element in the changelog or, ``timed``, in the state."""
        key, value = self.element_key, self.element_value
        fields = [f"k:{stored_type(key)}"]
        if order_is_stored(key):
            fields.append("b:binary")
        if timed:
            fields.append("t:bigint")
        fields.append(f"v:{'boolean' if value is None else stored_type(value)}")
        if value is not None and tie_is_stored(value):
            fields.append("x:binary")
        return f"struct<{','.join(fields)}>"

    @property
    def element_key(self) -> CqlType:
        assert isinstance(self.type, ListType | SetType | MapType)
        return elements_key(self.type)

    @property
    def element_value(self) -> CqlType | None:
        """None for sets, whose elements are only there or not."""
        assert isinstance(self.type, ListType | SetType | MapType)
        return elements_value(self.type)

    @property
    def tombstone(self) -> str:
        return f"d_{self.physical}"


@dataclass(frozen=True, slots=True)
class Cell:
    """An atomic cell: a column, or one field of a user type that is not frozen (then ``tombstone`` covers it)."""

    column: str
    field: str | None
    stored: Stored
    older: tuple[Stored, ...]
    static: bool
    not_before: int | None
    tombstone: str | None

    @property
    def name(self) -> str:
        return f"c_{self.stored.physical}"


@dataclass(frozen=True, slots=True)
class Elements:
    """A list, set or map that is stored element by element."""

    column: str
    type: ListType | SetType | MapType
    stored: Stored
    older: tuple[Stored, ...]
    static: bool
    not_before: int | None

    @property
    def key_type(self) -> CqlType:
        return elements_key(self.type)

    @property
    def value_type(self) -> CqlType | None:
        return elements_value(self.type)

    @property
    def tie_is_stored(self) -> bool:
        return self.value_type is not None and tie_is_stored(self.value_type)


def elements_key(type_: ListType | SetType | MapType) -> CqlType:
    if isinstance(type_, ListType):
        return NativeType("timeuuid")
    return type_.key if isinstance(type_, MapType) else type_.element


def elements_value(type_: ListType | SetType | MapType) -> CqlType | None:
    """The type of an element's value; None for sets, whose elements are only there or not."""
    if isinstance(type_, SetType):
        return None
    return type_.value if isinstance(type_, MapType) else type_.element


@dataclass(frozen=True)
class Layout:
    """Everything about a table's shape. ``recorded`` are all columns that records may carry, by name."""

    definition: TableDefinition
    keys: tuple[Key, ...]
    cells: tuple[Cell, ...]
    elements: tuple[Elements, ...]
    user_types: tuple[tuple[str, Stored], ...]
    recorded: tuple[tuple[Column, Stored], ...]
    physical: tuple[Stored, ...]
    declared: Mapping[str, str] = field(default_factory=dict)
    buckets: int = 8
    range_generation: str = ""
    """Ranges of an older table with other clustering types are in columns of their own."""
    not_before: int | None = None
    """Whatever is not newer than this does not exist: the table was truncated or rebuilt at that time."""
    older_tables: bool = False
    """Whether the topics may hold records of an older table of this name, with another id."""
    history: bool = False
    """Whether its readers may ask for the versions that its rows have had."""

    @property
    def partition(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if not key.clustering)

    @property
    def clustering(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.clustering)

    @property
    def has_statics(self) -> bool:
        return bool(self.definition.of_kind("static"))

    def field_cells(self, stored: Stored) -> list[tuple[str, Stored]]:
        """The cells that hold a user type's fields, by field name."""
        column = next(column for column, found in self.recorded if found is stored)
        assert isinstance(column.type, UserType)
        cells = {(cell.physical, cell.type): cell for cell in self.physical if cell.role == "cell"}
        found: list[tuple[str, Stored]] = []
        for name, kind in column.type.fields:
            base = physical(_part(column.name, name))
            for (name_of_cell, type_of_cell), cell in cells.items():
                if name_of_cell.split("$v")[0] == base and type_of_cell == kind:
                    found.append((name, cell))
        return found

    @property
    def images(self) -> bool:
        """Whether the records are full row images, so that collections arrive whole."""
        return self.definition.output.images

    @property
    def bounds(self) -> str:
        """The changelog's column of a range's bounds."""
        return f"bounds{self.range_generation}"

    @property
    def ranges(self) -> str:
        """The state's column of a partition's ranges."""
        return f"ranges{self.range_generation}"

    @property
    def range_type(self) -> str:
        """The struct type of a range's bounds: order keys of a prefix, its length, whether it is inside."""
        keys = ",".join(f"o{index}:{key.order_type}" for index, key in enumerate(self.clustering))
        bound = f"struct<o:struct<{keys}>,l:int,i:boolean>"
        return f"struct<s:{bound},e:{bound}>"


def shape(
    definitions: Sequence[TableDefinition],
    declared: Mapping[str, str] | None = None,
    buckets: int = 8,
    not_before: int | None = None,
) -> Layout:
    """The layout of a table whose versions these are, the current one last."""
    current = definitions[-1]
    whole = current.output.images
    dropped = dict(current.dropped)
    catalogue = _Catalogue()
    recorded: dict[str, tuple[Column, Stored]] = {}
    keys = _keys(definitions)
    key_names = {name for key in keys for name in key.names}
    for version in definitions:
        for column in version.columns:
            if column.kind in ("static", "regular"):
                stored = catalogue.stored(column.name, column.type, _role(column.type, whole))
                if column.name not in key_names:
                    recorded[column.name] = (column, stored)
                for name, kind in _fields_apart(column.type, whole):
                    catalogue.stored(_part(column.name, name), kind, "cell")
    cells: list[Cell] = []
    elements: list[Elements] = []
    user_types: list[tuple[str, Stored]] = []
    for column in current.columns:
        if column.kind not in ("static", "regular"):
            continue
        static, dropped_at = column.kind == "static", dropped.get(column.name)
        stored, older = catalogue.versions(column.name, column.type, _role(column.type, whole))
        if stored.role == "fields":
            user_types.append((column.name, stored))
            for name, kind in _fields_apart(column.type, whole):
                part, before = catalogue.versions(_part(column.name, name), kind, "cell")
                cells.append(Cell(column.name, name, part, before, static, dropped_at, stored.tombstone))
        elif stored.role == "elements":
            assert isinstance(column.type, ListType | SetType | MapType)
            elements.append(Elements(column.name, column.type, stored, older, static, dropped_at))
        else:
            cells.append(Cell(column.name, None, stored, older, static, dropped_at, None))
    return Layout(
        definition=current,
        keys=keys,
        cells=tuple(cells),
        elements=tuple(elements),
        user_types=tuple(user_types),
        recorded=tuple(recorded.values()),
        physical=tuple(catalogue.all()),
        declared=dict(declared or {}),
        buckets=buckets,
        range_generation=_generation([[c.type for c in version.of_kind("clustering")] for version in definitions]),
        not_before=not_before,
        older_tables=any(version.table_id != current.table_id for version in definitions),
    )


def _role(type_: CqlType, whole: bool) -> str:
    """Full images carry collections whole, so there they are cells like any other."""
    if whole or not is_multi_cell(type_):
        return "cell"
    return "fields" if isinstance(type_, UserType) else "elements"


def _fields_apart(type_: CqlType, whole: bool) -> tuple[tuple[str, CqlType], ...]:
    """The fields that are stored as cells of their own."""
    return type_.fields if isinstance(type_, UserType) and _role(type_, whole) == "fields" else ()


def _part(column: str, field: str) -> str:
    """A name for the cell of a user type's field that no column can have."""
    return f"{column}\0{field}"


class _Catalogue:
    """Physical columns by name and type: a column that comes back with another type gets another one."""

    def __init__(self) -> None:
        self.known: dict[str, list[Stored]] = {}

    def stored(self, name: str, type_: CqlType, role: str) -> Stored:
        """A user type stored field by field keeps its column: a new field changes nothing about the others."""
        versions = self.known.setdefault(name, [])
        for stored in versions:
            if stored.role == role and (role == "fields" or stored.type == type_):
                return stored
        suffix = f"$v{len(versions) + 1}" if versions else ""
        versions.append(Stored(physical(name) + suffix, type_, role))
        return versions[-1]

    def versions(self, name: str, type_: CqlType, role: str) -> tuple[Stored, tuple[Stored, ...]]:
        """The physical column of a type, and the older ones in the same role."""
        current = self.stored(name, type_, role)
        return current, tuple(stored for stored in self.known[name] if stored is not current and stored.role == role)

    def all(self) -> list[Stored]:
        return [stored for versions in self.known.values() for stored in versions]


def _generation(seen: Sequence[object]) -> str:
    """A suffix that tells the last of the things seen from those that were different before it."""
    distinct = [thing for at, thing in enumerate(seen) if thing not in seen[:at]]
    index = distinct.index(seen[-1])
    return f"$v{index + 1}" if index else ""


def _keys(definitions: Sequence[TableDefinition]) -> tuple[Key, ...]:
    """Key columns are found by their place, since CQL can rename them; an older table's are none of this one's."""
    current = definitions[-1]
    renamed = [version for version in definitions if version.table_id == current.table_id]
    taken = {column.name for version in renamed for column in version.columns if column.kind not in KEY_KINDS}
    keys: list[Key] = []
    for kind, letter in zip(KEY_KINDS, "pc"):
        for index, column in enumerate(current.of_kind(kind)):
            names = {column.name: None}
            for version in reversed(renamed):
                before = version.of_kind(kind)
                if index < len(before) and before[index].name not in taken:
                    names[before[index].name] = None
            place = f"{letter}{index}" + _generation(
                [before[index].type for version in definitions if index < len(before := version.of_kind(kind))]
            )
            keys.append(Key(column.name, tuple(names), column.type, place, column.descending))
    if not keys:
        raise LandingError(f"{current.name}: its schema record names no key columns")
    return tuple(keys)
