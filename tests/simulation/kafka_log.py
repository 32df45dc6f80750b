"""A partition of the simulated Kafka: records at offsets, transactions that are open in it, compaction.

In: records and markers of producers. Out: what a reader of either isolation level sees; the high watermark and the last
stable offset. Offsets of control records and of what compaction took away stay empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Fate(Enum):
    """What became of a record's transaction, in this partition."""

    NONE = "not transactional"
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False, slots=True)
class Stored:
    """A record. ``producer``: the producer id, None outside of transactions. ``timestamp``: when it was made, by its
    producer's clock, unless it is ``stamped`` by whoever wrote it; ``stored_at``: when it was written, by the servers'.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    producer: int | None
    fate: Fate
    stored_at: int
    stamped: bool = False


#: So many of a producer's last batches a partition knows again.
BATCHES_KNOWN = 5


@dataclass(slots=True)
class Numbered:
    """What a partition knows of a producer: its epoch, the number that its next record must have, and of its last
    batches which record went where."""

    epoch: int
    next: int
    batches: dict[int, dict[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Partition:
    """``available_at``: there is no leader before that time; ``lost_at``: the last one went away. ``known``: producers
    whose records it has taken. ``slow``: its leader learns that it is one between two requests of another producer."""

    topic: str
    number: int
    records: list[Stored | None] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    available_at: float = 0.0
    lost_at: float = 0.0
    known: set[int] = field(default_factory=set)
    slow: bool = False
    numbered: dict[int, Numbered] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The high watermark."""
        return len(self.records)

    @property
    def stable(self) -> int:
        """The last stable offset."""
        return min(self.open.values(), default=len(self.records))

    def append(self, record: Stored) -> int:
        if record.producer is not None:
            self.open.setdefault(record.producer, len(self.records))
        self.records.append(record)
        return len(self.records) - 1

    def take(self, record: Stored, epoch: int, number: int, batch: int) -> int | None:
        """As `append`, for a record whose producer has numbered it. One that is known by its number is not written
        again: the answer is where it stands, whatever is in it. None if there is one missing in front of it."""
        assert record.producer is not None
        of_producer = self.numbered.get(record.producer)
        if of_producer is None or of_producer.epoch < epoch:
            of_producer = self.numbered[record.producer] = Numbered(epoch, number)
        for places in of_producer.batches.values():
            if number in places:
                return places[number]
        if number != of_producer.next:
            return None
        of_producer.next += 1
        offset = self.append(record)
        of_producer.batches.setdefault(batch, {})[number] = offset
        while len(of_producer.batches) > BATCHES_KNOWN:
            del of_producer.batches[next(iter(of_producer.batches))]
        return offset

    def mark(self, producer: int, epoch: int, commit: bool) -> None:
        """The control record at the end of a transaction. It speaks for everything that the producer has open here."""
        self.epochs[producer] = max(epoch, self.epochs.get(producer, 0))
        first = self.open.pop(producer, None)
        if first is not None:
            for record in self.records[first:]:
                if record is not None and record.producer == producer and record.fate is Fate.OPEN:
                    record.fate = Fate.COMMITTED if commit else Fate.ABORTED
        self.records.append(None)

    def forget_the_last_marker(self) -> None:
        """As if nobody had written it: what it spoke for is open."""
        assert self.records and self.records.pop() is None
        begin = max((at + 1 for at, record in enumerate(self.records) if record is None), default=0)
        for record in self.records[begin:]:
            assert record is not None and record.producer is not None
            record.fate = Fate.OPEN
            self.open.setdefault(record.producer, begin)

    def read(self, offset: int, most: int, committed: bool) -> tuple[list[tuple[int, Stored]], int]:
        """At most so many records from an offset on, and where to go on."""
        end = self.stable if committed else self.end
        found: list[tuple[int, Stored]] = []
        at = offset
        while at < end and len(found) < most:
            record = self.records[at]
            if record is not None and not (committed and record.fate is Fate.ABORTED):
                found.append((at, record))
            at += 1
        return found, at

    def compact(self, below: int, tombstones: bool = False) -> None:
        """Take away what a later record of the same key replaces, below an offset; the last one of all stays.

        ``tombstones``: also those that have nothing left to remove.
        """
        end = min(below, self.stable, self.end)
        newest: dict[bytes | None, int] = {}
        for at in range(end):
            record = self.records[at]
            if record is None:
                continue
            if record.fate is Fate.ABORTED:
                self.records[at] = None
                continue
            older = newest.get(record.key)
            if older is not None:
                self.records[older] = None
            newest[record.key] = at
        if tombstones:
            for at in newest.values():
                found = self.records[at]
                if found is not None and found.value is None:
                    self.records[at] = None

    def committed(self) -> list[Stored]:
        """Everything a read_committed consumer could ever have been given up to now, compacted or not."""
        kept = (Fate.NONE, Fate.COMMITTED)
        return [record for record in self.records[: self.stable] if record is not None and record.fate in kept]


@dataclass(slots=True)
class Topic:
    name: str
    partitions: list[Partition]
    config: dict[str, str]
    # What its leaders answer to every record, by the name of an error; nothing if they take records.
    refuses: int | None = None
    #: Whether its brokers hide it: who asks for it has no right to see it.
    hidden: bool = False
    #: Of those that had the name one after the other, which one it is.
    id: int = 0

    @property
    def stamps(self) -> bool:
        """Whether records have the time at which they were written instead of their own."""
        return self.config.get("message.timestamp.type") == "LogAppendTime"

    @property
    def largest(self) -> int:
        return int(self.config.get("max.message.bytes", 1_048_588))
