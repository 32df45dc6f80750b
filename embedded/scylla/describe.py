"""DESCRIBE, answered by the server as ScyllaDB does: names of what exists, and the statements that would create it.

In: the statement's words and the schema. Out: rows of (keyspace_name, type, name[, create_statement]). Log tables are
not listed as tables of their own: their base table's description is followed by an ALTER TABLE of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Final

from connector.cql_names import log_name, qualified, quote_identifier
from connector.values import native
from embedded.scylla.cdc.log_schema import is_log
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.identity import CLUSTER_NAME, PARTITIONER
from embedded.scylla.paxos import is_paxos_state
from embedded.scylla.results import ColumnSpec, Rows
from embedded.scylla.schema import SYSTEM_KEYSPACES, Keyspace, Schema, Table
from embedded.scylla.system_tables.schema_tables import replication_map, table_options
from embedded.scylla.versions import Version

_DESCRIBE: Final = re.compile(r"\s*desc(?:ribe)?\s+(.*?)\s*;?\s*\Z", re.IGNORECASE | re.DOTALL)
_WORD: Final = re.compile(r'"(?:[^"]|"")*"|\w+|\.')
_NOT_TO_BE_RUN: Final = """/* Do NOT execute this statement! It's only for informational purposes.
   {}

{}
*/"""
_OF_LOGS: Final = """A CDC log table is created automatically when creating the base with CDC
   enabled option or creating the vector index on the base table's vector column."""
_OF_PAXOS: Final = "A paxos state table is created automatically when enabling LWT on a base table."
_KINDS: Final = {
    "TABLE": "Table",
    "COLUMNFAMILY": "Table",
    "TYPE": "Type",
    "FUNCTION": "Function",
    "AGGREGATE": "Aggregate",
    "INDEX": "Index",
    "MATERIALIZED VIEW": "Materialized view",
}
_LENGTH: Final = Struct("<I")
_TEXT: Final = native("text")
_EXTENSIONS: Final = ("tablets", "cdc", "per_partition_rate_limit", "tombstone_gc")
_NAMES: Final = ("keyspace_name", "type", "name")
_WITH_STATEMENT: Final = (*_NAMES, "create_statement")

Row = tuple[str, ...]


def describe(statement: str, schema: Schema, keyspace: str | None, version: Version) -> Rows | None:
    """The answer, or None if the statement is no DESCRIBE."""
    found = _DESCRIBE.match(statement)
    if found is None:
        return None
    words = _WORD.findall(found.group(1))
    upper = [word.upper() for word in words]
    internals = upper[-2:] == ["WITH", "INTERNALS"]
    if internals:
        words, upper = words[:-2], upper[:-2]
    full = upper[:1] == ["FULL"]
    if full:
        words, upper = words[1:], upper[1:]
    return _Describer(schema, keyspace, version, internals, full).answer(words, upper)


def _rows(columns: tuple[str, ...], rows: Iterator[Row]) -> Rows:
    specs = tuple(ColumnSpec("system", "describe", name, _TEXT) for name in columns)
    quoted = [quote_identifier if name in ("keyspace_name", "name") else str for name in columns]
    return Rows(specs, [tuple(quote(cell).encode() for quote, cell in zip(quoted, row)) for row in rows])


def _name(word: str) -> str:
    """As CQL reads it: folded to lower case unless quoted."""
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()


class _Describer:
    def __init__(self, schema: Schema, keyspace: str | None, version: Version, internals: bool, full: bool) -> None:
        self._version = version
        self._internals = internals
        self._full = full
        self._schema = schema
        self._keyspace = keyspace

    def answer(self, words: list[str], upper: list[str]) -> Rows:
        first = upper[0] if upper else ""
        if upper == ["CLUSTER"]:
            row = (CLUSTER_NAME, PARTITIONER, "org.apache.cassandra.locator.SimpleSnitch")
            return _rows(("cluster", "partitioner", "snitch"), iter([row]))
        if upper == ["KEYSPACES"]:
            return _rows(_NAMES, ((name, "keyspace", name) for name in sorted(self._schema.keyspaces)))
        if upper in (["TABLES"], ["TYPES"], ["FUNCTIONS"], ["AGGREGATES"]):
            return _rows(_NAMES, self._listed(first))
        if upper == ["SCHEMA"]:
            return _rows(_WITH_STATEMENT, self._all())
        if upper[:2] == ["ONLY", "KEYSPACE"]:
            only = self._keyspace_named(words[2:])
            return _rows(_WITH_STATEMENT, iter([(only.name, "keyspace", only.name, keyspace_statement(only))]))
        if first == "KEYSPACE":
            return _rows(_WITH_STATEMENT, self._whole_keyspace(self._keyspace_named(words[1:])))
        if upper[:2] == ["MATERIALIZED", "VIEW"]:
            words = [" ".join(words[:2]), *words[2:]]
            first = "MATERIALIZED VIEW"
        kind = _KINDS.get(first, "")
        if kind:
            words = words[1:]
        if words and (len(words) == 1 or (len(words) == 3 and words[1] == ".")):
            return _rows(_WITH_STATEMENT, self._one(words, kind))
        raise InvalidRequest("DESCRIBE of this is not supported by the embedded server")

    def _keyspace_named(self, words: list[str]) -> Keyspace:
        name = _name(words[0]) if words else self._keyspace
        if name is None:
            raise InvalidRequest("No keyspace specified and no current keyspace")
        keyspace = self._schema.keyspace(name)
        if keyspace is None:
            raise InvalidRequest(f"'{name}' not found in keyspaces")
        return keyspace

    def _chosen(self) -> list[str]:
        return sorted(self._schema.keyspaces) if self._keyspace is None else [self._keyspace]

    def _listed(self, kind: str) -> Iterator[Row]:
        for keyspace in self._chosen():
            if kind == "TABLES":
                yield from ((keyspace, "table", table.name) for table in self._tables(keyspace))
            elif kind == "TYPES":
                yield from ((keyspace, "type", name) for name in sorted(self._schema.user_types(keyspace)))

    def _tables(self, keyspace: str) -> list[Table]:
        tables = self._schema.tables(keyspace)
        return [table for table in tables if not is_log(table) and not is_paxos_state(table.name)]

    def _all(self) -> Iterator[Row]:
        for name in sorted(self._schema.keyspaces):
            if self._full or not name.startswith("system"):
                yield from self._whole_keyspace(self._schema.keyspaces[name])

    def _whole_keyspace(self, keyspace: Keyspace) -> Iterator[Row]:
        yield keyspace.name, "keyspace", keyspace.name, keyspace_statement(keyspace)
        yield from self._types(keyspace.name)
        for table in self._tables(keyspace.name):
            yield from self._table(table)

    def _types(self, keyspace: str, only: str | None = None) -> Iterator[Row]:
        for name, user_type in self._schema.user_types(keyspace).items():
            if only in (None, name):
                fields = ",\n    ".join(f"{quote_identifier(field)} {kind.cql()}" for field, kind in user_type.fields)
                place = qualified(keyspace, name)
                yield keyspace, "type", name, f"CREATE TYPE {place} (\n    {fields}\n);"

    def _table(self, table: Table) -> Iterator[Row]:
        statement = table_statement(table, self._schema, self._version, self._internals)
        internal = _OF_LOGS if is_log(table) else _OF_PAXOS if is_paxos_state(table.name) else None
        shown = statement if internal is None else _NOT_TO_BE_RUN.format(internal, statement)
        yield table.keyspace, "table", table.name, shown
        log = self._schema.table(table.keyspace, log_name(table.name))
        if log is not None and is_log(log):
            statement = f"ALTER TABLE {_place(log)} WITH {_properties(log, self._schema, self._version)};\n"
            yield table.keyspace, "table", log.name, statement

    def _one(self, words: list[str], kind: str) -> Iterator[Row]:
        """What is called so; if it must be of one kind, `kind` is the name of that in the error."""
        name = _name(words[-1])
        if len(words) == 1 and not kind and name in self._schema.keyspaces:
            return self._whole_keyspace(self._schema.keyspaces[name])
        keyspace = self._keyspace_named(words[:1] if len(words) == 3 else []).name
        table = self._schema.table(keyspace, name) if kind in ("", "Table") else None
        if table is not None:
            return self._table(table)
        if kind in ("", "Type") and name in self._schema.user_types(keyspace):
            return self._types(keyspace, name)
        if kind == "Index":
            raise InvalidRequest(f"Table for existing index '{name}' not found in '{keyspace}'")
        raise InvalidRequest(f"{kind} '{name}' not found in keyspace '{keyspace}'".lstrip())


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _map(entries: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(key)}: {_text(value)}" for key, value in entries.items()) + "}"


def _place(table: Table) -> str:
    return qualified(table.keyspace, table.name)


def keyspace_statement(keyspace: Keyspace) -> str:
    replication = _map(dict(replication_map(keyspace)))
    statement = f"CREATE KEYSPACE {quote_identifier(keyspace.name)} WITH replication = {replication}"
    statement += f" AND durable_writes = {str(keyspace.durable_writes).lower()}"
    if keyspace.tablets is None:
        return statement + " AND tablets = {'enabled': false};"
    initial = keyspace.tablets.get("initial", "0")
    shown = "" if initial == "0" else f", 'initial': {initial}"
    return statement + f" AND tablets = {{'enabled': true{shown}}};"


def _cdc_options(extension: bytes) -> dict[str, str]:
    """The options in their serialised form: a count, then each key and value with its length before."""
    texts, at = [], _LENGTH.size
    while at < len(extension):
        (length,) = _LENGTH.unpack_from(extension, at)
        at += _LENGTH.size + length
        texts.append(extension[at - length : at].decode())
    return dict(zip(texts[::2], texts[1::2]))


def _properties(table: Table, schema: Schema, version: Version) -> str:
    properties = {}
    for name, value in table_options(table, version).items():
        if isinstance(value, list):
            # A strategy's class stands before its options, which are sorted as everywhere.
            properties[name] = _map(dict(sorted(value, key=lambda pair: (pair[0] != "class", pair[0]))))
        else:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            properties[name] = _text(value) if isinstance(value, str) else shown
    del properties["read_repair_chance"], properties["dclocal_read_repair_chance"]
    properties["comment"] = _text(table.comment)
    properties["default_time_to_live"] = str(table.default_time_to_live)
    parts = [f"{name} = {properties[name]}" for name in sorted(properties)]
    extensions = {name: value for name in _EXTENSIONS if isinstance(value := table.options.get(name), Mapping)}
    if (extension := table.extensions.get("cdc")) is not None:
        extensions["cdc"] = _cdc_options(extension)
    if table.keyspace not in SYSTEM_KEYSPACES and not is_paxos_state(table.name):
        extensions["tombstone_gc"] = {**_tombstone_gc(table, schema), **extensions.get("tombstone_gc", {})}
    # Those that ScyllaDB keeps as extensions stand last.
    for name in sorted(extensions, key=_EXTENSIONS.index):
        parts.append(f"{name} = {_map(dict(sorted(extensions[name].items())))}")
    return "\n    AND ".join(parts)


def _tombstone_gc(table: Table, schema: Schema) -> dict[str, str]:
    """ScyllaDB's defaults: tables with tablets and several replicas wait for repair, unless they are logs."""
    keyspace = schema.keyspace(table.keyspace)
    repaired = False
    if keyspace is not None and keyspace.uses_tablets and not is_log(table):
        repaired = any(count not in ("0", "1") for name, count in keyspace.replication.items() if name != "class")
    return {"mode": "repair" if repaired else "timeout", "propagation_delay_in_seconds": "3600"}


def table_statement(table: Table, schema: Schema, version: Version, internals: bool = False) -> str:
    """`internals`: with the table's id, and with what makes the columns that were dropped once more."""

    def names(columns: tuple[str, ...]) -> str:
        return ", ".join(quote_identifier(name) for name in columns)

    lines = [
        f"    {quote_identifier(column.name)} {column.type.cql()}{' static' if column.kind == 'static' else ''},"
        for column in table.ordered_columns
        if not (internals and column.name in {gone.name for gone in table.dropped})
    ]
    # In the order in which ScyllaDB happens to list them.
    dropped = sorted(table.dropped, key=lambda gone: gone.name, reverse=True) if internals else []
    lines += [f"    {quote_identifier(gone.name)} {gone.type.cql()}," for gone in dropped]
    partition = names(tuple(column.name for column in table.partition_key))
    if len(table.partition_key) > 1:
        partition = f"({partition})"
    clustering = "".join(f", {quote_identifier(column.name)}" for column in table.clustering)
    lines.append(f"    PRIMARY KEY ({partition}{clustering})")
    order = ", ".join(f"{quote_identifier(column.name)} {column.order.upper()}" for column in table.clustering)
    ordered = f"CLUSTERING ORDER BY ({order})\n    AND " if order else ""
    if internals:
        ordered = f"ID = {table.id}\nAND {ordered}"
    statement = (
        f"CREATE TABLE {_place(table)} (\n"
        + "\n".join(lines)
        + f"\n) WITH {ordered}{_properties(table, schema, version)};\n"
    )
    for gone in dropped:
        name = quote_identifier(gone.name)
        statement += f"\nALTER TABLE {_place(table)} DROP {name} USING TIMESTAMP {gone.dropped_us};"
        again = table.by_name.get(gone.name)
        if again is not None:
            static = " static" if again.kind == "static" else ""
            statement += f"\nALTER TABLE {_place(table)} ADD {name} {again.type.cql()}{static};"
    return statement
