"""The schema of a log table, derived from its base table.

Comes in: a base table and its CDC options, and the log as it was before. Goes out: the log table as it must
be now, with its dropped columns noted. Layout: stream, time and number as the key; then the base's key
columns and, for each other column X, `X`, `cdc$deleted_X` and for multi-cell types `cdc$deleted_elements_X`.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import Any

from connector.cql_names import LOG_SUFFIX, log_name
from connector.values import CqlType, ListType, MapType, SetType, UserType, freeze, native
from embedded.scylla.cdc.options import CdcOptions
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.schema import CDC_PARTITIONER, Column, DroppedColumn, Table

STREAM_ID, TIME, BATCH_SEQ_NO = "cdc$stream_id", "cdc$time", "cdc$batch_seq_no"
OPERATION, TTL, END_OF_BATCH = "cdc$operation", "cdc$ttl", "cdc$end_of_batch"
DELETED, DELETED_ELEMENTS = "cdc$deleted_", "cdc$deleted_elements_"
#: A dropped log column counts as dropped from a little later on, because writes under the old schema may be
#: under way.
DROP_LEEWAY_US = 5_000_000

#: What the names of the log's own columns begin with; names of base columns may not.
RESERVED_PREFIX = "cdc$"

_KEY = (
    Column(STREAM_ID, native("blob"), "partition_key", 0),
    Column(TIME, native("timeuuid"), "clustering", 0, "asc"),
    Column(BATCH_SEQ_NO, native("int"), "clustering", 1, "asc"),
)
_FIXED = (
    Column(OPERATION, native("tinyint")),
    Column(TTL, native("bigint")),
    Column(END_OF_BATCH, native("boolean")),
)


def base_name(log: str) -> str | None:
    """The name of the base table if this is the name of a log table."""
    return log.removesuffix(LOG_SUFFIX) if log.endswith(LOG_SUFFIX) and log != LOG_SUFFIX else None


def is_log(table: Table) -> bool:
    """Only log tables have the CDC partitioner; users cannot set it. True for detached logs too."""
    return table.partitioner == CDC_PARTITIONER


def value_type(column: Column) -> CqlType:
    """The type of column X in the log; a list shows the timeuuids of its elements."""
    if isinstance(column.type, ListType) and column.multi_cell:
        return MapType(native("timeuuid"), freeze(column.type.element), True)
    return freeze(column.type) if column.multi_cell else column.type


def deleted_elements_type(column: Column) -> CqlType | None:
    """The type of `cdc$deleted_elements_X`, None for columns of a single cell."""
    if not column.multi_cell:
        return None
    if isinstance(column.type, MapType):
        return SetType(freeze(column.type.key), True)
    if isinstance(column.type, SetType):
        return SetType(freeze(column.type.element), True)
    if isinstance(column.type, UserType):
        return SetType(native("smallint"), True)
    return SetType(native("timeuuid"), True)


def log_columns(base: Table) -> tuple[Column, ...]:
    """All columns of the base's log."""
    columns = [*_KEY, *_FIXED]
    columns += [Column(key.name, key.type) for key in base.primary_key]
    for column in base.static + base.regular:
        columns.append(Column(column.name, value_type(column)))
        columns.append(Column(DELETED + column.name, native("boolean")))
        elements = deleted_elements_type(column)
        if elements is not None:
            columns.append(Column(DELETED_ELEMENTS + column.name, elements))
    return tuple(columns)


def new_log(base: Table, options: CdcOptions, table_id: uuid.UUID) -> Table:
    """The log of a table that has none."""
    return Table(
        id=table_id,
        keyspace=base.keyspace,
        name=log_name(base.name),
        columns=log_columns(base),
        options=_properties(options),
        comment=f"CDC log for {base.full_name}",
        partitioner=CDC_PARTITIONER,
    )


def updated_log(base: Table, log: Table, now_us: int) -> Table:
    """The existing log with the base's columns as they are now; its id and properties stay.

    The log of a renamed column is a new column: what was logged under the old name is lost to readers.
    """
    wanted = {column.name: column for column in log_columns(base)}
    present = log.by_name
    gone = [column for column in log.columns if column.name not in wanted or wanted[column.name].type != column.type]
    retyped = {column.name for column in gone if column.name in wanted and _grew(column, wanted[column.name])}
    gone = [column for column in gone if column.name not in retyped]
    added = [column for name, column in wanted.items() if name not in present or column.type != present[name].type]
    for column in added:
        if column.name not in retyped:
            _refuse_recently_dropped(log, column.name, now_us)
    if not gone and not added:
        return log
    names = {column.name for column in gone}
    dropped = [entry for entry in log.dropped if entry.name not in names]
    dropped += [DroppedColumn(each.name, each.type, each.kind, now_us + DROP_LEEWAY_US) for each in gone]
    return log.changed(columns=tuple(wanted.values()), dropped=tuple(dropped))


def _grew(old: Column, new: Column) -> bool:
    """Whether the type differs only because a user type inside it was altered: the values stay readable."""
    return old.type.cql() == new.type.cql()


def _refuse_recently_dropped(log: Table, name: str, now_us: int) -> None:
    for entry in log.dropped:
        if entry.name == name and entry.dropped_us > now_us:
            seconds = math.ceil((entry.dropped_us - now_us) / 1_000_000)
            raise InvalidRequest(
                f"Cannot add column {name} because a column with the same name was dropped too recently. "
                f"Please retry after {seconds} seconds"
            )


def _properties(options: CdcOptions) -> Mapping[str, Any]:
    """The properties a log is created with; later changes of the base's options do not touch them."""
    compaction = {"class": "TimeWindowCompactionStrategy"}
    properties: dict[str, Any] = {
        "caching": {"keys": "NONE", "rows_per_partition": "NONE", "enabled": "false"},
        "compaction": compaction,
        "tombstone_gc": {"mode": "timeout", "propagation_delay_in_seconds": "3600"},
    }
    if options.ttl > 0:
        window = math.ceil(options.ttl / 24)
        compaction["compaction_window_unit"] = "MINUTES"
        compaction["compaction_window_size"] = str(math.ceil(window / 60))
        compaction["expired_sstable_check_frequency_seconds"] = str(max(1, window // 2))
        properties["gc_grace_seconds"] = 0
    return properties
