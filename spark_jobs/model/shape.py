"""From a table's versions to its layout: what is stored where, and how the records of each version are read.

In: the versions of a source table, oldest first, and the user's declared types. Out: a ``Layout``. The last version
decides what is shown; the others decide what is there already, and what their own records mean. Where columns are kept
while the source goes on, the source's own version decides which rows exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from connector.errors import LandingError
from connector.values import CqlType, ListType, MapType, SetType, UserType, is_multi_cell
from spark_jobs.model.definitions import Column, TableDefinition
from spark_jobs.model.landed_types import order_type, recorded_type, stored_type
from spark_jobs.model.layout import Cell, Elements, Key, Layout, Stored
from spark_jobs.model.names import physical

Parts = tuple[tuple[str, Stored], ...]
KEY_KINDS = ("partition_key", "clustering")


def shape(
    definitions: Sequence[TableDefinition],
    declared: Mapping[str, str] | None = None,
    buckets: int = 8,
    not_before: int | None = None,
    source: TableDefinition | None = None,
) -> Layout:
    """The layout of a table whose versions these are, the one that is shown last. ``source`` is what the source has by
    now, if that is another one of them."""
    current = definitions[-1]
    catalogue = _Catalogue(definitions)
    base = _Base(dict(declared or {}), buckets, not_before, source or current)
    layout = replace(_shaped(definitions, current, catalogue, base), versions=_versions(definitions))
    whole = _merged(definitions, source)
    if whole.columns != current.columns:
        layout = replace(layout, merging=_shaped(definitions, whole, catalogue, base))
    readings: dict[str, Layout] = {}
    for version in _named(definitions):
        reading = _reading(version, layout, catalogue)
        if not _reads(layout, reading, version):
            readings[version.version] = reading
    return replace(layout, readings=readings)


@dataclass(frozen=True)
class _Base:
    declared: Mapping[str, str]
    buckets: int
    not_before: int | None
    source: TableDefinition


def same_table(one: TableDefinition, other: TableDefinition) -> bool:
    """Whether both are of one table. A CQL file tells no id, so only other keys say that its table is another one: a
    table never has more or fewer of them."""
    if one.table_id is not None and other.table_id is not None:
        return one.table_id == other.table_id
    return all(len(one.of_kind(kind)) == len(other.of_kind(kind)) for kind in KEY_KINDS)


def _same_table(definitions: Sequence[TableDefinition]) -> list[TableDefinition]:
    """Versions of the current table. One without an id is of the table whose id came next, or else of the last one."""
    ids = [version.table_id for version in definitions]
    for at in reversed(range(len(ids) - 1)):
        ids[at] = ids[at] or ids[at + 1]
    for at in range(1, len(ids)):
        ids[at] = ids[at] or ids[at - 1]
    current = definitions[-1]
    return [each for each, own in zip(definitions, ids) if own == ids[-1] and same_table(each, current)]


def _named(definitions: Sequence[TableDefinition]) -> list[TableDefinition]:
    """Versions that records can name: nothing is told of those of CQL files, which have no id."""
    current = definitions[-1]
    return [each for each in _same_table(definitions) if each.table_id is not None or current.table_id is None]


def _versions(definitions: Sequence[TableDefinition]) -> tuple[str, ...]:
    if definitions[-1].table_id is None:
        return ()
    return tuple(f"{version.table_id} {version.version}" for version in _named(definitions))


def _merged(definitions: Sequence[TableDefinition], source: TableDefinition | None) -> TableDefinition:
    """What merges keep. Of columns that are shown with the types of their first landing that is what they have by now:
    fields that these lack are shown once the table follows its source again."""
    current = definitions[-1]
    columns = [*current.columns, *_not_dropped(definitions, source or current)]
    if source is not None:
        as_first_seen = {version.text: version for version in definitions}.values()
        newest = {column.name: column for version in as_first_seen for column in _values(version)}
        columns = [each if each.kind in KEY_KINDS else newest[each.name] for each in columns]
    return replace(current, columns=tuple(columns))


def _not_dropped(definitions: Sequence[TableDefinition], source: TableDefinition) -> list[Column]:
    """Columns of earlier versions that neither the current one nor the source's has kept or dropped."""
    there = {name for each in (definitions[-1], source) for name in (*each.names, *dict(each.dropped))}
    columns = [column for version in _same_table(definitions) for column in version.columns]
    return list({c.name: c for c in columns if c.name not in there and c.kind not in KEY_KINDS}.values())


def _shaped(
    definitions: Sequence[TableDefinition], current: TableDefinition, catalogue: _Catalogue, base: _Base
) -> Layout:
    whole, source = current.output.images, base.source
    # What the source has dropped stays where it is shown; what it has again begins anew.
    dropped = dict(current.dropped) | {name: time for name, time in source.dropped if name in source.names}
    keys = _keys([*definitions[:-1], current])
    key_names = {name for key in keys for name in key.names}
    recorded: dict[str, tuple[Column, Stored]] = {}
    for version in (*definitions, source):
        for column in version.columns:
            if column.kind not in KEY_KINDS and column.name not in key_names:
                recorded[column.name] = (column, catalogue.of_column(column))
    cells: list[Cell] = []
    elements: list[Elements] = []
    user_types: list[tuple[str, Stored]] = []
    hidden, newest = hidden_columns(current, source), {column.name: column for column in _values(source)}
    for column in (*_values(current), *hidden):
        static, dropped_at, is_hidden = column.kind == "static", dropped.get(column.name), column in hidden
        stored, older = catalogue.versions(column.name, column.type, _role(column.type, whole))
        if stored.role == "fields":
            user_types.append((column.name, stored))
            shown = () if is_hidden else catalogue.parts_of(column)
            grown = newest.get(column.name, column)
            # The source's type may have more fields than the one that is kept.
            fields = (*shown, *catalogue.parts_of(grown)[len(shown) :])
            names = max(catalogue.part_names(column), catalogue.part_names(grown), key=len)
            for at, ((name, part), base_name) in enumerate(zip(fields, names)):
                _, before = catalogue.versions(base_name, part.type, "cell")
                unseen = at >= len(shown)
                cells.append(Cell(column.name, name, part, before, static, dropped_at, stored.tombstone, unseen))
        elif stored.role == "elements":
            assert isinstance(column.type, ListType | SetType | MapType)
            elements.append(Elements(column.name, column.type, stored, older, static, dropped_at, is_hidden))
        else:
            cells.append(Cell(column.name, None, stored, older, static, dropped_at, None, is_hidden))
    return Layout(
        definition=current,
        keys=keys,
        cells=tuple(cells),
        elements=tuple(elements),
        user_types=tuple(user_types),
        recorded=tuple(recorded.values()),
        physical=tuple(catalogue.all()),
        declared=base.declared,
        buckets=base.buckets,
        range_generation=_generation([_bound_types(version) for version in definitions]),
        not_before=base.not_before,
        older_tables=len(_same_table(definitions)) < len(definitions),
        parts=_parts(recorded.values(), catalogue),
    )


def hidden_columns(shown: TableDefinition, source: TableDefinition) -> list[Column]:
    """The columns of the source that are not shown: a row of which only they have values exists all the same."""
    names = {column.name for column in _values(shown)}
    return [column for column in _values(source) if column.name not in names]


def _values(version: TableDefinition) -> list[Column]:
    return [column for column in version.columns if column.kind not in KEY_KINDS]


def _parts(recorded: Iterable[tuple[Column, Stored]], catalogue: _Catalogue) -> dict[str, Parts]:
    return {column.name: catalogue.parts_of(column) for column, stored in recorded if stored.role == "fields"}


def _bound_types(version: TableDefinition) -> list[str]:
    return [order_type(column.type) for column in version.of_kind("clustering")]


def _reading(version: TableDefinition, layout: Layout, catalogue: _Catalogue) -> Layout:
    """How records of one version are read: its own names and types first, others' where it has none."""
    keys: list[Key] = []
    for key in layout.keys:
        column = version.of_kind(KEY_KINDS[key.clustering])[int(key.place[1:].split("$")[0])]
        keys.append(replace(key, names=(column.name,), recorded=column.type))
    own = {c.name: (c, catalogue.of_column(c)) for c in version.columns if c.kind not in KEY_KINDS}
    names = {name for key in keys for name in key.names}
    recorded = {column.name: (column, stored) for column, stored in layout.recorded if column.name not in names} | own
    parts = _parts(recorded.values(), catalogue)
    return replace(layout, keys=tuple(keys), recorded=tuple(recorded.values()), parts=parts)


def _reads(layout: Layout, reading: Layout, version: TableDefinition) -> bool:
    """Whether the layout as it is understands the records of a version."""
    for key, own in zip(layout.keys, reading.keys):
        assert own.recorded is not None
        if own.names[0] not in key.names or recorded_type(own.recorded) != recorded_type(key.type):
            return False
    known, names = {column.name: stored for column, stored in layout.recorded}, version.names
    for column, stored in reading.recorded:
        if column.name not in names:
            continue
        if known.get(column.name) is not stored:
            return False
        if stored.role == "fields":
            ours, theirs = layout.parts[column.name], reading.parts[column.name]
            if ours[: len(theirs)] != theirs:
                return False
    return True


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

    def __init__(self, definitions: Sequence[TableDefinition]) -> None:
        self.known: dict[str, list[Stored]] = {}
        self._whole = definitions[-1].output.images
        self._part_names: dict[tuple[str, int], str] = {}
        for version in definitions:
            for column in version.columns:
                if column.kind not in KEY_KINDS:
                    self.of_column(column)
                    self.parts_of(column)

    def of_column(self, column: Column) -> Stored:
        return self.stored(column.name, column.type, _role(column.type, self._whole))

    def parts_of(self, column: Column) -> tuple[tuple[str, Stored], ...]:
        """The cells of a user type stored field by field, by its names of the fields."""
        fields = _fields_apart(column.type, self._whole)
        names = self.part_names(column)
        return tuple((name, self.stored(base, kind, "cell")) for (name, kind), base in zip(fields, names))

    def part_names(self, column: Column) -> list[str]:
        """Names of these cells. A field keeps the one that it had first: CQL renames fields, it never moves them."""
        found: list[str] = []
        for at, (name, _) in enumerate(_fields_apart(column.type, self._whole)):
            place = (column.name, at)
            if place not in self._part_names:
                base = _part(column.name, name)
                taken = base in self._part_names.values()
                self._part_names[place] = _part(base, str(at)) if taken else base
            found.append(self._part_names[place])
        return found

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
    current, same = definitions[-1], _same_table(definitions)
    # What no older name of a key can be: the record has something else there.
    taken = {column.name for version in same for column in version.columns if column.kind not in KEY_KINDS}
    taken.update(column.name for column in current.columns)
    keys: list[Key] = []
    for kind, letter in zip(KEY_KINDS, "pc"):
        for index, column in enumerate(current.of_kind(kind)):
            names = [column.name]
            for version in reversed(same):
                name = version.of_kind(kind)[index].name
                if name not in taken:
                    names.append(name)
                    taken.add(name)
            seen = [before[index] for version in definitions if index < len(before := version.of_kind(kind))]
            key = _key_at(f"{letter}{index}", [each.type for each in seen], column)
            places = [_key_at(f"{letter}{index}", [c.type for c in seen[: at + 1]], c) for at, c in enumerate(seen)]
            own = [column for version in same for column in version.of_kind(kind)[index : index + 1]]
            older = {each.place: each for each in places[-len(own) :] if each.place != key.place}
            keys.append(replace(key, names=tuple(names), older=tuple(older.values())))
    if not keys:
        raise LandingError(f"{current.name}: its schema record names no key columns")
    return tuple(keys)


def _key_at(place: str, types: Sequence[CqlType], column: Column) -> Key:
    """A key column in the place that it has by the types it has had, the last one its own: types that are stored alike
    are in one place."""
    bare = [Key("", (), type_, place) for type_ in types]
    place += _generation([(stored_type(key.type), key.identity_kind) for key in bare])
    return Key(column.name, (column.name,), column.type, place, column.descending)
