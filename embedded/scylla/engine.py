"""The engine: CQL text or prepared statements in, results out, over one schema and one set of stores.

In: statements with their bound values and a `RequestContext`. Out: a `Result`, or a `CqlError`. Single-threaded; every
call is complete when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embedded.scylla.clock import Clock
from embedded.scylla.hooks import CdcHooks, NoCdc
from embedded.scylla.results import BoundValue, ColumnSpec, RequestContext, Result
from embedded.scylla.schema import Schema, Table
from embedded.scylla.store import TableStore

Values = Sequence[BoundValue] | Mapping[str, BoundValue]


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

    def __init__(self, schema: Schema, clock: Clock, cdc: CdcHooks | None = None) -> None:
        self.schema = schema
        self.clock = clock
        self.cdc: CdcHooks = cdc or NoCdc()
        self.stores: dict[Any, TableStore] = {}

    def add_virtual_table(self, table: VirtualTable) -> None:
        """Adds the table to the schema (its keyspace must be there) and serves it."""
        raise NotImplementedError

    def prepare(self, query: str, keyspace: str | None = None) -> Prepared:
        raise NotImplementedError

    def execute(self, statement: str | Prepared, values: Values, context: RequestContext) -> Result:
        raise NotImplementedError

    def batch(
        self, kind: str, entries: Sequence[BatchEntry], context: RequestContext, timestamp: int | None = None
    ) -> Result:
        """`kind` is "logged", "unlogged" or "counter"."""
        raise NotImplementedError
