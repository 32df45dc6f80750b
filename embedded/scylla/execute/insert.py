"""INSERT as a plan.

In: a statement's tree and its table. Out: a `WritePlan` that writes a row marker and the given columns;
without clustering columns in a table that has them, only statics.
"""

from __future__ import annotations

from collections.abc import Callable

from embedded.scylla.cql.tree import Insert
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.attributes import compile_attributes
from embedded.scylla.execute.candidates import required, row_key
from embedded.scylla.execute.conditions import compile_conditions
from embedded.scylla.execute.operations import Operation, assign
from embedded.scylla.execute.run import Bound, Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.execute.writeplan import WritePlan, known_column, no_elements
from embedded.scylla.hooks import Reader
from embedded.scylla.mutation import ClusteringKey, Marker, PartitionMutation, RowMutation
from embedded.scylla.schema import Table, partition_key_bytes


def key_of(values: list[tuple[Bound, str]]) -> Callable[[Run], bytes]:
    """The serialised partition key of the compiled values of its columns."""
    if len(values) == 1:
        only, name = values[0]

        def single(run: Run) -> bytes:
            key = required(only(run), name)
            if not key:
                raise InvalidRequest("Key may not be empty")
            if len(key) > 65535:
                raise InvalidRequest(f"Key length of {len(key)} is longer than maximum of 65535")
            return key

        return single

    def composite(run: Run) -> bytes:
        key = partition_key_bytes(tuple([required(value(run), name) for value, name in values]))
        if len(key) > 65535:
            raise InvalidRequest(f"Key length of {len(key)} is longer than maximum of 65535")
        return key

    return composite


def compile_insert(statement: Insert, table: Table, scope: Scope) -> WritePlan:
    if len(statement.columns) != len(statement.values):
        raise InvalidRequest("Unmatched column names/values")
    if not statement.columns:
        raise InvalidRequest("No columns provided to INSERT")
    given: dict[str, Bound] = {}
    operations: list[Operation] = []
    for name, term in zip(statement.columns, statement.values):
        column = known_column(table, name)
        if name in given:
            raise InvalidRequest(f"Multiple definitions found for column {name}")
        given[name] = compile_term(term, name, column.type, scope)
        if column.kind in ("static", "regular"):
            operations.append(assign(column, given[name]))
    for column in table.partition_key:
        if column.name not in given:
            raise InvalidRequest(f"Missing mandatory PRIMARY KEY part {column.name}")
    key = key_of([(given[column.name], column.name) for column in table.partition_key])
    clustering = [column for column in table.clustering if column.name in given]
    statics = [operation for operation in operations if operation.column.kind == "static"]
    regulars = [operation for operation in operations if operation.column.kind == "regular"]
    statics_only = not clustering and bool(table.clustering) and bool(statics) and not regulars
    if not statics_only and len(clustering) != len(table.clustering):
        missing = next(column.name for column in table.clustering if column.name not in given)
        raise InvalidRequest(f"Missing mandatory PRIMARY KEY part {missing}")
    parts = [(given[column.name], column.name) for column in table.clustering if column.name in given]
    prepare = compile_attributes(statement.attributes, table, scope)

    def clustering_key(run: Run) -> ClusteringKey:
        return row_key([required(part(run), name) for part, name in parts], table)

    # In the order of the statement, in which the elements of lists are counted.
    writers = [(operation.column.kind == "static", operation.apply) for operation in operations]

    def build(run: Run, reader: Reader) -> list[PartitionMutation]:
        mutation = PartitionMutation(table, key(run))
        row = RowMutation(Marker(run.timestamp, run.ttl, run.expiry))
        if not statics_only:
            mutation.rows[clustering_key(run)] = row
        for static, write in writers:
            write(run, mutation.static if static else row.cells, no_elements)
        return [mutation]

    return WritePlan(
        table,
        "insert",
        prepare,
        build,
        lambda run: [key(run)],
        None if statics_only else lambda run: [clustering_key(run)],
        None,
        compile_conditions(statement.conditions, table, scope, not statics_only),
        False,
        statement.attributes.timestamp is not None,
    )
