"""A consumer of the simulated Kafka, with the interface of confluent-kafka's: by assignment, or as a group's member.

In: partitions and offsets, or a subscription. Out: messages, ends of partitions, callbacks of the group inside `poll`.
Heartbeats are the client's own: they stop with the process, not with its owner's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, TopicPartition

from tests.simulation.kafka_broker import Broker, Handle, failure
from tests.simulation.kafka_groups import Member
from tests.simulation.kafka_log import Stored

# So many records come with one answer.
FETCHED = 40


class Message:
    """A record, or an event of a partition."""

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int | None,
        key: bytes | None = None,
        value: bytes | None = None,
        error: KafkaError | None = None,
        stored: Stored | None = None,
    ) -> None:
        self._place = (topic, partition, offset)
        self._key, self._value, self._error, self._stored = key, value, error, stored

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int | None:
        return self._place[2]

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> KafkaError | None:
        return self._error

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self._stored.headers) if self._stored is not None and self._stored.headers else None

    def timestamp(self) -> tuple[int, int]:
        if self._stored is None:
            return TIMESTAMP_CREATE_TIME, -1
        kind = TIMESTAMP_LOG_APPEND_TIME if self._stored.stamped else TIMESTAMP_CREATE_TIME
        return kind, self._stored.timestamp


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """What a transaction is told of a membership."""

    group: str
    generation: int
    member_id: str


@dataclass(slots=True)
class _Reading:
    """One assigned partition."""

    topic: str
    number: int
    offset: int
    told_end: int = -1


class Consumer(Handle):
    def __init__(self, broker: Broker, properties: dict[str, Any]) -> None:
        super().__init__(broker, properties)
        self._group = str(properties["group.id"])
        self._committed = properties.get("isolation.level", "read_committed") == "read_committed"
        self._eof = bool(properties.get("enable.partition.eof", False))
        self._session = float(properties.get("session.timeout.ms", 45_000)) / 1000
        self._heartbeat = float(properties.get("heartbeat.interval.ms", 3_000)) / 1000
        self._most_between_polls = float(properties.get("max.poll.interval.ms", 300_000)) / 1000
        self._polled = self.scheduler.now
        self._reading: dict[tuple[str, int], _Reading] = {}
        self._fetched: deque[Message] = deque()
        self._answer_at = 0.0
        # As a member of the group.
        self._topic: str | None = None
        self._member: Member | None = None
        self._generation = -1
        self._owned: frozenset[int] = frozenset()
        self._target: frozenset[int] | None = None
        self._lost: frozenset[int] | None = None
        self._join_wanted = False
        self._left = False
        self._contacted = self.scheduler.now

    # -- reading -----------------------------------------------------------------------------------------------

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._fetched.clear()
        self._ask_leaders()
        self._reading = {(p.topic, p.partition): _Reading(p.topic, p.partition, max(0, p.offset)) for p in partitions}

    def poll(self, timeout: float = 0) -> Message | None:
        found = self.consume(1, timeout)
        return found[0] if found else None

    def consume(self, most: int = 1, timeout: float = 0) -> list[Message]:
        deadline = self.scheduler.now + timeout
        self._polled = self.scheduler.now
        self.serve()
        self._serve_group()
        while True:
            if not self._fetched and self._reading and self.reaches() and self.scheduler.now >= self._answer_at:
                self._fetch()
                self._ask_leaders()
            if self._fetched or self.scheduler.now >= deadline:
                break
            self.scheduler.pass_time(min(0.02, max(0.001, deadline - self.scheduler.now)))
            self._serve_group()
        found = [self._fetched.popleft() for _ in range(min(most, len(self._fetched)))]
        self.scheduler.pass_time(self.scheduler.random.random() * self.broker.network.seconds / 4)
        return found

    def get_watermark_offsets(self, asked: TopicPartition, timeout: float = 10.0) -> tuple[int, int]:
        def ends() -> tuple[int, int]:
            partition = self.broker.led((asked.topic, asked.partition))
            if partition is None:
                raise failure(KafkaError.UNKNOWN_TOPIC_OR_PART)
            return 0, partition.end

        return self.ask(ends, timeout)

    def _ask_leaders(self) -> None:
        self._answer_at = self.scheduler.now + self.scheduler.random.random() * self.broker.network.seconds

    def _fetch(self) -> None:
        """One answer of each leader; what is in it stays as it was when it was sent."""
        readings = list(self._reading.values())
        self.scheduler.random.shuffle(readings)
        for reading in readings:
            partition = self.broker.led((reading.topic, reading.number))
            if partition is None or partition.available_at > self.scheduler.now:
                # Whoever reads what is not there any more goes on looking for it, and says so nowhere.
                continue
            if reading.offset > partition.end:
                # Another one of its name.
                reading.offset, reading.told_end = 0, -1
            most = self.scheduler.random.randint(1, FETCHED)
            found, reading.offset = partition.read(reading.offset, most, self._committed)
            for offset, stored in found:
                self._fetched.append(
                    Message(reading.topic, reading.number, offset, stored.key, stored.value, None, stored)
                )
            end = partition.stable if self._committed else partition.end
            if self._eof and reading.offset >= end and (found or reading.told_end != reading.offset):
                reading.told_end = reading.offset
                ended = KafkaError(KafkaError._PARTITION_EOF)
                self._fetched.append(Message(reading.topic, reading.number, reading.offset, error=ended))

    def committed(self, partitions: Sequence[TopicPartition], timeout: float = 10.0) -> list[TopicPartition]:
        deadline = self.scheduler.now + timeout
        slots = {each.partition for each in partitions}
        while True:
            left = max(0.0, deadline - self.scheduler.now)
            unstable = self.ask(lambda: self.broker.groups.unstable(self._group, slots), left, coordinator=True)
            if not unstable or not self._committed:
                stored = self.broker.groups.group(self._group).committed
                return [
                    TopicPartition(each.topic, each.partition, 0, metadata=stored[each.partition])
                    if each.partition in stored
                    else TopicPartition(each.topic, each.partition, -1001)
                    for each in partitions
                ]
            if self.scheduler.now >= deadline:
                raise failure(KafkaError._TIMED_OUT, "unstable offsets", retriable=True)
            self.scheduler.pass_time(0.05)

    # -- a member of the group ---------------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: Callable[[Consumer, list[TopicPartition]], None],
        on_revoke: Callable[[Consumer, list[TopicPartition]], None],
        on_lost: Callable[[Consumer, list[TopicPartition]], None],
    ) -> None:
        self._topic = topics[0]
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self.scheduler.later(self._delay, self._beat)

    @property
    def topic(self) -> str:
        return self._topic or ""

    def memberid(self) -> str:
        return "" if self._member is None else self._member.id

    def consumer_group_metadata(self) -> GroupMetadata:
        return GroupMetadata(self._group, self._generation if self._member else -1, self.memberid())

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._owned |= {each.partition for each in partitions}

    def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        self._owned -= {each.partition for each in partitions}

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Of a group's member nothing is ever fetched here."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._topic is None or (self.process is not None and not self.process.alive):
            return
        if self._owned:
            self._on_revoke(self, self._places(self._owned))
        static = self.properties.get("group.instance.id")
        if self._member is not None and not static and self.reaches(coordinator=True):
            self.broker.groups.leave(self._group, self._member.id)
        self._member = None

    @property
    def _delay(self) -> float:
        return self.scheduler.random.random() * self._heartbeat

    def _places(self, slots: frozenset[int]) -> list[TopicPartition]:
        assert self._topic is not None
        return [TopicPartition(self._topic, slot) for slot in sorted(slots)]

    def _beat(self) -> None:
        """The client's own thread: join, stay, notice what became of the group."""
        if self.closed or (self.process is not None and not self.process.alive):
            return
        if self.runs and self.reaches(coordinator=True):
            self._contact()
            self._contacted = self.scheduler.now
        elif self.stranded and self._member is not None and self.scheduler.now >= self._contacted + self._session:
            # librdkafka's own clock of the session.
            self._forget_membership()
        self.scheduler.later(self._heartbeat * (0.5 + self.scheduler.random.random() / 2), self._beat)

    def _contact(self) -> None:
        groups = self.broker.groups
        topic = self.broker.topics.get(self._topic or "")
        if self._left:
            return
        if self._member is not None and self.scheduler.now - self._polled > self._most_between_polls:
            # Out of the group; the owner's thread hears of it when it polls again, and has its old name until then.
            groups.leave(self._group, self._member.id)
            self._left = True
            return
        if self._member is None:
            if self._lost is None and topic is not None:
                client = str(self.properties.get("client.id", "client"))
                instance = self.properties.get("group.instance.id")
                size = len(topic.partitions)
                # Its answer comes within this call where nobody else has to join: it names the member before.
                self._joining(lambda: groups.join(self._group, client, instance, self._session, size, self))
            return
        answer = groups.heartbeat(self._group, self._member.id)
        if answer == KafkaError.UNKNOWN_MEMBER_ID:
            self._forget_membership()
        elif (answer == KafkaError.REBALANCE_IN_PROGRESS or self._join_wanted) and self._target is None:
            self._rejoin()

    def _joining(self, join: Callable[[], Member]) -> None:
        self._early: tuple[int, frozenset[int]] | None = None
        self._member = join()
        if self._early is not None:
            self._generation, self._target = self._early

    def _rejoin(self) -> None:
        assert self._member is not None
        self._join_wanted = False
        if self.broker.groups.rejoin(self._group, self._member.id, self._owned) == KafkaError.UNKNOWN_MEMBER_ID:
            self._forget_membership()

    def _forget_membership(self) -> None:
        self._member, self._generation, self._target = None, -1, None
        self._lost = self._owned if self._owned else None

    # What the coordinator tells; it reaches the client's thread, which may be paused.

    def told_to_join(self) -> None:
        member = self._member

        def hear() -> None:
            if self._member is member and member is not None and self.runs and not self.closed:
                if self._target is None:
                    self._rejoin()
                else:
                    self._join_wanted = True

        self.scheduler.later(self._delay, hear)

    def assigned(self, generation: int, partitions: frozenset[int]) -> None:
        member = self._member
        if member is None:
            self._early = (generation, partitions)
            return

        def hear() -> None:
            if self.closed or self._member is not member:
                return
            if not self.runs:
                self.scheduler.later(0.1, hear)
                return
            if generation > self._generation:
                self._generation, self._target = generation, partitions

        self.scheduler.later(self.scheduler.random.random() * self.broker.network.seconds, hear)

    def _serve_group(self) -> None:
        """The callbacks, in the thread that polls."""
        if self._topic is None or self.closed:
            return
        if self._left:
            self._left = False
            self._forget_membership()
        if self._lost is not None:
            lost, self._lost = self._lost, None
            self._on_lost(self, self._places(lost))
        target = self._target
        if target is None or self._member is None:
            return
        gone, gained = self._owned - target, target - self._owned
        if gone:
            self._on_revoke(self, self._places(gone))
            self._owned -= gone
        if self._target is not target:
            return
        if gained or not gone:
            self._on_assign(self, self._places(gained))
        self._target = None
        if (gone or self._join_wanted) and self._member is not None:
            self._join_wanted = True
