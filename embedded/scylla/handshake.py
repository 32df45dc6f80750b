"""The start of a connection: the answer to OPTIONS, and what it accepts in STARTUP.

In: node (with its version), shard of the connection. Out: the body of SUPPORTED, with all of ScyllaDB's sharding keys,
since drivers take a server without them for Cassandra.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from embedded.scylla.errors import ProtocolError
from embedded.scylla.identity import CQL_VERSION, PARTITIONER
from embedded.scylla.protocol.compression import ALGORITHMS
from embedded.scylla.protocol.primitives import encode_string_multimap
from embedded.scylla.streams.ids import IGNORE_MSB
from embedded.scylla.versions import SHARD_AWARE_PORT

if TYPE_CHECKING:
    from embedded.scylla.listener import Listener
    from embedded.scylla.nodes import Node


def supported_body(server: Listener, node: Node, shard: int) -> bytes:
    options = {
        "CQL_VERSION": [CQL_VERSION],
        "COMPRESSION": list(ALGORITHMS),
        "SCYLLA_SHARD": [str(shard)],
        "SCYLLA_NR_SHARDS": [str(node.shards)],
        "SCYLLA_SHARDING_ALGORITHM": ["biased-token-round-robin"],
        "SCYLLA_SHARDING_IGNORE_MSB": [str(IGNORE_MSB)],
        "SCYLLA_PARTITIONER": [PARTITIONER],
        **node.version.options(),
    }
    if node.version.offers(SHARD_AWARE_PORT):
        key = "SCYLLA_SHARD_AWARE_PORT_SSL" if server.encrypted else "SCYLLA_SHARD_AWARE_PORT"
        options[key] = [str(server.shard_aware_port)]
    return encode_string_multimap(options)


def requested_compression(startup: Mapping[str, str]) -> str | None:
    """The algorithm that STARTUP asks for. Names are compared without regard to case, as ScyllaDB does."""
    wanted = startup.get("COMPRESSION", "").lower()
    if not wanted:
        return None
    if wanted not in ALGORITHMS:
        raise ProtocolError(f"Unknown compression algorithm: {wanted}")
    return wanted
