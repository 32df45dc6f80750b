"""The transaction coordinator of the simulated Kafka: ids, producer epochs, decisions, and markers that come later.

In: what producers ask. Out: answers as Kafka gives them (an error code or nothing). A decision is final at once; its
markers reach each partition after a while of their own, or, after a crash, never.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from confluent_kafka import KafkaError

from tests.simulation.kafka_log import Partition
from tests.simulation.scheduler import Scheduler

# The group's coordinator gathers what it writes for so long.
GROUP_LATER = 0.01

# After so long a marker that could not be written is tried again.
AGAIN_SECONDS = 0.3


class Phase(Enum):
    EMPTY = 0
    ONGOING = 1
    ENDING = 2


@dataclass(slots=True)
class Registered:
    """One transactional id."""

    name: str
    producer: int
    epoch: int = -1
    timeout: float = 60.0
    phase: Phase = Phase.EMPTY
    commit: bool = False
    began: int = 0
    partitions: set[tuple[str, int]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    # What the last transaction was ended with, for a question that is asked again; None once another has begun.
    ended: bool | None = None


class Transactions:
    """Of the whole cluster. ``settle`` is told when a transaction's offsets in a group are decided; ``led`` tells which
    partition has a name now."""

    def __init__(
        self,
        scheduler: Scheduler,
        settle: Callable[[str, int, bool], None],
        led: Callable[[tuple[str, int]], Partition | None],
    ) -> None:
        self._scheduler = scheduler
        self._settle = settle
        self._led = led
        self.ids: dict[str, Registered] = {}
        self._producers = 0
        self.marker_seconds = 0.02
        # A crash: the markers that are due meanwhile are left out, of whatever was decided, in all partitions.
        self.forgetting: Callable[[], bool] = lambda: False
        self.forgotten = 0
        # Whether a topic is too small for a marker. A coordinator does not try it again; the one after it does.
        self.too_small: Callable[[str], bool] = lambda topic: False
        self.given_up: list[Callable[[], None]] = []
        # Whether a partition that nobody leads is taken for deleted, as newer coordinators do, or waited for.
        self.skips_leaderless: Callable[[Partition], bool] = lambda partition: False
        # For transactions whose time is up; by default brokers look every ten seconds. 0: at once.
        self.looks_every = 0.0
        self.commits = 0
        self.timeouts = 0

    def new_producer(self) -> int:
        self._producers += 1
        return self._producers

    # -- requests ----------------------------------------------------------------------------------------------

    def register(self, name: str, timeout: float) -> Registered | int:
        """InitProducerId: what an earlier owner of the id left open is aborted, and nothing of him counts any more."""
        found = self.ids.get(name)
        if found is None:
            found = self.ids[name] = Registered(name, self.new_producer())
        if found.phase is Phase.ONGOING:
            found.epoch += 1
            self._end(found, commit=False)
        if found.phase is Phase.ENDING:
            return int(KafkaError.CONCURRENT_TRANSACTIONS)
        found.epoch += 1
        found.timeout = timeout
        found.ended = None
        return found

    def later_epoch(self, name: str, epoch: int) -> int:
        """InitProducerId by whoever has the id, between two transactions; nothing changes if he has it no more."""
        found = self.ids[name]
        if found.epoch == epoch and found.phase is not Phase.ONGOING:
            found.epoch += 1
            return found.epoch
        return epoch

    def add(self, name: str, epoch: int, partition: Partition | None, group: str | None = None) -> int | None:
        """AddPartitionsToTxn, AddOffsetsToTxn."""
        found = self.ids[name]
        if found.epoch != epoch:
            return int(KafkaError.INVALID_PRODUCER_EPOCH)
        if found.phase is Phase.ENDING:
            return int(KafkaError.CONCURRENT_TRANSACTIONS)
        if found.phase is Phase.EMPTY:
            found.phase = Phase.ONGOING
            found.began += 1
            found.ended = None
            self._watch(found, found.began)
        if partition is not None:
            found.partitions.add((partition.topic, partition.number))
        if group is not None:
            found.groups.add(group)
        return None

    def holds(self, name: str, epoch: int, partition: Partition) -> bool:
        """What a partition's leader asks before it takes the first record of a transaction."""
        found = self.ids[name]
        inside = (partition.topic, partition.number) in found.partitions
        return found.epoch == epoch and found.phase is Phase.ONGOING and inside

    def end(self, name: str, epoch: int, commit: bool) -> int | None:
        """EndTxn."""
        found = self.ids[name]
        if found.epoch != epoch:
            return int(KafkaError.INVALID_PRODUCER_EPOCH)
        if found.phase is Phase.ONGOING:
            self._end(found, commit)
            return None
        if found.phase is Phase.ENDING:
            return None if found.commit == commit else int(KafkaError.INVALID_TXN_STATE)
        return None if found.ended == commit else int(KafkaError.INVALID_TXN_STATE)

    # -- inside ------------------------------------------------------------------------------------------------

    def _watch(self, found: Registered, began: int) -> None:
        def look() -> None:
            if found.began == began and found.phase is Phase.ONGOING:
                # Whoever had it is fenced: he cannot know.
                self.timeouts += 1
                found.epoch += 1
                self._end(found, commit=False)

        end = self._scheduler.now + found.timeout
        if self.looks_every:
            end = math.ceil(end / self.looks_every) * self.looks_every
        self._scheduler.later(end - self._scheduler.now, look)

    def _end(self, found: Registered, commit: bool) -> None:
        found.phase, found.commit = Phase.ENDING, commit
        self.commits += commit
        # One request tells all partitions; the group's own partition is written a moment later.
        delay = self._delay()
        for place in sorted(found.partitions):
            self._send_marker(found, place, delay)
        for group in sorted(found.groups):
            self._tell_group(found, group, delay + GROUP_LATER * self._scheduler.random.random())
        self._finish(found)

    def _delay(self) -> float:
        return self._scheduler.random.random() * self.marker_seconds

    def _send_marker(self, found: Registered, place: tuple[str, int], delay: float) -> None:
        def write() -> None:
            partition = self._led(place)
            if partition is None:
                pass  # nobody waits for what was deleted
            elif self.forgetting() or self.skips_leaderless(partition):
                self.forgotten += 1
            elif partition.available_at > self._scheduler.now:
                # Asked again now and then: whoever has no leader for long may be left out.
                left = partition.available_at - self._scheduler.now
                self._scheduler.later(min(left, AGAIN_SECONDS) + self._delay(), write)
                return
            elif self.too_small(place[0]):
                self.given_up.append(write)
                return
            else:
                partition.mark(found.producer, found.epoch, found.commit)
            found.partitions.discard(place)
            self._finish(found)

        self._scheduler.later(delay, write)

    def load(self) -> None:
        """Another coordinator, or the same one started again, does what was decided."""
        given_up, self.given_up = self.given_up, []
        for write in given_up:
            write()

    def _tell_group(self, found: Registered, group: str, delay: float) -> None:
        def write() -> None:
            if self.forgetting():
                self.forgotten += 1
            else:
                self._settle(group, found.producer, found.commit)
            found.groups.discard(group)
            self._finish(found)

        self._scheduler.later(delay, write)

    def _finish(self, found: Registered) -> None:
        if found.phase is Phase.ENDING and not found.partitions and not found.groups:
            found.phase, found.ended = Phase.EMPTY, found.commit
