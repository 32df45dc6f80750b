"""Where change data capture joins the engine: before writes are applied, and at schema changes.

In: what a statement is about to write or change. Out: what is to be written or changed instead (base and log
together).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from embedded.scylla.mutation import ClusteringKey, PartitionMutation
from embedded.scylla.results import RequestContext
from embedded.scylla.schema import Column, Keyspace, Table
from embedded.scylla.store import LiveCells, LiveRow, TableStore


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one ALTER TABLE does. `options` are the WITH properties as given, `cdc` among them."""

    added: tuple[Column, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class Reader(Protocol):
    """Current rows of a table, for pre-images: what lives now, before the write that is being augmented."""

    def row(self, table: Table, key: bytes, clustering: ClusteringKey) -> LiveRow | None: ...

    def static(self, table: Table, key: bytes) -> LiveCells: ...


class CdcHooks(Protocol):
    """What the engine asks of the CDC room. Every method may raise a `CqlError`; then nothing has happened."""

    def augment(
        self, mutations: list[PartitionMutation], context: RequestContext, reader: Reader
    ) -> list[PartitionMutation]:
        """Called with the merged, non-empty mutations of one request before they are applied; gives all that is to be
        applied, log rows included."""
        ...

    def create_table(self, table: Table) -> Sequence[Table]:
        """Called before a table is added: gives the tables to add, the (possibly completed) table itself first."""
        ...

    def alter_table(self, old: Table, new: Table, change: TableChange) -> Sequence[Table]:
        """Called before an ALTER takes effect: gives the tables to put, the (possibly completed) table first."""
        ...

    def refuse_columns(self, table: Table, *, renames: bool) -> None:
        """Called first of all when columns are added, dropped or renamed: raises if the table's columns are fixed."""
        ...

    def drop_table(self, table: Table) -> Sequence[Table]:
        """Called before a table is dropped: gives all tables to drop, this one first."""
        ...

    def dropped_table(self, table: Table) -> None:
        """Called when a table, its store included, is gone."""
        ...

    def create_keyspace(self, keyspace: Keyspace) -> None:
        """Called before a keyspace is added."""
        ...

    def drop_keyspace(self, keyspace: Keyspace) -> None:
        """Called when a keyspace and its tables are gone."""
        ...

    def open_store(self, table: Table) -> TableStore | None:
        """Called when a table has been added: its own store, or None for the ordinary one."""
        ...


def new_table_id() -> uuid.UUID:
    """Table ids are time-based, as ScyllaDB's."""
    return uuid.uuid1()
