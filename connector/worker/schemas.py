"""The schemas topic: which description of each table was written last, and which are still to be written.

In: descriptions of tables. Out: the records that a transaction must contain before anything is encoded with them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connector.changes import TableDescription
from connector.delivery.clients import READ_UNCOMMITTED, KafkaClients, high_watermarks
from connector.delivery.failures import translated
from connector.errors import RetriableDeliveryError
from connector.formats.encoder import Encoder
from connector.formats.record import Record

READ_SECONDS = 30.0


class SchemasTopic:
    """What is known to stand in the topic: read once at start, then what we wrote ourselves."""

    def __init__(self, encoder: Encoder, last: dict[str, str]) -> None:
        self._encoder = encoder
        self._last = last
        self._pending: dict[str, str] = {}
        self._checked: dict[str, TableDescription] = {}

    def missing(self, descriptions: Iterable[TableDescription]) -> list[Record]:
        """Records for those whose last version in the topic is another one."""
        if not self._encoder.options.schema_topic:
            return []
        records = []
        for description in descriptions:
            if self._checked.get(description.full_name) is description:
                continue
            record = self._encoder.schema_record(description)
            version = json.loads(record.key or b"{}")["version"]
            name = description.full_name
            if self._pending.get(name, self._last.get(name)) != version:
                self._pending[name] = version
                records.append(record)
            self._checked[name] = description
        return records

    def committed(self) -> None:
        self._last.update(self._pending)
        self._pending.clear()

    def aborted(self) -> None:
        for name in self._pending:
            self._checked.pop(name, None)
        self._pending.clear()


def last_versions(clients: KafkaClients, topic: str, group: str) -> dict[str, str]:
    """The last version of each table, ``keyspace.table`` → version. Records of open transactions count: they are
    true."""
    if not topic:
        return {}
    consumer = clients.consumer(group, READ_UNCOMMITTED, fetch_wait_max_ms=50)
    found: dict[str, str] = {}
    try:
        end = high_watermarks(clients, topic, [0])[0]
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + READ_SECONDS
        reached = end == 0
        while not reached:
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError(f"topic {topic} could not be read to its end in time")
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(message.error())
                reached = message.offset() >= end
                continue
            key = _key(message.key())
            if key is not None and message.value() is not None:
                found[f"{key['keyspace_name']}.{key['table_name']}"] = key["version"]
        return found
    except KafkaException as caught:
        raise translated(caught.args[0], f"reading topic {topic}") from None
    except TimeoutError:
        raise RetriableDeliveryError(f"reading topic {topic}: the broker did not answer in time") from None
    finally:
        consumer.close()


def _key(raw: bytes | None) -> dict[str, str] | None:
    try:
        key = json.loads(raw or b"null")
    except ValueError:
        return None
    known = isinstance(key, dict) and {"keyspace_name", "table_name", "version"} <= key.keys()
    return key if known else None
