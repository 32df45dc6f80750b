"""Keyspace `system`: the node that is asked, its peers, its clients and versions.

In: the cluster, the answering node. Out: rows. There is no `peers_v2`, as in ScyllaDB: drivers fall back on the error.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from embedded.scylla.identity import (
    CLUSTER_NAME,
    CQL_VERSION,
    PARTITIONER,
    RACK,
    RELEASE_VERSION,
)
from embedded.scylla.nodes import Node
from embedded.scylla.schema import Table
from embedded.scylla.system_tables.definition import Row, Scan, system_table
from embedded.scylla.system_tables.features import features

if TYPE_CHECKING:
    from embedded.scylla.system_tables.state import ClusterState

LOCAL: Final = system_table(
    "system",
    "local",
    "key text, bootstrapped text, broadcast_address inet, cluster_name text, cql_version text, data_center text,"
    " gossip_generation int, host_id uuid, listen_address inet, native_protocol_version text, partitioner text,"
    " rack text, release_version text, rpc_address inet, schema_version uuid, supported_features text,"
    " tokens set<text>, truncated_at map<uuid, blob>",
    ["key"],
    comment="information about the local node",
)
PEERS: Final = system_table(
    "system",
    "peers",
    "peer inet, data_center text, host_id uuid, preferred_ip inet, rack text, release_version text, rpc_address inet,"
    " schema_version uuid, supported_features text, tokens set<text>",
    ["peer"],
    comment="information about known peers in the cluster",
)
VERSIONS: Final = system_table("system", "versions", "key text, build_id text, build_mode text, version text", ["key"])
SCYLLA_LOCAL: Final = system_table("system", "scylla_local", "key text, value text", ["key"])
CLIENTS: Final = system_table(
    "system",
    "clients",
    "address inet, port int, client_type text, client_options frozen<map<text, text>>, connection_stage text,"
    " driver_name text, driver_version text, hostname text, protocol_version int, scheduling_group text,"
    " shard_id int, ssl_cipher_suite text, ssl_enabled boolean, ssl_protocol text, username text",
    ["address"],
    ["port", "client_type"],
    comment="list of connected clients",
)
ROLES: Final = system_table(
    "system",
    "roles",
    "role text, can_login boolean, is_superuser boolean, member_of set<text>, salted_hash text",
    ["role"],
)


class LocalTables:
    """Rows of the tables above."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._build = uuid.UUID(int=0)

    def scans(self) -> list[tuple[Table, Scan]]:
        return [
            (LOCAL, self.local),
            (PEERS, self.peers),
            (VERSIONS, self.versions),
            (SCYLLA_LOCAL, self.scylla_local),
            (CLIENTS, self.clients),
            (ROLES, self.roles),
        ]

    def _tokens(self, node: Node) -> list[str]:
        return sorted(str(token) for token in self._cluster.streams.node_tokens(node.number))

    def _shared(self, node: Node) -> dict[str, object]:
        return {
            "data_center": node.datacenter,
            "host_id": node.host_id,
            "rack": RACK,
            "release_version": RELEASE_VERSION,
            "rpc_address": node.address,
            "schema_version": self._cluster.schema.version_by(node.schema),
            "supported_features": ",".join(features(node.version)),
            # Of a node without any, which coordinates alone, there is no value.
            "tokens": self._tokens(node) or None,
        }

    def local(self) -> Iterator[Row]:
        node = self._cluster.answering
        yield {
            **self._shared(node),
            "key": "local",
            "bootstrapped": "COMPLETED",
            "broadcast_address": node.address,
            "cluster_name": CLUSTER_NAME,
            "cql_version": CQL_VERSION,
            "gossip_generation": self._cluster.started_ms // 1000,
            "listen_address": node.address,
            "native_protocol_version": "4",
            "partitioner": PARTITIONER,
        }

    def peers(self) -> Iterator[Row]:
        for node in self._cluster.nodes.peers_of(self._cluster.answering):
            yield {**self._shared(node), "peer": node.address, "preferred_ip": node.address}

    def versions(self) -> Iterator[Row]:
        version = self._cluster.answering.version.release
        yield {"key": "local", "version": version, "build_mode": "embedded", "build_id": str(self._build)}

    def scylla_local(self) -> Iterator[Row]:
        yield {"key": "group0_schema_version", "value": str(self._cluster.schema.version)}
        yield {"key": "enabled_features", "value": ",".join(features(self._cluster.answering.version))}
        yield {"key": "topology_change_kind", "value": "topology_change_kind_raft"}

    def clients(self) -> Iterator[Row]:
        for link, shard in list(self._cluster.answering.links.items()):
            client = link.client()
            yield {
                "address": ip_address(client.address),
                "port": client.port,
                "client_type": "cql",
                "client_options": sorted(client.startup.items()),
                "connection_stage": client.stage,
                "driver_name": client.startup.get("DRIVER_NAME"),
                "driver_version": client.startup.get("DRIVER_VERSION"),
                "hostname": client.address,
                "protocol_version": client.version,
                "scheduling_group": "sl:default",
                "shard_id": shard,
                "ssl_enabled": client.encrypted,
                "username": client.user or "anonymous",
            }

    def roles(self) -> Iterator[Row]:
        credentials = self._cluster.settings.credentials
        if credentials is not None:
            yield {"role": credentials.user, "can_login": True, "is_superuser": True}
