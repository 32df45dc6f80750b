"""UPDATE and DELETE as plans.

In: a statement's tree and its table. Out: a `WritePlan`. What is deleted is a column, a row, a range of rows
or the whole partition, by what WHERE restricts.
"""

from __future__ import annotations

from embedded.scylla.cql.tree import Delete, Relation, TokenRelation, Update
from embedded.scylla.errors import InvalidRequest, SyntaxException
from embedded.scylla.execute.attributes import compile_attributes
from embedded.scylla.execute.candidates import row_key
from embedded.scylla.execute.conditions import compile_conditions
from embedded.scylla.execute.operations import Current, Operation, compile_assignment, compile_deletion
from embedded.scylla.execute.restrictions import Restrictions
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.terms import Scope
from embedded.scylla.execute.writeplan import Build, WritePlan, current_elements, known_column, no_elements
from embedded.scylla.hooks import Reader
from embedded.scylla.merge import is_empty_range, only_row, with_range
from embedded.scylla.mutation import Bound, PartitionMutation, RangeTombstone, RowMutation
from embedded.scylla.schema import Table


def _where(statement: Update | Delete, table: Table, scope: Scope) -> Restrictions:
    foreign = []
    for relation in statement.where:
        if isinstance(relation, TokenRelation):
            raise InvalidRequest("The token function cannot be used in WHERE clauses for UPDATE and DELETE statements")
        if isinstance(relation, Relation):
            column = table.by_name.get(relation.column)
            if column is None:
                raise InvalidRequest(f"Unrecognized name {relation.column}")
            if column.kind in ("static", "regular"):
                foreign.append(relation.column)
            elif relation.operator.startswith("CONTAINS"):
                raise InvalidRequest(
                    f"Cannot restrict {column.kind.replace('_', ' ')} columns by a CONTAINS relation "
                    "without a secondary index or filtering"
                )
    if foreign:
        raise InvalidRequest(f"Invalid where clause contains non PRIMARY KEY columns: {', '.join(foreign)}")
    restrictions = Restrictions(table, statement.where, scope, False)
    if restrictions.key_values is None:
        named = {column for relation in statement.where for column in _named(relation)}
        missing = next((c.name for c in table.partition_key if c.name not in named), table.partition_key[0].name)
        raise InvalidRequest(f"Missing mandatory PRIMARY KEY part {missing}")
    return restrictions


def _named(relation: object) -> tuple[str, ...]:
    return (relation.column,) if isinstance(relation, Relation) else getattr(relation, "columns", ())


def _refuse_in(restrictions: Restrictions, what: str) -> None:
    if not restrictions.single_partition:
        raise InvalidRequest(f"IN on the partition key is not supported with conditional {what}")
    if restrictions.full and not restrictions.single_row:
        raise InvalidRequest(f"IN on the clustering key columns is not supported with conditional {what}")


def _missing(table: Table, restrictions: Restrictions) -> InvalidRequest:
    missing = table.clustering[min(restrictions.prefix_columns, len(table.clustering) - 1)].name
    return InvalidRequest(f"Missing mandatory PRIMARY KEY part {missing}")


def _build(table: Table, restrictions: Restrictions, operations: list[Operation], addressed: bool) -> Build:
    """Mutations of column operations on rows (`addressed`) and statics."""
    reads = any(operation.reads for operation in operations)

    def build(run: Run, reader: Reader) -> list[PartitionMutation]:
        mutations = []
        rows = restrictions.clustering_keys(run) if addressed else []
        for key in restrictions.partition_keys(run):
            mutation = PartitionMutation(table, key)
            current: Current = current_elements(reader, table, key, None) if reads else no_elements
            if not addressed:
                for operation in operations:
                    operation.apply(run, mutation.static, current)
            for row in rows:
                written = RowMutation()
                of_row = current_elements(reader, table, key, row) if reads else no_elements
                for operation in operations:
                    # Statics are written once for each row, so that IN appends to a static list several times.
                    if operation.column.kind == "static":
                        operation.apply(run, mutation.static, current)
                    else:
                        operation.apply(run, written.cells, of_row)
                if written.cells:
                    mutation.rows[row] = written
            mutations.append(mutation)
        return mutations

    return build


def compile_update(statement: Update, table: Table, scope: Scope) -> WritePlan:
    prepare = compile_attributes(statement.attributes, table, scope)
    operations: list[Operation] = []
    whole: set[str] = set()
    parts: set[str] = set()
    for assignment in statement.assignments:
        column = known_column(table, assignment.column)
        if column.kind in ("partition_key", "clustering"):
            raise InvalidRequest(f"PRIMARY KEY part {column.name} found in SET part")
        partial = assignment.key is not None or assignment.field is not None or assignment.operator != "="
        if column.name in whole or (not partial and column.name in parts):
            raise SyntaxException(f"Multiple incompatible setting of column {column.name}")
        (parts if partial else whole).add(column.name)
        operations.append(compile_assignment(assignment, column, scope))
    restrictions = _where(statement, table, scope)
    statics_only = all(operation.column.kind == "static" for operation in operations)
    conditional_row = any(
        table.by_name[relation.column].kind == "regular"
        for relation in statement.conditions.relations
        if relation.column in table.by_name
    )
    if statics_only and not restrictions.clustering and table.clustering and not conditional_row:
        addressed = False
    elif statics_only and restrictions.clustering and not conditional_row:
        raise InvalidRequest(
            "Invalid restrictions on clustering columns since the UPDATE statement modifies only static columns"
        )
    else:
        addressed = True
        if not restrictions.full:
            raise _slice_error(table, restrictions)
    if statement.conditions:
        _refuse_in(restrictions, "updates")
    return WritePlan(
        table,
        "update",
        prepare,
        _build(table, restrictions, operations, addressed),
        restrictions.partition_keys,
        restrictions.clustering_keys if addressed else None,
        None,
        compile_conditions(statement.conditions, table, scope, addressed),
        any(operation.reads for operation in operations),
        statement.attributes.timestamp is not None,
    )


def _slice_error(table: Table, restrictions: Restrictions) -> InvalidRequest:
    if restrictions.clustering and restrictions.prefix_columns and restrictions.ends_in_slice:
        return InvalidRequest("Invalid operator in where clause")
    return _missing(table, restrictions)


def compile_delete(statement: Delete, table: Table, scope: Scope) -> WritePlan:
    prepare = compile_attributes(statement.attributes, table, scope)
    if statement.attributes.ttl is not None:
        raise InvalidRequest("TTL is not allowed in DELETE")
    operations: list[Operation] = []
    for deletion in statement.deletions:
        column = known_column(table, deletion.column)
        if column.kind in ("partition_key", "clustering"):
            raise InvalidRequest(f"Invalid identifier {column.name} for deletion (should not be a PRIMARY KEY part)")
        operations.append(compile_deletion(deletion, column, scope))
    restrictions = _where(statement, table, scope)
    regulars = any(operation.column.kind == "regular" for operation in operations)
    conditional_row = any(
        table.by_name[relation.column].kind == "regular"
        for relation in statement.conditions.relations
        if relation.column in table.by_name
    )
    addressed = restrictions.full and (bool(table.clustering) or bool(operations))
    if operations:
        if not regulars and table.clustering and not conditional_row:
            if restrictions.clustering:
                raise InvalidRequest(
                    "Invalid restrictions on clustering columns since the DELETE statement modifies only static columns"
                )
            addressed = False
        elif not restrictions.full:
            raise _unaddressed(statement, table, restrictions, regulars)
        build = _build(table, restrictions, operations, addressed)
    else:
        build = _build_deletion(table, restrictions, addressed)
    if statement.conditions:
        _refuse_in(restrictions, "deletions")
        _refuse_partial(table, restrictions, bool(operations), statement.conditions.relations != ())
    return WritePlan(
        table,
        "delete",
        prepare,
        build,
        restrictions.partition_keys,
        restrictions.clustering_keys if restrictions.full else None,
        None if restrictions.full or operations else restrictions.slices,
        compile_conditions(
            statement.conditions, table, scope, restrictions.full and (addressed or not table.clustering)
        ),
        any(operation.reads for operation in operations),
        statement.attributes.timestamp is not None,
    )


def _unaddressed(statement: Delete, table: Table, restrictions: Restrictions, regulars: bool) -> InvalidRequest:
    """The error for deleting columns of rows that are not fully named."""
    whole_key = "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to"
    if not regulars:
        return InvalidRequest(f"{whole_key} use IF condition on non static columns")
    if restrictions.clustering and restrictions.ends_in_slice:
        if statement.conditions:
            return InvalidRequest(f"{whole_key} delete non static columns")
        return InvalidRequest("Range deletions are not supported for specific columns")
    missing = table.clustering[min(restrictions.prefix_columns, len(table.clustering) - 1)].name
    first = next(d.column for d in statement.deletions if table.by_name[d.column].kind == "regular")
    return InvalidRequest(f"Primary key column '{missing}' must be specified in order to modify column '{first}'")


def _refuse_partial(table: Table, restrictions: Restrictions, columns: bool, relations: bool) -> None:
    if columns or restrictions.full:
        return
    raise InvalidRequest(
        "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to delete non "
        "static columns"
    )


def _delete_slice(mutation: PartitionMutation, start: Bound, end: Bound, timestamp: int) -> None:
    table = mutation.table
    row = only_row(start, end, table)
    if row is not None:
        mutation.rows[row_key(list(row), table)] = RowMutation(deletion=timestamp)
    elif not is_empty_range(start, end, table.sort_key):
        tombstone = RangeTombstone(start, end, timestamp)
        mutation.ranges = with_range(mutation.ranges, tombstone, table.sort_key)


def _build_deletion(table: Table, restrictions: Restrictions, addressed: bool) -> Build:
    """Mutations of row, range and partition deletions."""
    whole = not restrictions.clustering

    def build(run: Run, reader: Reader) -> list[PartitionMutation]:
        mutations = []
        timestamp = run.timestamp
        rows = restrictions.clustering_keys(run) if addressed else []
        slices = [] if addressed or whole else restrictions.slices(run)
        for key in restrictions.partition_keys(run):
            mutation = PartitionMutation(table, key)
            if addressed:
                for row in rows:
                    mutation.rows[row] = RowMutation(deletion=timestamp)
            elif whole:
                mutation.deletion = timestamp
            else:
                for start, end in slices:
                    _delete_slice(mutation, start, end, timestamp)
            mutations.append(mutation)
        return mutations

    return build
