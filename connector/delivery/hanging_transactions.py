"""Leftovers: transactions that are over for Kafka's coordinator and still open in a partition.

In: producers that hold the transactional ids of those who may have left something, and where to look. Out: partitions
whose readers go on.

A coordinator that ends a transaction sends a marker to each of its partitions, and a partition that has no leader at
that moment it takes for deleted: the marker is left out, the transaction counts as ended. A broker that comes back
after a crash does that to its own partitions. The last stable offset of such a partition stands still for ever:
read_committed readers see nothing behind it, no slot in it can be restored, and the next marker of the same producer,
be it a commit, would speak for the hanging transaction as well. Only the same producer id can end it, by another
transaction that touches the partition.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from connector.delivery.clients import READ_COMMITTED, READ_UNCOMMITTED, KafkaClients, end_offsets
from connector.delivery.failures import translated
from connector.delivery.producer import TransactionalProducer
from connector.delivery.records import OutgoingRecord, decode_offsets_entry
from connector.delivery.topic_reader import read_topic
from connector.delivery.topics import topic_partitions
from connector.errors import DeliveryError, RetriableDeliveryError, UnknownOutcome

log = logging.getLogger(__name__)

# Transactions of workers that are alive end within this time, and their partitions move on.
PATIENCE_SECONDS = 3.0

# Behind the hanging transaction of one owner there may be another one's.
ROUNDS = 5
PAUSE_SECONDS = 0.1

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Field:
    """Where the workers of one connector write."""

    connector: str
    offsets_topic: str
    group: str
    topics: Callable[[], Iterable[str]] = lambda: ()


def end_hanging_transactions(
    clients: KafkaClients,
    where: Field,
    producers: Sequence[TransactionalProducer],
    deadline: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """End what the coordinator forgot of the former owners of ``producers``, which have just been started.

    What such an owner left is aborted, unless one of its later words in the offsets topic is committed: records that
    stand before a committed position belong to a commit that lost its marker here, and aborting them would lose them.
    That is told, and left to a human.
    """
    try:
        _end_hanging(clients, where, producers, deadline, cancelled)
    except KafkaException as caught:
        raise translated(caught.args[0], "looking for transactions left open") from None
    except TimeoutError:
        raise RetriableDeliveryError("looking for hanging transactions: the broker did not answer in time") from None


def _end_hanging(
    clients: KafkaClients,
    where: Field,
    producers: Sequence[TransactionalProducer],
    deadline: float,
    cancelled: Callable[[], bool],
) -> None:
    admin = clients.admin()
    for _ in range(ROUNDS):
        standing = _standing(admin, where, min(deadline, time.monotonic() + PATIENCE_SECONDS), cancelled)
        if not standing:
            return
        last_words = _last_words(clients, admin, where)
        open_records = _first_open_records(clients, where.group, standing, deadline)
        ended = False
        for producer in producers:
            word = last_words.get(producer.transactional_id, 0)
            records = [
                OutgoingRecord(topic, message.key(), message.value(), partition=partition)
                for (topic, partition), message in open_records.items()
                if topic == where.offsets_topic or message.timestamp()[1] > word
            ]
            if records:
                _abort_again(clients, producer, where, records, deadline)
                ended = True
        if not ended:
            break
        log.warning("aborted possible hanging transactions again in %s", _listed(standing))
    log.warning(
        "read_committed consumers of %s are blocked by an open transaction; if this persists, "
        "see kafka-transactions.sh find-hanging",
        _listed(standing),
    )


def _listed(standing: Mapping[Place, int]) -> str:
    return ", ".join(f"{topic} [{partition}] at {offset}" for (topic, partition), offset in sorted(standing.items()))


def _standing(admin: AdminClient, where: Field, deadline: float, cancelled: Callable[[], bool]) -> dict[Place, int]:
    """Partitions that do not become readable up to where they end now, with the offset where they stand."""
    existing = topic_partitions(admin)
    topics = {where.offsets_topic, *where.topics()} & existing.keys()
    places = [(topic, number) for topic in sorted(topics) for number in range(existing[topic])]
    ends = end_offsets(admin, places)
    standing = dict.fromkeys(places, 0)
    while True:
        stable = end_offsets(admin, standing, READ_COMMITTED)
        standing = {place: stable[place] for place in standing if stable[place] < ends[place]}
        if not standing or time.monotonic() >= deadline:
            return standing
        if cancelled():
            raise RetriableDeliveryError("restoring was cancelled")
        time.sleep(PAUSE_SECONDS)


def _last_words(clients: KafkaClients, admin: AdminClient, where: Field) -> dict[str, int]:
    """Each owner's newest committed record in any slot, as its timestamp. Positions are their slot's owner's."""
    slots = topic_partitions(admin)[where.offsets_topic]
    owners: dict[int, str] = {}
    words: dict[str, int] = {}
    for record in read_topic(clients, where.offsets_topic, slots, where.group, READ_COMMITTED):
        entry = decode_offsets_entry(
            where.connector, record.partition, record.key, record.value, where.offsets_topic, record.offset
        )
        if entry is None:
            continue
        if entry.owner is not None:
            owners[entry.slot] = entry.owner
        owner = owners.get(entry.slot)
        if owner is not None:
            words[owner] = max(words.get(owner, 0), record.timestamp)
    return words


def _first_open_records(
    clients: KafkaClients, group: str, standing: Mapping[Place, int], deadline: float
) -> dict[Place, Message]:
    """The record at which each partition stands."""
    found: dict[Place, Message] = {}
    reader = clients.consumer(group, READ_UNCOMMITTED, fetch_wait_max_ms=50)
    try:
        reader.assign([TopicPartition(topic, number, offset) for (topic, number), offset in standing.items()])
        waiting = set(standing)
        while waiting:
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError("looking for hanging transactions took too long")
            message = reader.poll(PAUSE_SECONDS)
            if message is None:
                continue
            error, place = message.error(), (message.topic() or "", message.partition())
            if error is not None and isinstance(translated(error, ""), RetriableDeliveryError):
                continue
            if error is None:
                found.setdefault(place, message)
            waiting.discard(place)
    finally:
        reader.close()
    return found


def _abort_again(
    clients: KafkaClients,
    producer: TransactionalProducer,
    where: Field,
    records: Collection[OutgoingRecord],
    deadline: float,
) -> None:
    """A transaction of the same producer in the same partitions, and its abort: the marker speaks for both.

    Its records are those that are open already: who reads uncommitted data sees nothing that was not there before.
    """
    # Of no member: the broker takes that for somebody who does not know the group's rounds, as old producers do not.
    stranger = clients.consumer(where.group, READ_COMMITTED)
    producer.begin()
    try:
        producer.produce_all(list(records))
        producer.flush(deadline)
        # What the owner told the group in that transaction is pending for ever as well.
        producer.send_offsets([TopicPartition(where.offsets_topic, 0, 0)], stranger.consumer_group_metadata())
    except UnknownOutcome:
        raise
    except DeliveryError as error:
        log.debug("ending a hanging transaction of %s: %s", producer.transactional_id, error)
    finally:
        stranger.close()
    producer.abort()
