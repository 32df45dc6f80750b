"""``SourceConfig``: the side of a connector's file that faces ScyllaDB.

In: parsed values. Out: a frozen model, for what reads the source without Kafka.
"""

from __future__ import annotations

from connector.config.connector_config import ConnectionConfig, ReadingConfig
from connector.config.part import Part


class SourceConfig(Part):
    """How ScyllaDB is reached, and how its log is read."""

    connection: ConnectionConfig
    reading: ReadingConfig
