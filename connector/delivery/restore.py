"""Restore: what a newly claimed slot's predecessor delivered, after its last word has become impossible.

In: slots. Out: per slot the entries that are committed, in the topic's order. Runs in a thread of its own, since two
of its steps wait for the broker; the owner thread gets the result through a queue.

The order of the steps is what makes it safe; `restore` writes it down once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connector.delivery.clients import READ_COMMITTED, READ_UNCOMMITTED, KafkaClients, high_watermarks
from connector.delivery.failures import translated
from connector.delivery.hanging_transactions import Field, end_hanging_transactions
from connector.delivery.producer import TransactionalProducer, fence
from connector.delivery.records import compact_json, decode_offsets_entry
from connector.errors import ProducerFenced, RetriableDeliveryError, UnknownOutcome
from connector.offsets_entry import OffsetsEntry

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
CALL_SECONDS = 10.0
PARALLEL_FENCES = 8

# The end of a partition is reported when a fetch came back empty: waiting long for it is waiting for nothing.
FETCH_WAIT_MS = 50


@dataclass(slots=True)
class RestoredSlot:
    """What a slot's partition says: the newest entry of each key that has no tombstone; ``end`` is the offset behind.

    A topic that compaction has not reached for hours holds thousands of entries for each key: only the newest is kept.
    ``owners`` are those of all entries that were read.
    """

    slot: int
    end: int = 0
    newest: dict[bytes, OffsetsEntry] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)

    @property
    def entries(self) -> list[OffsetsEntry]:
        return list(self.newest.values())

    def take(self, entry: OffsetsEntry) -> None:
        """The next entry of the partition."""
        key = compact_json(entry.key)
        if entry.value is None:
            self.newest.pop(key, None)
        else:
            self.newest[key] = entry
        if entry.owner is not None:
            self.owners.add(entry.owner)


def restore(
    clients: KafkaClients,
    *,
    connector: str,
    topic: str,
    group: str,
    slots: Iterable[int],
    topics: Callable[[], Iterable[str]] = lambda: (),
    cancelled: Callable[[], bool] = lambda: False,
    patience: float = 60.0,
) -> dict[int, RestoredSlot]:
    """Restore ``slots``:

    a. read each partition read_committed to its last stable offset, then read_uncommitted to its high watermark, and
       fence every owner named there that is no present member: what they left open is aborted at once, and a zombie
       that comes back finds its id taken. The owners of older marks were dealt with by whoever came after them; in the
       uncommitted part *every* owner counts, for that is where a claim stands that never committed. Where the broker
       has forgotten to end a transaction in the slots or in ``topics``, it is ended once more (`hanging_transactions`);
    b. wait until no commit of the group is pending for the slot: a dead owner's transaction that was already sent
       to the coordinator may still become committed, and must be seen by (c);
    c. only now take the high watermark and read read_committed until the end-of-partition event reaches it. That
       event alone only says "last stable offset": before (a) and (b) it may stand below records that commit later.

    The claim itself, step (d), is the owner thread's first transaction.
    """
    wanted = sorted(set(slots))
    result = {slot: RestoredSlot(slot) for slot in wanted}
    deadline = time.monotonic() + patience
    reader = clients.consumer(group, READ_COMMITTED, fetch_wait_max_ms=FETCH_WAIT_MS)
    try:
        reader.assign([TopicPartition(topic, slot, 0) for slot in wanted])
        _read(reader, connector, result, set(wanted), {}, deadline, cancelled)
        owners = _newest_owners(result.values())
        owners |= _uncommitted_owners(clients, connector, topic, group, result, deadline, cancelled)
        present = present_members(clients, group, deadline)
        _end_all(clients, Field(connector, topic, group, topics), owners - present, deadline, cancelled)
        _wait_for_pending_commits(clients, topic, group, wanted, deadline, cancelled)
        ends = high_watermarks(clients, topic, wanted)
        behind = {slot for slot in wanted if result[slot].end < ends[slot]}
        _read(reader, connector, result, behind, ends, deadline, cancelled)
    except KafkaException as caught:
        raise translated(caught.args[0], "restoring slots") from None
    except TimeoutError:
        raise RetriableDeliveryError("restoring slots: the broker did not answer in time") from None
    finally:
        reader.close()
    return result


def read_committed(
    clients: KafkaClients,
    *,
    connector: str,
    topic: str,
    group: str,
    slots: Iterable[int],
    patience: float = 30.0,
) -> dict[int, RestoredSlot]:
    """What is committed in ``slots`` by now, to each last stable offset: to look at, not to go on from."""
    found = {slot: RestoredSlot(slot) for slot in slots}
    reader = clients.consumer(group, READ_COMMITTED, fetch_wait_max_ms=FETCH_WAIT_MS)
    try:
        reader.assign([TopicPartition(topic, slot, 0) for slot in found])
        _read(reader, connector, found, set(found), {}, time.monotonic() + patience, lambda: False)
    except KafkaException as caught:
        raise translated(caught.args[0], f"reading topic {topic}") from None
    finally:
        reader.close()
    return found


def _read(
    reader: Consumer,
    connector: str,
    into: Mapping[int, RestoredSlot],
    waiting: set[int],
    ends: Mapping[int, int],
    deadline: float,
    cancelled: Callable[[], bool],
) -> None:
    """Read on until every waiting slot had an end-of-partition event, at or beyond its end where one is given."""
    while waiting:
        if cancelled():
            raise RetriableDeliveryError("restoring was cancelled")
        if time.monotonic() >= deadline:
            raise RetriableDeliveryError(f"slots {sorted(waiting)} could not be read to their end in time")
        message = reader.poll(POLL_SECONDS)
        if message is None:
            continue
        slot = message.partition()
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                into[slot].end = max(into[slot].end, message.offset())
                if message.offset() >= ends.get(slot, 0):
                    waiting.discard(slot)
                continue
            if isinstance(translated(error, ""), RetriableDeliveryError):
                continue
            raise KafkaException(error)
        into[slot].end = message.offset() + 1
        entry = decode_offsets_entry(
            connector, slot, message.key(), message.value(), message.topic() or "", message.offset()
        )
        if entry is not None:
            into[slot].take(entry)


def _newest_owners(slots: Iterable[RestoredSlot]) -> set[str]:
    return {entry.owner for restored in slots for entry in restored.newest.values() if entry.owner is not None}


def _uncommitted_owners(
    clients: KafkaClients,
    connector: str,
    topic: str,
    group: str,
    committed: Mapping[int, RestoredSlot],
    deadline: float,
    cancelled: Callable[[], bool],
) -> set[str]:
    reader = clients.consumer(group, READ_UNCOMMITTED, fetch_wait_max_ms=FETCH_WAIT_MS)
    try:
        tail = {slot: RestoredSlot(slot, end=restored.end) for slot, restored in committed.items()}
        ends = high_watermarks(clients, topic, tail)
        tail = {slot: restored for slot, restored in tail.items() if restored.end < ends[slot]}
        if not tail:
            return set()
        reader.assign([TopicPartition(topic, slot, restored.end) for slot, restored in tail.items()])
        _read(reader, connector, tail, set(tail), ends, deadline, cancelled)
        return {owner for restored in tail.values() for owner in restored.owners}
    finally:
        reader.close()


def present_members(clients: KafkaClients, group: str, deadline: float) -> set[str]:
    """The client ids of the group's members: an owner that is still one has been, or will be, asked to let go."""
    admin = clients.admin()
    while True:
        try:
            described = admin.describe_consumer_groups([group], request_timeout=CALL_SECONDS)
            return {member.client_id for member in described[group].result(timeout=CALL_SECONDS).members}
        except KafkaException as caught:
            if caught.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return set()
            again = isinstance(translated(caught.args[0], ""), RetriableDeliveryError)
            if not again or time.monotonic() >= deadline:
                raise


def _end_all(
    clients: KafkaClients, where: Field, owners: set[str], deadline: float, cancelled: Callable[[], bool]
) -> None:
    if not owners:
        return
    log.info("ending open transactions of former owners: %s", ", ".join(sorted(owners)))
    producers: list[TransactionalProducer] = []
    try:
        with ThreadPoolExecutor(min(PARALLEL_FENCES, len(owners)), thread_name_prefix="fence") as pool:
            for done in [pool.submit(fence, clients, owner, deadline) for owner in sorted(owners)]:
                producer = done.result()
                if producer is not None:
                    producers.append(producer)
        try:
            end_hanging_transactions(clients, where, producers, deadline, cancelled)
        except (ProducerFenced, UnknownOutcome) as error:
            raise RetriableDeliveryError(f"ending open transactions of former owners: {error}") from None
    finally:
        for producer in producers:
            producer.close()


def _wait_for_pending_commits(
    clients: KafkaClients,
    topic: str,
    group: str,
    slots: Iterable[int],
    deadline: float,
    cancelled: Callable[[], bool],
) -> None:
    # A read_committed consumer's question for offsets is answered only when no transaction holds them pending.
    asking = clients.consumer(group, READ_COMMITTED)
    partitions = [TopicPartition(topic, slot) for slot in slots]
    try:
        while not cancelled():
            try:
                answer = asking.committed(partitions, timeout=CALL_SECONDS)
            except KafkaException as caught:
                if not isinstance(translated(caught.args[0], ""), RetriableDeliveryError):
                    raise
            else:
                if all(partition.error is None for partition in answer):
                    return
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError("a predecessor's commit is still pending")
        raise RetriableDeliveryError("restoring was cancelled")
    finally:
        asking.close()
