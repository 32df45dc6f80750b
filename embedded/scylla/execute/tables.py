"""CREATE, ALTER and DROP of tables.

In: the statement's tree, the catalog. Out: the changed catalog (with the log table, where there is one) and
the `Result`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from connector.values import CqlType, UserType, is_multi_cell, native
from embedded.scylla.catalog import Catalog
from embedded.scylla.cql.tree import AlterTable, CreateTable, DropTable, Properties, RawColumn
from embedded.scylla.errors import (
    AlreadyExists,
    ConfigurationException,
    InvalidRequest,
    ServerError,
    SyntaxException,
)
from embedded.scylla.execute.keyspaces import check_name
from embedded.scylla.execute.types import assignable, element_contains_duration, resolve_type
from embedded.scylla.hooks import TableChange, new_table_id
from embedded.scylla.results import Result, SchemaChange, Void
from embedded.scylla.schema import Column, DroppedColumn, SchemaEvent, Table

_MAPS: Final = frozenset(
    ("caching", "cdc", "compaction", "compression", "tombstone_gc", "tablets", "per_partition_rate_limit")
)
_NUMBERS: Final[Mapping[str, type]] = {
    "bloom_filter_fp_chance": float,
    "crc_check_chance": float,
    "dclocal_read_repair_chance": float,
    "read_repair_chance": float,
    "default_time_to_live": int,
    "gc_grace_seconds": int,
    "max_index_interval": int,
    "memtable_flush_period_in_ms": int,
    "min_index_interval": int,
    "paxos_grace_seconds": int,
}
_TEXTS: Final = frozenset(
    ("comment", "speculative_retry", "synchronous_updates", "in_memory", "id", "storage_engine", "extensions")
)
_COUNTERS: Final = "The embedded server has no counters"
# Maps that ScyllaDB keeps as extensions of a schema refuse a text with an error of their own.
_NO_TEXT: Final[Mapping[str, str]] = {
    "cdc": "Cannot create cdc info from string",
    "per_partition_rate_limit": "Cannot create per partition rate limit info from string",
    "tombstone_gc": "Cannot create tombstone_gc_extension info from string",
}
_TABLET_OPTIONS_SINCE: Final = "2025.2"
_TABLET_OPTIONS: Final = ("min_tablet_count", "min_per_shard_tablet_count", "expected_data_size_in_gb")
_LEADING_NUMBER: Final = re.compile(r"\s*([+-]?\d+)")


def _options(properties: Properties) -> dict[str, Any]:
    """The properties with their values in their types."""
    options: dict[str, Any] = {}
    for name, value in properties:
        if name in options:
            raise SyntaxException(f"Multiple definition for property '{name}'")
        if name in _MAPS:
            if isinstance(value, str):
                if name in _NO_TEXT:
                    raise ServerError(_NO_TEXT[name])
                raise SyntaxException(f"Invalid value for property '{name}'. It should be a map.")
            options[name] = dict(value)
        elif name in _NUMBERS or name in _TEXTS:
            if not isinstance(value, str):
                raise SyntaxException(f"Invalid value for property '{name}'. It should be a string")
            options[name] = _number(name, value) if name in _NUMBERS else value
        else:
            raise SyntaxException(f"Unknown property '{name}'")
    ttl = options.get("default_time_to_live", 0)
    if ttl < 0:
        raise ConfigurationException(f"default_time_to_live cannot be smaller than 0, (default 0), got {ttl}")
    if ttl > 20 * 365 * 24 * 3600:
        raise ConfigurationException("default_time_to_live must be less than or equal to 630720000")
    if "compaction" in options and "class" not in options["compaction"]:
        raise ConfigurationException("Missing sub-option 'class' for the 'compaction' option.")
    return options


def _check_tablets(options: Mapping[str, Any], keyspace: str, catalog: Catalog) -> None:
    given = options.get("tablets")
    if given is None:
        return
    if not catalog.version.since(_TABLET_OPTIONS_SINCE):
        raise SyntaxException("Unknown property 'tablets'")
    known = catalog.schema.keyspace(keyspace)
    if known is not None and not known.uses_tablets:
        raise ConfigurationException("tablet options cannot be used when tablets are disabled for the keyspace")
    for name, value in given.items():
        if name not in _TABLET_OPTIONS:
            raise SyntaxException(f"Unknown tablet hint '{name}'")
        number = _LEADING_NUMBER.match(value)
        if number is not None and int(number[1]) < 0:
            raise ConfigurationException(f"Invalid value '{int(number[1])}' for {name}")


def _number(name: str, value: str) -> int | float:
    try:
        return _NUMBERS[name](value)  # type: ignore[no-any-return]
    except ValueError:
        kind = "integer" if _NUMBERS[name] is int else "double"
        raise SyntaxException(f"Invalid {kind} value {value} for '{name}'") from None


def _with_options(table: Table, options: Mapping[str, Any]) -> Table:
    """The table with these properties set; those that have a place of their own go there."""
    plain = {
        key: value for key, value in options.items() if key not in ("cdc", "comment", "default_time_to_live", "id")
    }
    changes: dict[str, Any] = {"options": {**table.options, **plain}}
    for name in ("cdc", "comment", "default_time_to_live"):
        if name in options:
            changes[name] = options[name]
    return table.changed(**changes)


def create_table(statement: CreateTable, catalog: Catalog, current: str | None) -> Result:
    keyspace = catalog.keyspace_name(statement.name.keyspace, current)
    name = statement.name.name
    catalog.changeable("CREATE", keyspace, name)
    check_name(name, "table")
    if catalog.schema.keyspace(keyspace) is None:
        raise InvalidRequest(f"Can't find a keyspace {keyspace}")
    if catalog.schema.table(keyspace, name) is not None:
        if statement.if_not_exists:
            return Void()
        raise AlreadyExists(f'Cannot add already existing table "{name}" to keyspace "{keyspace}"', keyspace, name)
    if statement.compact_storage:
        raise InvalidRequest(
            "Support for the deprecated feature of 'CREATE TABLE WITH COMPACT STORAGE' is disabled and will eventually "
            "be removed in a future version.  To enable, set the 'enable_create_table_with_compact_storage' config "
            "option to 'true'."
        )
    options = _options(statement.properties)
    _check_tablets(options, keyspace, catalog)
    columns = _columns(statement, catalog, keyspace, options)
    given = options.get("id")
    try:
        table_id = uuid.UUID(given) if given else new_table_id()
    except ValueError:
        raise ConfigurationException("Invalid table id") from None
    catalog.add_table(_with_options(Table(table_id, keyspace, name, columns), options))
    return SchemaChange(SchemaEvent("CREATED", "TABLE", keyspace, name))


def _columns(statement: CreateTable, catalog: Catalog, keyspace: str, options: Mapping[str, Any]) -> tuple[Column, ...]:
    name = statement.name.name
    types: dict[str, CqlType] = {}
    statics: set[str] = set()
    user_types = catalog.schema.user_types(keyspace)
    for raw in statement.columns:
        if raw.name in types:
            raise InvalidRequest(f"Multiple definition of identifier {raw.name}")
        types[raw.name] = resolve_type(raw.type, keyspace, user_types)
        if types[raw.name] == native("counter"):
            logged = options.get("cdc", {}).get("enabled", "").lower() in ("true", "1")
            raise InvalidRequest(
                f"Cannot create CDC log for table {keyspace}.{name}. Counter support not implemented"
                if logged
                else _COUNTERS
            )
        _check_nesting(raw.name, types[raw.name])
        if raw.static:
            statics.add(raw.name)
    if not statement.primary_keys:
        raise InvalidRequest("No PRIMARY KEY specified (exactly one required)")
    if len(statement.primary_keys) > 1:
        raise InvalidRequest("Multiple PRIMARY KEYs specified (exactly one required)")
    partition, clustering = statement.primary_keys[0]
    for key in (*partition, *clustering):
        _check_key(key, types, statics)
    if len({*partition, *clustering}) != len(partition) + len(clustering):
        raise InvalidRequest("Multiple definition of identifier in PRIMARY KEY")
    if statics and not clustering:
        raise InvalidRequest(
            "Static columns are only useful (and thus allowed) if the table has at least one clustering column"
        )
    order = dict(statement.clustering_order)
    for key in order:
        if key not in clustering:
            raise InvalidRequest("Only clustering key columns can be defined in CLUSTERING ORDER directive")
    # What stands behind the last ordered column may be left out.
    if order and tuple(order) != clustering[: len(order)]:
        raise InvalidRequest(
            f"The order of columns in the CLUSTERING ORDER directive must be the one of the clustering key "
            f"({', '.join(order)} should be {', '.join(clustering)})"
        )
    columns = [Column(key, types[key], "partition_key", at) for at, key in enumerate(partition)]
    columns += [
        Column(key, types[key], "clustering", at, "desc" if order.get(key) else "asc")
        for at, key in enumerate(clustering)
    ]
    keys = {*partition, *clustering}
    columns += [
        Column(key, kind, "static" if key in statics else "regular") for key, kind in types.items() if key not in keys
    ]
    return tuple(columns)


def _check_nesting(name: str, kind: CqlType) -> None:
    if isinstance(kind, UserType) and not kind.frozen:
        for _, field in kind.fields:
            if is_multi_cell(field) and not isinstance(field, UserType):
                raise InvalidRequest("Non-frozen UDTs with nested non-frozen collections are not supported")


def _check_key(name: str, types: Mapping[str, CqlType], statics: set[str]) -> None:
    kind = types.get(name)
    if kind is None:
        raise InvalidRequest(f"Unknown definition {name} referenced in PRIMARY KEY")
    if name in statics:
        raise InvalidRequest(f"Static column {name} cannot be part of the PRIMARY KEY")
    if is_multi_cell(kind):
        what = "user-defined" if isinstance(kind, UserType) else "collection"
        raise InvalidRequest(f"Invalid non-frozen {what} type for PRIMARY KEY component {name}")
    if element_contains_duration(kind):
        raise InvalidRequest(f"duration type is not supported for PRIMARY KEY part {name}")


def drop_table(statement: DropTable, catalog: Catalog, current: str | None) -> Result:
    keyspace = catalog.keyspace_name(statement.name.keyspace, current)
    name = statement.name.name
    catalog.changeable("DROP", keyspace, name)
    table = catalog.schema.table(keyspace, name)
    if table is None:
        if statement.if_exists:
            return Void()
        raise InvalidRequest(f"Cannot drop non existing table '{name}' in keyspace '{keyspace}'.")
    catalog.drop_table(table)
    return SchemaChange(SchemaEvent("DROPPED", "TABLE", keyspace, name))


# ---- ALTER -------------------------------------------------------------------------------------------------------


def alter_table(statement: AlterTable, catalog: Catalog, current: str | None) -> Result:
    keyspace = catalog.keyspace_name(statement.name.keyspace, current)
    catalog.changeable("ALTER", keyspace, statement.name.name)
    table = catalog.table(keyspace, statement.name.name)
    if statement.add or statement.drop or statement.rename or statement.retype is not None:
        catalog.cdc.refuse_columns(table, renames=bool(statement.rename))
    if statement.add:
        new, change = _add(table, statement.add, catalog)
    elif statement.drop:
        new, change = _drop(table, statement, catalog)
    elif statement.rename:
        new, change = _rename(table, statement.rename)
    elif statement.retype is not None:
        new, change = _retype(table, statement, catalog)
    else:
        options = _options(statement.properties)
        _check_tablets(options, keyspace, catalog)
        if "id" in options:
            raise ConfigurationException("Cannot alter table id.")
        new, change = _with_options(table, options), TableChange(options=options)
    catalog.alter_table(table, new, change)
    return SchemaChange(SchemaEvent("UPDATED", "TABLE", keyspace, table.name))


def _add(table: Table, columns: tuple[RawColumn, ...], catalog: Catalog) -> tuple[Table, TableChange]:
    added: list[Column] = []
    dropped = {column.name: column for column in table.dropped}
    for raw in columns:
        kind = resolve_type(raw.type, table.keyspace, catalog.schema.user_types(table.keyspace))
        if raw.static and not table.clustering:
            raise InvalidRequest(
                "Static columns are only useful (and thus allowed) if the table has at least one clustering column"
            )
        present = table.by_name.get(raw.name)
        if present is not None or any(column.name == raw.name for column in added):
            in_key = present is not None and present.kind == "partition_key"
            what = "a PRIMARY KEY part" if in_key else "an existing column"
            raise InvalidRequest(f"Invalid column name {raw.name} because it conflicts with {what}")
        if kind == native("counter"):
            raise ConfigurationException(f"Cannot add a counter column ({raw.name}) in a non counter column family")
        _check_nesting(raw.name, kind)
        before = dropped.get(raw.name)
        if before is not None and is_multi_cell(before.type) and is_multi_cell(kind) and before.type != kind:
            raise InvalidRequest(
                f"Cannot add a collection with the name {raw.name} because a collection with the same name and "
                "a different type has already been used in the past"
            )
        added.append(Column(raw.name, kind, "static" if raw.static else "regular"))
    new = table.changed(columns=table.columns + tuple(added))
    return new, TableChange(added=tuple(added))


def _drop(table: Table, statement: AlterTable, catalog: Catalog) -> tuple[Table, TableChange]:
    now = statement.drop_timestamp if statement.drop_timestamp is not None else catalog.clock.now_us()
    gone: list[DroppedColumn] = []
    for name in statement.drop:
        column = table.by_name.get(name)
        if column is None:
            raise InvalidRequest(f"Column {name} was not found in table {table.name}")
        if column.kind in ("partition_key", "clustering"):
            raise InvalidRequest(f"Cannot drop PRIMARY KEY part {name}")
        gone.append(DroppedColumn(name, column.type, column.kind, now))
    names = tuple(column.name for column in gone)
    kept = tuple(column for column in table.dropped if column.name not in names)
    new = table.changed(
        columns=tuple(column for column in table.columns if column.name not in names),
        dropped=kept + tuple(gone),
    )
    return new, TableChange(dropped=names)


def _rename(table: Table, renames: tuple[tuple[str, str], ...]) -> tuple[Table, TableChange]:
    columns = list(table.columns)
    for before, after in renames:
        column = next((column for column in columns if column.name == before), None)
        if column is None:
            raise InvalidRequest(f"Cannot rename unknown column {before} in table {table.name}")
        if any(each.name == after for each in columns):
            raise InvalidRequest(
                f"Cannot rename column {before} to {after} in table {table.name}; another column of that name "
                "already exist"
            )
        if column.kind not in ("partition_key", "clustering"):
            raise InvalidRequest(f"Cannot rename non PRIMARY KEY part {before}")
        renamed = Column(after, column.type, column.kind, column.position, column.order)
        columns = [renamed if each is column else each for each in columns]
    return table.changed(columns=tuple(columns)), TableChange(renamed=renames)


def _retype(table: Table, statement: AlterTable, catalog: Catalog) -> tuple[Table, TableChange]:
    assert statement.retype is not None
    name, raw = statement.retype
    column = table.by_name.get(name)
    if column is None:
        raise InvalidRequest(f"Column {name} was not found in table {table.name}")
    kind = resolve_type(raw, table.keyspace, catalog.schema.user_types(table.keyspace))
    if not assignable(kind, column.type) or is_multi_cell(kind) != is_multi_cell(column.type):
        raise ConfigurationException(
            f"Cannot change {name} from type {column.type.cql()} to type {kind.cql()}: types are incompatible."
        )
    retyped = Column(name, kind, column.kind, column.position, column.order)
    columns = tuple(retyped if each is column else each for each in table.columns)
    return table.changed(columns=columns), TableChange()
