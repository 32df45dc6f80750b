"""CDC at schema changes: which log tables are made, altered, detached, attached again and dropped, and what
is refused.

Comes in: the schema changes the engine is about to make. Goes out: all tables to put or drop, or ScyllaDB's
error. `Cdc` is the object that the engine is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from connector.cql_names import log_name
from connector.values import native
from embedded.scylla.cdc.augment import Augmenter, Logged
from embedded.scylla.cdc.log_schema import (
    RESERVED_PREFIX,
    base_name,
    is_log,
    new_log,
    updated_log,
)
from embedded.scylla.cdc.options import CdcOptions, parse_options, require_enabled_flag
from embedded.scylla.cdc.plan import LogPlan
from embedded.scylla.clock import Clock
from embedded.scylla.errors import InvalidRequest, Unauthorized
from embedded.scylla.hooks import Reader, TableChange, new_table_id
from embedded.scylla.logstore import LogStore
from embedded.scylla.mutation import PartitionMutation
from embedded.scylla.results import RequestContext
from embedded.scylla.rowstore import RowStore
from embedded.scylla.schema import SYSTEM_KEYSPACES, Keyspace, Schema, Table
from embedded.scylla.store import TableStore
from embedded.scylla.streams.service import StreamService
from embedded.scylla.versions import NEWEST, VERSIONS, Version

_COUNTER = native("counter")
_CDC_WITH_TABLETS = "2025.4"
_COLUMNS_FIXED = "You cannot modify the set of columns of a CDC log table directly. Modify the base table instead."
_COLUMNS_FIXED_WHILE_DETACHED = (
    "You cannot modify the set of columns of a CDC log table directly. Although the base table has deactivated CDC, "
    "this table will continue being a CDC log table until it is dropped. If you want to modify the columns in it, you "
    "can only do that by reenabling CDC on the base table, which will reattach this log table. Then you will be able "
    "to modify the columns in the base table, and that will have effect on the log table too. Modifying the columns "
    "of a CDC log table directly is never allowed."
)
_NO_RENAME = "Cannot rename a column of a CDC log table."
_NO_RENAME_WHILE_DETACHED = (
    "You cannot rename a column of a CDC log table. Although the base table has deactivated CDC, this table will "
    "continue being a CDC log table until it is dropped."
)


class Cdc:
    """Change data capture for one engine."""

    def __init__(
        self,
        schema: Schema,
        clock: Clock,
        streams: StreamService,
        *,
        seed: int | None = None,
        version: Version = VERSIONS[NEWEST],
    ) -> None:
        self._schema = schema
        self._version = version
        self._clock = clock
        self.streams = streams
        self._augmenter = Augmenter(clock, self._resolve, seed)
        schema.listen(lambda event: self._augmenter.forget())

    def augment(
        self, mutations: list[PartitionMutation], context: RequestContext, reader: Reader
    ) -> list[PartitionMutation]:
        """The mutations of a request and their log rows."""
        return self._augmenter.augment(mutations, context, reader)

    def system_originated(self) -> AbstractContextManager[None]:
        """Deletes executed inside are logged with the operations -3 and -4, as those of per-row TTL."""
        return self._augmenter.system_originated()

    def logged(self, keyspace: str, table: str) -> Logged | None:
        """How a table is logged now; None if it is not or does not exist."""
        base = self._schema.table(keyspace, table)
        return None if base is None else self._resolve(base)

    def create_table(self, table: Table) -> Sequence[Table]:
        options = parse_options(table.cdc)
        table = _with_options(table, options)
        if not options.on or table.keyspace in SYSTEM_KEYSPACES:
            return [table]
        _refuse_counters(table)
        if self._schema.table(table.keyspace, log_name(table.name)) is not None:
            raise _log_name_taken(table)
        self._refuse_tablets(table)
        _refuse_reserved_names(table)
        return [table, new_log(table, options, new_table_id())]

    def alter_table(self, old: Table, new: Table, change: TableChange) -> Sequence[Table]:
        given: Mapping[str, str] | None = change.options.get("cdc")
        if is_log(old):
            return self._alter_log(old, new, change, given)
        before = _in_force(old)
        if given is not None:
            require_enabled_flag(given)
            options = parse_options(given)
            if new.indexes and not options.on:
                raise InvalidRequest(
                    "Cannot disable CDC when Vector Search is enabled on the table.\n"
                    "Please drop the vector index first, then disable CDC."
                )
            new = _with_options(new, options)
        after = _in_force(new)
        tables = [new]
        if after.on:
            _refuse_reserved_names(new)
            log = self._log_of_altered(old, new, before, after)
            # A log that stays as it is makes no event, so that nobody has to prepare its statements again.
            if log is not self._schema.table(log.keyspace, log.name):
                tables.append(log)
        if (count := _tablet_count(change.options)) is not None:
            self._resize(new.keyspace, new.name, count)
        if given is not None:
            self.streams.tablets.set_ttl(new.keyspace, new.name, after.ttl)
        return tables

    def refuse_columns(self, table: Table, *, renames: bool) -> None:
        if not is_log(table):
            return
        active = self._active_base(table) is not None
        if renames:
            raise InvalidRequest(_NO_RENAME if active else _NO_RENAME_WHILE_DETACHED)
        raise InvalidRequest(_COLUMNS_FIXED if active else _COLUMNS_FIXED_WHILE_DETACHED)

    def drop_table(self, table: Table) -> Sequence[Table]:
        if is_log(table):
            if self._active_base(table) is not None:
                raise Unauthorized(f"Cannot DROP cdc log table {table.name}")
            return [table]
        log = self._schema.table(table.keyspace, log_name(table.name))
        return [table, log] if log is not None and is_log(log) else [table]

    def dropped_table(self, table: Table) -> None:
        base = base_name(table.name)
        if is_log(table) and base is not None:
            self.streams.tablets.drop(table.keyspace, base)

    def create_keyspace(self, keyspace: Keyspace) -> None:
        """A keyspace by itself has no streams."""

    def drop_keyspace(self, keyspace: Keyspace) -> None:
        self.streams.tablets.drop_keyspace(keyspace.name)

    def open_store(self, table: Table) -> TableStore | None:
        if not is_log(table):
            return None
        self._open_streams(table)
        return LogStore(table, RowStore)

    def _alter_log(
        self, old: Table, new: Table, change: TableChange, given: Mapping[str, str] | None
    ) -> Sequence[Table]:
        if given is not None:
            require_enabled_flag(given)
            if parse_options(given).on:
                raise InvalidRequest(
                    f"Cannot create a CDC log for a table {old.full_name}, because creating nested CDC logs "
                    "is not allowed"
                )
        garbage = change.options.get("tombstone_gc")
        if isinstance(garbage, Mapping) and str(garbage.get("mode", "")).lower() == "repair":
            raise InvalidRequest("The 'repair' mode for tombstone_gc is not allowed on CDC log tables.")
        base = base_name(old.name)
        if base is not None and (count := _tablet_count(change.options)) is not None:
            self._resize(old.keyspace, base, count)
        return [new]

    def _log_of_altered(self, old: Table, new: Table, before: CdcOptions, after: CdcOptions) -> Table:
        log = self._schema.table(new.keyspace, log_name(new.name))
        if before.on:
            if log is None:
                raise InvalidRequest(f"CDC log of {old.full_name} does not exist")
            return updated_log(new, log, self._clock.now_us())
        _refuse_counters(new)
        self._refuse_tablets(new)
        if log is None:
            return new_log(new, after, new_table_id())
        if not is_log(log):
            raise _log_name_taken(new)
        return updated_log(new, log, self._clock.now_us())

    def _active_base(self, log: Table) -> Table | None:
        """The base table that writes to this log, None while it is detached."""
        name = base_name(log.name)
        base = self._schema.table(log.keyspace, name) if name is not None else None
        return base if base is not None and _in_force(base).on else None

    def _uses_tablets(self, keyspace: str) -> bool:
        known = self._schema.keyspace(keyspace)
        return known is not None and known.uses_tablets

    def _refuse_tablets(self, table: Table) -> None:
        if self._uses_tablets(table.keyspace) and not self._version.since(_CDC_WITH_TABLETS):
            raise InvalidRequest(
                f"Cannot create CDC log for a table {table.full_name}, because keyspace uses tablets. See issue #16317."
            )

    def _open_streams(self, log: Table) -> None:
        name = base_name(log.name)
        if name is None or not self._uses_tablets(log.keyspace):
            return
        base, keyspace = self._schema.table(log.keyspace, name), self._schema.keyspace(log.keyspace)
        count = _tablet_count(base.options) if base is not None else None
        if count is None and keyspace is not None:
            count = int((keyspace.tablets or {}).get("initial", "0"))
        ttl = _in_force(base).ttl if base is not None else 0
        tablets = count or self.streams.default_tablets()
        self.streams.tablets.create(log.keyspace, name, log.id, tablets=tablets, ttl=ttl)

    def _resize(self, keyspace: str, table: str, count: int) -> None:
        if (keyspace, table) in self.streams.tablets.tables:
            self.streams.tablets.resize(keyspace, table, count)

    def _resolve(self, table: Table) -> Logged | None:
        if (table.cdc is None and not table.indexes) or is_log(table):
            return None
        options = _in_force(table)
        log = self._schema.table(table.keyspace, log_name(table.name)) if options.on else None
        if log is None:
            return None
        pick: Callable[[int, int], bytes] = self.streams.vnodes.stream_for
        if self._uses_tablets(table.keyspace):
            pick = partial(self.streams.tablets.stream_for, table.keyspace, table.name)
        return Logged(LogPlan(table, log, options), pick)


def _in_force(table: Table) -> CdcOptions:
    """An index that another service keeps from the log has one, without the option (`cdc_enabled` in cdc/log.cc)."""
    options = parse_options(table.cdc)
    return replace(options, enabled=True) if table.indexes else options


def _with_options(table: Table, options: CdcOptions) -> Table:
    """The table with its CDC options as the schema tables show them."""
    if table.cdc is None:
        return table
    extensions = {**table.extensions, "cdc": options.as_extension()}
    return table.changed(cdc=options.as_map(), extensions=extensions)


def _refuse_counters(table: Table) -> None:
    if any(column.type == _COUNTER for column in table.columns):
        raise InvalidRequest(f"Cannot create CDC log for table {table.full_name}. Counter support not implemented")


def _refuse_reserved_names(table: Table) -> None:
    """A ScyllaDB node aborts at such a table (two columns of the log would have one name): better an error."""
    for column in table.ordered_columns:
        if column.name.startswith(RESERVED_PREFIX):
            raise InvalidRequest(
                f"Cannot create a CDC log for table {table.full_name}: names that begin with {RESERVED_PREFIX}, like "
                f"{column.name}, are those of the log's own columns. Call the column otherwise, or leave CDC off"
            )


def _log_name_taken(table: Table) -> InvalidRequest:
    return InvalidRequest(
        f"Cannot create CDC log table for table {table.full_name} because a table of name "
        f"{table.keyspace}.{log_name(table.name)} already exists"
    )


def _tablet_count(options: Mapping[str, Any]) -> int | None:
    """`min_tablet_count` of a table's `tablets = {…}`, None if it is not said."""
    tablets = options.get("tablets")
    if not isinstance(tablets, Mapping) or "min_tablet_count" not in tablets:
        return None
    try:
        return max(1, int(tablets["min_tablet_count"]))
    except ValueError:
        raise InvalidRequest(f"Invalid value for min_tablet_count: {tablets['min_tablet_count']}") from None
