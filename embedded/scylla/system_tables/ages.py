"""Since which release line of ScyllaDB a system table, or a column of one, exists.

In: a table as the newest line has it, the line to be like. Out: the table as that line has it, or None. From the
definitions in ScyllaDB's sources on the branch of each line (db/system_keyspace.cc, virtual_tables.cc, schema_tables.cc
and replica/tablets.cc); what has no age here is in all lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from embedded.scylla.schema import Table
from embedded.scylla.versions import Version

_TABLES: Final[Mapping[str, str]] = {
    "system.batchlog_v2": "2026.1",
    "system.cdc_streams": "2025.4",
    "system.cdc_streams_history": "2025.4",
    "system.cdc_streams_state": "2025.4",
    "system.cdc_timestamps": "2025.4",
    "system.client_routes": "2026.1",
    "system.load_per_node": "2025.2",
    "system.repair_tasks": "2025.4",
    "system.tablet_sizes": "2026.1",
    "system.view_building_tasks": "2025.4",
}
_COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "system.clients": {"client_options": "2026.1"},
    "system.cluster_status": dict.fromkeys(("draining", "excluded"), "2026.1"),
    "system.compaction_history": dict.fromkeys(
        (
            "compaction_type",
            "shard_id",
            "sstables_in",
            "sstables_out",
            "started_at",
            "total_tombstone_purge_attempt",
            "total_tombstone_purge_failure_due_to_overlapping_with_memtable",
            "total_tombstone_purge_failure_due_to_overlapping_with_uncompacting_sstable",
        ),
        "2025.3",
    ),
    "system.load_per_node": dict.fromkeys(
        ("draining", "effective_capacity", "excluded", "storage_load", "storage_utilization"), "2026.1"
    ),
    "system.tablets": dict.fromkeys(("base_table", "repair_incremental_mode", "sstables_repaired_at"), "2025.4"),
    "system.topology": {"global_requests": "2025.3", "paused_rf_change_requests": "2026.1"},
    "system.topology_requests": dict.fromkeys(
        ("new_keyspace_rf_change_data", "new_keyspace_rf_change_ks_name"), "2025.3"
    ),
    "system_schema.keyspaces": {"replication_v2": "2026.1"},
    "system_schema.scylla_keyspaces": {"consistency": "2026.1"},
    "system_schema.scylla_tables": {"tablets": "2025.2"},
}
#: Features that a line added to those of the line before; the newest has all (`gms/feature_service.hh`).
FEATURES_SINCE: Final[Mapping[str, frozenset[str]]] = {
    "2025.2": frozenset(
        ("GROUP0_LIMITED_VOTERS", "SSTABLE_COMPRESSION_DICTS", "TABLET_OPTIONS", "TABLET_RACK_AWARE_VIEW_PAIRING")
    ),
    "2025.3": frozenset(
        ("COMPACTION_HISTORY_UPGRADE", "LOAD_AND_STREAM_ABORT_RPC_MESSAGE", "TOPOLOGY_GLOBAL_REQUEST_QUEUE")
    ),
    "2025.4": frozenset(
        (
            "CDC_WITH_TABLETS",
            "COLOCATED_TABLETS",
            "LWT_WITH_TABLETS",
            "MS_SSTABLE_FORMAT",
            "REPAIR_MSG_SPLIT",
            "TABLET_INCREMENTAL_REPAIR",
            "TABLET_REPAIR_TASKS_TABLE",
            "TOPOLOGY_NOOP_REQUEST",
            "VIEW_BUILDING_COORDINATOR",
        )
    ),
    "2026.1": frozenset(
        (
            "BATCHLOG_V2",
            "CLIENT_ROUTES",
            "COUNTERS_WITH_TABLETS",
            "DRIVER_SERVICE_LEVEL",
            "PARALLEL_TABLET_DRAINING",
            "RACK_LIST_RF",
            "REMOVENODE_WITH_LEFT_TOKEN_RING",
            "SIZE_BASED_LOAD_BALANCING",
        )
    ),
}


def as_of(table: Table, version: Version) -> Table | None:
    """The table without what came after this line; None if the table itself did."""
    if not version.since(_TABLES.get(table.full_name, "")):
        return None
    ages = _COLUMNS.get(table.full_name, {})
    columns = tuple(column for column in table.columns if version.since(ages.get(column.name, "")))
    return table if len(columns) == len(table.columns) else replace(table, columns=columns)
