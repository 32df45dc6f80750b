"""Records of the schemas topic: what a table is, and what this connector's records of it hold.

In: a ``TableDescription`` and the output options. Out: a record in plain JSON, whatever the converters. Its
``version`` is a hash of the rest of the value, so that every worker writes the same record. Records of changes name the
version that they were made by in their headers, so that whoever reads them late need not guess what their columns were.
"""

from __future__ import annotations

import json
from typing import Any

from connector.changes import ENDS, WRITTEN, Change, Column, ColumnPlace, LogLayout, TableDescription, content_hash
from connector.config import OutputConfig
from connector.formats.record import Record
from connector.values import native

TABLE_ID, SCHEMA_VERSION = "scylla.table.id", "scylla.schema.version"
#: Of a record of a snapshot: what is left of the cells that have a TTL, in seconds from its time on.
CELL_TTLS = "scylla.cell.ttls"
#: When its cells were written, in microseconds, as CQL's WRITETIME tells it.
CELL_TIMESTAMPS = "scylla.cell.timestamps"
MetadataHeaders = tuple[tuple[str, bytes | None], ...]


def schema_document(description: TableDescription, options: OutputConfig) -> dict[str, Any]:
    """The value of the table's record, as plain JSON."""
    content = description.content
    content = content | {
        "output": {
            "format": options.format,
            "collections": options.collections,
            "range_deletes": options.range_deletes,
            "metadata": options.metadata,
            "before": options.include_before,
            "after": options.include_after,
            "skipped_operations": sorted(options.skipped_operations),
            "compatibility": options.compatibility,
        }
    }
    names = {name: content.pop(name) for name in ("keyspace_name", "table_name", "table_id")}
    return {**names, "version": content_hash(names | content), **content}


def schema_record(description: TableDescription, options: OutputConfig) -> Record:
    """The record; it must be committed before the first record that was built with this description is begun."""
    document = schema_document(description, options)
    key = {name: document[name] for name in ("keyspace_name", "table_name", "version")}
    return Record(options.schema_topic, _plain(key), _plain(document), kind="schema")


def version_headers(description: TableDescription, options: OutputConfig) -> MetadataHeaders:
    """The headers of records that are made with this description; none unless metadata is included."""
    if not options.metadata:
        return ()
    version = schema_document(description, options)["version"]
    return ((TABLE_ID, description.table_id.encode()), (SCHEMA_VERSION, version.encode()))


def cell_headers(change: Change) -> MetadataHeaders:
    """The headers of a record of a snapshot that tell of single cells."""
    told = ((CELL_TTLS, change.ends), (CELL_TIMESTAMPS, change.written))
    return tuple((name, text) for name, text in told if text is not None)


def cell_header_places(layout: LogLayout) -> tuple[tuple[str, ColumnPlace], ...]:
    """In which cells the texts of `cell_headers` are."""
    if layout.columns[-1] != WRITTEN:
        return ()
    last, text = len(layout.columns) - 1, native("text")
    return (
        (CELL_TTLS, ColumnPlace(Column(ENDS, text), last - 1)),
        (CELL_TIMESTAMPS, ColumnPlace(Column(WRITTEN, text), last)),
    )


def _plain(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
