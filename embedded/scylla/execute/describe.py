"""DESCRIBE, as cqlsh asks the server for it.

In: the words behind DESCRIBE and the schema. Out: rows with keyspace, type, name and (where asked for) the
CREATE statement. Log tables are hidden from lists, as in ScyllaDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from connector.values.types import UserType, native, quote_identifier
from embedded.scylla.cql.tree import Describe
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.results import ColumnSpec, Result, Row, Rows
from embedded.scylla.schema import CDC_PARTITIONER, SYSTEM_KEYSPACES, Column, Keyspace, Schema, Table

_TEXT: Final = native("text")
_NAMES: Final = ("keyspace_name", "type", "name")


def _rows(found: Iterable[tuple[str, ...]], statements: bool) -> Rows:
    names = (*_NAMES, "create_statement") if statements else _NAMES
    rows: list[Row] = [[part.encode() for part in row] for row in found]
    return Rows(tuple(ColumnSpec("system", "describe", name, _TEXT) for name in names), rows)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _map(value: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(key)}: {_text(str(item))}" for key, item in value.items()) + "}"


def _keyspace(keyspace: Keyspace) -> tuple[str, ...]:
    text = f"CREATE KEYSPACE {quote_identifier(keyspace.name)} WITH replication = {_map(keyspace.replication)}"
    text += f" AND durable_writes = {str(keyspace.durable_writes).lower()}"
    if keyspace.tablets is not None:
        text += " AND tablets = {'enabled': true}"
    return keyspace.name, "keyspace", keyspace.name, text + ";"


def _type(user_type: UserType) -> tuple[str, ...]:
    fields = ",\n".join(f"    {quote_identifier(name)} {kind.cql()}" for name, kind in user_type.fields)
    name = f"{quote_identifier(user_type.keyspace)}.{quote_identifier(user_type.name)}"
    return user_type.keyspace, "type", user_type.name, f"CREATE TYPE {name} (\n{fields}\n);"


def _column(column: Column) -> str:
    return f"    {quote_identifier(column.name)} {column.type.cql()}{' static' if column.kind == 'static' else ''}"


def _table(table: Table, schema: Schema) -> tuple[str, ...]:
    partition = ", ".join(quote_identifier(column.name) for column in table.partition_key)
    if len(table.partition_key) > 1:
        partition = f"({partition})"
    key = ", ".join([partition, *(quote_identifier(column.name) for column in table.clustering)])
    lines = [_column(column) for column in table.ordered_columns] + [f"    PRIMARY KEY ({key})"]
    name = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.name)}"
    options = []
    if table.clustering:
        order = ", ".join(f"{quote_identifier(c.name)} {c.order.upper()}" for c in table.clustering)
        options.append(f"CLUSTERING ORDER BY ({order})")
    for option, value in sorted(table.options.items()):
        if option != "tablets":
            shown = _map(value) if isinstance(value, Mapping) else _text(value) if isinstance(value, str) else value
            options.append(f"{option} = {shown}")
    options += [f"comment = {_text(table.comment)}", f"default_time_to_live = {table.default_time_to_live}"]
    if table.cdc:
        options.append(f"cdc = {_map(table.cdc)}")
    joined = "\n    AND ".join(options)
    body = ",\n".join(lines)
    text = f"CREATE TABLE {name} (\n{body}\n) WITH {joined};"
    log = schema.table(table.keyspace, f"{table.name}_scylla_cdc_log")
    if log is not None and log.partitioner == CDC_PARTITIONER:
        log_name = f"{quote_identifier(table.keyspace)}.{quote_identifier(log.name)}"
        text += f"\n\nALTER TABLE {log_name} WITH comment = {_text(log.comment)}"
        text += f"\n    AND default_time_to_live = {log.default_time_to_live};"
    return table.keyspace, "table", table.name, text


def _listed(schema: Schema, keyspace: str) -> list[Table]:
    return [table for table in schema.tables(keyspace) if table.partitioner != CDC_PARTITIONER]


def _whole(schema: Schema, keyspace: str) -> list[tuple[str, ...]]:
    found = schema.keyspace(keyspace)
    if found is None:
        raise InvalidRequest(f"'{keyspace}' not found in keyspaces")
    types = [_type(schema.user_types(keyspace)[name]) for name in sorted(schema.user_types(keyspace))]
    return [_keyspace(found), *types, *(_table(table, schema) for table in _listed(schema, keyspace))]


def describe(statement: Describe, schema: Schema, current: str | None) -> Result:
    words = [word for word in statement.words if word.lower() not in ("with", "internals", "and", "passwords", ".")]
    verb = words[0].lower() if words else ""
    rest = words[1:]
    keyspaces = sorted(schema.keyspaces)
    if verb == "keyspaces":
        return _rows([(name, "keyspace", name) for name in keyspaces], False)
    if verb == "tables":
        chosen = [current] if current else keyspaces
        return _rows([(name, "table", table.name) for name in chosen for table in _listed(schema, name)], False)
    if verb == "types":
        chosen = [current] if current else keyspaces
        return _rows([(name, "type", kind) for name in chosen for kind in sorted(schema.user_types(name))], False)
    if verb in ("functions", "aggregates"):
        return _rows([], False)
    if verb in ("schema", "full"):
        everything = [name for name in keyspaces if verb == "full" or name not in SYSTEM_KEYSPACES]
        return _rows([row for name in everything for row in _whole(schema, name)], True)
    if verb == "cluster":
        return _cluster()
    if verb in ("keyspace", "only"):
        name = rest[-1] if rest else current
        if name is None:
            raise InvalidRequest("No keyspace specified and no current keyspace")
        whole = _whole(schema, name)
        return _rows(whole[:1] if verb == "only" else whole, True)
    if verb in ("table", "columnfamily", "type"):
        return _element(verb, rest, schema, current)
    if len(words) == 1 and schema.keyspace(words[0]) is not None:
        return _rows(_whole(schema, words[0]), True)
    return _element("table", words, schema, current)


def _element(verb: str, words: list[str], schema: Schema, current: str | None) -> Result:
    keyspace = words[0] if len(words) > 1 else current
    if keyspace is None:
        raise InvalidRequest("No keyspace specified and no current keyspace")
    name = words[-1] if words else ""
    if verb == "type":
        found = schema.user_types(keyspace).get(name)
        if found is None:
            raise InvalidRequest(f"User defined type '{name}' not found in '{keyspace}'")
        return _rows([_type(found)], True)
    table = schema.table(keyspace, name)
    if table is None:
        raise InvalidRequest(f"Table '{name}' not found in keyspace '{keyspace}'")
    return _rows([_table(table, schema)], True)


def _cluster() -> Result:
    names = ("cluster", "partitioner", "snitch")
    specs = tuple(ColumnSpec("system", "describe", name, _TEXT) for name in names)
    return Rows(
        specs,
        [[b"", b"org.apache.cassandra.dht.Murmur3Partitioner", b"org.apache.cassandra.locator.SimpleSnitch"]],
    )
