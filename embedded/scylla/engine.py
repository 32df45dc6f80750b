"""The engine: CQL text or prepared statements in, results out, over one schema and one set of stores.

In: statements with their bound values and a `RequestContext`. Out: a `Result`, or a `CqlError`. Single-
threaded; every call is complete when it returns.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embedded.scylla.catalog import Catalog
from embedded.scylla.clock import Clock
from embedded.scylla.cql.parser import parse
from embedded.scylla.errors import InvalidRequest, Unprepared
from embedded.scylla.execute.apply import Step, Writer
from embedded.scylla.execute.run import Ticker
from embedded.scylla.execute.statements import Compiled, Compiler, refuse_counters
from embedded.scylla.hooks import CdcHooks
from embedded.scylla.results import UNSET, BoundValue, ColumnSpec, RequestContext, Result
from embedded.scylla.schema import Schema, SchemaEvent, Table, partition_key_bytes
from embedded.scylla.store import TableStore
from embedded.scylla.versions import NEWEST, VERSIONS, Version
from embedded.scylla.virtualstore import VirtualStore

Values = Sequence[BoundValue] | Mapping[str, BoundValue]
_CACHED_STATEMENTS = 512


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement ready to run. `result_columns` is None unless it answers rows; `pk_indexes` are the bind variables
    that make up the partition key, empty when they do not."""

    id: bytes
    query: str
    keyspace: str | None
    variables: tuple[ColumnSpec, ...]
    pk_indexes: tuple[int, ...]
    result_columns: tuple[ColumnSpec, ...] | None
    run: Callable[[Sequence[BoundValue], RequestContext], Result]
    compiled: Compiled


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One statement of a protocol-level BATCH."""

    statement: str | Prepared
    values: Sequence[BoundValue] = ()


@dataclass(frozen=True, slots=True)
class VirtualTable:
    """A table whose rows are computed at each read: column name → Python value as `connector.values.binary` encodes
    it (missing or None is null), in any order."""

    schema: Table
    scan: Callable[[], Iterable[Mapping[str, Any]]]


class Engine:
    """One per server: all nodes share it."""

    def __init__(self, schema: Schema, clock: Clock, cdc: CdcHooks, version: Version = VERSIONS[NEWEST]) -> None:
        self.schema = schema
        self.clock = clock
        self.cdc = cdc
        self.stores: dict[uuid.UUID, TableStore] = {}
        self.catalog = Catalog(schema, clock, self.cdc, self.stores, version)
        self._ticker = Ticker(clock)
        self._writer = Writer(self.catalog, self._ticker)
        self._compiler = Compiler(self.catalog, self._ticker, self._writer)
        self._compiled: dict[tuple[uuid.UUID, str | None, str], Compiled] = {}
        schema.listen(self._schema_changed)

    def _schema_changed(self, event: SchemaEvent) -> None:
        self._compiled.clear()

    def add_virtual_table(self, table: VirtualTable) -> None:
        """Adds the table to the schema (its keyspace must be there) and serves it."""
        self.stores[table.schema.id] = VirtualStore(table.schema, table.scan)
        self.catalog.virtual.add(table.schema.id)
        self.schema.put_table(table.schema)

    def _compile(self, query: str, keyspace: str | None) -> Compiled:
        """Compiles, or finds what was compiled for the same text since the last schema change."""
        key = (self.schema.version, keyspace, query)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiler.compile(parse(query), keyspace)
            if len(self._compiled) >= _CACHED_STATEMENTS:
                self._compiled.clear()
            self._compiled[key] = found
        return found

    def prepare(self, query: str, keyspace: str | None = None) -> Prepared:
        compiled = self._compile(query, keyspace)
        statement_id = hashlib.md5(f"{keyspace or ''}\0{query}".encode(), usedforsecurity=False).digest()
        return Prepared(
            statement_id,
            query,
            keyspace,
            compiled.variables,
            compiled.pk_indexes,
            compiled.result_columns,
            compiled.run,
            compiled,
        )

    def execute(self, statement: str | Prepared, values: Values, context: RequestContext) -> Result:
        if isinstance(statement, Prepared):
            self._check_current(statement)
            compiled = statement.compiled
        else:
            compiled = self._compile(statement, context.keyspace)
        if isinstance(values, Mapping) or len(values) != len(compiled.variables):
            values = _positional(values, compiled.variables)
        return compiled.run(values, context)

    def partition_of(self, statement: str | Prepared, values: Values, keyspace: str | None) -> tuple[Table, int] | None:
        """Table and token of a statement that binds the whole key of a partition with a tablet; None for all others."""
        compiled = statement.compiled if isinstance(statement, Prepared) else self._compile(statement, keyspace)
        if not compiled.pk_indexes or (compiled.plan is None and compiled.result_columns is None):
            return None
        keyspace_of = self.schema.keyspace(compiled.tables[0].keyspace)
        if keyspace_of is None or not keyspace_of.uses_tablets:
            return None
        bound = _positional(values, compiled.variables)
        cells = [cell for at in compiled.pk_indexes if isinstance(cell := bound[at], bytes)]
        if len(cells) < len(compiled.pk_indexes):
            return None
        table = compiled.tables[0]
        return table, table.token_of(partition_key_bytes(tuple(cells)))

    def _check_current(self, prepared: Prepared) -> None:
        """A statement that was prepared for a table as it no longer is must be prepared again."""
        for table in prepared.compiled.tables:
            if self.schema.table(table.keyspace, table.name) is not table:
                raise Unprepared(prepared.id)

    def batch(
        self, kind: str, entries: Sequence[BatchEntry], context: RequestContext, timestamp: int | None = None
    ) -> Result:
        """`kind` is "logged", "unlogged" or "counter"."""
        refuse_counters(kind)
        steps: list[Step] = []
        for entry in entries:
            if isinstance(entry.statement, Prepared):
                self._check_current(entry.statement)
                compiled = entry.statement.compiled
            else:
                compiled = self._compile(entry.statement, context.keyspace)
            if compiled.plan is None:
                raise InvalidRequest(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed."
                )
            steps.append((compiled.plan, _positional(entry.values, compiled.variables)))
        return self._writer.batch(steps, context, timestamp, one_text=False)


def _positional(values: Values, variables: tuple[ColumnSpec, ...]) -> Sequence[BoundValue]:
    """The values in the order of the bind variables. Named ones may be left out: they are unset then."""
    if isinstance(values, Mapping):
        return [values.get(variable.name, UNSET) for variable in variables]
    if len(values) != len(variables):
        raise InvalidRequest(f"Invalid amount of bind variables: expected {len(variables)} received {len(values)}")
    return values
