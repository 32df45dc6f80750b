"""Names of topics and schemas, made from the connector's properties and a table's name."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Kafka's own limit for the length of a topic's name.
MAX_TOPIC_LENGTH = 249

_NOT_TOPIC = re.compile(r"[^A-Za-z0-9._-]")
_NOT_AVRO = re.compile(r"[^A-Za-z0-9_.]")


def topic_name(text: str) -> str:
    """``text`` as a topic name: other characters become ``_``, the length is cut, as Debezium does."""
    name = _NOT_TOPIC.sub("_", text)[:MAX_TOPIC_LENGTH]
    return {".": "_", "..": "__"}.get(name, name)


def avro_name(text: str) -> str:
    """``text`` as a dotted Avro name, as Debezium makes it: bad characters become ``_``, a leading digit gets one."""
    adjusted = _NOT_AVRO.sub("_", text)
    if adjusted[:1].isdigit():
        # Debezium keeps the digit since 2.3 (DBZ-6559), or `1a` and `2a` would collide.
        return f"_{adjusted}"
    return "_" + adjusted[1:] if adjusted[:1] == "." else adjusted


@dataclass(frozen=True, slots=True)
class Names:
    """The names that one connector uses."""

    topic_prefix: str
    delimiter: str = "."
    heartbeat_prefix: str = "__debezium-heartbeat"
    schema_topic: str = ""
    dead_letter_topic: str = ""

    def data_topic(self, keyspace: str, table: str) -> str:
        return topic_name(self.delimiter.join((self.topic_prefix, keyspace, table)))

    def range_deletes_topic(self, keyspace: str, table: str) -> str:
        return topic_name(f"{self.data_topic(keyspace, table)}.range-deletes")

    def heartbeat_topic(self) -> str:
        return topic_name(self.delimiter.join((self.heartbeat_prefix, self.topic_prefix)))

    def schema_base(self, keyspace: str, table: str) -> str:
        """What the names of a table's record schemas begin with (``<base>.Key``, ``<base>.Envelope``, …)."""
        return avro_name(f"{self.topic_prefix}.{keyspace}.{table}")
