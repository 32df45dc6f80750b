"""Descriptions of tables, from the server's schema tables.

In: names. Out: `DescribedTable`, or the error that tells apart a missing keyspace, a missing table and CDC that is off.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from connector.changes import (
    DELETED,
    CdcOptions,
    Column,
    ColumnKind,
    ColumnOrder,
    DroppedColumn,
    TableDescription,
    user_types_in,
)
from connector.cql_names import log_name
from connector.errors import AccessDenied, CdcDisabled, FatalSourceError, SourceError, TableMissing
from connector.source.log_reader import LogTable
from connector.source.schema_rows import OF_KEYSPACE, OF_TABLE, Asks, SchemaRows
from connector.table_name import TableName
from connector.values import UserType, parse_type

# So many tables of one keyspace are worth reading all of its schema.
TOGETHER = 8

# A log's columns count as dropped for so much longer than they are, since 2026.1: nobody may write to them meanwhile
# (`create_log_schema` in ScyllaDB's cdc/log.cc). What is written in these seconds is written to the new ones.
DROPPED_AHEAD_US = 5_000_000

# Indexes that another service keeps by reading the log: ScyllaDB writes it for them, whatever the table's options say
# (`cdc_enabled` in cdc/log.cc). Their classes are compared without regard to case.
KEPT_BY_THE_LOG = ("vector_index", "fulltext_index")

# A type may name another that comes later; chains longer than this are circular and ScyllaDB does not allow them.
DEEPEST_NESTING = 64


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table with what reading needs to know besides its columns."""

    description: TableDescription
    tablets: bool
    log: LogTable
    log_columns: tuple[tuple[str, str], ...]
    default_ttl: int = 0

    @property
    def table(self) -> TableName:
        return TableName(self.description.keyspace, self.description.name)


def describe_tables(
    connection: Asks, tables: Sequence[TableName]
) -> dict[TableName, DescribedTable | FatalSourceError]:
    """All of them, each as `describe_table` does it, or why it can not. Raises what ails the server."""
    wanted = Counter(table.keyspace for table in tables)
    many = SchemaRows(connection, wanted)
    found: dict[TableName, DescribedTable | FatalSourceError] = {}
    for table in tables:
        try:
            found[table] = describe_table(many if wanted[table.keyspace] >= TOGETHER else connection, table)
        except FatalSourceError as error:
            found[table] = error
    return found


def describe_table(connection: Asks, table: TableName) -> DescribedTable:
    """The table as it is now. Raises TableMissing, CdcDisabled (there is no log), or what the connection raises."""
    description, default_ttl = describe_base(connection, table.keyspace, table.name)
    log = TableName(table.keyspace, log_name(table.name))
    if _table_row(connection, log) is None:
        raise CdcDisabled(
            f"table {table} has no change log; enable it with ALTER TABLE … WITH cdc = {{'enabled': true}}"
        )
    log_columns = tuple(sorted((row["column_name"], row["type"]) for row in _column_rows(connection, log)))
    return DescribedTable(
        replace(description, keys_lost_us=_keys_lost_us(_dropped_rows(connection, log))),
        has_tablets(connection, table.keyspace),
        LogTable(log.keyspace, log.name),
        log_columns,
        default_ttl,
    )


def describe_base(connection: Asks, keyspace: str, name: str) -> tuple[TableDescription, int]:
    """The table itself, whether or not it has a log, and its default time to live. Raises TableMissing."""
    table = TableName(keyspace, name)
    if not connection.query("SELECT keyspace_name FROM system_schema.keyspaces" + OF_KEYSPACE, [table.keyspace]):
        raise TableMissing(f"table {table} does not exist: there is no keyspace {table.keyspace}")
    base = _table_row(connection, table)
    if base is None:
        raise TableMissing(f"table {table} does not exist")
    types = user_types(connection, table.keyspace)
    columns = tuple(sorted(_columns(connection, table, types), key=lambda column: column.name.encode()))
    if not columns:
        # Each question is answered as of its own moment; one of the same name may be there by the next.
        raise TableMissing(f"table {table} does not exist: it was dropped just now")
    cdc = cdc_options((base.get("extensions") or {}).get("cdc"))
    if not cdc.enabled and _has_index_kept_by_the_log(connection, table):
        cdc = replace(cdc, enabled=True)
    description = TableDescription(
        keyspace=table.keyspace,
        name=table.name,
        table_id=str(base["id"]),
        columns=columns,
        cdc=cdc,
        user_types=_used(columns, types),
        dropped=tuple(_dropped(connection, table, types)),
        dense="dense" in (base.get("flags") or ()),
    )
    return description, int(base.get("default_time_to_live") or 0)


def has_tablets(connection: Asks, keyspace: str) -> bool:
    """Whether the keyspace's streams are listed per table. ``initial_tablets`` may well be 0: only null says no."""
    return bool(_with_tablets(connection, "SELECT initial_tablets", OF_KEYSPACE, [keyspace]))


def keyspaces_with_tablets(connection: Asks) -> frozenset[str]:
    """All of which `has_tablets` is true."""
    return frozenset(row["keyspace_name"] for row in _with_tablets(connection, "SELECT keyspace_name, initial_tablets"))


def _with_tablets(connection: Asks, columns: str, where: str = "", values: Sequence[Any] = ()) -> list[dict[str, Any]]:
    try:
        rows = connection.query(f"{columns} FROM system_schema.scylla_keyspaces{where}", values)
    except AccessDenied:
        raise  # says nothing about tablets
    except FatalSourceError:
        return []  # servers before tablets have no such table, or no such column
    return [row for row in rows if row["initial_tablets"] is not None]


def cdc_options(blob: bytes | None) -> CdcOptions:
    """The option map from a table's ``extensions['cdc']``: little-endian counts and lengths, then UTF-8 text.

    >>> cdc_options(None).enabled
    False
    """
    values = _extension(blob) if blob else {}
    preimage = values.get("preimage", "false").lower()
    return CdcOptions(
        enabled=_true(values.get("enabled")),
        preimage="full" if preimage == "full" else "true" if _true(preimage) else "false",
        postimage=_true(values.get("postimage")),
        delta="keys" if values.get("delta", "full").lower() == "keys" else "full",
        ttl=int(values.get("ttl", "86400")),
    )


def user_types(connection: Asks, keyspace: str) -> dict[str, UserType]:
    """All user types of a keyspace, those they are made of resolved first."""
    rows = {
        row["type_name"]: row
        for row in connection.query(
            "SELECT type_name, field_names, field_types FROM system_schema.types" + OF_KEYSPACE, [keyspace]
        )
    }
    resolved: dict[str, UserType] = {}
    waiting = dict(rows)
    for _ in range(DEEPEST_NESTING):
        if not waiting:
            break
        for name in list(waiting):
            built = _user_type(keyspace, waiting[name], resolved)
            if built is not None:
                resolved[name] = built
                del waiting[name]
    if waiting:
        raise SourceError(f"types {', '.join(sorted(waiting))} of keyspace {keyspace} cannot be resolved")
    return resolved


def _user_type(keyspace: str, row: Mapping[str, Any], known: Mapping[str, UserType]) -> UserType | None:
    try:
        fields = tuple(
            (name, parse_type(spelled, known)) for name, spelled in zip(row["field_names"], row["field_types"])
        )
    except ValueError:
        return None  # made of one that is not resolved yet
    return UserType(keyspace, row["type_name"], fields, frozen=False)


def _used(columns: Iterable[Column], types: Mapping[str, UserType]) -> tuple[UserType, ...]:
    """The types that the table uses; others of the keyspace must not make it look changed."""
    used = {found.name for column in columns for found in user_types_in(column.type)}
    return tuple(types[name] for name in sorted(used) if name in types)


def _table_row(connection: Asks, table: TableName) -> dict[str, Any] | None:
    rows = connection.query(
        "SELECT id, extensions, default_time_to_live, flags FROM system_schema.tables" + OF_TABLE,
        [table.keyspace, table.name],
    )
    return rows[0] if rows else None


def _has_index_kept_by_the_log(connection: Asks, table: TableName) -> bool:
    rows = connection.query("SELECT options FROM system_schema.indexes" + OF_TABLE, [table.keyspace, table.name])
    return any(str((row["options"] or {}).get("class_name")).lower() in KEPT_BY_THE_LOG for row in rows)


def _column_rows(connection: Asks, table: TableName) -> list[dict[str, Any]]:
    return connection.query(
        "SELECT column_name, kind, position, clustering_order, type FROM system_schema.columns" + OF_TABLE,
        [table.keyspace, table.name],
    )


def _columns(connection: Asks, table: TableName, types: Mapping[str, UserType]) -> Iterable[Column]:
    for row in _column_rows(connection, table):
        kind = cast(ColumnKind, row["kind"])
        yield Column(
            row["column_name"],
            parse_type(row["type"], types),
            kind,
            row["position"] if kind in ("partition_key", "clustering") else -1,
            cast(ColumnOrder, row["clustering_order"].lower()),
        )


def _dropped_rows(connection: Asks, table: TableName) -> list[dict[str, Any]]:
    return connection.query(
        "SELECT column_name, dropped_time, type FROM system_schema.dropped_columns" + OF_TABLE,
        [table.keyspace, table.name],
    )


def dropped_us(connection: Asks, table: TableName) -> dict[str, int]:
    """When each column of a table was dropped last."""
    return {row["column_name"]: _micros(row["dropped_time"]) for row in _dropped_rows(connection, table)}


def _keys_lost_us(dropped: Sequence[Mapping[str, Any]]) -> int:
    """When a log lost a column of the key for the last time, given what it lost: others go with their flags."""
    times = {str(row["column_name"]): _micros(row["dropped_time"]) for row in dropped}
    keys = [name for name in times if not name.startswith("cdc$") and DELETED + name not in times]
    return max((times[name] - DROPPED_AHEAD_US for name in keys), default=0)


def _dropped(connection: Asks, table: TableName, types: Mapping[str, UserType]) -> Iterable[DroppedColumn]:
    for row in sorted(_dropped_rows(connection, table), key=lambda row: str(row["column_name"])):
        try:
            dropped_type = parse_type(row["type"], types)
        except ValueError:
            continue  # of a user type that is gone as well: nothing can refer to it
        yield DroppedColumn(row["column_name"], dropped_type, _micros(row["dropped_time"]))


def _micros(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1_000_000)


def _true(value: str | None) -> bool:
    return (value or "").lower() in ("true", "1")


def _extension(blob: bytes) -> dict[str, str]:
    try:
        (count,) = struct.unpack_from("<I", blob, 0)
        at, texts = 4, []
        for _ in range(2 * count):
            (length,) = struct.unpack_from("<I", blob, at)
            texts.append(blob[at + 4 : at + 4 + length].decode())
            at += 4 + length
    except (struct.error, UnicodeDecodeError) as error:
        raise SourceError(f"the table's CDC options cannot be read: {error}") from None
    return dict(zip(texts[::2], texts[1::2]))
