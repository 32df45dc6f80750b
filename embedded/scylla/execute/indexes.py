"""CREATE and DROP INDEX: those that another service keeps by reading the table's log, and no others.

In: the statement's tree, the catalog. Out: the changed catalog, with the log that such an index needs, and the
`Result`; of secondary indexes an error that says that the embedded server does not have them.
"""

from __future__ import annotations

import uuid
from typing import Final

from connector.values import VectorType, native
from embedded.scylla.catalog import Catalog
from embedded.scylla.cdc.options import parse_options
from embedded.scylla.cql.tree import CreateIndex, DropIndex
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.hooks import TableChange
from embedded.scylla.results import Result, SchemaChange, Void
from embedded.scylla.schema import Index, SchemaEvent, Table

_VECTOR_INDEX: Final = "vector_index"
_SINCE: Final = "2025.4"
_LEAST_TTL: Final = 86_400


def create_index(statement: CreateIndex, catalog: Catalog, current: str | None) -> Result:
    keyspace = catalog.keyspace_name(statement.table.keyspace, current)
    table = catalog.table(keyspace, statement.table.name)
    if (statement.custom or "").lower() != _VECTOR_INDEX or not catalog.version.since(_SINCE):
        raise InvalidRequest("The embedded server has no secondary indexes")
    if not statement.columns:
        raise InvalidRequest("The embedded server has no local vector indexes")
    _check(table, statement.columns[0], catalog)
    name = statement.name or f"{table.name}_{statement.columns[0]}_idx"
    if any(index.name == name for each in catalog.schema.tables(keyspace) for index in each.indexes):
        if statement.if_not_exists:
            return Void()
        raise InvalidRequest("Index already exists")
    options = {
        **dict(statement.options),
        "class_name": _VECTOR_INDEX,
        "index_version": str(uuid.uuid1()),
        "target": statement.columns[0],
    }
    return _altered(table, (*table.indexes, Index(name, options)), catalog)


def _check(table: Table, column: str, catalog: Catalog) -> None:
    keyspace = catalog.schema.keyspace(table.keyspace)
    if keyspace is None or not keyspace.uses_tablets:
        raise InvalidRequest(
            "Creating a vector index requires the base table's keyspace to use tablets.\n"
            "Please alter the keyspace to use tablets and try again."
        )
    found = table.by_name.get(column)
    if found is None:
        raise InvalidRequest(f"Column {column} not found in schema")
    if not isinstance(found.type, VectorType) or found.type.element != native("float"):
        raise InvalidRequest("Vector indexes are only supported on columns of vectors of floats")
    options = parse_options(table.cdc)
    if options.enabled is False:
        raise InvalidRequest("Cannot create the vector index when CDC is explicitly disabled.")
    if 0 < options.ttl < _LEAST_TTL or (options.delta != "full" and not options.postimage):
        raise InvalidRequest(
            "To enable Vector Search on this table, the CDC log must meet the minimal requirements of Vector Search.\n"
            f"This means that the CDC's TTL must be at least {_LEAST_TTL} seconds (24 hours), "
            "and the CDC's delta mode must be set to 'full' or postimage must be enabled."
        )


def drop_index(statement: DropIndex, catalog: Catalog, current: str | None) -> Result:
    keyspace, name = catalog.keyspace_name(statement.name.keyspace, current), statement.name.name
    catalog.keyspace(keyspace)
    for table in catalog.schema.tables(keyspace):
        left = tuple(index for index in table.indexes if index.name != name)
        if len(left) < len(table.indexes):
            return _altered(table, left, catalog)
    if statement.if_exists:
        return Void()
    raise InvalidRequest(f"Index '{name}' could not be found in any of the tables of keyspace '{keyspace}'")


def _altered(table: Table, indexes: tuple[Index, ...], catalog: Catalog) -> Result:
    catalog.alter_table(table, table.changed(indexes=indexes), TableChange())
    return SchemaChange(SchemaEvent("UPDATED", "TABLE", table.keyspace, table.name))
