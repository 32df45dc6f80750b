"""Follow: what the other workers have committed, slot by slot, as it becomes visible.

In: the offsets topic. Out: entries in order per slot, and which slots have been read to their high watermark once:
before that a slot's picture is a prefix of its history, and nothing may be concluded from what it lacks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection

from confluent_kafka import Consumer, KafkaError, KafkaException

from connector.delivery.beginning import Beginning
from connector.delivery.clients import READ_COMMITTED, KafkaClients
from connector.delivery.end_offsets import high_watermarks
from connector.delivery.failures import FORBIDDEN, translated, with_right
from connector.delivery.slot_reader import SlotRecords
from connector.delivery.slots_reader import Run, SlotsReader, Sought, slots_reader
from connector.errors import DeliveryError, RetriableDeliveryError
from connector.offsets_entry import OffsetsEntry

log = logging.getLogger(__name__)

FETCH_WAIT_MS = 250

# Compaction leaves alone what is younger than a minute (`OFFSETS_CONFIG` of the worker's settings). Who was away for
# longer may see a mark before the only remaining copy of a position that lies below it.
AWAY_SECONDS = 30.0

# What is answered of a topic without leaders, or without a topic.
_MISSING = frozenset({KafkaError._NOENT, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})

# Of slots that nobody asks for, so many keys are kept as they came, some 30 MB.
MOST_KEPT = 50_000

# Of a worker's round: a topic of millions of records is read in many rounds.
SLICE_SECONDS = 0.05


def _boot_time() -> float:
    """Goes on while the machine sleeps, unlike a monotonic clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Follower:
    """Reads every slot, also our own: a slot that moves away is then known without a gap."""

    def __init__(
        self,
        clients: KafkaClients,
        connector: str,
        topic: str,
        group: str,
        slots: int,
        clock: Callable[[], float] = _boot_time,
        positions: Callable[[], None] = lambda: None,
    ) -> None:
        """``positions`` raises where the topic is no more, or another one, and says what is lost with it."""
        self._positions = positions
        self._clients = clients
        self._connector = connector
        self._topic = topic
        self._slots = slots
        self._clock = clock
        self._group = group
        self._reader = self._made()
        self._beginning = Beginning()
        self._awaited: dict[int, int] = {}
        self._changed: set[int] = set()
        self._records: dict[int, SlotRecords] = {}
        self._polled = clock()
        self.caught_up: frozenset[int] = frozenset()
        #: How often something has come.
        self.heard = 0
        #: Whether a slot began anew behind our back. A topic that is deleted and created again does that.
        self.fell_back = False
        self._errors: dict[int, str] = {}

    @property
    def last_error(self) -> str | None:
        """What keeps a slot from being followed, until something of it is read again."""
        return next(iter(self._errors.values()), None)

    @property
    def beginnings(self) -> int:
        """How often what was followed before counted for nothing any more."""
        return self._beginning.count

    @property
    def client(self) -> Consumer:
        return self._reader.client

    def _made(self) -> SlotsReader:
        clients, group = self._clients, self._group
        return slots_reader(clients, group, READ_COMMITTED, Sought(self._topic, self._connector), FETCH_WAIT_MS)

    def start(self) -> None:
        """Read from the beginning, and note how far each slot must be read before it counts as known."""
        if self._beginning.refused:
            # Of a topic that may not be seen this tells at once.
            self._positions()
        try:
            self._awaited = high_watermarks(self._clients, self._topic, range(self._slots))
        except KafkaException as caught:
            if caught.args[0].code() in _MISSING:
                # Whose slots went with the topic restores nothing, so nobody else asks whether it is there.
                self._positions()
            raise translated(caught.args[0], "following the offsets topic") from None
        except TimeoutError:
            raise RetriableDeliveryError("following the offsets topic: the broker did not answer in time") from None
        if self._beginning.refused:
            self._reader.close()
            self._reader, self._beginning.refused = self._made(), False
        self._records = {slot: SlotRecords(self._connector, slot) for slot in range(self._slots)}
        self._changed.clear()
        self._reader.assign(dict.fromkeys(range(self._slots), 0))
        self._known(frozenset(slot for slot, high in self._awaited.items() if high == 0))
        self._polled = self._clock()
        self._beginning.done()

    def start_anew(self) -> None:
        """What is known may have holes: forget it, and read everything again."""
        self.caught_up = frozenset()
        self._beginning.ask(self._clock())

    def poll(self, but: Collection[int] = ()) -> list[OffsetsEntry]:
        """What has become visible since the last call; waits for nothing. What comes in the slots ``but`` is told when
        they are asked for: whoever owns one knows it, and of each key only the newest record is parsed then."""
        now, before = self._clock(), self._polled
        self._polled = now
        if now - before > AWAY_SECONDS:
            log.info("this worker stood still for %.0f s: following all slots anew", now - before)
            self.start_anew()
        if self._beginning.ask_where_refused(now):
            self.caught_up = frozenset()
        if self._beginning.is_asked and not self._started_anew(now):
            return []
        while True:
            came = list(self._reader.read(SLICE_SECONDS, waits=False))
            reached: set[int] = set()
            self.heard += bool(came)
            for run in came:
                self._take(run, reached)
            if reached - self.caught_up:
                self._known(self.caught_up | reached)
            if not self._reader.has_more or self._clock() - now >= SLICE_SECONDS:
                break
        known = self._changed & self.caught_up
        told = {slot for slot in known if slot not in but or self._records[slot].keys > MOST_KEPT // self._slots}
        self._changed -= told
        return [entry for slot in sorted(told) for entry in self._records[slot].restored().entries]

    def _started_anew(self, now: float) -> bool:
        if not self._beginning.is_due(now):
            return False
        try:
            self.start()
        except DeliveryError as error:
            self._errors[-1] = str(error)
            self._beginning.failed(self._clock())
            return False
        self._errors.pop(-1, None)
        return True

    def _known(self, slots: frozenset[int]) -> None:
        self.caught_up = slots
        for slot in slots:
            # From here on it counts that something is no more.
            self._records[slot].tombstones = True

    def _take(self, run: Run, reached: set[int]) -> None:
        slot = run.slot
        if slot not in self._records:
            return  # of the client, and of no slot
        if run.messages:
            self._changed.add(slot)
            at = run.messages[0].offset()
            self.fell_back |= at is not None and at < self._records[slot].end and run.messages[0].error() is None
        for event in self._records[slot].take(run.messages):
            error = event.error()
            if error is None or error.code() != KafkaError._PARTITION_EOF:
                self._beginning.refused |= error is not None and error.code() in FORBIDDEN
                self._errors[slot] = f"slot {slot}: {with_right(error) if error else 'no answer'}"
            else:
                self._errors.pop(slot, None)
                if (event.offset() or 0) >= self._awaited.get(slot, 0):
                    # Only the end-of-partition event counts, not a message at the noted high watermark: compaction may
                    # since have taken positions away in favour of copies behind it. It also tells of control records,
                    # which are passed over in silence.
                    reached.add(slot)
        if not run.messages or run.messages[-1].error() is None:
            self._errors.pop(slot, None)
        if not self._errors:
            self._beginning.unhindered()

    def close(self) -> None:
        self._reader.close()
