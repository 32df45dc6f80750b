"""Heartbeat records, as Debezium shapes them: who beats, and when.

In: the output options and the time. Out: a decoded record for partition 0 of the heartbeat topic.
"""

from __future__ import annotations

from typing import Final

from connector.config import OutputConfig
from connector.formats.record import DecodedRecord, Schema
from connector.formats.schemas import schema, struct

KEY_SCHEMA: Final[Schema] = {
    **struct("io.debezium.connector.common.ServerNameKey", [("serverName", schema("string", False))], optional=False),
    "version": 1,
}
VALUE_SCHEMA: Final[Schema] = {
    **struct("io.debezium.connector.common.Heartbeat", [("ts_ms", schema("int64", False))], optional=False),
    "version": 1,
}


def heartbeat_record(options: OutputConfig, now_ms: int) -> DecodedRecord:
    """One beat."""
    return DecodedRecord(
        topic=options.names.heartbeat_topic(),
        key_schema=KEY_SCHEMA,
        key={"serverName": options.topic_prefix},
        value_schema=VALUE_SCHEMA,
        value={"ts_ms": now_ms},
        kind="heartbeat",
        partition=0,
        timestamp=None if options.strict else now_ms,
    )
