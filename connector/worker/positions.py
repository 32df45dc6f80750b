"""Positions of a connector that is stopped: looked at, moved, taken over.

In: a configuration. Out: what the offsets topic says, or a transaction that replaces it. Refuses while workers run:
they would go on from what they remember and write over it.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connector.config import Configuration
from connector.delivery import (
    KafkaClients,
    RestoredSlot,
    TransactionalProducer,
    compact_json,
    encode_offsets_key,
    ensure_topics,
    fence,
    group_members,
    partitions_of,
    read_committed,
    restore,
)
from connector.errors import CdcError, DeliveryError, StillRunning
from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.timeuuid import LAST_MS
from connector.topology import (
    Mark,
    MarkKey,
    Position,
    PositionKey,
    Snapshot,
    forgotten,
    known_key,
    last_snapshots,
    mark_entry,
    noted_slots,
    parse_mark,
    parse_position,
    position_entry,
    told_apart,
)
from connector.worker.one_group import OneGroup
from connector.worker.settings import kafka_clients, offsets_spec

log = logging.getLogger(__name__)

PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """A mark (``stream`` None) or the position of one stream."""

    table: TableName
    slot: int
    stream: bytes | None
    read_to: int
    detail: Mapping[str, object]


class Positions:
    """Of one connector, in its offsets topic."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._clients: KafkaClients = kafka_clients(configuration)
        self.topic = configuration.connector.delivery.offset_topic
        self._name = configuration.connector.name

    # -- looking ---------------------------------------------------------------------------------------------

    def stored(self) -> list[StoredPosition]:
        """Everything committed, by table and slot; works while workers run as well."""
        return self.stored_with_snapshots()[0]

    def stored_with_snapshots(self) -> tuple[list[StoredPosition], dict[TableName, tuple[Snapshot, float]]]:
        """The same, and of each table the last snapshot, with the part of the table that is done."""
        with self._clients.named():
            entries = [(slot.slot, _readable(slot)) for slot in self._committed().values()]
        return [*_stored(entries)], last_snapshots(entry for _, each in entries for entry in each)

    def exist(self) -> bool:
        """Whether there is an offsets topic; without one the connector has never run."""
        with self._clients.named():
            return partitions_of(self._clients.admin(), self.topic) is not None

    def slots(self) -> int:
        """The number of slots in force: as the marks say, else as configured."""
        return self._slots(self._committed())

    def refuse_while_running(self) -> None:
        """Raises when its group has members, or any other group that runs the connector of this name."""
        with self._clients.named():
            if partitions_of(self._clients.admin(), self.topic) is not None:
                members = OneGroup(self._configuration, self._clients, "").running()
            else:
                # Whose topic was deleted while they ran are members of their group for a while, or still.
                members = [str(each) for each in group_members(self._clients, [self._configuration.group])]
        if members:
            raise StillRunning(
                f"connector {self._name} is running ({', '.join(sorted(members))}): stop all of its workers first"
            )

    # -- moving ----------------------------------------------------------------------------------------------

    def reset(self, tables: Iterable[TableName], to_ms: int) -> None:
        """Every stream of ``tables`` begins at ``to_ms``, or where it was opened if that is later.

        A mark that knows no stream set says exactly this of all of them; positions of streams are removed.
        """
        self.alter(dict.fromkeys(tables, to_ms))

    def alter(self, starts: Mapping[TableName, int | None]) -> None:
        """Where each table begins; None: where it would if it had never been read. All of them or none.

        A topic that is missing is created, where there is something to be said: its loss is made good by this.
        """
        for to_ms in starts.values():
            if to_ms is not None and not 0 <= to_ms <= LAST_MS:
                raise CdcError(f"{to_ms} ms is no time that a log can have: 0 to {LAST_MS} ms since 1970 are")
        self.refuse_while_running()
        if not self.exist():
            if all(to_ms is None for to_ms in starts.values()):
                return
            with self._clients.named():
                ensure_topics(self._clients.admin(), [offsets_spec(self._configuration)])
        restored = self._restored()
        slots = self._slots(restored)
        owner = f"{self._name}-reset-{secrets.token_hex(4)}"
        entries: list[OffsetsEntry] = []
        for found in restored.values():
            for entry in found.entries:
                # By the key alone: a value that cannot be read is what this command is there for.
                key = known_key(entry)
                if key is None or key.table not in starts:
                    continue
                if isinstance(key, PositionKey):
                    entries.append(position_entry(found.slot, key, None))
                elif starts[key.table] is None and isinstance(key, MarkKey):
                    entries.append(mark_entry(key, None))
                elif starts[key.table] is None and (end := forgotten(found.slot, key)) is not None:
                    entries.append(end)
        for table, to_ms in sorted((table, to_ms) for table, to_ms in starts.items() if to_ms is not None):
            for slot in range(slots):
                mark = Mark(read_to=to_ms, stream_set=0, start=to_ms, owner=owner, rechecked=to_ms)
                entries.append(mark_entry(MarkKey(table, slot, slots), mark))
        self.write(entries, owner)

    def write(self, entries: Iterable[OffsetsEntry], owner: str) -> None:
        """In one transaction, or not at all; when this returns, everybody sees it."""
        self._write(entries, owner)
        # A commit is answered before its markers stand in every partition; who takes over the id is answered after.
        with contextlib.suppress(DeliveryError):  # it is committed all the same
            if (successor := fence(self._clients, owner, time.monotonic() + PATIENCE)) is not None:
                successor.close()

    def _write(self, entries: Iterable[OffsetsEntry], owner: str) -> None:
        producer = TransactionalProducer(self._clients, owner, transaction_timeout_ms=15_000)
        try:
            producer.start(time.monotonic() + PATIENCE)
            producer.begin()
            for entry in entries:
                value = None if entry.value is None else compact_json(entry.value)
                producer.produce_to(self.topic, entry.slot, encode_offsets_key(self._name, entry.key), value)
            producer.flush(time.monotonic() + PATIENCE)
            producer.commit()
        finally:
            producer.close()

    # -- inside ----------------------------------------------------------------------------------------------

    def _partitions(self) -> int:
        there = partitions_of(self._clients.admin(), self.topic)
        if there is None:
            raise CdcError(f"there is no topic {self.topic}: the connector has never run with this configuration")
        return there

    def _committed(self) -> dict[int, RestoredSlot]:
        slots = range(self._partitions())
        return read_committed(
            self._clients, connector=self._name, topic=self.topic, group=self._configuration.group, slots=slots
        )

    def _restored(self) -> dict[int, RestoredSlot]:
        """As a successor would see it: what dead workers left open is ended first."""
        return restore(
            self._clients,
            connector=self._name,
            topic=self.topic,
            group=self._configuration.group,
            slots=range(self._partitions()),
        )

    def _slots(self, slots: Mapping[int, RestoredSlot]) -> int:
        noted = noted_slots([entry for slot in slots.values() for entry in slot.entries])
        if noted is not None:
            return noted
        given = "offset.storage.partitions" in self._configuration.worker.given
        return offsets_spec(self._configuration).partitions if given else len(slots)


def _readable(slot: RestoredSlot) -> list[OffsetsEntry]:
    """What cannot be read is named, and hides nothing else."""
    readable, wrong = told_apart(slot.entries)
    for each in wrong:
        log.warning("%s", each)
    return readable


def _stored(slots: Iterable[tuple[int, Iterable[OffsetsEntry]]]) -> Iterable[StoredPosition]:
    for slot, entries in slots:
        for entry in entries:
            assert entry.value is not None
            key = known_key(entry)
            if isinstance(key, MarkKey):
                mark = parse_mark(entry.value, entry.place)
                yield StoredPosition(key.table, key.slot, None, mark.read_to, dict(entry.value))
            elif isinstance(key, PositionKey):
                position: Position = parse_position(entry.value, entry.place)
                yield StoredPosition(key.table, slot, key.stream, position.read_to, dict(entry.value))
