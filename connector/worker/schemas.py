"""The schemas topic: which description of each table was written last, and which are still to be written.

In: descriptions of tables. Out: the records that a transaction must contain before anything is encoded with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from connector.changes import TableDescription
from connector.delivery.clients import READ_UNCOMMITTED, KafkaClients
from connector.delivery.topic_reader import read_topic
from connector.formats.encoder import Encoder
from connector.formats.record import Record


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

    def read_again(self, last: dict[str, str]) -> None:
        """The topic was read once more: others may have written since."""
        self._last = dict(last)
        self._checked.clear()

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
    found: dict[str, str] = {}
    for record in read_topic(clients, topic, 1, group, READ_UNCOMMITTED):
        key = _key(record.key)
        if key is not None and record.value is not None:
            found[f"{key['keyspace_name']}.{key['table_name']}"] = key["version"]
    return found


def _key(raw: bytes | None) -> dict[str, str] | None:
    try:
        key = json.loads(raw or b"null")
    except ValueError:
        return None
    known = isinstance(key, dict) and {"keyspace_name", "table_name", "version"} <= key.keys()
    return key if known else None
