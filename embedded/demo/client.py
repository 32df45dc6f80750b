"""The demo's application: how it connects to ScyllaDB, as any user of the driver does.

In: an address. Out: a driver's cluster.
"""

from __future__ import annotations

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

# While the demo starts everything at once. The driver gives up an answer about the cluster after 2 s.
_SECONDS = 60


def connect(host: str, port: int) -> Cluster:
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=_SECONDS)
    return Cluster(
        [host],
        port=port,
        protocol_version=4,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=_SECONDS,
        control_connection_timeout=_SECONDS,
    )
