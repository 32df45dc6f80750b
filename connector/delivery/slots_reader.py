"""Reading slots in bulk: in what comes of the offsets topic, whatever is of use to one connector.

In: slots and where to begin. Out: messages of one slot at a time. Where there is a kernel (``BulkClient``), it reads,
and what is another connector's, or has a newer one of its key behind it, never gets here; else each message does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from connector.delivery.clients import KafkaClients
from connector.delivery.records import BulkClient, OwnKeys, Sieve

MESSAGES_PER_CALL: Final = 1_000

#: The end of a partition is reported when a fetch came back empty: waiting long for it is waiting for nothing.
FETCH_WAIT_MS: Final = 50

#: Of a partition that may come back: librdkafka tells its `error_cb` alone, and goes on looking for it.
_AWAY: Final = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART})


@dataclass(frozen=True, slots=True)
class Sought:
    """What is of use of a topic: ``connector``'s records. ``every``: of each key not the newest alone; then there is
    nothing that a kernel could keep away. Without ``values`` only keys are."""

    topic: str
    connector: str
    every: bool = False
    values: bool = True


class Run(NamedTuple):
    """What is of use of some of a slot's messages that came one after the other, and the offset behind them all."""

    slot: int
    messages: list[Message]
    end: int = 0


class SlotsReader(Protocol):
    """Belongs to one thread."""

    @property
    def client(self) -> Consumer: ...

    @property
    def has_more(self) -> bool:
        """Whether there may be more that has come, so that it is worth asking again at once."""

    def assign(self, starts: Mapping[int, int]) -> None:
        """Read these slots from there on, and no others any more."""

    def read(self, seconds: float, waits: bool = True) -> Iterable[Run]:
        """What comes within that time; no longer than something is there unless it ``waits``."""

    def close(self) -> None: ...


def slots_reader(
    clients: KafkaClients, group: str, isolation: str, what: Sought, fetch_wait_ms: int = FETCH_WAIT_MS
) -> SlotsReader:
    one_by_one = what.every or "plugin.library.paths" in clients.consumer_properties
    bulk = None if one_by_one else clients.bulk()
    if bulk is None:
        return PlainReader(clients.consumer(group, isolation, fetch_wait_max_ms=fetch_wait_ms), what.topic)

    def made() -> tuple[Consumer, Any]:
        with bulk.making() as beside:
            client = clients.consumer(
                group, isolation, fetch_wait_max_ms=fetch_wait_ms, plugin_library_paths=bulk.plugin
            )
            return client, beside()

    client, beside = made()
    if beside is None:
        return PlainReader(client, what.topic)
    return SievedReader(bulk, made, what, clients.health.failed, client, beside)


def runs(messages: list[Message]) -> Iterator[Run]:
    """Messages of one topic in their order, neighbours of one partition together."""
    if messages and len(set(map(Message.partition, messages))) == 1:
        yield Run(messages[0].partition() or 0, messages)
        return
    for partition, run in groupby(messages, Message.partition):
        yield Run(partition or 0, list(run))


class PlainReader:
    """Message by message."""

    def __init__(self, client: Consumer, topic: str) -> None:
        self.client = client
        self.has_more = False
        self._topic = topic

    def assign(self, starts: Mapping[int, int]) -> None:
        self.client.assign([TopicPartition(self._topic, slot, start) for slot, start in starts.items()])

    def read(self, seconds: float, waits: bool = True) -> Iterable[Run]:
        messages = self.client.consume(MESSAGES_PER_CALL, seconds if waits else 0)
        self.has_more = len(messages) == MESSAGES_PER_CALL
        return runs(messages)

    def close(self) -> None:
        self.client.close()


class SievedReader:
    """Through the kernel, which reads queues of the client's in which there is nothing but messages. What else the
    client has to tell comes the usual way, when it is polled."""

    def __init__(
        self,
        bulk: BulkClient,
        made: Callable[[], tuple[Consumer, Any]],
        what: Sought,
        failed: Callable[[KafkaError], None],
        client: Consumer,
        beside: Any,
    ) -> None:
        """``made``: another consumer, and what stands beside it. ``failed``: the client's `error_cb`."""
        self.client = client
        self.has_more = False
        self._bulk, self._made, self._what, self._failed = bulk, made, what, failed
        self._beside = beside
        self._usual = OwnKeys(what.connector).usual
        self._sieve: Sieve | None = None
        self._ends: list[int] = []

    def assign(self, starts: Mapping[int, int]) -> None:
        if self._sieve is not None:
            # A former assignment ends in the client's own time, and takes the way to the sieve with it.
            self.close()
            self.client, self._beside = self._made()
        what = self._what
        self._sieve = self._bulk.sieve(self._beside, what.topic, self._usual, list(starts), values=what.values)
        self._ends = list(self._sieve.ends)
        self.client.assign([TopicPartition(what.topic, slot, start) for slot, start in starts.items()])

    def read(self, seconds: float, waits: bool = True) -> Iterable[Run]:
        assert self._sieve is not None
        came = self._sieve.read(seconds, waits)
        told = self.client.poll(0)
        of_slots: dict[int, list[Message]] = {}
        for message in (*(self._sieve.drain() if came else ()), *((told,) if told is not None else ())):
            error, slot = message.error(), message.partition()
            if error is not None and error.code() in _AWAY:
                self._failed(error)
            else:
                of_slots.setdefault(-1 if slot is None else slot, []).append(message)
        if came:
            before, self._ends = self._ends, list(self._sieve.ends)
            for slot, end in enumerate(self._ends):
                if end > before[slot]:
                    yield Run(slot, of_slots.pop(slot, []), end)
        for slot, messages in of_slots.items():
            yield Run(slot, messages)

    def close(self) -> None:
        if self._sieve is not None:
            self._sieve.close()
        self.client.close()
