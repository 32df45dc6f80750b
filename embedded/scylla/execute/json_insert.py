"""INSERT … JSON: the columns are only known when the text is.

In: the statement's tree. Out: a `WritePlan`. Missing regular columns are written as null, or left alone with
DEFAULT UNSET; static columns are never written (ScyllaDB looks at the regular ones only).
"""

from __future__ import annotations

from typing import Any, cast

from connector.values import native
from embedded.scylla.cql.tree import InsertJson
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.attributes import compile_attributes
from embedded.scylla.execute.candidates import row_key
from embedded.scylla.execute.conditions import compile_conditions
from embedded.scylla.execute.json_values import bytes_from_json, column_name, parse_json
from embedded.scylla.execute.operations import assign
from embedded.scylla.execute.run import Fixed, Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.execute.writeplan import WritePlan, no_elements
from embedded.scylla.hooks import Reader
from embedded.scylla.mutation import ClusteringKey, Marker, PartitionMutation, RowMutation
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column, Table, partition_key_bytes


def compile_json_insert(statement: InsertJson, table: Table, scope: Scope) -> WritePlan:
    text = compile_term(statement.json, "[json]", native("text"), scope)
    prepare = compile_attributes(statement.attributes, table, scope)

    def parsed(run: Run) -> dict[str, Any]:
        raw = text(run)
        if raw is None or raw is UNSET:
            raise InvalidRequest("Got null for INSERT JSON values")
        found = parse_json(cast(bytes, raw).decode())
        if not isinstance(found, dict):
            raise InvalidRequest(
                f"Could not decode JSON string as a map: not an object. (String was: {cast(bytes, raw).decode()})"
            )
        named = {column_name(name): value for name, value in found.items()}
        for name in named:
            if name not in table.by_name:
                raise InvalidRequest(f"JSON values map contains unrecognized column: {name}")
        return named

    def key_part(given: dict[str, Any], column: Column) -> bytes:
        raw = bytes_from_json(given.get(column.name), column.type)
        if raw is None:
            raise InvalidRequest(f"Missing mandatory PRIMARY KEY part {column.name}")
        return raw

    def key(given: dict[str, Any]) -> bytes:
        found = partition_key_bytes(tuple(key_part(given, column) for column in table.partition_key))
        if not found:
            raise InvalidRequest("Key may not be empty")
        return found

    def clustering_key(given: dict[str, Any]) -> ClusteringKey:
        return row_key([key_part(given, column) for column in table.clustering], table)

    def build(run: Run, reader: Reader) -> list[PartitionMutation]:
        given = parsed(run)
        mutation = PartitionMutation(table, key(given))
        row = RowMutation(Marker(run.timestamp, run.ttl, run.expiry))
        mutation.rows[clustering_key(given)] = row
        for column in table.regular:
            if column.name in given:
                raw = bytes_from_json(given[column.name], column.type)
            elif statement.default_unset:
                continue
            else:
                raw = None
            assign(column, Fixed(raw)).apply(run, row.cells, no_elements)
        return [mutation]

    return WritePlan(
        table,
        "insert",
        prepare,
        build,
        lambda run: [key(parsed(run))],
        lambda run: [clustering_key(parsed(run))],
        None,
        compile_conditions(statement.conditions, table, scope, True),
        False,
        statement.attributes.timestamp is not None,
    )
