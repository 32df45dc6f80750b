"""Slots as they are read: of each key only the newest record is kept, and nothing is parsed before all are read.

In: a reader of the offsets topic. Out: `RestoredSlot`s. A topic that compaction has not reached holds millions of
records for a few thousand keys, those of other connectors among them: what is done once for each record is a lookup.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message

from connector.delivery.clients import READ_COMMITTED, KafkaClients
from connector.delivery.end_offsets import high_watermarks
from connector.delivery.failures import translated
from connector.delivery.records import Left, OwnKeys, decode_offsets_entry, left_behind
from connector.delivery.slots_reader import SlotsReader, Sought, slots_reader
from connector.errors import RetriableDeliveryError
from connector.offsets_entry import OffsetsEntry

POLL_SECONDS: Final = 0.2
# For the next record, not for all of them.
PATIENCE_SECONDS: Final = 30.0

_OWNER: Final = re.compile(rb'"owner"\s*:\s*("(?:[^"\\]|\\.)*")')


class Patience:
    """Runs out when nothing has come for so long, however long all of it takes."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self.renew()

    def renew(self) -> None:
        self.deadline = self._monotonic() + self._seconds

    @property
    def over(self) -> bool:
        return self._monotonic() >= self.deadline


@dataclass(slots=True)
class RestoredSlot:
    """What a slot's partition says: the newest entry of each key without tombstones; ``end`` is the offset behind."""

    slot: int
    end: int = 0
    entries: list[OffsetsEntry] = field(default_factory=list)


class OwnersRead:
    """Whom records of one slot name as their owner. One that was named before is known by its bytes."""

    def __init__(self, connector: str, slot: int) -> None:
        self._connector = connector
        self._slot = slot
        self._known: dict[bytes, str] = {}

    def of(self, message: Message) -> str | None:
        """``message`` is one of ours, see `OwnKeys`."""
        found = _OWNER.search(message.value() or b"")
        if found is None:
            return None
        owner = self._known.get(found[1])
        if owner is None:
            entry = decoded(self._connector, self._slot, message)
            owner = None if entry is None else entry.owner
            if owner is not None:
                self._known[found[1]] = owner
        return owner


class SlotTaker(Protocol):
    """Takes what is read of one slot; ``end`` is the offset behind."""

    end: int

    def take(self, run: list[Message]) -> Iterator[Message]: ...


class SlotRecords:
    """The newest records of one slot, as they are read; in the end its `RestoredSlot`.

    With ``owners`` also everybody who is named as an owner in any record, the newest or not. With ``tombstones`` an
    entry that is no more is an entry, too. ``noted`` is told each key that was not there.
    """

    def __init__(
        self,
        connector: str,
        slot: int,
        end: int = 0,
        *,
        owners: bool = False,
        noted: Callable[[bytes], None] = lambda key: None,
    ) -> None:
        self.end = end
        self.tombstones = False
        self._connector = connector
        self._slot = slot
        self._keys = OwnKeys(connector)
        self._newest: dict[bytes, Message] = {}
        self._last: Message | None = None
        self._owners = OwnersRead(connector, slot) if owners else None
        self.owners: set[str] = set()
        self._note = noted

    def take(self, run: list[Message]) -> Iterator[Message]:
        """The next messages of the partition; those that are none but tell of errors and of the end are handed back."""
        newest = dict(zip(map(Message.key, run), run, strict=True))
        if None in newest:
            del newest[None]
            for message in run:
                if message.key() is None:
                    if message.error() is not None:
                        yield message
                    else:
                        self._keys.own(message)  # told as foreign
            run = [message for message in run if message.error() is None]
        if not run:
            return
        # Whoever got the end of the partition may have noted it by now: it counts control records, too.
        self.end = max(self.end, run[-1].offset() + 1)
        known, odd = self._newest, False
        mine: list[tuple[bytes, Message]] = []
        for raw, message in newest.items():
            key = raw if raw in known else self._keys.own(message)
            if key is not None:
                if key not in known:
                    self._note(key)
                mine.append((key, message))
                odd |= key != raw
        self._last = next((each for each in reversed(run) if self._is_own(each)), self._last)
        if odd:
            # Two spellings of one key: the later one counts.
            mine.sort(key=_offset)
        for key, message in mine:
            if message.value() is None and not self.tombstones:
                known.pop(key, None)
            else:
                known[key] = message
        if self._owners is not None:
            named = (self._owners.of(message) for message in run if self._keys.own(message) is not None)
            self.owners.update(owner for owner in named if owner is not None)

    @property
    def keys(self) -> int:
        """How many have a record that was not restored yet."""
        return len(self._newest)

    def restored(self) -> RestoredSlot:
        """What the newest records say, in the topic's order; what is read next begins anew."""
        messages, self._newest = self._newest.values(), {}
        entries = [self._decoded(message) for message in sorted(messages, key=Message.offset)]
        return RestoredSlot(self._slot, self.end, [entry for entry in entries if entry is not None])

    def left(self) -> list[Left]:
        """Who may have left transactions open where the slot's last owner could not look."""
        return [] if self._last is None else left_behind(self._last.headers())

    def _is_own(self, message: Message) -> bool:
        key = message.key()
        return key is not None and (key in self._newest or self._keys.own(message) is not None)

    def newest_owners(self) -> set[str]:
        """The owners that the newest records name."""
        naming = (message for message in self._newest.values() if _OWNER.search(message.value() or b""))
        found = map(self._decoded, naming)
        return {entry.owner for entry in found if entry is not None and entry.owner is not None}

    def _decoded(self, message: Message) -> OffsetsEntry | None:
        return decoded(self._connector, self._slot, message)


def decoded(connector: str, slot: int, message: Message) -> OffsetsEntry | None:
    """What a message of the offsets topic says; see `decode_offsets_entry`."""
    topic, offset = message.topic() or "", message.offset() or 0
    return decode_offsets_entry(connector, slot, message.key(), message.value(), topic, offset)


def _offset(found: tuple[bytes, Message]) -> int:
    return found[1].offset() or 0


def read_to_end(
    reader: SlotsReader,
    into: Mapping[int, SlotTaker],
    waiting: set[int],
    ends: Mapping[int, int],
    patience: Patience,
    cancelled: Callable[[], bool],
) -> None:
    """Read on until every waiting slot had an end-of-partition event, at or beyond its end where one is given."""
    patience.renew()
    while waiting:
        if cancelled():
            raise RetriableDeliveryError("restoring was cancelled")
        if patience.over:
            raise RetriableDeliveryError(f"slots {sorted(waiting)} could not be read to their end: nothing comes")
        for slot, run, end in reader.read(POLL_SECONDS):
            records = into.get(slot)
            if records is None:
                _refuse(*run)
                continue
            before = records.end
            records.end = max(before, end)
            for event in records.take(run):
                _handle(event, slot, records, waiting, ends)
            if records.end > before or slot not in waiting:
                patience.renew()


def read_what_is_committed(
    clients: KafkaClients,
    what: Sought,
    group: str,
    slots: int,
    taker: Callable[[int, int], SlotTaker | None],
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """To each last stable offset as of now. ``taker``: who takes what is read of a slot, from its ``end`` on, given the
    slot's high watermark; None where there is nothing to read."""
    topic = what.topic
    try:
        highs = high_watermarks(clients, topic, range(slots))
        into = {slot: each for slot, high in highs.items() if (each := taker(slot, high)) is not None}
        if not into:
            return
        starts = {slot: each.end for slot, each in into.items()}
        reader = slots_reader(clients, group, READ_COMMITTED, what)
        reader.assign(starts)
        try:
            read_to_end(reader, into, set(into), {}, Patience(PATIENCE_SECONDS), cancelled)
        finally:
            reader.close()
    except KafkaException as caught:
        raise translated(caught.args[0], f"reading topic {topic}") from None
    except TimeoutError:
        raise RetriableDeliveryError(f"reading topic {topic}: the broker did not answer in time") from None


def _handle(event: Message, slot: int, records: SlotTaker, waiting: set[int], ends: Mapping[int, int]) -> None:
    error, offset = event.error(), event.offset() or 0
    assert error is not None
    if error.code() == KafkaError._PARTITION_EOF:
        records.end = max(records.end, offset)
        if offset >= ends.get(slot, 0):
            waiting.discard(slot)
    else:
        _refuse(event)


def _refuse(*events: Message) -> None:
    for event in events:
        error = event.error()
        if error is not None and not isinstance(translated(error, ""), RetriableDeliveryError):
            raise KafkaException(error)
