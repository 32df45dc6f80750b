"""The simulated Kafka as its clients reach it: topics, coordinators, and what goes wrong on the way.

In: requests of clients, mishaps of a test. Out: answers, late ones, none at all; what is stored. Every request is a
moment at which others run, and at which the process that asks may be paused or killed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from connector.delivery.topics import END_BYTES
from tests.simulation.kafka_groups import Groups
from tests.simulation.kafka_log import Partition, Topic
from tests.simulation.kafka_transactions import Transactions
from tests.simulation.scheduler import EPOCH, Process, Scheduler

T = TypeVar("T")

# So long a broker that died counts as a leader. A real one's, by default, is 9 s.
SESSION_SECONDS = 0.6


def failure(code: int, why: str = "", *, fatal: bool = False, retriable: bool = False, abort: bool = False) -> Any:
    """What a call raises."""
    return KafkaException(KafkaError(code, why or None, fatal=fatal, retriable=retriable, txn_requires_abort=abort))


@dataclass
class Network:
    """How often requests get lost on the way there (nothing happened), or their answers on the way back; ``cut``: the
    answers to those with records of transactions, perhaps with the connection."""

    seconds: float = 0.004
    lost: float = 0.0
    unanswered: float = 0.0
    cut: float = 0.0


class Broker:
    """One cluster. What a test changes while clients are at work: `network`, `away`, `partition_away`, `refuse`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.topics: dict[str, Topic] = {}
        #: Those that somebody has deleted, with what was in them then.
        self.deleted: list[Topic] = []
        #: Whether a key may be in another partition than before.
        self.changed = False
        self._named = 0
        self.groups = Groups(scheduler)
        self.transactions = Transactions(scheduler, self.groups.settle, self.led)
        self.transactions.too_small = lambda topic: self.topics[topic].largest < END_BYTES
        self.network = Network()
        self.away_until = 0.0
        self.coordinator_until = 0.0
        self.outages = 0
        # How often a leader went away, and with it the connections to it.
        self.losses = 0
        self.requests = 0
        self.mishaps = 0
        #: How far its clock is off, in seconds.
        self.skew = 0.0
        #: All that were ever made, in order.
        self.clients: list[Handle] = []

    # -- topics ------------------------------------------------------------------------------------------------

    def create(self, name: str, partitions: int = 1, **config: str) -> Topic:
        given = {key.replace("_", "."): value for key, value in config.items()}
        topic = Topic(name, [Partition(name, number) for number in range(max(1, partitions))], given, id=self._named)
        self._named += 1
        self.topics[name] = topic
        self.groups.resize(name, len(topic.partitions))
        return topic

    def delete(self, name: str) -> Topic:
        """With all that was in it, and what groups have committed of it."""
        self.changed = True
        topic = self.topics.pop(name)
        self.deleted.append(topic)
        self.groups.resize(name, 0)
        return topic

    def grow(self, name: str) -> None:
        """By a partition."""
        self.changed = True
        partitions = self.topics[name].partitions
        partitions.append(Partition(name, len(partitions)))
        self.groups.resize(name, len(partitions))

    def led(self, place: tuple[str, int]) -> Partition | None:
        """The partition that has the name now."""
        topic, number = place
        there = self.topics[topic].partitions if topic in self.topics else []
        return there[number] if number < len(there) else None

    def partition(self, topic: str, number: int, key: bytes | None = None) -> Partition:
        partitions = self.topics[topic].partitions
        return partitions[zlib.crc32(key or b"") % len(partitions) if number < 0 else number]

    @property
    def all_partitions(self) -> list[Partition]:
        return [partition for topic in self.topics.values() for partition in topic.partitions]

    def metadata(self) -> Any:
        topics = {
            name: SimpleNamespace(topic=name, partitions=self._partitions(topic), error=None)
            for name, topic in self.topics.items()
            if not topic.hidden
        }
        return SimpleNamespace(topics=topics, brokers={1: SimpleNamespace(id=1)})

    def seen(self, name: str) -> Topic | None:
        """What there is for who may see it. Whether there is one that is hidden nobody tells."""
        topic = self.topics.get(name)
        if topic is not None and topic.hidden:
            raise failure(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        return topic

    def _partitions(self, topic: Topic) -> dict[int, Any]:
        led = {each.number: each.available_at <= self.scheduler.now for each in topic.partitions}
        return {
            number: SimpleNamespace(id=number, leader=1 if here else -1, replicas=[1], isrs=[1] if here else [])
            for number, here in led.items()
        }

    @property
    def time_ms(self) -> int:
        return round((EPOCH + self.scheduler.now + self.skew) * 1000)

    # -- mishaps -----------------------------------------------------------------------------------------------

    def stop(self, seconds: float, *, forget_markers: bool = False) -> None:
        """Nobody answers for so long. ``forget_markers``: it crashed, and left out the markers that were due."""
        self.away_until = max(self.away_until, self.scheduler.now + seconds)
        self.outages += 1
        for partition in self.all_partitions:
            partition.available_at = max(partition.available_at, self.away_until)
        if forget_markers:
            until = self.away_until
            self.transactions.forgetting = lambda: self.scheduler.now < until
        self.groups.away(self.away_until)

    def move_leader(self, partition: Partition, seconds: float) -> None:
        self.losses += 1
        if partition.available_at <= self.scheduler.now:
            partition.lost_at = self.scheduler.now
        partition.available_at = max(partition.available_at, self.scheduler.now + seconds)

    def skip_leaderless(self) -> None:
        """As coordinators of Kafka 4.1 do: a partition that nobody leads while others are there gets no marker, once
        its leader's session has ended."""

        def left_out(partition: Partition) -> bool:
            now = self.scheduler.now
            return partition.available_at > max(now, self.away_until) and now >= partition.lost_at + SESSION_SECONDS

        self.transactions.skips_leaderless = left_out

    def move_coordinator(self, seconds: float) -> None:
        self.coordinator_until = max(self.coordinator_until, self.scheduler.now + seconds)
        self.groups.away(self.coordinator_until)
        self.scheduler.later(seconds, self.transactions.load)

    def strand(self, process: Process) -> None:
        """One of the process's clients loses its brokers for good: nobody answers it any more, whoever is there."""
        used = [each for each in self.clients if each.process is process and not each.closed]
        if used:
            kind = self.scheduler.random.choice(sorted({type(each).__name__ for each in used}))
            # Admin clients are many, and forgotten instead of closed.
            newest = [each for each in used if type(each).__name__ == kind][-6:]
            self.scheduler.random.choice(newest).stranded = True

    # -- requests ----------------------------------------------------------------------------------------------

    def reachable(self, coordinator: bool = False) -> bool:
        until = max(self.away_until, self.coordinator_until) if coordinator else self.away_until
        return until <= self.scheduler.now

    def ask(self, action: Callable[[], T], timeout: float, coordinator: bool = False) -> T:
        """One request and its answer; raises where none comes in time, whatever became of the request."""
        self.requests += 1
        scheduler, network = self.scheduler, self.network
        deadline = scheduler.now + timeout
        drawn = scheduler.random.random()
        scheduler.pass_time(scheduler.random.random() * network.seconds)
        while not self.reachable(coordinator):
            if scheduler.now >= deadline:
                raise failure(KafkaError._TIMED_OUT, "no answer", retriable=True)
            scheduler.pass_time(min(0.1, max(0.001, deadline - scheduler.now)))
        if drawn < network.lost:
            self.mishaps += 1
            scheduler.pass_time(max(0.0, deadline - scheduler.now))
            raise failure(KafkaError._TIMED_OUT, "no answer", retriable=True)
        answer = action()
        if drawn < network.lost + network.unanswered:
            self.mishaps += 1
            scheduler.pass_time(max(0.0, deadline - scheduler.now))
            raise failure(KafkaError._TIMED_OUT, "no answer", retriable=True)
        scheduler.pass_time(scheduler.random.random() * network.seconds)
        return answer


class Handle:
    """What all clients have in common: their process, and the one callback for errors of connections."""

    def __init__(self, broker: Broker, properties: dict[str, Any]) -> None:
        self.broker = broker
        self.scheduler = broker.scheduler
        self.properties = properties
        self.process: Process | None = broker.scheduler.in_process
        self._error_cb: Callable[[KafkaError], None] = properties.get("error_cb", lambda error: None)
        self._log = properties.get("logger")
        self._outages, self._losses = broker.outages, broker.losses
        #: It has lost its brokers for good.
        self.stranded = False
        self.closed = False
        broker.clients.append(self)

    def reaches(self, coordinator: bool = False) -> bool:
        return not self.stranded and self.broker.reachable(coordinator)

    def ask(self, action: Callable[[], T], timeout: float, coordinator: bool = False) -> T:
        if self.stranded:
            self.scheduler.pass_time(max(0.0, timeout))
            raise failure(KafkaError._TRANSPORT, "no brokers", retriable=True)
        return self.broker.ask(action, timeout, coordinator)

    @property
    def runs(self) -> bool:
        """Whether the client's own threads are at work."""
        process = self.process
        return process is None or (process.alive and process.paused_until <= self.scheduler.now)

    def serve(self) -> None:
        """Called within poll and flush."""
        if self.broker.losses != self._losses:
            self._losses = self.broker.losses
            if self._log is not None:
                self._log.log(20, "%s [%s] %s", "FAIL", "client", "Disconnected: connection closed by peer")
        if self.broker.outages != self._outages:
            self._outages = self.broker.outages
            self._error_cb(KafkaError(KafkaError._ALL_BROKERS_DOWN, "all brokers down"))

    def lose_connection(self) -> None:
        """This client's alone."""
        self._losses = -1

    def list_topics(self, topic: str | None = None, timeout: float = 10.0) -> Any:
        return self.ask(self.broker.metadata, timeout)
