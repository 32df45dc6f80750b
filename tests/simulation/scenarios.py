"""Short stories on the simulated Kafka, each about one rule of the product: without the rule it fails.

In: nothing. Out: an AssertionError, or another error, where the rule is broken.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from confluent_kafka import KafkaError, TopicPartition

from connector.delivery import OutgoingRecord, follow
from connector.delivery.follow import Follower
from connector.delivery.records import compact_json, encode_offsets_key
from connector.delivery.restore import restore
from connector.delivery.standing import PATIENCE_SECONDS
from connector.delivery.topic_creation import LED_SECONDS
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import ensure_topics
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import CdcError, DeliveryError, TransactionAborted
from connector.offsets_entry import OffsetsEntry
from tests.delivery import conftest, test_delivery_hanging_transactions
from tests.delivery.conftest import SLOTS, World, close, make_world, mark
from tests.simulation.kafka import clients_of
from tests.simulation.kafka_broker import Broker
from tests.simulation.kafka_log import Topic
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.virtual import installed


class OwnKafka:
    """What tests do to a broker of their own."""

    bootstrap_servers = "simulated:9092"

    def __init__(self, broker: Broker) -> None:
        self.simulated = broker

    def kill(self) -> None:
        self.simulated.stop(3_600)

    pause = kill

    def restart(self) -> None:
        self.simulated.away_until = 0.0
        for partition in self.simulated.all_partitions:
            partition.available_at = 0.0

    resume = restart


def forget_markers(world: World, broker: OwnKafka, *names: str) -> None:
    """In place of the function that cuts them from a real broker's files."""
    simulated = broker.simulated
    simulated.scheduler.pass_time(1)
    simulated.stop(0.5)
    simulated.scheduler.pass_time(1)
    for name in names:
        for partition in simulated.topics[name].partitions:
            if partition.records and partition.records[-1] is None:
                partition.records.pop()
                found = [(at, each) for at, each in enumerate(partition.records) if each is not None and each.producer]
                if found:
                    at, last = found[-1]
                    last.fate = type(last.fate).OPEN
                    assert last.producer is not None
                    partition.open[last.producer] = at


@contextlib.contextmanager
def simulated(seed: int = 7) -> Iterator[tuple[Scheduler, Broker]]:
    """The product, and the tests of delivery, on a simulated Kafka."""
    scheduler = Scheduler(seed)
    broker = Broker(scheduler)
    broker.transactions.marker_seconds = 0.001
    forgetting = {id(test_delivery_hanging_transactions.forget_markers): forget_markers}
    with (
        installed(scheduler, clients_of(broker)),
        installed(scheduler, forgetting, "tests.delivery"),
        installed(scheduler, {}, "tests.servers.patience"),
        # However busy the machine is: the time that passes here is not its.
        patch("tests.servers.patience.crowd", return_value=1.0),
    ):
        try:
            yield scheduler, broker
        finally:
            scheduler.close()


def arguments(test: Callable[..., None]) -> tuple[str, ...]:
    return test.__code__.co_varnames[: test.__code__.co_argcount]


def once_more(test: Callable[..., None], caplog: Any = None) -> None:
    """A test that has a real broker elsewhere."""
    with simulated() as (_, broker):
        numbers = itertools.count()

        def unique(prefix: str) -> str:
            return f"{prefix}-{next(numbers)}"

        own = OwnKafka(broker)
        wanted = arguments(test)
        world = make_world(own.bootstrap_servers, unique) if {"world", "crashed"} & {*wanted} else None
        clients = conftest.KafkaClients({"bootstrap.servers": own.bootstrap_servers})
        given = {"world": world, "crashed": (world, own), "kafka": own, "own_kafka": own, "unique": unique}
        given |= {"clients": clients, "caplog": caplog}
        test(**{name: given[name] for name in wanted})
        if world is not None:
            close(world)


def again(test: Callable[..., None]) -> Callable[[], None]:
    """As a killer of mutants."""

    def run() -> None:
        once_more(test)

    run.__name__ = test.__name__
    return run


@dataclass
class Stage:
    """One connector's topics, and what happens beside the test."""

    scheduler: Scheduler
    broker: Broker
    world: World

    def restoring(self, **given: Any) -> list[dict[int, list[OffsetsEntry]]]:
        """Restores all slots in a process of its own; the list has the answer when there is one."""
        done: list[dict[int, list[OffsetsEntry]]] = []

        def run() -> None:
            with contextlib.suppress(CdcError):
                found = restore(
                    self.world.clients,
                    connector="c",
                    topic=self.world.offsets,
                    group=self.world.group,
                    slots=range(SLOTS),
                    topics=lambda: [self.world.data],
                    **given,
                )
                done.append({slot: each.entries for slot, each in found.items()})

        self.scheduler.spawn(Process("restoring"), run)
        return done

    def producer(self, name: str, *entries: OffsetsEntry) -> TransactionalProducer:
        """In a transaction with these entries, written and open."""
        producer = TransactionalProducer(self.world.clients, name, transaction_timeout_ms=60_000)
        producer.start(float("inf"))
        producer.begin()
        for entry in entries:
            value = None if entry.value is None else compact_json(entry.value)
            producer.produce_to(self.world.offsets, entry.slot, encode_offsets_key("c", entry.key), value)
        producer.flush(float("inf"))
        return producer

    def records(self, *keys: str) -> list[OutgoingRecord]:
        return [OutgoingRecord(self.world.data, key.encode(), b"v") for key in keys]

    def keys(self) -> list[str]:
        self.scheduler.pass_time(5)
        return sorted((key or b"").decode() for key, _ in self.world.read(self.world.data))


@contextlib.contextmanager
def stage(seed: int = 7) -> Iterator[Stage]:
    numbers = itertools.count()
    quiet = logging.getLogger("connector")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL + 1)
    try:
        with simulated(seed) as (scheduler, broker):
            world = make_world("simulated:9092", lambda prefix: f"{prefix}-{next(numbers)}")
            yield Stage(scheduler, broker, world)
    finally:
        quiet.setLevel(level)


# -- restoring -------------------------------------------------------------------------------------------------


def restoring_waits_for_offsets_that_are_pending() -> None:
    """A commit that is on its way holds the slot's offsets: what it wrote may still become committed."""
    with stage() as on:
        membership, _ = on.world.member("w")
        owner = on.producer("w")
        owner.produce_all(on.records("a"))
        owner.send_offsets([TopicPartition(on.world.offsets, 0, 0)], membership.metadata())
        done = on.restoring()
        on.scheduler.pass_time(4)
        assert not done, "restored before the commit was decided"
        owner.commit()
        on.scheduler.pass_time(5)
        assert done


def restoring_reads_to_the_high_watermark() -> None:
    """The owner is a member still, so nobody fences it: its open transaction is waited for."""
    with stage() as on:
        on.world.member("w")
        owner = on.producer("w", mark(0, "w", 5))
        done = on.restoring()
        on.scheduler.pass_time(4)
        owner.commit()
        on.scheduler.pass_time(5)
        assert done and [entry.value["read_to"] for entry in done[0][0] if entry.value] == [5]


def restoring_takes_nothing_that_is_not_committed() -> None:
    with stage() as on:
        dead = on.producer("dead", mark(0, "dead", 5))
        dead.abort()
        on.scheduler.pass_time(1)
        done = on.restoring()
        on.scheduler.pass_time(5)
        assert done and done[0][0] == []


def an_owner_whose_claim_was_never_committed_is_fenced() -> None:
    """At once: nobody waits to see whether it stays open."""
    with stage() as on:
        first = on.producer("first", mark(0, "first", 5))
        first.commit()
        zombie = on.producer("second", mark(0, "second", 5))
        done = on.restoring()
        on.scheduler.pass_time(PATIENCE_SECONDS - 1)
        assert done and [entry.owner for entry in done[0][0]] == ["first"]
        refused = False
        try:
            zombie.commit()
        except DeliveryError:
            refused = True
        assert refused, "a former owner committed behind its successor's back"


def a_tombstone_removes_what_stood_there() -> None:
    with stage() as on:
        owner = on.producer("w", mark(0, "w", 5), OffsetsEntry(0, mark(0, "w").key, None))
        owner.commit()
        done = on.restoring()
        on.scheduler.pass_time(5)
        assert done and done[0][0] == []


# -- following -------------------------------------------------------------------------------------------------


def a_follower_believes_no_prefix() -> None:
    """Compaction takes a position away in favour of its copy behind the high watermark that was noted."""
    with stage() as on:
        position = OffsetsEntry(0, {"keyspace_name": "ks", "table_name": "t", "stream_id": "00"}, {"read_to": 1})
        owner = on.producer("w", position, mark(0, "w", 5))
        owner.commit()
        on.scheduler.pass_time(1)
        follower = Follower(on.world.clients, "c", on.world.offsets, "following", SLOTS)
        follower.start()
        filler = [OffsetsEntry(0, {"n": number}, {"read_to": 1}) for number in range(90)]
        owner = on.producer("w", *filler, position)
        owner.commit()
        on.scheduler.pass_time(1)
        on.broker.partition(on.world.offsets, 0).compact(1_000)
        seen = []
        for _ in range(200):
            seen += follower.poll()
            if 0 in follower.caught_up:
                assert any("stream_id" in entry.key for entry in seen), "believed before the position was seen"
                return
            on.scheduler.pass_time(0.01)
        raise AssertionError("it never caught up")


def a_follower_sees_what_is_committed_alone() -> None:
    with stage() as on:
        on.producer("w", mark(0, "w", 5))
        follower = Follower(on.world.clients, "c", on.world.offsets, "following", SLOTS)
        follower.start()
        for _ in range(50):
            assert follower.poll() == []
            on.scheduler.pass_time(0.01)
        assert 0 not in follower.caught_up and {1, 2} <= follower.caught_up


def a_follower_keeps_what_it_is_not_asked_for() -> None:
    with stage() as on:
        gone = OffsetsEntry(0, {"keyspace_name": "ks", "table_name": "t", "stream_id": "00"}, {"read_to": 1})
        on.producer("w", gone, mark(0, "w", 5)).commit()
        on.scheduler.pass_time(1)
        follower = Follower(on.world.clients, "c", on.world.offsets, "following", SLOTS)
        follower.start()

        def heard(*but: int) -> list[tuple[int, object]]:
            entries = []
            for _ in range(50):
                entries += follower.poll(but)
                on.scheduler.pass_time(0.01)
            return [(entry.slot, entry.value and entry.value["read_to"]) for entry in entries]

        assert heard() == [(0, 1), (0, 5)] and 0 in follower.caught_up
        on.producer("w", OffsetsEntry(0, gone.key, None), mark(0, "w", 6), mark(1, "w", 6)).commit()
        on.producer("w", mark(0, "w", 7)).commit()
        assert heard(0) == [(1, 6)]
        assert heard(1) == [(0, None), (0, 7)], "what is no more has to be told as well"
        assert heard() == []


def a_follower_does_not_keep_much() -> None:
    with stage() as on, patch.object(follow, "MOST_KEPT", 10 * SLOTS):
        follower = Follower(on.world.clients, "c", on.world.offsets, "following", SLOTS)
        follower.start()
        many = [OffsetsEntry(0, {"n": number}, {"read_to": number}) for number in range(11)]
        heard = 0
        for some in (many[:-1], many[-1:]):
            assert not heard
            on.producer("w", *some).commit()
            for _ in range(200):
                heard += len(follower.poll({0}))
                on.scheduler.pass_time(0.01)
        assert heard == len(many) and follower._records[0].keys == 0


# -- transactions ----------------------------------------------------------------------------------------------


def a_plain_producer_is_flushed_before_its_positions() -> None:
    with stage() as on:
        membership, _ = on.world.member("w")
        delivery = on.world.delivery(membership, "w", exactly_once=False)
        for partition in on.broker.topics[on.world.data].partitions:
            on.broker.move_leader(partition, 3.0)
        delivery.add(0, on.records("a", "b"))
        delivery.commit([mark(0, "w")])
        assert sum(partition.end for partition in on.broker.topics[on.world.data].partitions) == 2


def a_commit_is_asked_again_until_its_answer_is_known() -> None:
    with stage() as on:
        membership, _ = on.world.member("w")
        delivery = on.world.delivery(membership, "w")
        delivery.add(0, on.records("a"))
        on.broker.move_coordinator(5.0)
        delivery.commit([mark(0, "w")])
        assert on.keys() == ["a"]


def an_abort_that_nobody_confirms_is_an_unknown_outcome() -> None:
    with stage() as on:
        membership, _ = on.world.member("w")
        delivery = on.world.delivery(membership, "w", transaction_timeout_ms=2_000)
        delivery.add(0, on.records("a"))
        assert delivery._producer is not None
        delivery._producer.flush(float("inf"))
        on.broker.move_coordinator(3_600)
        raised = False
        try:
            delivery.abort()
        except DeliveryError:
            raised = True
        assert raised, "an abort counted that nobody had confirmed"


def a_record_that_is_refused_is_never_left_out() -> None:
    with stage() as on:
        membership, _ = on.world.member("w")
        delivery = on.world.delivery(membership, "w")
        on.broker.topics[on.world.data].refuses = KafkaError.TOPIC_AUTHORIZATION_FAILED
        raised = False
        try:
            delivery.add(0, on.records("a"))
            delivery.commit([mark(0, "w")])
        except DeliveryError:
            raised = True
        assert raised and delivery.last_failure is not None and delivery.last_failure.topic == on.world.data
        assert delivery.byte_limit < delivery.settings.max_bytes, "a smaller transaction is tried next"
        delivery.abort()
        on.broker.topics[on.world.data].refuses = None
        delivery.add(0, on.records("b"))
        delivery.commit([mark(0, "w")])
        assert on.keys() == ["b"]


def a_record_that_stands_nowhere_is_not_committed() -> None:
    """Those behind it are taken, and the client calls it delivered."""
    with stage() as on:
        membership, _ = on.world.member("w")
        delivery = on.world.delivery(membership, "w")
        for each in on.broker.topics[on.world.data].partitions:
            each.slow = True
        keys = list("abcdefgh")
        delivery.add(0, on.records(*keys))
        try:
            delivery.commit([mark(0, "w")])
        except TransactionAborted:
            delivery.abort()
            delivery.add(0, on.records(*keys))
            delivery.commit([mark(0, "w")])
        assert on.keys() == keys


def new_partitions_are_waited_for() -> None:
    """Until those who lead them answer, and not for ever."""
    with stage() as on:
        create, admin = on.broker.create, on.world.clients.admin()
        seconds = {"quick": 0.0, "slow": 2.0, "never": 1e9}

        def slowly(name: str, partitions: int = 1, **config: str) -> Topic:
            topic = create(name, partitions, **config)
            for each in topic.partitions:
                each.available_at = on.scheduler.now + seconds[name]
            return topic

        with patch.object(on.broker, "create", slowly):
            for name, late in seconds.items():
                began = on.scheduler.now
                ensure_topics(admin, [TopicSpec(name, 2, 1)])
                took, least = on.scheduler.now - began, min(late, LED_SECONDS)
                assert least <= took < least + 1.0, f"{name}: {took} s"


def a_member_that_is_thrown_out_during_the_flush_does_not_commit() -> None:
    """Its client has no name any more then, and the group takes offsets of nobody."""
    with stage() as on:
        membership, _ = on.world.member("w")
        delivery = on.world.delivery(membership, "w")
        delivery.add(0, on.records("zombie"))
        for partition in on.broker.topics[on.world.data].partitions:
            on.broker.move_leader(partition, 2.5)
        on.scheduler.later(1.0, lambda: on.broker.groups.throw_out(on.world.group, membership.member_id))
        raised = False
        try:
            delivery.commit([mark(0, "w")])
        except CdcError:
            raised = True
            delivery.abort()
        assert raised and on.keys() == []
