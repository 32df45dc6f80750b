"""Reads that are refused, since too few of those are there who hold what they ask for.

In: nodes that are missed, a SELECT with the tokens that one page of it goes over, its consistency. Out: `Unavailable`,
for the first range of tokens that lacks replicas, as from ScyllaDB (`query_partition_key_range_concurrent` and
`get_read_executor` in its `service/storage_proxy.cc`): a page that goes over several ranges is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from embedded.scylla.errors import Unavailable
from embedded.scylla.execute.select import Span
from embedded.scylla.nodes import Node
from embedded.scylla.placement import Placed, replicas_of
from embedded.scylla.protocol.requests import CONSISTENCY_NAMES
from embedded.scylla.results import RequestContext
from embedded.scylla.schema import SYSTEM_KEYSPACES, Table

_FIXED: Final = {"ANY": 1, "ONE": 1, "LOCAL_ONE": 1, "TWO": 2, "THREE": 3}
_LOCAL: Final = ("LOCAL_ONE", "LOCAL_QUORUM", "LOCAL_SERIAL")


class Availability:
    """Of one cluster."""

    def __init__(self, cluster: Placed) -> None:
        self._cluster = cluster

    def require(self, table: Table, spans: Callable[[], Iterable[Span]], context: RequestContext) -> None:
        if table.keyspace in SYSTEM_KEYSPACES or not any(node.missed for node in self._cluster.nodes):
            return
        level = CONSISTENCY_NAMES[context.consistency]
        for first, last in spans():
            for replicas in replicas_of(self._cluster, table, first, last):
                required, alive = _counted(level, replicas, context.node)
                if alive < required:
                    raise Unavailable(
                        f"Cannot achieve consistency level for cl {level}. Requires {required}, alive {alive}",
                        context.consistency,
                        required,
                        alive,
                    )


def _counted(level: str, replicas: Sequence[Node], asked: object) -> tuple[int, int]:
    """How many must be there, and how many are."""
    if level in _LOCAL and isinstance(asked, Node):
        replicas = [node for node in replicas if node.datacenter == asked.datacenter]
    required = _FIXED.get(level) or (len(replicas) if level == "ALL" else len(replicas) // 2 + 1)
    return required, sum(not node.missed for node in replicas)
