"""Which tables a connector's records in the offsets topic name: all of them, however old and whatever became of them.

In: the offsets topic, from its beginning or from where it was read before. Out: names of tables. They are told by the
keys alone, and nothing of the records is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from confluent_kafka import Message

from connector.delivery.clients import KafkaClients
from connector.delivery.records import OwnKeys
from connector.delivery.slot_reader import read_what_is_committed
from connector.delivery.slots_reader import Sought
from connector.table_name import TableName

#: What stands first in every key about a table.
_TABLE: Final = re.compile(rb'"keyspace_name":"(?:[^"\\]|\\.)*","table_name":"(?:[^"\\]|\\.)*"')


class NamedTables:
    """Takes keys as the connector writes them, see `OwnKeys`."""

    def __init__(self) -> None:
        self.tables: set[TableName] = set()
        self._noted: set[bytes] = set()

    def note(self, key: bytes) -> None:
        found = _TABLE.search(key)
        place = key if found is None else found[0]
        if place in self._noted or b'"table_name"' not in key:
            return
        self._noted.add(place)
        members = json.loads(key)[1]
        keyspace, table = members.get("keyspace_name"), members.get("table_name")
        if isinstance(keyspace, str) and isinstance(table, str):
            self.tables.add(TableName(keyspace, table))


class _Keys:
    """The keys of one slot, as they are read."""

    def __init__(self, connector: str, start: int, named: NamedTables) -> None:
        self.end = start
        self._keys = OwnKeys(connector)
        self._named = named

    def take(self, run: list[Message]) -> Iterator[Message]:
        """The next messages of the partition; those that are none are handed back."""
        newest = dict(zip(map(Message.key, run), run, strict=True))
        if None in newest:
            yield from (message for message in run if message.error() is not None)
            del newest[None]
        for message in newest.values():
            self.end = max(self.end, (message.offset() or 0) + 1)
            if (key := self._keys.own(message)) is not None:
                self._named.note(key)


def named_tables(
    clients: KafkaClients,
    *,
    connector: str,
    topic: str,
    group: str,
    slots: int,
    starts: Mapping[int, int],
    cancelled: Callable[[], bool] = lambda: False,
) -> frozenset[TableName]:
    """What is committed by now, to each last stable offset. ``starts``: up to where slots were read before, if they
    were."""
    named = NamedTables()

    def keys_of(slot: int, high: int) -> _Keys | None:
        start = starts.get(slot, 0)
        # A topic that was made anew is shorter than what was read of the former one.
        first = start if start <= high else 0
        return _Keys(connector, first, named) if first < high else None

    read_what_is_committed(clients, Sought(topic, connector, values=False), group, slots, keys_of, cancelled)
    return frozenset(named.tables)
