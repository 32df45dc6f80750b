"""From a batch to its records, or to its dead letter.

In: complete batches. Out: records for Kafka. What can never become a record is a dead letter (`errors.tolerance=all`)
or a `PoisonRow` that fails its group; in neither case is it tried for ever or dropped.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from connector.changes import Batch, LogLayout, UncutBatches, changes_of
from connector.config import Configuration
from connector.delivery import DeadLetter, KafkaRecord, TopicFacts, dead_letter_record, record_size
from connector.errors import ConfigurationError, PoisonRecord, PoisonRow, RetriableDeliveryError
from connector.formats import Encoder, Record
from connector.native import BlockEncoder

log = logging.getLogger(__name__)

# What the broker adds to a record beside its bytes, generously.
RECORD_OVERHEAD = 128

# Records that are made before somebody looks at the time again.
RECORDS_AT_ONCE = 500
SMALL_RECORD = 300

# Behind a batch that the kernel refused so many are made the plain way, twice as many each time, until it makes that
# many at once: where it refuses every other one, asking it costs more than it wins.
MOST_IN_A_ROW = 512

# Kafka Connect's word for what cannot be done with a record that the broker does not take.
_PRODUCE = "KAFKA_PRODUCE"


@dataclass(slots=True)
class Encoded:
    """The records of some batches, in order. ``ends``: where in ``records`` each batch ends."""

    records: Sequence[KafkaRecord] = ()
    ends: Sequence[int] = ()
    bytes: int = 0


@dataclass(slots=True)
class _Made:
    """As `Encoded`, while it grows."""

    records: list[KafkaRecord] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    bytes: int = 0


class Pipeline:
    """Of one worker. ``suspended_topics`` and ``poison`` outlive aborts: what caused one must not cause the next."""

    def __init__(
        self,
        configuration: Configuration,
        encoder: Encoder,
        topics: Mapping[str, TopicFacts],
        task: int,
        create_topic: Callable[[str], TopicFacts] | None = None,
        blocks: BlockEncoder | None = None,
    ) -> None:
        self.encoder = encoder
        #: What makes many records at once, of batches that nobody has cut.
        self.blocks = blocks
        #: Whether the next ones are made one by one all the same: who is to blame for an abort is found that way.
        self.plainly = False
        self._in_a_row = 1
        self._connector = configuration.connector
        #: Of all topics that are known, as others see it change.
        self.facts = dict(topics)
        self._create_topic = create_topic
        self._task = task
        self._dead_letter_topic = (
            configuration.connector.delivery.dead_letter_topic if configuration.connector.delivery.dead_letters else ""
        )
        self._tolerant = configuration.connector["errors.tolerance"] == "all"
        #: Those that take no records at the moment, and why.
        self.suspended_topics: dict[str, str] = {}
        self._resumed = False
        self.poison: dict[tuple[bytes, bytes], str] = {}
        # Those that became dead letters in the open transaction.
        self._answered: set[tuple[bytes, bytes]] = set()
        self._exceeded: set[str] = set()
        # Bytes that a record of a topic that is known to be there may have.
        self._limits: dict[str, int] = {}
        #: Topics that records were made for.
        self.written: set[str] = set()
        self.records: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.last_dead_letter: str | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Those that records go to, as far as they are known."""
        return tuple(self.facts)

    @property
    def all_topics(self) -> frozenset[str]:
        """Also those that take none, of which there may be no facts yet: they may be hidden from us, and hold what a
        former owner has left open. Read by any thread."""
        # In this order: one that is resumed between the two reads is found in the second.
        suspended = frozenset(self.suspended_topics)
        return suspended | frozenset(self.facts)

    def encode(self, batches: Sequence[Batch], room: int) -> Encoded:
        """All records of the first batches, at least of one, until ``room`` bytes are filled.

        Stops in front of a batch that can have none, for ever or for now; raises PoisonRow or RetriableDeliveryError if
        that is the first.
        """
        if isinstance(batches, UncutBatches):
            made = self._block(batches, room)
            if made is not None:
                return made
            wanted = self._in_a_row if self.takes_uncut(batches.layout) else RECORDS_AT_ONCE
            batches = list(batches[:wanted])
        done = self._encode(batches, room)
        return Encoded(done.records, done.ends, done.bytes)

    def takes_uncut(self, layout: LogLayout) -> bool:
        """Whether batches of a layout need not be cut, as far as is known."""
        return self.blocks is not None and not self.plainly and self.blocks.takes(layout)

    def _block(self, batches: UncutBatches, room: int) -> Encoded | None:
        """The records of the first batches, made at once; None if the first is for the plain way."""
        if self.blocks is None or not self.takes_uncut(batches.layout):
            return None
        plan = self.blocks.plan(batches.layout)
        if plan is None:
            return None
        limit = self._limits.get(plan.topic)
        batches = self._unblamed(batches)
        block = self.blocks.encode(batches, self._limit(plan.topic) if limit is None else limit, room)
        if block is None:
            self._in_a_row = min(2 * self._in_a_row, MOST_IN_A_ROW)
            return None
        if len(block.ends) >= self._in_a_row:
            self._in_a_row = 1
        self.records[batches.layout.description.full_name] += len(block)
        return Encoded(block, block.ends, block.size)

    def _unblamed(self, batches: UncutBatches) -> UncutBatches:
        """Those in front of the first of which a record was refused before."""
        if not self.poison:
            return batches
        some = range(min(len(batches), RECORDS_AT_ONCE))
        end = next((at for at in some if batches.place(at) in self.poison), len(some))
        return batches[:end]

    def _encode(self, batches: Sequence[Batch], room: int) -> _Made:
        done = _Made()
        some = _first(batches, room)
        alike = self._alike(some)
        for at, batch in enumerate(some):
            before, bytes_before = len(done.records), done.bytes
            try:
                records, left_out = self._records(batch) if alike is None else (alike[at], None)
                self._add(done, records)
            except RetriableDeliveryError:
                del done.records[before:]
                done.bytes = bytes_before
                if not done.ends:
                    raise
                break
            except PoisonRow as poison:
                del done.records[before:]
                done.bytes = bytes_before
                if done.ends and not self._tolerates_poison:
                    break
                self._add_letters(done, self._dead_letter(batch, poison))
                self._answered.add(_place(batch))
            else:
                self.records[batch.layout.description.full_name] += len(done.records) - before
                if left_out is not None:
                    self._add_letters(done, self._letters(batch, left_out))
            done.ends.append(len(done.records))
            if done.bytes >= room or len(done.records) >= RECORDS_AT_ONCE:
                break
        return done

    def _alike(self, batches: Sequence[Batch]) -> list[list[Record]] | None:
        """The records of each batch, where all changes are of the usual kind: made together they cost much less."""
        if self.poison and any(_place(batch) in self.poison for batch in batches):
            return None
        try:
            changes = [changes_of(batch) for batch in batches]
        except PoisonRow:
            return None
        made = self.encoder.encode_alike(list(chain.from_iterable(changes)))
        if made is None:
            return None
        records = iter(made)
        return [
            next(records) if len(its) == 1 else list(chain.from_iterable(islice(records, len(its)))) for its in changes
        ]

    def _records(self, batch: Batch) -> tuple[list[Record], PoisonRecord | None]:
        """All of them; or those that can be made, and why others cannot, where that may be."""
        if self.poison:
            remembered = self.poison.get(_place(batch))
            if remembered is not None:
                raise PoisonRow(remembered).at(_PRODUCE)
        records: list[Record] = []
        left_out = None
        for change in changes_of(batch):
            try:
                records += self.encoder.encode(change)
            except PoisonRecord as poison:
                if not self._tolerates_poison:
                    raise
                records += poison.others
                left_out = left_out or poison
        return records, left_out

    def _add(self, done: _Made, records: Iterable[Record]) -> None:
        for record in records:
            size = record_size(record)
            limit = self._limits.get(record.topic)
            if size > (self._limit(record.topic) if limit is None else limit):
                # Found out before it is sent: the broker would refuse it together with its neighbours.
                self._exceeded.add(record.topic)
                raise PoisonRow(
                    f"a record of {size} bytes is larger than topic {record.topic} takes "
                    f"(max.message.bytes is {self.facts[record.topic].max_message_bytes})"
                ).at(_PRODUCE)
            done.records.append(record)
            done.bytes += size

    @staticmethod
    def _add_letters(done: _Made, letters: list[KafkaRecord]) -> None:
        done.records += letters
        done.bytes += sum(map(record_size, letters))

    def _limit(self, topic: str) -> int:
        if topic in self.suspended_topics:
            raise RetriableDeliveryError(f"topic {topic}: {self.suspended_topics[topic]}")
        if not self.has_topic(topic):
            raise RetriableDeliveryError(f"topic {topic}: {self.suspended_topics[topic]}")
        facts = self.facts.get(topic)
        self.written.add(topic)
        self._limits[topic] = sys.maxsize if facts is None else facts.max_message_bytes - RECORD_OVERHEAD
        return self._limits[topic]

    def forgive(self) -> set[str]:
        """Somebody may have mended what records were refused for. What was not, is refused again. Topics whose limit a
        record exceeded since the last time: they may take larger ones now."""
        self.poison.clear()
        exceeded, self._exceeded = self._exceeded, set()
        return exceeded

    def remember(self, batch: Batch, why: str) -> None:
        """Kafka refused a record of the batch."""
        self.poison[_place(batch)] = why

    def committed(self) -> None:
        """The dead letters of what was refused are delivered: it does not come again."""
        for place in self._answered:
            self.poison.pop(place, None)
        self._answered.clear()
        self.plainly = False

    def aborted(self) -> None:
        """It comes again."""
        self._answered.clear()

    def suspend_topic(self, topic: str, why: str) -> None:
        """Nothing can be sent to ``topic`` for now: its records wait, others go on."""
        self.suspended_topics[topic] = why
        self._limits.pop(topic, None)

    def resume_topic(self, facts: TopicFacts) -> None:
        """It takes records again, perhaps other ones than before."""
        # Before it is let go: at no moment `all_topics` lacks it.
        self.facts[facts.name] = facts
        self._resumed |= self.suspended_topics.pop(facts.name, None) is not None
        self._limits.pop(facts.name, None)

    def take_resumed(self) -> bool:
        """Whether some topic takes records again, since somebody asked."""
        resumed, self._resumed = self._resumed, False
        return resumed

    def largest_record(self, topic: str) -> int | None:
        """As far as it is known."""
        facts = self.facts.get(topic)
        return None if facts is None else facts.max_message_bytes

    def trouble(self, topic: str) -> str | None:
        """Why a topic takes no records, of those that are known to take none."""
        return self.suspended_topics.get(topic)

    def has_topic(self, topic: str) -> bool:
        """Whether records may go there. One that a transform sends records to, and that no table's name foretold, is
        created now, as Kafka Connect does."""
        if topic in self.suspended_topics:
            return False
        if topic not in self.facts and self._create_topic is not None:
            try:
                self.facts[topic] = self._create_topic(topic)
            except ConfigurationError as error:
                self.suspend_topic(topic, "; ".join(problem.problem for problem in error.problems))
                return False
        return True

    @property
    def _tolerates_poison(self) -> bool:
        return self._tolerant and self.trouble(self._dead_letter_topic) is None

    def late_letters(self, batch: Batch, reason: str) -> list[KafkaRecord]:
        """What is kept of a batch that came too late for its place: nothing without a dead-letter topic."""
        if not self._dead_letter_topic:
            log.error("%s: not delivered: %s", batch.layout.description.full_name, reason)
            return []
        return self._letters(batch, PoisonRow(reason))

    def _dead_letter(self, batch: Batch, poison: PoisonRow) -> list[KafkaRecord]:
        if not self._tolerant:
            raise poison
        return self._letters(batch, poison)

    def _letters(self, batch: Batch, poison: PoisonRow) -> list[KafkaRecord]:
        table, topic = batch.layout.description.full_name, self._dead_letter_topic
        if topic in self.suspended_topics:
            raise RetriableDeliveryError(
                f"dead-letter topic {topic}: {self.suspended_topics[topic]}; the dead letter is: {poison}"
            )
        self.dead_letters[table] += 1
        self.last_dead_letter = str(poison)
        log.warning("%s: dead letter: %s", table, poison)
        if not topic:
            # Tolerated without a topic to keep it in, as in Kafka Connect: counted and logged, nothing else.
            return []
        number = batch.rows[0][batch.layout.batch_seq_no] if batch.rows else None
        letter = DeadLetter(
            connector=self._connector.name,
            task=str(self._task),
            topic=self._connector.output.names.data_topic(
                batch.layout.description.keyspace, batch.layout.description.name
            ),
            table=table,
            stream_id=batch.stream_id.hex(),
            time=str(batch.timeuuid),
            batch_seq_no=int.from_bytes(number, "big", signed=True) if number else None,
            error=poison,
            raw=raw_rows(batch),
        )
        largest = self.largest_record(topic)
        most = None if largest is None else largest - RECORD_OVERHEAD
        return [dead_letter_record(topic, letter, self._connector.delivery.dead_letter_headers, most)]


def _place(batch: Batch) -> tuple[bytes, bytes]:
    return batch.stream_id, batch.time


def _first(batches: Sequence[Batch], room: int) -> Sequence[Batch]:
    """As many as are worth encoding at once: where the room is small, more would be thrown away again."""
    rows = min(RECORDS_AT_ONCE, 1 + room // SMALL_RECORD)
    for at, batch in enumerate(batches):
        rows -= len(batch.rows)
        if rows <= 0:
            return batches[: at + 1]
    return batches


def raw_rows(batch: Batch) -> bytes:
    """The rows as the log has them: cells in hexadecimal, so that nothing has to be decoded to keep them."""
    columns = batch.layout.columns
    rows = [
        {name: None if cell is None else "0x" + cell.hex() for name, cell in zip(columns, row)} for row in batch.rows
    ]
    return json.dumps(rows, separators=(",", ":")).encode()
