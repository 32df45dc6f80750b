"""Restore: what a newly claimed slot's predecessor delivered, after its last word has become impossible.

In: slots. Out: per slot the newest committed entry of each key, in the topic's order. Runs in a thread of its own,
since two of its steps wait for the broker; the owner thread gets the result through a queue.

The order of the steps is what makes it safe; `restore` writes it down once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connector.delivery.clients import COORDINATOR_SECONDS, READ_COMMITTED, READ_UNCOMMITTED, KafkaClients
from connector.delivery.end_offsets import high_watermarks
from connector.delivery.failures import translated
from connector.delivery.hanging_transactions import (
    Field,
    Unseen,
    are_pending,
    end_hanging_transactions,
    stands_somewhere,
)
from connector.delivery.slot_reader import Patience, RestoredSlot, SlotRecords, read_to_end
from connector.delivery.slots_reader import Sought, slots_reader
from connector.delivery.standing import Standing
from connector.delivery.transactional_producer import TransactionalProducer, fence
from connector.errors import OthersToo, ProducerFenced, RetriableDeliveryError, UnknownOutcome

log = logging.getLogger(__name__)

CALL_SECONDS = 10.0
PARALLEL_FENCES = 8


def restore(
    clients: KafkaClients,
    *,
    connector: str,
    topic: str,
    group: str,
    slots: Iterable[int],
    topics: Callable[[], Iterable[str]] = lambda: (),
    unseen: Unseen | None = None,
    stood: Standing | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    patience: float = 60.0,
) -> dict[int, RestoredSlot]:
    """Restore ``slots``:

    a. read each partition read_committed to its last stable offset, then read_uncommitted to its high watermark, and
       fence every owner named there that is no present member: what they left open is aborted at once, and a zombie
       that comes back finds its id taken. The owners of older marks were dealt with by whoever came after them; in the
       uncommitted part *every* owner counts, for that is where a claim stands that never committed. Where the broker
       has forgotten to end a transaction in the slots or in ``topics``, it is ended once more (`hanging_transactions`).
       If some still has no end, or may have none where nobody can look, those count as well whose claims were aborted
       in the slots: the same transaction may be open elsewhere, and nothing else names them;
    b. wait until no commit of the group is pending for the slot: a dead owner's transaction that was already sent
       to the coordinator may still become committed, and must be seen by (c);
    c. only now take the high watermark and read read_committed until the end-of-partition event reaches it. That
       event alone only says "last stable offset": before (a) and (b) it may stand below records that commit later.

    The claim itself, step (d), is the owner thread's first transaction. ``patience`` is for each wait in which nothing
    comes, not for the whole: a topic may be as long as it likes.
    """
    wanted = sorted(set(slots))
    result = {slot: SlotRecords(connector, slot) for slot in wanted}
    waited = Patience(patience)
    reader = slots_reader(clients, group, READ_COMMITTED, Sought(topic, connector))
    try:
        reader.assign(dict.fromkeys(wanted, 0))
        read_to_end(reader, result, set(wanted), {}, waited, cancelled)
        owners = {owner for records in result.values() for owner in records.newest_owners()}
        committed = {slot: records.end for slot, records in result.items()}
        owners |= _uncommitted_owners(clients, connector, topic, group, committed, waited, cancelled)
        waited.renew()
        present = present_members(clients, group, waited.deadline)
        where = Field(connector, topic, group, topics, unseen, stood or Standing())
        owners |= _left_behind(result.values(), where, present)
        _end_all(clients, where, owners - present, waited.deadline, cancelled)
        waited.renew()
        if stands_somewhere(clients, where, waited.deadline, cancelled):
            whole = dict.fromkeys(wanted, 0)
            aborted = _uncommitted_owners(clients, connector, topic, group, whole, waited, cancelled)
            waited.renew()
            _end_all(clients, where, aborted - owners - present, waited.deadline, cancelled)
            waited.renew()
        _wait_for_pending_commits(clients, topic, group, wanted, waited.deadline, cancelled)
        ends = high_watermarks(clients, topic, wanted)
        behind = {slot for slot in wanted if result[slot].end < ends[slot]}
        read_to_end(reader, result, behind, ends, waited, cancelled)
    except KafkaException as caught:
        raise translated(caught.args[0], "restoring slots") from None
    except TimeoutError:
        raise RetriableDeliveryError("restoring slots: the broker did not answer in time") from None
    finally:
        reader.close()
    return {slot: records.restored() for slot, records in result.items()}


def read_committed(
    clients: KafkaClients,
    *,
    connector: str,
    topic: str,
    group: str,
    slots: Iterable[int],
    cancelled: Callable[[], bool] = lambda: False,
    patience: float = 30.0,
    noted: Callable[[bytes], None] = lambda key: None,
) -> dict[int, RestoredSlot]:
    """What is committed in ``slots`` by now, to each last stable offset: to look at, not to go on from. ``noted`` is
    told every key of the connector, also of entries that are no more."""
    found = {slot: SlotRecords(connector, slot, noted=noted) for slot in slots}
    reader = slots_reader(clients, group, READ_COMMITTED, Sought(topic, connector))
    try:
        reader.assign(dict.fromkeys(found, 0))
        read_to_end(reader, found, set(found), {}, Patience(patience), cancelled)
    except KafkaException as caught:
        raise translated(caught.args[0], f"reading topic {topic}") from None
    finally:
        reader.close()
    return {slot: records.restored() for slot, records in found.items()}


def _uncommitted_owners(
    clients: KafkaClients,
    connector: str,
    topic: str,
    group: str,
    starts: Mapping[int, int],
    patience: Patience,
    cancelled: Callable[[], bool],
) -> set[str]:
    """All that any record from there on names, whatever became of it."""
    ends = high_watermarks(clients, topic, starts)
    starts = {slot: start for slot, start in starts.items() if start < ends[slot]}
    if not starts:
        return set()
    tail = {slot: SlotRecords(connector, slot, start, owners=True) for slot, start in starts.items()}
    reader = slots_reader(clients, group, READ_UNCOMMITTED, Sought(topic, connector, every=True))
    try:
        reader.assign(starts)
        read_to_end(reader, tail, set(tail), ends, patience, cancelled)
    finally:
        reader.close()
    return {owner for records in tail.values() for owner in records.owners}


def _left_behind(slots: Iterable[SlotRecords], where: Field, present: Container[str]) -> set[str]:
    """Those before the former owners, who had no time to look everywhere for what they had left."""
    topics = set(where.topics())
    left = [each for records in slots for each in records.left() if each.topic in topics and each.owner not in present]
    for each in left:
        where.stood.away(each.topic, each.owner, each.newest)
    return {each.owner for each in left}


def present_members(clients: KafkaClients, group: str, deadline: float) -> set[str]:
    """The client ids of the group's members: an owner that is still one has been, or will be, asked to let go."""
    while True:
        admin = clients.members_admin()
        try:
            described = admin.describe_consumer_groups([group], request_timeout=COORDINATOR_SECONDS)
            return {member.client_id for member in described[group].result(timeout=CALL_SECONDS).members}
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError(f"describing consumer group {group}: no answer") from None
        except KafkaException as caught:
            if caught.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return set()
            again = isinstance(translated(caught.args[0], ""), RetriableDeliveryError)
            if not again or time.monotonic() >= deadline:
                raise


def end_left_open(clients: KafkaClients, where: Field, owners: set[str], patience: float = 60.0) -> None:
    """As `restore` does it first: end what ``owners``, who are gone, may have left open."""
    _end_all(clients, where, owners, time.monotonic() + patience, lambda: False)


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
            kind = OthersToo if isinstance(error, ProducerFenced) else RetriableDeliveryError
            raise kind(f"ending open transactions of former owners: {error}") from None
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
    asking = clients.consumer(group, READ_COMMITTED)
    partitions = [TopicPartition(topic, slot) for slot in slots]
    try:
        while not cancelled():
            if not are_pending(asking, partitions, CALL_SECONDS):
                return
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError("a predecessor's commit is still pending")
        raise RetriableDeliveryError("restoring was cancelled")
    finally:
        asking.close()
