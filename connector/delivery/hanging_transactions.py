"""Leftovers: transactions that are over for Kafka's coordinator and still open in a partition.

In: producers that hold the transactional ids of those who may have left something, and where to look. Out: partitions
whose readers go on.

A coordinator that ends a transaction sends a marker to each of its partitions, and a partition that has no leader at
that moment it takes for deleted: the marker is left out, the transaction counts as ended. A broker that comes back
after a crash does that to its own partitions. The last stable offset of such a partition stands still for ever:
read_committed readers see nothing behind it, no slot in it can be restored, and the next marker of the same producer,
be it a commit, would speak for the hanging transaction as well. Only the same producer id can end it, by another
transaction that touches the partition.

How it was to end is known for slots: the name that their last entry carries stands in the group's offsets, and in other
slots, if the transaction was committed. Then it is committed again. Records of a data topic carry no name: those from
the time of a committed transaction belong to it, unless they are another worker's, whose transaction is not over.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from connector.delivery.clients import READ_COMMITTED, KafkaClients
from connector.delivery.committed_words import Words, committed_words, time_of_word
from connector.delivery.failures import translated
from connector.delivery.leaders import leaderless
from connector.delivery.listing import listed
from connector.delivery.records import commit_name, owner_of
from connector.delivery.second_end import SecondEnd
from connector.delivery.standing import (
    PATIENCE_SECONDS,
    Place,
    Standing,
    newest_of_key,
    still_standing,
    written_behind,
)
from connector.delivery.topic_facts import hidden_topics, partition_counts, partitions_of, topic_partitions
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import DeliveryError, RetriableDeliveryError

log = logging.getLogger(__name__)

# Behind the hanging transaction of one owner there may be another one's.
ROUNDS = 5

#: Told of a topic that cannot be looked at, or whose readers are blocked by a commit, why, and whose it may be.
Unseen = Callable[[str, str, Collection[str]], None]


@dataclass(frozen=True, slots=True)
class Field:
    """Where the workers of one connector write.

    Nothing may be written to a topic that ``unseen`` was told of before it has been looked at; without an ``unseen``
    such topics are waited for. ``stood`` knows where readers are blocked by what certainly ends no more. ``since``:
    from when on (ms) the producer that looks, and goes on to write, may have written; None, if none does.
    """

    connector: str
    offsets_topic: str
    group: str
    topics: Callable[[], Iterable[str]] = lambda: ()
    unseen: Unseen | None = None
    stood: Standing = field(default_factory=Standing)
    since: float | None = None


def end_hanging_transactions(
    clients: KafkaClients,
    where: Field,
    producers: Sequence[TransactionalProducer],
    deadline: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """End what the coordinator forgot of the former owners of ``producers``, which have just been started.

    What such an owner left in a slot is committed if another slot or the group's offsets say that this transaction was,
    else aborted. What it left in a data topic is aborted, unless one of its later words in the offsets topic is
    committed: records that stand before a committed position belong to a commit that lost its marker here, and aborting
    them would lose them. To commit them takes another record: one that is there is repeated, and has a header that says
    so. Nothing may be written there before, for an abort would speak for both.
    """
    again = SecondEnd(clients, where.group, where.offsets_topic, deadline)
    with _looking():
        _end_hanging(again, where, producers, cancelled)
        _end_pending_offsets(again, where, producers)


def stands_somewhere(clients: KafkaClients, where: Field, deadline: float, cancelled: Callable[[], bool]) -> bool:
    """Whether some transaction does not end, or there may be one where nobody can look."""
    admin = clients.admin()
    with _looking():
        away = _without_leaders(admin, where)
        soon = min(deadline, time.monotonic() + PATIENCE_SECONDS)
        if away or still_standing(admin, _places(admin, where, away), soon, cancelled):
            return True
        return _offsets_pending(clients, where)


@contextlib.contextmanager
def _looking() -> Iterator[None]:
    """Within it, what the Kafka client raises becomes an error of delivery."""
    try:
        yield
    except KafkaException as caught:
        raise translated(caught.args[0], "looking for transactions left open") from None
    except TimeoutError:
        raise RetriableDeliveryError("looking for hanging transactions: the broker did not answer in time") from None


@dataclass(frozen=True, slots=True)
class _Found:
    """Partitions that stand, at which offset, and what begins there; what was said by those who may have left it."""

    standing: Mapping[Place, int]
    left_open: Mapping[Place, Sequence[Message]]
    words: Words


def _end_hanging(
    again: SecondEnd, where: Field, producers: Sequence[TransactionalProducer], cancelled: Callable[[], bool]
) -> None:
    clients, deadline = again.clients, again.deadline
    admin = clients.admin()
    away = _without_leaders(admin, where)
    owners = [producer.transactional_id for producer in producers]
    if away and where.unseen is not None:
        words = _words(clients, admin, where)
        for topic, why in away.items():
            for owner in owners:
                where.stood.away(topic, owner, words.newest.get(owner, 0))
            where.unseen(topic, why, owners)
    tried: set[tuple[str, Place, int]] = set()
    for _ in range(ROUNDS):
        places = _places(admin, where, away)
        standing = still_standing(admin, places, min(deadline, time.monotonic() + PATIENCE_SECONDS), cancelled)
        for topic in {*where.topics()}.difference(away, (topic for topic, _ in standing)):
            for owner in owners:
                where.stood.seen(topic, owner)
        if not standing:
            return
        words = _words(clients, admin, where)
        found = _Found(standing, _open_records(clients, where, standing, deadline), words)
        ended = _end_as_known(again, producers, where, found, tried)
        if not ended:
            ended = _end_lost_commits(again, producers, where, found)
        if not ended:
            if where.unseen is not None and _may_end(where, where.unseen, owners, found):
                return
            break
    log.warning(
        "read_committed consumers of %s are blocked by an open transaction; if this persists, "
        "see kafka-transactions.sh find-hanging",
        _listed(standing, standing),
    )


def _end_as_known(
    again: SecondEnd,
    producers: Sequence[TransactionalProducer],
    where: Field,
    found: _Found,
    tried: set[tuple[str, Place, int]],
) -> bool:
    """Commit again what slots say was committed, and abort what no later word of its owner speaks for; whether anything
    was. ``tried``: what an owner has aborted in vain is another's."""
    lost_commits = _lost_in_slots(where, found)
    repaired = {_place(message) for messages in lost_commits.values() for message in messages}
    ended = False
    for producer in producers:
        owner = producer.transactional_id
        if owner in lost_commits:
            again.commit(producer, lost_commits[owner])
            ended = True
            log.warning("committed a hanging transaction again in %s", _listed(found.standing, repaired))
        aborted = [
            messages[0]
            for (topic, number), messages in found.left_open.items()
            if (topic, number) not in repaired
            if topic == where.offsets_topic or _left_open(where, found.words, topic, owner, messages[0])
            if (owner, (topic, number), found.standing[topic, number]) not in tried
        ]
        tried.update((owner, _place(message), found.standing[_place(message)]) for message in aborted)
        if aborted:
            again.abort(producer, aborted)
            ended = True
            places = _listed(found.standing, map(_place, aborted))
            log.warning("aborted possible hanging transactions again in %s", places)
    return ended


def _lost_in_slots(where: Field, found: _Found) -> dict[str, list[Message]]:
    """Where a commit lost its marker in a slot: all that it left there, by its owner. Its records in data topics belong
    to that commit, which ``found.words`` are told of."""
    lost: dict[str, list[Message]] = {}
    for (topic, _number), messages in found.left_open.items():
        name = commit_name(messages[-1].headers())
        if topic == where.offsets_topic and name in found.words.commits:
            owner = owner_of(name)
            lost.setdefault(owner, []).extend(messages)
            kind, timestamp = messages[-1].timestamp()
            time_ms = time_of_word(messages[-1].headers(), timestamp, kind == TIMESTAMP_LOG_APPEND_TIME)
            found.words.heard(owner, time_ms)
            found.words.named(name, time_ms)
    return lost


def _may_end(where: Field, unseen: Unseen, owners: Collection[str], found: _Found) -> bool:
    """Whether what stands in front may still be ended by others, or be committed again later. What these owners left
    may be behind it: nothing is written there meanwhile, and it is looked at again. Nor ever, while it stands, where it
    may be what the writer himself has left: his next marker would speak for it as well."""
    may = False
    for place, offset in found.standing.items():
        if place[0] == where.offsets_topic:
            continue
        if where.since is not None and place in found.left_open:
            first = found.left_open[place][0]
            own = any(_may_be_own(where, found.words, place, owner, first) for owner in owners)
            where.stood.suspect_own(place, offset, own)
        if where.stood.suspect_others(place, offset):
            may = True
            for owner in owners:
                where.stood.away(place[0], owner, found.words.newest.get(owner, 0))
            unseen(place[0], where.stood.blocked(place, offset), owners)
    return may


def _may_be_own(where: Field, words: Words, place: Place, owner: str, first: Message) -> bool:
    """Whether ``owner``, who goes on to write, may have left this, and nobody knows whether it was committed."""
    if where.since is None or first.timestamp()[1] < where.since - _doubt_ms(where, first):
        return False
    return not _left_open(where, words, place[0], owner, first) and not _committed(words, owner, first)


def _left_open(where: Field, words: Words, topic: str, owner: str, first: Message) -> bool:
    """Whether ``owner``, if it is his, did not commit what begins with this record."""
    _, time_ms = first.timestamp()
    return bool(time_ms > where.stood.last_word(topic, owner, words.newest.get(owner, 0)) + _doubt_ms(where, first))


def _committed(words: Words, owner: str, first: Message) -> bool:
    """Whether ``owner``, if it is his, did commit what begins with this record."""
    kind, time_ms = first.timestamp()
    return bool(kind != TIMESTAMP_LOG_APPEND_TIME and words.committed_at(owner, time_ms))


def _doubt_ms(where: Field, first: Message) -> float:
    """How far a record's time may be behind its owner's. By the clock of a broker, and perhaps when a leader was there
    again at last: long after the commit's last word."""
    return where.stood.longest * 1000 if first.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME else 0


def _end_lost_commits(
    again: SecondEnd, producers: Sequence[TransactionalProducer], where: Field, found: _Found
) -> bool:
    """Commit again what stands in data topics and is committed elsewhere, where it is certain that nobody else is about
    to end it; whether anything was."""
    ended = False
    for (topic, number), messages in sorted(found.left_open.items()):
        offset = messages[0].offset() or 0
        lost = {
            producer.transactional_id: producer
            for producer in producers
            if _committed(found.words, producer.transactional_id, messages[0])
            if not _left_open(where, found.words, topic, producer.transactional_id, messages[0])
            if where.stood.may_be(topic, number, offset, producer.transactional_id)
        }
        if topic == where.offsets_topic or not lost:
            continue
        if not where.stood.certain((topic, number), offset):
            where.stood.suspect((topic, number), offset)
            continue
        newest = newest_of_key(again.clients, where.group, messages[0], again.deadline)
        # One of them, for whoever's it is not may have left behind it what was aborted: the one whose last word leaves
        # the least room for that. If it still stands, it is another's.
        owner = max(lost, key=lambda each: (found.words.newest.get(each, 0), each))
        log.warning("committing what stands in %s [%d] at %d again, by repeating a record", topic, number, offset)
        try:
            again.commit_data(lost[owner], newest, offset)
        except DeliveryError:
            log.error("%s [%d]: committed records from offset %d on may be aborted now", topic, number, offset)
            raise
        where.stood.tried(topic, number, offset, owner)
        ended = True
    return ended


def _end_pending_offsets(again: SecondEnd, where: Field, producers: Sequence[TransactionalProducer]) -> None:
    """The group may miss the marker as well, and alone: its offsets stay pending then, and no slot is restored while
    some are. What they say is worth nothing any more, now that all slots have an end."""
    if _offsets_pending(again.clients, where):
        for producer in producers:
            again.abort(producer, ())
        log.warning("aborted offsets of group %s that were possibly left pending", where.group)


def _offsets_pending(clients: KafkaClients, where: Field) -> bool:
    slots = partitions_of(clients.admin(), where.offsets_topic) or 0
    asking = clients.consumer(where.group, READ_COMMITTED)
    try:
        places = [TopicPartition(where.offsets_topic, slot) for slot in range(slots)]
        return bool(places) and are_pending(asking, places, PATIENCE_SECONDS)
    finally:
        asking.close()


def are_pending(asking: Consumer, places: list[TopicPartition], seconds: float) -> bool:
    """Whether a transaction that is not over holds offsets of the group. A read_committed consumer is answered only
    when none does."""
    try:
        return any(place.error is not None for place in asking.committed(places, timeout=seconds))
    except KafkaException as caught:
        if not isinstance(translated(caught.args[0], ""), RetriableDeliveryError):
            raise
        return True


def _place(message: Message) -> Place:
    return message.topic() or "", message.partition() or 0


def _listed(standing: Mapping[Place, int], places: Iterable[Place]) -> str:
    return ", ".join(f"{topic} [{number}] at {standing[topic, number]}" for topic, number in sorted(set(places)))


def _without_leaders(admin: AdminClient, where: Field) -> dict[str, str]:
    """Topics of records that nobody can look at now, and why, or that we may not: others need not wait for them."""
    if where.unseen is None:
        return {}
    topics, there = set(where.topics()), listed(admin)
    found = leaderless(there) | hidden_topics(admin, topics - partition_counts(there).keys())
    return {topic: found[topic] for topic in sorted(topics & found.keys())}


def _words(clients: KafkaClients, admin: AdminClient, where: Field) -> Words:
    slots = partitions_of(admin, where.offsets_topic)
    if slots is None:
        raise RetriableDeliveryError(f"topic {where.offsets_topic} does not exist any more")
    return committed_words(clients, where.connector, where.offsets_topic, slots, where.group)


def _places(admin: AdminClient, where: Field, away: Container[str]) -> list[Place]:
    existing = topic_partitions(admin)
    topics = {topic for topic in (where.offsets_topic, *where.topics()) if topic in existing and topic not in away}
    return [(topic, number) for topic in sorted(topics) for number in range(existing[topic])]


def ended_everywhere(clients: KafkaClients, topics: Set[str], slots: Iterable[Place], patience: float) -> bool:
    """Whether it is known of what stands in all partitions of ``topics`` and in ``slots`` now how it ended. Those that
    nobody leads, and those that we may not see, do not tell."""
    try:
        admin = clients.admin()
        existing = topic_partitions(admin)
        if hidden_topics(admin, topics - existing.keys()):
            return False
        places = [(topic, number) for topic in sorted(topics) for number in range(existing.get(topic, 0))]
        return not still_standing(admin, [*places, *slots], time.monotonic() + patience, seconds=patience)
    except (KafkaException, TimeoutError, DeliveryError):
        return False


def _open_records(
    clients: KafkaClients, where: Field, standing: Mapping[Place, int], deadline: float
) -> dict[Place, list[Message]]:
    """The record at which each partition stands; of a slot all that one transaction left there, up to its name."""
    found: dict[Place, list[Message]] = {}
    waiting = set(standing)
    with contextlib.closing(written_behind(clients, where.group, standing, deadline)) as messages:
        while waiting:
            message = next(messages)
            error, place = message.error(), _place(message)
            if place in waiting and error is None:
                found.setdefault(place, []).append(message)
            if error is not None or place[0] != where.offsets_topic or commit_name(message.headers()):
                waiting.discard(place)
    return found
