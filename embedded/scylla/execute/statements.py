"""From a syntax tree to something that runs.

In: a parsed statement, the catalog, the current keyspace. Out: a `Compiled`: what it binds, what it answers,
and a function of values and context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connector.values import native
from embedded.scylla.catalog import Catalog
from embedded.scylla.cql import tree
from embedded.scylla.cql.parser import Parsed
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute import indexes, keyspaces, tables, views
from embedded.scylla.execute.apply import Writer, answer_columns
from embedded.scylla.execute.run import Run, Ticker
from embedded.scylla.execute.select import compile_select, guarded
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.execute.writeplan import WritePlan
from embedded.scylla.execute.writes import compile_write
from embedded.scylla.results import UNSET, BoundValue, ColumnSpec, RequestContext, Result
from embedded.scylla.schema import Table

#: SERIAL and LOCAL_SERIAL: a SELECT at these is a lightweight transaction.
_SERIAL = (8, 9)

Execute = Callable[[Sequence[BoundValue], RequestContext], Result]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement ready to run. `plan` is set for a single modification, so that it can be part of a batch;
    `tables` are those that it was compiled for; `conditional` statements are lightweight transactions."""

    variables: tuple[ColumnSpec, ...]
    pk_indexes: tuple[int, ...]
    result_columns: tuple[ColumnSpec, ...] | None
    run: Execute
    tables: tuple[Table, ...] = ()
    plan: WritePlan | None = None
    conditional: bool = False


class Compiler:
    """Compiles statements against one catalog."""

    def __init__(self, catalog: Catalog, ticker: Ticker, writer: Writer) -> None:
        self._catalog = catalog
        self._ticker = ticker
        self._writer = writer

    def compile(self, parsed: Parsed, current: str | None) -> Compiled:
        statement = parsed.statement
        if isinstance(statement, tree.Select):
            return self._select(statement, parsed.markers, current)
        if isinstance(statement, tree.Insert | tree.InsertJson | tree.Update | tree.Delete):
            return self._write(statement, parsed.markers, current)
        if isinstance(statement, tree.Batch):
            return self._batch(statement, parsed.markers, current)
        return Compiled((), (), None, self._definition(statement, current))

    def _scope(self, name: tree.Name, markers: tuple[str | None, ...], current: str | None) -> tuple[Scope, Table]:
        catalog = self._catalog
        keyspace = catalog.keyspace_name(name.keyspace, current)
        table = catalog.table(keyspace, name.name)
        return Scope(keyspace, table, catalog.schema.user_types(keyspace), markers), table

    def _select(self, statement: tree.Select, markers: tuple[str | None, ...], current: str | None) -> Compiled:
        scope, table = self._scope(statement.name, markers, current)
        plan = compile_select(statement, table, scope, self._catalog.store)
        catalog, clock, ticker = self._catalog, self._catalog.clock, self._ticker
        execute = guarded(plan, lambda *asked: catalog.require(*asked))

        def run(values: Sequence[BoundValue], context: RequestContext) -> Result:
            if context.consistency in _SERIAL:
                catalog.begin_transaction(table)
            return execute(Run(values, context, clock, ticker))

        return Compiled(_variables(scope), _pk_indexes(scope.targets, table), plan.columns, run, (table,))

    def _write(self, statement: tree.Modification, markers: tuple[str | None, ...], current: str | None) -> Compiled:
        scope, table = self._scope(statement.name, markers, current)
        self._catalog.writable(table)
        plan = compile_write(statement, table, scope)
        writer = self._writer

        def run(values: Sequence[BoundValue], context: RequestContext) -> Result:
            return writer.write(plan, values, context)

        conditional = plan.conditions is not None
        pk_indexes = _pk_indexes(scope.targets, table)
        return Compiled(_variables(scope), pk_indexes, answer_columns(plan), run, (table,), plan, conditional)

    def _batch(self, statement: tree.Batch, markers: tuple[str | None, ...], current: str | None) -> Compiled:
        if statement.attributes.ttl is not None:
            raise InvalidRequest("Global TTL on the BATCH statement is not supported.")
        refuse_counters(statement.kind)
        variables: dict[int, ColumnSpec] = {}
        targets: list[tuple[str, int]] = []
        plans: list[WritePlan] = []
        involved: list[Table] = []
        for inner in statement.statements:
            scope, table = self._scope(inner.name, markers, current)
            self._catalog.writable(table)
            plans.append(compile_write(inner, table, scope))
            variables.update(scope.variables)
            targets += scope.targets
            involved.append(table)
        outer = Scope("", None, {}, markers)
        given = statement.attributes.timestamp
        timestamp = compile_term(given, "[timestamp]", native("bigint"), outer) if given is not None else None
        variables.update(outer.variables)
        writer, clock, ticker = self._writer, self._catalog.clock, self._ticker

        def run(values: Sequence[BoundValue], context: RequestContext) -> Result:
            stamp: int | None = None
            if timestamp is not None:
                raw = timestamp(Run(values, context, clock, ticker))
                if raw is None:
                    raise InvalidRequest("Invalid null value of timestamp")
                if raw is not UNSET:
                    stamp = int.from_bytes(raw, "big", signed=True)  # type: ignore[arg-type]
            return writer.batch([(plan, values) for plan in plans], context, stamp, one_text=True)

        if timestamp is not None and any(plan.timestamped for plan in plans):
            raise InvalidRequest("Timestamp must be set either on BATCH or individual statements")
        # ScyllaDB compares the first statement's table with the last one's only. Keys of several partitions leave the
        # position of the last.
        one_table = involved and involved[0] is involved[-1]
        pk_indexes = _pk_indexes(targets, involved[0]) if one_table else ()
        ordered = tuple(variables[at] for at in sorted(variables))
        conditional = any(plan.conditions is not None for plan in plans)
        return Compiled(ordered, pk_indexes, None, run, tuple(involved), conditional=conditional)

    def _definition(self, statement: tree.Statement, current: str | None) -> Execute:
        catalog = self._catalog

        def run(values: Sequence[BoundValue], context: RequestContext) -> Result:
            if isinstance(statement, tree.Refused):
                views.refuse(statement, context.user)
            return _define(statement, catalog, context.keyspace or current)

        return run


def _define(statement: tree.Statement, catalog: Catalog, current: str | None) -> Result:
    if isinstance(statement, tree.CreateTable):
        return tables.create_table(statement, catalog, current)
    if isinstance(statement, tree.AlterTable):
        return tables.alter_table(statement, catalog, current)
    if isinstance(statement, tree.DropTable):
        return tables.drop_table(statement, catalog, current)
    if isinstance(statement, tree.CreateKeyspace):
        return keyspaces.create_keyspace(statement, catalog)
    if isinstance(statement, tree.AlterKeyspace):
        return keyspaces.alter_keyspace(statement, catalog)
    if isinstance(statement, tree.DropKeyspace):
        return keyspaces.drop_keyspace(statement, catalog)
    if isinstance(statement, tree.CreateType):
        return keyspaces.create_type(statement, catalog, current)
    if isinstance(statement, tree.AlterType):
        return keyspaces.alter_type(statement, catalog, current)
    if isinstance(statement, tree.DropType):
        return keyspaces.drop_type(statement, catalog, current)
    if isinstance(statement, tree.Use):
        return keyspaces.use(statement, catalog)
    if isinstance(statement, tree.Truncate):
        return keyspaces.truncate(statement, catalog, current)
    if isinstance(statement, tree.CreateIndex):
        return indexes.create_index(statement, catalog, current)
    if isinstance(statement, tree.DropIndex):
        return indexes.drop_index(statement, catalog, current)
    if isinstance(statement, tree.PruneView):
        views.refuse_pruning(statement, catalog, current)
    assert isinstance(statement, tree.CreateView)
    views.refuse_view(statement, catalog, current)


def refuse_counters(kind: str) -> None:
    if kind == "counter":
        raise InvalidRequest("Cannot include non-counter statement in a counter batch")


def _variables(scope: Scope) -> tuple[ColumnSpec, ...]:
    return tuple(scope.variables[at] for at in sorted(scope.variables))


def _pk_indexes(targets: Sequence[tuple[str, int]], table: Table) -> tuple[int, ...]:
    """The bind variables that make up the partition key, the last where several are for one column; none unless they
    all do."""
    found = dict(targets)
    indexes = tuple(found[column.name] for column in table.partition_key if column.name in found)
    return indexes if len(indexes) == len(table.partition_key) else ()
