"""Workers and processes that ended without a word, long ago: their records are taken out of the status topic.

In: the status topic. Out: tombstones. Each worker has a name of its own, unless its id is kept: what is killed leaves a
record, and whoever asks how the connector is would read, and see, all of them for ever. Of a connector that was deleted
nobody is to take over from them.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from connector.aside import aside
from connector.config import Configuration
from connector.delivery import READ_COMMITTED, KafkaClients, StoredRecord, parse_json, read_topic, topic_partitions
from connector.errors import CdcError
from connector.worker.status_topic import words_producer

log = logging.getLogger(__name__)

# Until then whoever looks for what has happened finds it.
KEPT_SECONDS = 86_400.0
# The topic is read as a whole for it: not when a process starts, nor by all of them at a time.
FIRST_LOOK_SECONDS = (60.0, 300.0)
LOOK_SECONDS = 6 * 3600.0
# From when a connector was deleted: who is asked to end for that has ended, or says nothing any more, for so long.
DELETED_SECONDS, SILENT_SECONDS = 40.0, 20.0
WRITE_SECONDS = 15.0


class Departed:
    """As one process sees to it, for the connectors that it runs."""

    def __init__(self, clients: KafkaClients, configuration: Configuration) -> None:
        self._clients, self._group = clients, configuration.group
        self._topic, self._group_id = configuration.worker.status.name, configuration.worker.group_id
        self._due = time.monotonic() + random.uniform(*FIRST_LOOK_SECONDS)
        self._look: Future[None] | None = None
        #: When connectors that were deleted are looked at.
        self._deleted: dict[str, float] = {}

    def tick(self, connectors: Collection[str], deleted: Collection[str] = ()) -> None:
        """Now and then; returns at once. ``deleted``: a short while ago."""
        now, names = time.monotonic(), frozenset(connectors)
        self._deleted = {name: due for name, due in self._deleted.items() if name not in names}
        for name in deleted:
            self._deleted.setdefault(name, now + DELETED_SECONDS)
        if self._look is not None and not self._look.done():
            return
        gone = frozenset(name for name, due in self._deleted.items() if now >= due)
        if gone:
            self._deleted = {name: due for name, due in self._deleted.items() if name not in gone}
            self._look = aside(lambda: self.forget(gone, None, SILENT_SECONDS), "departed")
        elif now >= self._due:
            self._due = now + LOOK_SECONDS
            self._look = aside(lambda: self.forget(names, self._group_id), "departed")

    def forget(self, connectors: Collection[str], group_id: str | None, kept_seconds: float = KEPT_SECONDS) -> None:
        """Workers of these connectors; processes of this group."""
        try:
            with self._clients.named():
                partitions = topic_partitions(self._clients.admin()).get(self._topic, 0)
                records = read_topic(self._clients, self._topic, partitions, self._group, READ_COMMITTED)
                now_ms = round(time.time() * 1000)
                gone = [*departed(records, connectors, group_id, now_ms, kept_seconds)]
                if gone:
                    self._take_away(gone)
        except CdcError as error:
            log.debug("topic %s: what is long gone is not taken out: %s", self._topic, error)

    def _take_away(self, gone: Iterable[StoredRecord]) -> None:
        producer = words_producer(self._clients)
        try:
            for record in gone:
                assert record.key is not None
                producer.produce_to(self._topic, record.partition, record.key, None)
            producer.flush(time.monotonic() + WRITE_SECONDS)
        finally:
            producer.close()


def departed(
    records: Iterable[StoredRecord],
    connectors: Collection[str],
    group_id: str | None,
    now_ms: int,
    kept_seconds: float = KEPT_SECONDS,
) -> Iterator[StoredRecord]:
    """Of each key the newest record, where that is long ago by every clock that it tells."""
    newest = {record.key: record for record in records}
    for record in newest.values():
        with contextlib.suppress(TypeError, ValueError, LookupError, AttributeError):  # of somebody else
            name, who = parse_json(record.key or b"")
            ours = who["group"] == group_id if name == "" else name in connectors and isinstance(who["worker"], str)
            if ours and record.value is not None and now_ms - _said_at(parse_json(record.value)) > kept_seconds * 1000:
                yield record


def _said_at(word: Any) -> int:
    times = [word[name] for name in ("time_ms", "server_time_ms", "at_ms") if name in word]
    return int(max(times))
