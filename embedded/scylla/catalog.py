"""Schema and stores changed together, with the CDC room asked before and notified after.

In: finished tables and keyspaces from DDL. Out: the registry, and for every table its open store.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping

from embedded.scylla.clock import Clock
from embedded.scylla.errors import InvalidRequest, Unauthorized
from embedded.scylla.hooks import CdcHooks, TableChange
from embedded.scylla.identity import DATACENTER
from embedded.scylla.mutation import FULL_SLICE, Bound, ClusteringKey, Slice
from embedded.scylla.paxos import is_paxos_state, paxos_name, paxos_state
from embedded.scylla.results import RequestContext
from embedded.scylla.rowstore import RowStore
from embedded.scylla.schema import SYSTEM_KEYSPACES, Keyspace, Schema, Table
from embedded.scylla.store import LiveCells, LiveRow, TableStore
from embedded.scylla.versions import Version

_TRANSACTIONS_WITH_TABLETS = "2025.4"


class Catalog:
    """What exists and where its rows are. `datacenters` is what `replication_factor` stands for, `version` what to be
    like where lines of ScyllaDB differ. `require` may refuse what is read."""

    def __init__(
        self, schema: Schema, clock: Clock, cdc: CdcHooks, stores: dict[uuid.UUID, TableStore], version: Version
    ) -> None:
        self.schema = schema
        self.version = version
        self.clock = clock
        self.cdc = cdc
        self.stores = stores
        self.virtual: set[uuid.UUID] = set()
        self.datacenters: Callable[[], Iterable[str]] = lambda: (DATACENTER,)
        self.require: Callable[[Table, Callable[[], Iterable[tuple[int, int]]], RequestContext], None] = (
            lambda table, spans, context: None
        )

    # ---- looking up --------------------------------------------------------------------------------------------

    def keyspace_name(self, written: str | None, current: str | None) -> str:
        """The keyspace that a statement means."""
        name = written if written is not None else current
        if name is None:
            raise InvalidRequest(
                "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename"
            )
        return name

    def keyspace(self, name: str) -> Keyspace:
        found = self.schema.keyspace(name)
        if found is None:
            raise InvalidRequest(f"Keyspace '{name}' does not exist")
        return found

    def table(self, keyspace: str, name: str) -> Table:
        if self.schema.keyspace(keyspace) is None:
            raise InvalidRequest(f"Keyspace {keyspace} does not exist")
        found = self.schema.table(keyspace, name)
        if found is None:
            raise InvalidRequest(f"unconfigured table {name}")
        return found

    def store(self, table: Table) -> TableStore:
        return self.stores[table.id]

    def writable(self, table: Table) -> None:
        """Refuses writes to tables that are computed."""
        if table.id in self.virtual:
            raise Unauthorized(f"Cannot modify {table.full_name}: it is a virtual table")

    def changeable(self, verb: str, keyspace: str, table: str = "") -> None:
        """Refuses schema changes of what belongs to the system."""
        if keyspace in SYSTEM_KEYSPACES or is_paxos_state(table):
            what = f"<table {keyspace}.{table}>" if table else f"<keyspace {keyspace}>"
            raise Unauthorized(f"Cannot {verb} {what}")

    # ---- changing ----------------------------------------------------------------------------------------------

    def add_keyspace(self, keyspace: Keyspace) -> None:
        self.cdc.create_keyspace(keyspace)
        self.schema.put_keyspace(keyspace)

    def drop_keyspace(self, keyspace: Keyspace) -> None:
        for table in self.schema.tables(keyspace.name):
            self._remove(table)
        for name in list(self.schema.user_types(keyspace.name)):
            self.schema.drop_type(keyspace.name, name)
        self.schema.drop_keyspace(keyspace.name)
        self.cdc.drop_keyspace(keyspace)

    def add_table(self, table: Table) -> None:
        for added in self.cdc.create_table(table):
            self._put(added)

    def alter_table(self, old: Table, new: Table, change: TableChange) -> None:
        for table in self.cdc.alter_table(old, new, change):
            self._put(table)

    def _put(self, table: Table) -> None:
        before = self.schema.table(table.keyspace, table.name)
        self.schema.put_table(table)
        store = self.stores.get(table.id)
        if store is None:
            self.stores[table.id] = self.cdc.open_store(table) or RowStore(table)
        elif before is not None:
            gone = {column.name for column in before.columns} - {column.name for column in table.columns}
            kept_keys = {column.name for column in before.primary_key}
            store.alter(table, gone - kept_keys)

    def replace_table(self, table: Table) -> None:
        """A table whose types changed with a user type."""
        self._put(table)

    def drop_table(self, table: Table) -> None:
        state = self.schema.table(table.keyspace, paxos_name(table.name))
        for gone in (table,) if state is None else (table, state):
            for dropped in self.cdc.drop_table(gone):
                self._remove(dropped)

    def begin_transaction(self, table: Table) -> None:
        """Makes the table with the state of a table's lightweight transactions, if this is its first one."""
        if not self.keyspace(table.keyspace).uses_tablets:
            return
        if not self.version.since(_TRANSACTIONS_WITH_TABLETS):
            raise InvalidRequest(
                f"Cannot use LightWeight Transactions for table {table.full_name}: "
                "LWT is not yet supported with tablets"
            )
        if self.schema.table(table.keyspace, paxos_name(table.name)) is None:
            self.add_table(paxos_state(table))

    def _remove(self, table: Table) -> None:
        if self.schema.table(table.keyspace, table.name) is None:
            return
        self.schema.drop_table(table.keyspace, table.name)
        self.stores.pop(table.id, None)
        self.cdc.dropped_table(table)


class StoreReader:
    """A `Reader` of the catalog's stores at the present second."""

    def __init__(self, stores: Mapping[uuid.UUID, TableStore], clock: Clock) -> None:
        self._stores = stores
        self._clock = clock

    def row(self, table: Table, key: bytes, clustering: ClusteringKey) -> LiveRow | None:
        view = self._stores[table.id].partition(key, self._clock.now_us() // 1_000_000)
        if view is None:
            return None
        bound = Bound(clustering, True)
        return next(view.rows([Slice(bound, bound) if clustering else FULL_SLICE]), None)

    def static(self, table: Table, key: bytes) -> LiveCells:
        view = self._stores[table.id].partition(key, self._clock.now_us() // 1_000_000)
        return {} if view is None else view.static()
