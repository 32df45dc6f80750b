"""The double's identity: names and versions that drivers read and act upon."""

from __future__ import annotations

from typing import Final

CLUSTER_NAME: Final = "Embedded Scylla"
DATACENTER: Final = "datacenter1"
RACK: Final = "rack1"
# Drivers choose their schema parser by this; ScyllaDB has answered 3.0.8 since it speaks Cassandra 3's schema tables.
RELEASE_VERSION: Final = "3.0.8"
CQL_VERSION: Final = "3.3.1"
PARTITIONER: Final = "org.apache.cassandra.dht.Murmur3Partitioner"
