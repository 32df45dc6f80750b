"""What the server tells before anything else: the answer to OPTIONS, and what it accepts in STARTUP.

In: node, shard of the connection. Out: the body of SUPPORTED, with all of ScyllaDB's sharding keys, since drivers take
a server without them for Cassandra.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from embedded.scylla.errors import ProtocolError
from embedded.scylla.identity import CQL_VERSION, PARTITIONER
from embedded.scylla.protocol.compression import ALGORITHMS
from embedded.scylla.protocol.primitives import encode_string_multimap
from embedded.scylla.streams.ids import IGNORE_MSB

if TYPE_CHECKING:
    from embedded.scylla.nodes import Node
    from embedded.scylla.server import Server


def supported_body(server: Server, node: Node, shard: int) -> bytes:
    options = {
        "CQL_VERSION": [CQL_VERSION],
        "COMPRESSION": list(ALGORITHMS),
        "CLIENT_OPTIONS": ["null"],
        "SCYLLA_HOST_ID": [str(node.host_id)],
        "SCYLLA_SHARD": [str(shard)],
        "SCYLLA_NR_SHARDS": [str(node.shards)],
        "SCYLLA_SHARDING_ALGORITHM": ["biased-token-round-robin"],
        "SCYLLA_SHARDING_IGNORE_MSB": [str(IGNORE_MSB)],
        "SCYLLA_PARTITIONER": [PARTITIONER],
        "SCYLLA_LWT_ADD_METADATA_MARK": ["LWT_OPTIMIZATION_META_BIT_MASK=2147483648"],
        "SCYLLA_RATE_LIMIT_ERROR": ["ERROR_CODE=61440"],
        "TABLETS_ROUTING_V1": [""],
    }
    if server.shard_aware_port is not None:
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
