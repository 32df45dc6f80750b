"""The layout of one landed table: which physical columns hold keys, cells and elements.

In: nothing; ``shape`` makes it of a table's versions. Out: a ``Layout``, from which the decoder, the fold, the view and
the table's DDL are all written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from connector.values import CqlType, ListType, MapType, NativeType, SetType
from spark_jobs.model.definitions import Column, TableDefinition
from spark_jobs.model.landed_types import (
    adapted,
    order_is_stored,
    order_key,
    order_type,
    stored_type,
    tie_is_stored,
)
from spark_jobs.model.names import quoted

DEAD, POSITIONS, DEFINITIONS = -1, -2, -3
"""Segments of the changelog: merges count up from 1; the negative ones are never merged or purged as a whole."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key column. Its physical name comes from its place, since CQL can rename key columns.

    ``names`` are those that it has in records, ``recorded`` is its type there. ``older`` are the places where it was
    while its type was stored in another way.
    """

    name: str
    names: tuple[str, ...]
    type: CqlType
    place: str
    descending: bool = False
    recorded: CqlType | None = None
    older: tuple[Key, ...] = ()

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
        return order_key(self.type, prefix + quoted(self.value), prefix + quoted(self.identity))

    @property
    def order_type(self) -> str:
        return order_type(self.type)

    @property
    def follows(self) -> tuple[Key, ...]:
        """The older places whose rows can be shown as this one's: their identities are bytes of the same kind."""
        if not self.clustering:
            # A partition's bucket follows from its identity as it was.
            return ()
        return tuple(
            old
            for old in self.older
            if old.identity_kind == self.identity_kind
            and old.order_type == self.order_type
            and adapted(old.type, self.type, "x") is not None
        )


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
    def ttl(self) -> str:
        """The state's column with the seconds after its write at which a value ends; one for each element."""
        return f"l_{self.physical}"

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
    hidden: bool = False
    """Whether nobody is shown it: a row of which it has a value exists."""

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
    hidden: bool = False

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
    """Everything about a table's shape. ``recorded`` are all columns that records may carry, by name; ``parts`` the
    cells of those that are user types stored field by field, by the names that the fields have in records."""

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
    expiring: bool = False
    """Whether anything in it was ever written with a TTL."""
    parts: Mapping[str, tuple[tuple[str, Stored], ...]] = field(default_factory=dict)
    readings: Mapping[str, Layout] = field(default_factory=dict)
    """By version: how to read the records of those versions that this layout would misunderstand."""
    versions: tuple[str, ...] = ()
    """The known versions of this very table, as its records name them: its id, a space, the version."""
    merging: Layout | None = None
    """What merges are done with, if not with this: also with columns that the newest definition lacks without having
    dropped them. A worker that was slow may have published an older one, and the newer one comes again."""

    @property
    def partition(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if not key.clustering)

    @property
    def clustering(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.clustering)

    @property
    def has_statics(self) -> bool:
        return any(cell.static for cell in self.cells) or any(part.static for part in self.elements)

    def field_cells(self, stored: Stored) -> list[tuple[str, Stored]]:
        """The cells that hold a user type's fields, by field name."""
        return list(next(self.parts[column.name] for column, found in self.recorded if found is stored))

    @property
    def images(self) -> bool:
        """Whether the records are full row images, so that collections arrive whole."""
        return self.definition.output.images

    @property
    def marker_time(self) -> str:
        """Of a patch: when its row was inserted."""
        return "marker.t" if self.expiring else "marker"

    def with_ends(self) -> Layout:
        """The same table, of which parts end by themselves."""
        merging = None if self.merging is None else self.merging.with_ends()
        return replace(self, expiring=not self.images, merging=merging)

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
