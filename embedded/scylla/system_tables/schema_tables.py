"""Keyspace `system_schema`: what drivers read to learn of keyspaces, tables, columns and types.

In: the registry of the schema. Out: rows, computed once per schema version since drivers read them over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from embedded.scylla.schema import MURMUR3, Keyspace, Schema, Table
from embedded.scylla.system_tables.definition import Row, Scan, system_table
from embedded.scylla.versions import Version

_KEYSPACE: Final = "system_schema"
_LOCATOR: Final = "org.apache.cassandra.locator."


def _of_keyspace(name: str, columns: str, *clustering: str) -> Table:
    return system_table(_KEYSPACE, name, f"keyspace_name text, {columns}", ["keyspace_name"], clustering)


KEYSPACES: Final = _of_keyspace(
    "keyspaces",
    "durable_writes boolean, replication frozen<map<text, text>>, replication_v2 frozen<map<text, text>>",
)
SCYLLA_KEYSPACES: Final = _of_keyspace(
    "scylla_keyspaces",
    "consistency text, initial_tablets int, storage_options frozen<map<text, text>>, storage_type text",
)
TABLES: Final = _of_keyspace(
    "tables",
    "table_name text, bloom_filter_fp_chance double, caching frozen<map<text, text>>, comment text,"
    " compaction frozen<map<text, text>>, compression frozen<map<text, text>>, crc_check_chance double,"
    " dclocal_read_repair_chance double, default_time_to_live int, extensions frozen<map<text, blob>>,"
    " flags frozen<set<text>>, gc_grace_seconds int, id uuid, max_index_interval int,"
    " memtable_flush_period_in_ms int, min_index_interval int, read_repair_chance double, speculative_retry text",
    "table_name",
)
SCYLLA_TABLES: Final = _of_keyspace(
    "scylla_tables",
    "table_name text, cdc frozen<map<text, text>>, committed_by_group0 boolean, in_memory boolean, partitioner text,"
    " tablets frozen<map<text, text>>, version uuid",
    "table_name",
)
COLUMNS: Final = _of_keyspace(
    "columns",
    "table_name text, column_name text, clustering_order text, column_name_bytes blob, kind text, position int,"
    " type text",
    "table_name",
    "column_name",
)
DROPPED_COLUMNS: Final = _of_keyspace(
    "dropped_columns",
    "table_name text, column_name text, dropped_time timestamp, type text",
    "table_name",
    "column_name",
)
INDEXES: Final = _of_keyspace(
    "indexes",
    "table_name text, index_name text, kind text, options frozen<map<text, text>>",
    "table_name",
    "index_name",
)
TYPES: Final = _of_keyspace(
    "types", "type_name text, field_names frozen<list<text>>, field_types frozen<list<text>>", "type_name"
)
EMPTY: Final = (
    _of_keyspace(
        "functions",
        "function_name text, argument_types frozen<list<text>>, argument_names frozen<list<text>>, body text,"
        " called_on_null_input boolean, language text, return_type text",
        "function_name",
        "argument_types",
    ),
    _of_keyspace(
        "aggregates",
        "aggregate_name text, argument_types frozen<list<text>>, final_func text, initcond text, return_type text,"
        " state_func text, state_type text",
        "aggregate_name",
        "argument_types",
    ),
    _of_keyspace(
        "scylla_aggregates",
        "aggregate_name text, argument_types frozen<list<text>>, reduce_func text, state_type text",
        "aggregate_name",
        "argument_types",
    ),
    _of_keyspace(
        "triggers", "table_name text, trigger_name text, options frozen<map<text, text>>", "table_name", "trigger_name"
    ),
    _of_keyspace(
        "views",
        "view_name text, base_table_id uuid, base_table_name text, bloom_filter_fp_chance double,"
        " caching frozen<map<text, text>>, comment text, compaction frozen<map<text, text>>,"
        " compression frozen<map<text, text>>, crc_check_chance double, dclocal_read_repair_chance double,"
        " default_time_to_live int, extensions frozen<map<text, blob>>, gc_grace_seconds int, id uuid,"
        " include_all_columns boolean, max_index_interval int, memtable_flush_period_in_ms int,"
        " min_index_interval int, read_repair_chance double, speculative_retry text, where_clause text",
        "view_name",
    ),
    _of_keyspace(
        "view_virtual_columns",
        "table_name text, column_name text, clustering_order text, column_name_bytes blob, kind text, position int,"
        " type text",
        "table_name",
        "column_name",
    ),
    _of_keyspace(
        "computed_columns", "table_name text, column_name text, computation blob", "table_name", "column_name"
    ),
)

_OPTION_DEFAULTS: Final[Mapping[str, Any]] = {
    "bloom_filter_fp_chance": 0.01,
    "caching": {"keys": "ALL", "rows_per_partition": "ALL"},
    "compaction": {"class": "IncrementalCompactionStrategy"},
    "compression": {"sstable_compression": "org.apache.cassandra.io.compress.LZ4Compressor"},
    "crc_check_chance": 1.0,
    "dclocal_read_repair_chance": 0.0,
    "gc_grace_seconds": 864_000,
    "max_index_interval": 2048,
    "memtable_flush_period_in_ms": 0,
    "min_index_interval": 128,
    "read_repair_chance": 0.0,
    "speculative_retry": "99.0PERCENTILE",
}
#: A column without values has a type of its own, which clients know by this name.
_SHOWN_TYPES: Final = {("system.IndexInfo", "value"): "empty"}
#: The line from which on new tables are compressed with dictionaries.
_DICTIONARIES_SINCE: Final = "2025.4"
_WITH_DICTIONARIES: Final = {"sstable_compression": "LZ4WithDictsCompressor"}


def _option(table: Table, name: str, version: Version) -> Any:
    """The option in the type that its column has; options may be kept as the text they were given in."""
    default = _OPTION_DEFAULTS[name]
    if name == "compression" and version.since(_DICTIONARIES_SINCE):
        default = _WITH_DICTIONARIES
    value = table.options.get(name)
    if value is None:
        value = default
    if isinstance(default, Mapping):
        return _text_map(value) if isinstance(value, Mapping) else []
    return type(default)(value)


def table_options(table: Table, version: Version) -> dict[str, Any]:
    """All properties of a table that have a column of their own; maps as lists of pairs, sorted."""
    return {name: _option(table, name, version) for name in _OPTION_DEFAULTS}


def replication_map(keyspace: Keyspace) -> list[tuple[str, str]]:
    """With the strategy's full class name, by which drivers choose."""
    options = dict(keyspace.replication)
    strategy = options.pop("class", "SimpleStrategy")
    return [("class", strategy if "." in strategy else _LOCATOR + strategy), *sorted(options.items())]


class SchemaTables:
    """Rows of the tables above."""

    def __init__(self, schema: Schema, version: Version) -> None:
        self._schema = schema
        self._like = version
        self._version: object = None
        self._rows: dict[str, tuple[Row, ...]] = {}

    def scans(self) -> list[tuple[Table, Scan]]:
        made: list[tuple[Table, Callable[[], Iterable[Row]]]] = [
            (KEYSPACES, self.keyspaces),
            (SCYLLA_KEYSPACES, self.scylla_keyspaces),
            (TABLES, self.tables),
            (SCYLLA_TABLES, self.scylla_tables),
            (COLUMNS, self.columns),
            (DROPPED_COLUMNS, self.dropped_columns),
            (INDEXES, self.indexes),
            (TYPES, self.types),
        ]
        return [(table, self._remembered(table.name, rows)) for table, rows in made]

    def _remembered(self, name: str, rows: Callable[[], Iterable[Row]]) -> Scan:
        def scan() -> Iterable[Row]:
            if self._version != self._schema.version:
                self._version = self._schema.version
                self._rows.clear()
            if name not in self._rows:
                self._rows[name] = tuple(rows())
            return self._rows[name]

        return scan

    def keyspaces(self) -> Iterator[Row]:
        for keyspace in self._schema.keyspaces.values():
            replication = replication_map(keyspace)
            yield {
                "keyspace_name": keyspace.name,
                "durable_writes": keyspace.durable_writes,
                "replication": replication,
            }

    def scylla_keyspaces(self) -> Iterator[Row]:
        """Only tablets keyspaces have a row: its presence is how readers tell the two kinds apart."""
        for keyspace in self._schema.keyspaces.values():
            if keyspace.tablets is not None:
                initial = keyspace.tablets.get("initial", 0)
                yield {"keyspace_name": keyspace.name, "initial_tablets": int(initial)}

    def tables(self) -> Iterator[Row]:
        for table in self._schema.all_tables():
            yield {
                "keyspace_name": table.keyspace,
                "table_name": table.name,
                "comment": table.comment,
                "default_time_to_live": table.default_time_to_live,
                "extensions": sorted(table.extensions.items()),
                "flags": sorted(table.flags),
                "id": table.id,
                **table_options(table, self._like),
            }

    def scylla_tables(self) -> Iterator[Row]:
        for table in self._schema.all_tables():
            tablets = table.options.get("tablets")
            yield {
                "keyspace_name": table.keyspace,
                "table_name": table.name,
                "committed_by_group0": True,
                "partitioner": table.partitioner if table.partitioner != MURMUR3 else None,
                "tablets": _text_map(tablets) if isinstance(tablets, Mapping) else None,
                "version": table.version,
            }

    def columns(self) -> Iterator[Row]:
        for table in self._schema.all_tables():
            for column in table.columns:
                yield {
                    "keyspace_name": table.keyspace,
                    "table_name": table.name,
                    "column_name": column.name,
                    "clustering_order": column.order.upper(),
                    "column_name_bytes": column.name.encode(),
                    "kind": column.kind,
                    "position": column.position,
                    "type": _SHOWN_TYPES.get((table.full_name, column.name)) or column.type.cql(),
                }

    def dropped_columns(self) -> Iterator[Row]:
        for table in self._schema.all_tables():
            for column in table.dropped:
                yield {
                    "keyspace_name": table.keyspace,
                    "table_name": table.name,
                    "column_name": column.name,
                    "dropped_time": column.dropped_us // 1000,
                    "type": column.type.cql(),
                }

    def indexes(self) -> Iterator[Row]:
        for table in self._schema.all_tables():
            for index in table.indexes:
                yield {
                    "keyspace_name": table.keyspace,
                    "table_name": table.name,
                    "index_name": index.name,
                    "kind": "CUSTOM",
                    "options": _text_map(index.options),
                }

    def types(self) -> Iterator[Row]:
        for keyspace in self._schema.keyspaces:
            for user_type in self._schema.user_types(keyspace).values():
                yield {
                    "keyspace_name": keyspace,
                    "type_name": user_type.name,
                    "field_names": [name for name, _ in user_type.fields],
                    "field_types": [field.cql() for _, field in user_type.fields],
                }


def _text_map(entries: Mapping[Any, Any]) -> list[tuple[str, str]]:
    return sorted((str(key), str(value)) for key, value in entries.items())
