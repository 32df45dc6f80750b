"""Keyspace `system`: the nodes of the cluster, their tokens and tablets, and how full they are.

In: the cluster. Out: rows. Tablets are where `embedded.scylla.placement` has them, so that clients that read
`system.tablets` and those that are told by the protocol route alike.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from embedded.scylla.identity import RACK, RELEASE_VERSION
from embedded.scylla.nodes import Node
from embedded.scylla.placement import base_of, tablets_of
from embedded.scylla.schema import Table
from embedded.scylla.streams.ids import IGNORE_MSB
from embedded.scylla.system_tables.definition import Row, Scan, spelled_tables
from embedded.scylla.system_tables.features import features
from embedded.scylla.system_tables.stream_tables import generation_id

if TYPE_CHECKING:
    from embedded.scylla.system_tables.state import ClusterState

(CLUSTER_STATUS, LOAD_PER_NODE, PROTOCOL_SERVERS, TABLET_SIZES, TABLETS, TOKEN_RING, TOPOLOGY) = spelled_tables("""
system.cluster_status: peer inet | | | dc text, draining boolean, excluded boolean, host_id uuid, load text, owns float,
  status text, tokens int, up boolean
system.load_per_node: node uuid | | | dc text, draining boolean, effective_capacity bigint, excluded boolean, ip inet,
  rack text, storage_allocated_load bigint, storage_allocated_utilization double, storage_capacity bigint,
  storage_load bigint, storage_utilization double, tablets_allocated bigint, tablets_allocated_per_shard double,
  up boolean
system.protocol_servers: name text | | | listen_addresses frozen<list<text>>, protocol text, protocol_version text
system.tablet_sizes: table_id uuid | last_token bigint | | missing_replicas frozen<set<uuid>>,
  replicas frozen<map<uuid, bigint>>
system.tablets: table_id uuid | last_token bigint | base_table uuid, keyspace_name text,
  repair_scheduler_config frozen<repair_scheduler_config>, resize_seq_number bigint,
  resize_task_info frozen<tablet_task_info>, resize_type text, table_name text, tablet_count int |
  migration_task_info frozen<tablet_task_info>, new_replicas frozen<list<frozen<tuple<uuid, int>>>>,
  repair_incremental_mode text, repair_task_info frozen<tablet_task_info>, repair_time timestamp,
  replicas frozen<list<frozen<tuple<uuid, int>>>>, session uuid, sstables_repaired_at bigint, stage text,
  transition text
system.token_ring: keyspace_name text | table_name text, start_token text, endpoint inet | | dc text, end_token text,
  rack text
system.topology: key text | host_id uuid | committed_cdc_generations set<frozen<tuple<timestamp, timeuuid>>>,
  enabled_features set<text>, fence_version bigint, global_requests set<timeuuid>, global_topology_request text,
  global_topology_request_id timeuuid, ignore_nodes set<uuid>, new_cdc_generation_data_uuid timeuuid,
  new_keyspace_rf_change_data frozen<map<text, text>>, new_keyspace_rf_change_ks_name text,
  paused_rf_change_requests set<timeuuid>, session uuid, tablet_balancing_enabled boolean, transition_state text,
  unpublished_cdc_generations set<frozen<tuple<timestamp, timeuuid>>>, upgrade_state text, version bigint |
  cleanup_status text, datacenter text, ignore_msb int, node_state text, num_tokens int, rack text, rebuild_option text,
  release_version text, replaced_id uuid, request_id timeuuid, shard_count int, supported_features set<text>,
  tokens set<text>, tokens_string text, topology_request text
""")
_ALL_TABLES: Final = "<ALL>"


class TopologyTables:
    """Rows of the tables above."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def scans(self) -> list[tuple[Table, Scan]]:
        return [
            (CLUSTER_STATUS, self.cluster_status),
            (LOAD_PER_NODE, self.load_per_node),
            (PROTOCOL_SERVERS, tuple),
            (TABLET_SIZES, self.tablet_sizes),
            (TABLETS, self.tablets),
            (TOKEN_RING, self.token_ring),
            (TOPOLOGY, self.topology),
        ]

    def _tokens(self, node: Node) -> list[str]:
        return sorted(str(token) for token in self._cluster.streams.node_tokens(node.number))

    def cluster_status(self) -> Iterator[Row]:
        nodes = list(self._cluster.nodes)
        for node in nodes:
            yield {
                "peer": node.address,
                "dc": node.datacenter,
                "draining": False,
                "excluded": False,
                "host_id": node.host_id,
                "load": "0",
                "owns": 1 / len(nodes),
                "status": "NORMAL",
                "tokens": len(self._tokens(node)),
                "up": node.up,
            }

    def load_per_node(self) -> Iterator[Row]:
        held: Counter[Node] = Counter()
        for table in self._with_tablets():
            held.update(node for tablet in tablets_of(self._cluster, table) for node, _ in tablet.replicas)
        for node in self._cluster.nodes:
            yield {
                "node": node.host_id,
                "dc": node.datacenter,
                "draining": False,
                "excluded": False,
                "ip": node.address,
                "rack": RACK,
                "tablets_allocated": held[node],
                "tablets_allocated_per_shard": held[node] / node.shards,
                "up": node.up,
            }

    def _with_tablets(self) -> Iterator[Table]:
        """Tables with tablets of their own: a log lies beside its base table."""
        for table in self._cluster.schema.all_tables():
            keyspace = self._cluster.schema.keyspace(table.keyspace)
            if keyspace is not None and keyspace.uses_tablets and base_of(self._cluster, table) is None:
                yield table

    def tablets(self) -> Iterator[Row]:
        for table in self._cluster.schema.all_tables():
            base = base_of(self._cluster, table)
            named = {"table_id": table.id, "keyspace_name": table.keyspace, "table_name": table.name}
            if base is not None:
                yield {**named, "base_table": base.id}
                continue
            tablets = tablets_of(self._cluster, table)
            for tablet in tablets:
                yield {
                    **named,
                    "last_token": tablet.last,
                    "replicas": [(node.host_id, shard) for node, shard in tablet.replicas],
                    "resize_seq_number": 0,
                    "resize_type": "none",
                    "sstables_repaired_at": 0,
                    "tablet_count": len(tablets),
                }

    def tablet_sizes(self) -> Iterator[Row]:
        for table in self._with_tablets():
            for tablet in tablets_of(self._cluster, table):
                yield {
                    "table_id": table.id,
                    "last_token": tablet.last,
                    "replicas": sorted((node.host_id, 0) for node, _ in tablet.replicas),
                }

    def token_ring(self) -> Iterator[Row]:
        cluster = self._cluster
        owners = {token: node for node in cluster.nodes for token in cluster.streams.node_tokens(node.number)}
        ends = sorted(owners)
        for keyspace in cluster.schema.keyspaces.values():
            if not keyspace.uses_tablets:
                for at, end in enumerate(ends):
                    yield _range(keyspace.name, _ALL_TABLES, ends[at - 1], end, owners[end])
                continue
            for table in cluster.schema.tables(keyspace.name):
                for tablet in tablets_of(cluster, table):
                    for node, _ in tablet.replicas:
                        yield _range(keyspace.name, table.name, tablet.first, tablet.last, node)

    def topology(self) -> Iterator[Row]:
        timestamps = self._cluster.streams.generation_timestamps()
        generations = [(timestamp, generation_id(timestamp)) for timestamp in timestamps]
        for node in self._cluster.nodes:
            supported = sorted(features(node.version))
            yield {
                "key": "topology",
                "host_id": node.host_id,
                "cleanup_status": "clean",
                "committed_cdc_generations": generations,
                "datacenter": node.datacenter,
                "enabled_features": sorted(
                    set.intersection(*(set(features(each.version)) for each in self._cluster.nodes))
                ),
                "fence_version": 1,
                "ignore_msb": IGNORE_MSB,
                "node_state": "normal",
                "num_tokens": len(self._tokens(node)),
                "rack": RACK,
                "release_version": RELEASE_VERSION,
                "request_id": uuid.UUID(int=0, version=1),
                "shard_count": node.shards,
                "supported_features": supported,
                "tablet_balancing_enabled": True,
                "tokens": self._tokens(node),
                "upgrade_state": "done",
                "version": 1,
            }


def _range(keyspace: str, table: str, start: int, end: int, node: Node) -> Row:
    return {
        "keyspace_name": keyspace,
        "table_name": table,
        "start_token": str(start),
        "endpoint": node.address,
        "dc": node.datacenter,
        "end_token": str(end),
        "rack": RACK,
    }
