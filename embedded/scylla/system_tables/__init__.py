"""The tables that a ScyllaDB has by itself: their definitions, and what they show at each read.

In: the cluster's state. Out: virtual tables in the engine, which runs ordinary SELECTs on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedded.scylla.engine import VirtualTable
from embedded.scylla.schema import Keyspace
from embedded.scylla.system_tables import local, schema_tables, stream_tables

if TYPE_CHECKING:
    from embedded.scylla.cluster import Cluster

_LOCAL = {"class": "org.apache.cassandra.locator.LocalStrategy"}
_SIMPLE = {"class": "org.apache.cassandra.locator.SimpleStrategy"}


def install(cluster: Cluster) -> None:
    """Add the system keyspaces and their tables to the cluster's engine."""
    for name, replication in (
        ("system", _LOCAL),
        ("system_schema", _LOCAL),
        ("system_distributed", {**_SIMPLE, "replication_factor": "3"}),
        ("system_traces", {**_SIMPLE, "replication_factor": "2"}),
    ):
        cluster.schema.put_keyspace(Keyspace(name, replication))
    scans = [
        *local.LocalTables(cluster).scans(),
        *stream_tables.StreamTables(cluster).scans(),
        *schema_tables.SchemaTables(cluster.schema).scans(),
    ]
    for table in (*local.EMPTY, *schema_tables.EMPTY):
        scans.append((table, tuple))
    for table, scan in scans:
        cluster.engine.add_virtual_table(VirtualTable(table, scan))
