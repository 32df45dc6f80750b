"""The schemas topic: which description of each table was written last, and which are still to be written.

In: the tables. Out: the records that a transaction must contain before anything is encoded with what they describe.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import Final

from connector.delivery import READ_COMMITTED, KafkaClients, parse_json, read_topic, topic_partitions
from connector.errors import RetriableDeliveryError
from connector.formats import Encoder, Record
from connector.source import Tables

log = logging.getLogger(__name__)

_REMEMBERED: Final = 10_000


def schema_records(encoder: Encoder, tables: Tables) -> list[Record]:
    """Of those tables whose last version in the topic is another one. `Tables` is told when they are committed."""
    if not encoder.options.schema_topic:
        return []
    records = []
    for table in tables.unrecorded():
        record = encoder.schema_record(table.description)
        if tables.record(table, json.loads(record.key or b"{}")["version"]):
            records.append(record)
    return records


def last_versions(clients: KafkaClients, topic: str, group: str) -> dict[str, str]:
    """The last version of each table, ``keyspace.table`` → version. What an open transaction has may be taken back, and
    what was taken back is nobody's last word: written twice is better than never."""
    if not topic:
        return {}
    try:
        return _last_versions(clients, topic, group)
    except RetriableDeliveryError:
        if topic in topic_partitions(clients.admin()):
            raise
        # Somebody has deleted it: nothing of it is anybody's last word, and whoever writes to it has it made.
        return {}


def _last_versions(clients: KafkaClients, topic: str, group: str) -> dict[str, str]:
    found: dict[str, str] = {}
    # Of a topic that is not compacted each key is parsed once all the same.
    key_of = lru_cache(maxsize=_REMEMBERED)(_key)
    for record in read_topic(clients, topic, 1, group, READ_COMMITTED):
        key = key_of(record.key)
        if key is None:
            place = f"topic {topic}, partition {record.partition}, offset {record.offset}"
            log.warning("%s: a foreign record is passed over: its key names no version of a table", place)
        elif record.value is not None:
            found[f"{key['keyspace_name']}.{key['table_name']}"] = key["version"]
    return found


def _key(raw: bytes | None) -> dict[str, str] | None:
    try:
        key = parse_json(raw or b"null")
    except ValueError:
        return None
    names = ("keyspace_name", "table_name", "version")
    known = isinstance(key, dict) and all(isinstance(key.get(name), str) for name in names)
    return key if known else None
