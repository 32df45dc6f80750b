"""The columns of a table with ``schema.evolution=freeze``: those of its first landing, whatever the source has by now.

In: what is noted of the table, and its versions. Out: the ``Known`` to go on with and what a user should know of it, or
``LandingError`` where the columns that are kept cannot show what the source has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from connector.errors import LandingError
from connector.table_name import TableName
from connector.values import (
    CqlType,
    ListType,
    MapType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    is_multi_cell,
)
from spark_jobs.model import TableDefinition, adapted, fields_of, hidden_columns, same_table
from spark_jobs.tables.notes import Known, together

FROZEN = "{table}: it keeps the columns of its first landing (schema.evolution=freeze), without {columns}"
KEPT_TYPES = (
    "{table}: what column.types says of it by now has no effect, as it keeps its types (schema.evolution=freeze)"
)


def frozen(
    table: TableName,
    noted: Known,
    versions: Sequence[TableDefinition],
    current: TableDefinition,
    declared: dict[str, str],
) -> tuple[Known, tuple[str, ...]]:
    """What is shown stays. Records of later versions are understood, or they would be letters as a whole."""
    kept = noted.definitions[-1]
    told = _not_kept(table, kept, current)
    if declared != dict(noted.declared):
        told = (*told, KEPT_TYPES.format(table=table))
    known = replace(
        noted,
        definitions=together(noted, [version for version in versions if _tells(version, kept)], kept),
        source=None if current.text == kept.text else current,
        lineage=noted.lineage + _exist_otherwise(noted, current),
    )
    return known, told


def _tells(version: TableDefinition, kept: TableDefinition) -> bool:
    """Whether records of a version tell of the columns that are kept, in a form in which those can show it."""
    keys = [each.of_kind("partition_key") + each.of_kind("clustering") for each in (version, kept)]
    theirs = {column.name: column for column in version.columns}
    shared = [(theirs[own.name], own) for own in kept.columns if own not in keys[1] and own.name in theirs]
    return (
        version.output.images == kept.output.images
        and same_table(kept, version)
        and [key.type for key in keys[0]] == [key.type for key in keys[1]]
        and all(their.kind == own.kind and _becomes(their.type, own.type) for their, own in shared)
    )


def _becomes(type_: CqlType, kept: CqlType) -> bool:
    apart = [is_multi_cell(each) for each in (type_, kept)]
    alike = apart[0] == apart[1] and (not apart[0] or type(type_) is type(kept))
    return alike and adapted(type_, kept, "value") is not None and _entries_stay_apart(type_, kept)


def _entries_stay_apart(type_: CqlType, kept: CqlType) -> bool:
    """Whether no two members of a set, or keys of a map, become one: of a user type in them every field is shown."""
    inner = list(zip(_inner(type_), _inner(kept)))
    if isinstance(type_, MapType | SetType) and not _has_all(*inner[0]):
        return False
    return all(_entries_stay_apart(*each) for each in inner)


def _has_all(type_: CqlType, kept: CqlType) -> bool:
    theirs, ours = _inner(type_), _inner(kept)
    return len(theirs) == len(ours) and all(_has_all(*each) for each in zip(theirs, ours))


def _inner(type_: CqlType) -> tuple[CqlType, ...]:
    """The types of which it is made."""
    if isinstance(type_, MapType):
        return type_.key, type_.value
    if isinstance(type_, ListType | SetType | VectorType):
        return (type_.element,)
    return tuple(kind for _, kind in fields_of(type_)) if isinstance(type_, TupleType | UserType) else ()


def _not_kept(table: TableName, kept: TableDefinition, current: TableDefinition) -> tuple[str, ...]:
    """What is said of a source that has gone on while its landed columns stay."""
    if not _tells(current, kept):
        raise LandingError(
            f"{table}: it keeps the columns of its first landing (schema.evolution=freeze), and those cannot show what "
            "the source has by now: a column or the key has another type; without freeze it is landed on"
        )
    keys = {column.name for column in current.columns if column.kind in ("partition_key", "clustering")}
    more = sorted(current.names - kept.names - keys)
    return (FROZEN.format(table=table, columns=", ".join(more)),) if more else ()


def _exist_otherwise(noted: Known, source: TableDefinition) -> bool:
    """Whether rows that were published, or were not, are there by what the source has now, of which columns stay."""
    kept = noted.definitions[-1]
    before, after = _unshown(kept, noted.source or kept), _unshown(kept, source)
    known = {column.name for version in noted.definitions for column in version.columns}
    return bool(before - after) or any(name in known for name, *_ in after - before)


def _unshown(kept: TableDefinition, source: TableDefinition) -> set[tuple[str, str, int | None]]:
    """What rows exist by, and readers of the kept columns are not shown: other columns, and when one began anew."""
    dropped = dict(source.dropped)
    again = {(name, "", time) for name, time in source.dropped if name in source.names & kept.names}
    return again | {(each.name, each.kind, dropped.get(each.name)) for each in hidden_columns(kept, source)}
