"""The demo's application: how it connects to ScyllaDB, as any user of the driver does.

In: an address. Out: a driver's cluster.
"""

from __future__ import annotations

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy


def connect(host: str, port: int) -> Cluster:
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=60)
    return Cluster([host], port=port, protocol_version=4, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
