"""Starts of a connector, for `snapshot.mode=always`: of a connector, not of one of its processes.

In: a configuration, Kafka. Out: a name for the start, which the snapshots that it begins have.
"""

from __future__ import annotations

import secrets

from connector.config import Configuration
from connector.delivery import group_members
from connector.worker.settings import kafka_clients


def name_of_start(configuration: Configuration) -> str | None:
    """None where workers of the connector run already, and where nobody wants to know."""
    if configuration.connector.reading.snapshot_mode != "always":
        return None
    members = group_members(kafka_clients(configuration), [configuration.group])
    return None if members else secrets.token_hex(8)
