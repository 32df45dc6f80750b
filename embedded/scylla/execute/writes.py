"""INSERT, UPDATE and DELETE as plans: compiled once, run per execution into mutations.

In: a statement's tree and its table. Out: a `WritePlan`; run, it gives one mutation per partition, not yet merged,
logged or applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from connector.values.types import native
from embedded.scylla.cql.tree import (
    Attributes,
    Delete,
    Insert,
    InsertJson,
    Modification,
    Relation,
    TokenRelation,
    Update,
)
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.conditions import CompiledConditions, compile_conditions
from embedded.scylla.execute.operations import (
    Current,
    Elements,
    Operation,
    assign,
    compile_assignment,
    compile_deletion,
)
from embedded.scylla.execute.restrictions import Restrictions, required
from embedded.scylla.execute.run import Bound, Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.hooks import Reader
from embedded.scylla.merge import is_empty_range
from embedded.scylla.mutation import (
    ClusteringKey,
    Marker,
    PartitionMutation,
    RangeTombstone,
    RowMutation,
    Slice,
)
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column, Table, partition_key_bytes

MAX_TTL = 20 * 365 * 24 * 3600
Keys = Callable[[Run], list[bytes]]
Rows = Callable[[Run], list[ClusteringKey]]
Build = Callable[[Run, Reader], list[PartitionMutation]]


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A compiled modification. `rows` gives the addressed rows, `slices` the deleted ranges; both are None when the
    statement is about statics or whole partitions only. `reads`: present lists are looked at."""

    table: Table
    kind: str
    prepare: Callable[[Run, int | None], None]
    build: Build
    keys: Keys
    rows: Rows | None
    slices: Callable[[Run], list[Slice]] | None
    conditions: CompiledConditions | None
    reads: bool
    timestamped: bool


def compile_write(statement: Modification, table: Table, scope: Scope) -> WritePlan:
    if isinstance(statement, Insert):
        return _insert(statement, table, scope)
    if isinstance(statement, InsertJson):
        from embedded.scylla.execute.json_insert import compile_json_insert

        return compile_json_insert(statement, table, scope)
    if isinstance(statement, Update):
        return _update(statement, table, scope)
    return _delete(statement, table, scope)


# ---- USING -------------------------------------------------------------------------------------------------------


def compile_attributes(attributes: Attributes, table: Table, scope: Scope) -> Callable[[Run, int | None], None]:
    """Sets the run's timestamp and TTL for this statement; `batch` is the timestamp of the BATCH around it."""
    timestamp = (
        compile_term(attributes.timestamp, "[timestamp]", native("bigint"), scope)
        if attributes.timestamp is not None
        else None
    )
    ttl = compile_term(attributes.ttl, "[ttl]", native("int"), scope) if attributes.ttl is not None else None
    if attributes.timeout is not None:
        compile_term(attributes.timeout, "[timeout]", native("duration"), scope)
    default = table.default_time_to_live
    if timestamp is None and ttl is None and not default:
        return _plain

    def prepare(run: Run, batch: int | None) -> None:
        _plain(run, batch)
        if timestamp is not None:
            raw = timestamp(run)
            if raw is None:
                raise InvalidRequest("Invalid null value of timestamp")
            if raw is not UNSET:
                run.timestamp = int.from_bytes(cast(bytes, raw), "big", signed=True)
                run.explicit = True
        seconds = default if ttl is None else _seconds(ttl(run), default)
        if seconds:
            run.ttl, run.expiry = seconds, run.now_s + seconds

    return prepare


def _plain(run: Run, batch: int | None) -> None:
    run.ttl = run.expiry = 0
    if batch is not None:
        run.timestamp, run.explicit = batch, True
        return
    given = run.context.default_timestamp
    run.timestamp = run.ticker.micros() if given is None else given
    run.explicit = False


def _seconds(raw: object, default: int) -> int:
    if raw is UNSET:
        return default
    # Null and zero both mean that nothing expires, even against the table's default.
    if raw is None:
        return 0
    ttl = int.from_bytes(cast(bytes, raw), "big", signed=True)
    if ttl < 0:
        raise InvalidRequest("A TTL must be greater or equal to 0")
    if ttl > MAX_TTL:
        raise InvalidRequest(f"ttl is too large. requested ({ttl}) maximum ({MAX_TTL})")
    return ttl


# ---- helpers -----------------------------------------------------------------------------------------------------


def _column(table: Table, name: str) -> Column:
    column = table.by_name.get(name)
    if column is None:
        raise InvalidRequest(f"Unknown identifier {name}")
    return column


def no_elements(name: str) -> Elements | None:
    """`Current` for statements that read nothing."""
    return None


def current_elements(reader: Reader, table: Table, key: bytes, row: ClusteringKey | None) -> Current:
    """Reads a multi-cell column of one row (or of the statics), when asked."""

    def current(name: str) -> Elements | None:
        column = table.by_name[name]
        if column.kind == "static":
            value = reader.static(table, key).get(name)
        else:
            live = reader.row(table, key, row or ())
            value = live.cells.get(name) if live is not None else None
        return value if isinstance(value, list) else None

    return current


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


# ---- INSERT ------------------------------------------------------------------------------------------------------


def _insert(statement: Insert, table: Table, scope: Scope) -> WritePlan:
    if len(statement.columns) != len(statement.values):
        raise InvalidRequest("Unmatched column names/values")
    if not statement.columns:
        raise InvalidRequest("No columns provided to INSERT")
    given: dict[str, Bound] = {}
    operations: list[Operation] = []
    for name, term in zip(statement.columns, statement.values):
        column = _column(table, name)
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

    def row_key(run: Run) -> ClusteringKey:
        return tuple([required(part(run), name) for part, name in parts])

    static_writers = [operation.apply for operation in statics]
    writers = [operation.apply for operation in regulars]

    def build(run: Run, reader: Reader) -> list[PartitionMutation]:
        mutation = PartitionMutation(table, key(run))
        for write in static_writers:
            write(run, mutation.static, no_elements)
        if not statics_only:
            row = RowMutation(Marker(run.timestamp, run.ttl, run.expiry))
            mutation.rows[row_key(run)] = row
            cells = row.cells
            for write in writers:
                write(run, cells, no_elements)
        return [mutation]

    return WritePlan(
        table,
        "insert",
        prepare,
        build,
        lambda run: [key(run)],
        None if statics_only else lambda run: [row_key(run)],
        None,
        compile_conditions(statement.conditions, table, scope, not statics_only),
        False,
        statement.attributes.timestamp is not None,
    )


# ---- UPDATE and DELETE -------------------------------------------------------------------------------------------


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
    statics = [operation for operation in operations if operation.column.kind == "static"]
    regulars = [operation for operation in operations if operation.column.kind == "regular"]
    reads = any(operation.reads for operation in operations)

    def build(run: Run, reader: Reader) -> list[PartitionMutation]:
        mutations = []
        rows = restrictions.clustering_keys(run) if addressed else []
        for key in restrictions.partition_keys(run):
            mutation = PartitionMutation(table, key)
            current: Current = current_elements(reader, table, key, None) if reads else no_elements
            for operation in statics:
                operation.apply(run, mutation.static, current)
            for row in rows if regulars else ():
                written = RowMutation()
                current = current_elements(reader, table, key, row) if reads else no_elements
                for operation in regulars:
                    operation.apply(run, written.cells, current)
                if written.cells:
                    mutation.rows[row] = written
            mutations.append(mutation)
        return mutations

    return build


def _update(statement: Update, table: Table, scope: Scope) -> WritePlan:
    prepare = compile_attributes(statement.attributes, table, scope)
    operations: list[Operation] = []
    whole: set[str] = set()
    parts: set[str] = set()
    for assignment in statement.assignments:
        column = _column(table, assignment.column)
        if column.kind in ("partition_key", "clustering"):
            raise InvalidRequest(f"PRIMARY KEY part {column.name} found in SET part")
        partial = assignment.key is not None or assignment.field is not None
        if column.name in whole or (not partial and column.name in parts):
            raise InvalidRequest(f"Multiple incompatible setting of column {column.name}")
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


def _delete(statement: Delete, table: Table, scope: Scope) -> WritePlan:
    prepare = compile_attributes(statement.attributes, table, scope)
    if statement.attributes.ttl is not None:
        raise InvalidRequest("TTL is not allowed in DELETE")
    operations: list[Operation] = []
    for deletion in statement.deletions:
        column = _column(table, deletion.column)
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
            if restrictions.clustering and restrictions.ends_in_slice:
                raise InvalidRequest("Range deletions are not supported for specific columns")
            raise _missing(table, restrictions)
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


def _refuse_partial(table: Table, restrictions: Restrictions, columns: bool, relations: bool) -> None:
    if columns or restrictions.full:
        return
    raise InvalidRequest(
        "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to delete non "
        "static columns"
    )


def _build_deletion(table: Table, restrictions: Restrictions, addressed: bool) -> Build:
    """Mutations of row, range and partition deletions."""
    whole = not restrictions.clustering
    sort_key = table.sort_key

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
                mutation.ranges = [
                    RangeTombstone(start, end, timestamp)
                    for start, end in slices
                    if not is_empty_range(start, end, sort_key)
                ]
            mutations.append(mutation)
        return mutations

    return build
