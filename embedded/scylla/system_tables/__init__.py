"""The tables that a ScyllaDB has by itself: their definitions, and what they show at each read.

In: the cluster's state. Out: virtual tables in the engine, which runs ordinary SELECTs on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedded.scylla.engine import VirtualTable
from embedded.scylla.schema import Keyspace
from embedded.scylla.system_tables import local, schema_tables, stream_tables, topology
from embedded.scylla.system_tables.ages import as_of
from embedded.scylla.system_tables.definition import USER_TYPES
from embedded.scylla.system_tables.idle_tables import IDLE_TABLES

if TYPE_CHECKING:
    from embedded.scylla.system_tables.state import ClusterState

_LOCAL = {"class": "org.apache.cassandra.locator.LocalStrategy"}
_SIMPLE = {"class": "org.apache.cassandra.locator.SimpleStrategy"}


def install(cluster: ClusterState) -> None:
    """Add the system keyspaces and their tables to the cluster's engine."""
    version = cluster.settings.version
    for name, replication in (
        ("system", _LOCAL),
        ("system_schema", _LOCAL),
        ("system_distributed", {**_SIMPLE, "replication_factor": "3"}),
        ("system_distributed_everywhere", {"class": "org.apache.cassandra.locator.EverywhereStrategy"}),
        ("system_traces", {**_SIMPLE, "replication_factor": "2"}),
    ):
        cluster.schema.put_keyspace(Keyspace(name, replication))
    for user_type in USER_TYPES.values():
        cluster.schema.put_type(user_type)
    scans = [
        *local.LocalTables(cluster).scans(),
        *topology.TopologyTables(cluster).scans(),
        *stream_tables.StreamTables(cluster).scans(),
        *schema_tables.SchemaTables(cluster.schema, version).scans(),
    ]
    for table in (*IDLE_TABLES, *schema_tables.EMPTY):
        scans.append((table, tuple))
    for table, scan in scans:
        present = as_of(table, version)
        if present is not None:
            cluster.engine.add_virtual_table(VirtualTable(present, scan))
