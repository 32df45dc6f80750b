"""Records and positions become visible together, and only from a present member of the group."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, TopicPartition

from connector.delivery.clients import READ_COMMITTED, READ_UNCOMMITTED
from connector.delivery.failures import TOPIC_ERRORS
from connector.delivery.membership import Membership
from connector.delivery.producer import FailedRecord, ReportingProducer
from connector.delivery.records import OutgoingRecord
from connector.delivery.transaction import Delivery
from connector.delivery.transactional_producer import TransactionalProducer, fence
from connector.errors import (
    DeliveryError,
    Disowned,
    LostClaim,
    ProducerFenced,
    TooLate,
    TransactionAborted,
    UnknownOutcome,
)
from embedded.kafka import EmbeddedKafka
from tests.delivery.conftest import World, close, make_world, mark
from tests.servers.patience import until

pytestmark = pytest.mark.kafka


def records(world: World, *keys: str) -> list[OutgoingRecord]:
    return [OutgoingRecord(world.data, key.encode(), b"v", (("h", b"x"),)) for key in keys]


def keys(rows: list[tuple[bytes | None, bytes | None]]) -> list[str]:
    return sorted((key or b"").decode() for key, _ in rows)


def deliver_and_commit(world: World, delivery: Delivery, *keys: str) -> None:
    delivery.add(0, records(world, *keys))
    delivery.commit([mark(0, world.worker)])


def delivered(world: World, expected: list[str]) -> None:
    """Exactly these keys become visible. A commit is known before its markers stand in every partition."""
    until(lambda: keys(world.read(world.data)) == expected)


def test_records_and_positions_become_visible_together(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.add(0, records(world, "a", "b"))
    assert keys(world.read(world.data)) == []
    delivery.commit([mark(0, world.worker)])
    delivered(world, ["a", "b"])
    until(lambda: len(world.read(world.offsets)) == 1)
    assert not delivery.is_open


def test_an_aborted_transaction_leaves_no_trace(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.add(0, records(world, "a"))
    delivery.abort()
    delivery.add(0, records(world, "b"))
    delivery.commit([mark(0, world.worker)])
    delivered(world, ["b"])


def test_a_transaction_is_aborted_however_soon_after_a_commit(world: World, unique: Callable[[str], str]) -> None:
    """Its coordinator still writes what is left of the one before."""
    producer = TransactionalProducer(world.clients, unique("w"), 60_000, linger_ms=30_000)
    try:
        producer.start(time.monotonic() + 60)
        for at in range(60):
            producer.begin()
            producer.produce_to(world.data, 0, b"kept", b"v")
            producer.flush(time.monotonic() + 60)
            producer.commit()
            producer.begin()
            producer.produce_to(world.data, 0, b"gone", b"v")
            producer.client.poll(at % 15 / 1000)
            producer.abort()
    finally:
        producer.close()
    delivered(world, ["kept"] * 60)


def test_what_the_brokers_have_too_late_is_not_committed(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.add(0, records(world, "late"))
    with pytest.raises(TooLate):
        delivery.commit([mark(0, world.worker)], by=time.monotonic())
    delivery.abort()
    delivery.add(0, records(world, "in time"))
    delivery.commit([mark(0, world.worker)], by=time.monotonic() + 3600)
    delivered(world, ["in time"])


def test_every_named_slot_is_protected_from_a_member_that_was_thrown_out(world: World) -> None:
    """The broker refuses the offsets of a member it does not know; without them the commit would go through."""

    class Unaware:
        """What nobody has told that it was thrown out."""

        def __init__(self) -> None:
            self.member_id, self._kept = membership.member_id, membership.metadata()

        def metadata(self) -> object:
            return self._kept

    membership, _ = world.member(world.worker, session_timeout_ms=1_000, max_poll_interval_ms=1_000)
    # At once: after a second without a poll its client knows as well, and has no name any more.
    delivery = world.delivery(Unaware(), world.worker)  # type: ignore[arg-type]
    delivery.add(0, records(world, "zombie"))
    watcher = world.clients.admin()

    def members() -> int:
        described = watcher.describe_consumer_groups([world.group], request_timeout=60)
        return len(described[world.group].result(timeout=60).members)

    until(lambda: members() == 0)
    with pytest.raises(Disowned):
        delivery.commit([])
    assert delivery.disowned
    delivery.abort()
    assert keys(world.read(world.data)) == []


def test_a_membership_that_changed_since_begin_is_never_committed(world: World) -> None:
    class Moved:
        member_id = "first"

        def metadata(self) -> object:
            return membership.metadata()

    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    moved = Moved()
    delivery._membership = moved
    delivery.add(0, records(world, "a"))
    moved.member_id = "second"
    with pytest.raises(LostClaim):
        delivery.commit([mark(0, world.worker)])
    moved.member_id = "first"
    delivery.abort()
    assert keys(world.read(world.data)) == []


def test_who_is_thrown_out_while_its_records_are_sent_commits_nothing(world: World) -> None:
    """The group's metadata name no member then, and a broker takes them for those of somebody outside of any group."""

    class ThrownOut:
        member_id = "first"

        def metadata(self) -> object:
            self.member_id = ""
            return world.clients.consumer(world.group, READ_COMMITTED).consumer_group_metadata()

    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery._membership = ThrownOut()
    delivery.add(0, records(world, "a"))
    membership.close()
    with pytest.raises(LostClaim):
        delivery.commit([mark(0, world.worker)])
    delivery.abort()
    assert keys(world.read(world.data)) == []


def test_a_fenced_producer_says_so_and_a_new_one_goes_on(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.add(0, records(world, "before"))
    fence(world.clients, world.worker, deadline=float("inf"))
    with pytest.raises((ProducerFenced, UnknownOutcome, TransactionAborted)):
        delivery.commit([mark(0, world.worker)])
    delivery.start()
    delivery.add(0, records(world, "after"))
    delivery.commit([mark(0, world.worker)])
    delivered(world, ["after"])


def test_a_missing_topic_is_remembered_as_the_cause(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker, transaction_timeout_ms=120_000)
    began = time.monotonic()
    with pytest.raises(DeliveryError):
        delivery.add(0, [OutgoingRecord(world.data + "-gone", b"k", b"v")])
        delivery.commit([])
    assert time.monotonic() - began < 20, "the records of other tables do not wait until its time is up"
    blamed(delivery, world.data + "-gone")
    delivery.abort()


def test_a_missing_topic_is_the_cause_where_a_report_says_that_time_was_up(world: World) -> None:
    """librdkafka gives a topic half a minute to appear: for most transactions time is up before."""
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker, transaction_timeout_ms=1_000)
    delivery.add(0, [OutgoingRecord(world.data + "-gone", b"k", b"v")])
    producer = delivery._producer
    assert producer is not None
    until(lambda: producer.failure, what="the report", step=lambda: producer._producer.poll(0.1))
    assert producer.failure is not None and producer.failure.error.code() == KafkaError._MSG_TIMED_OUT
    with pytest.raises(TransactionAborted, match=f"{world.data}-gone: _UNKNOWN_TOPIC: the topic does not exist"):
        delivery.commit([])
    blamed(delivery, world.data + "-gone")
    delivery.abort()


def blamed(delivery: Delivery, topic: str) -> None:
    assert delivery.last_failure is not None
    assert delivery.last_failure.topic == topic
    assert delivery.last_failure.error.code() in TOPIC_ERRORS


def test_a_topic_that_exists_is_not_called_missing_when_time_was_up(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.add(0, records(world, "a"))
    assert delivery._producer is not None
    delivery._producer.failure = FailedRecord(world.data, b"a", KafkaError(KafkaError._MSG_TIMED_OUT))
    with pytest.raises(TransactionAborted, match=f"topic {world.data}: _MSG_TIMED_OUT"):
        delivery.commit([mark(0, world.worker)])
    delivery.abort()


def test_a_record_beyond_the_limit_is_refused_with_its_topic(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    large = OutgoingRecord(world.data, b"k", b"v" * 2_000_000)
    with pytest.raises(DeliveryError, match=r"MSG_SIZE_TOO_LARGE: .*the producer's max\.request\.size"):
        delivery.add(0, [*records(world, "before"), large, *records(world, "after")])
    assert delivery.last_failure is not None and delivery.last_failure.record is large
    delivery.abort()
    delivery.add(0, records(world, "small"))
    delivery.commit([mark(0, world.worker)])
    delivered(world, ["small"])


def refused_for_its_time(world: World, producer: ReportingProducer) -> None:
    """A record as of a machine whose clock is two hours ahead, where none is taken."""
    ahead = round((time.time() + 7_200) * 1000)
    producer._producer.produce(world.data, b"v", b"b", timestamp=ahead, on_delivery=producer._reported)


def test_a_record_of_a_time_that_the_broker_does_not_take_tells_of_the_clock(world: World) -> None:
    """As on a machine whose clock is two hours ahead, where no record is taken."""
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.add(0, records(world, "a"))
    producer = delivery._producer
    assert producer is not None
    refused_for_its_time(world, producer)
    with pytest.raises(TransactionAborted, match=f"{world.data}: INVALID_TIMESTAMP: .*; this machine's clock"):
        delivery.commit([mark(0, world.worker)])
    delivery.abort()


def test_disabled_sends_records_at_once_and_positions_in_a_transaction(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker, exactly_once=False)
    delivery.add(0, records(world, "a"))
    delivery.abort()
    delivery.add(0, records(world, "a"))
    assert world.read(world.offsets, READ_UNCOMMITTED) == []
    delivery.commit([mark(0, world.worker)])
    until(lambda: set(keys(world.read(world.data))) == {"a"})
    until(lambda: len(world.read(world.offsets, READ_COMMITTED)) == 1)


def test_disabled_notes_no_position_behind_a_record_that_nobody_has(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker, exactly_once=False)
    delivery.add(0, records(world, "a"))
    plain = delivery._plain
    assert plain is not None
    refused_for_its_time(world, plain)
    with pytest.raises(DeliveryError, match=f"{world.data}: INVALID_TIMESTAMP"):
        delivery.commit([mark(0, world.worker)])
    delivery.abort()
    delivery.add(0, records(world, "a"))
    assert world.read(world.offsets, READ_COMMITTED) == []
    delivery.commit([mark(0, world.worker)])
    until(lambda: len(world.read(world.offsets, READ_COMMITTED)) == 1)


def test_a_transaction_is_cut_by_time_and_by_bytes(world: World) -> None:
    now = [0.0]
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker, max_bytes=1_000, boundary_interval_ms=500)
    delivery._clock = lambda: now[0]
    assert not delivery.should_commit
    delivery.add(0, records(world, "a"))
    assert not delivery.should_commit
    now[0] = 0.6
    assert delivery.should_commit
    delivery.abort()
    delivery.add(0, [OutgoingRecord(world.data, b"k", b"v" * 2_000)])
    assert delivery.should_commit
    delivery.abort()


def test_the_group_hands_each_slot_to_one_member(world: World) -> None:
    first, _ = world.member("one")
    second, _ = world.member("two", wait=lambda: first.poll(0.05))
    until(
        lambda: (
            first.owned and second.owned and not first.owned & second.owned and len(first.owned | second.owned) == 3
        ),
        step=lambda: (first.poll(0.05), second.poll(0.05)),
    )
    second.close()
    until(lambda: len(first.owned) == 3, step=lambda: first.poll(0.1))


def test_a_broker_that_restarts_costs_no_record(own_kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    world = make_world(own_kafka.bootstrap_servers, unique)
    try:
        membership, _ = world.member(world.worker, session_timeout_ms=10_000)
        delivery = world.delivery(membership, world.worker)
        delivery.add(0, records(world, "a"))
        own_kafka.kill()
        own_kafka.restart()
        # Whatever was on its way is taken back; away for longer than the session it is also thrown out of its group.
        with pytest.raises((TransactionAborted, LostClaim, UnknownOutcome)):
            deliver_and_commit(world, delivery, "b")
        commit_once_it_lasts(world, delivery, membership, "a", "b")
        delivered(world, ["a", "b"])
    finally:
        close(world)


def commit_once_it_lasts(world: World, delivery: Delivery, membership: Membership, *of: str) -> None:
    """As a worker goes on after its broker was lost: until nothing is taken back any more. A member that was away for
    longer than its session hears of it when the coordinator answers again, perhaps not before the next transaction."""

    def committed() -> bool:
        delivery.start(again=True)
        if keys(world.read(world.data)) == sorted(of):
            return True  # the last one's outcome was unknown; now it is not
        until(lambda: membership.owned and membership.member_id, step=lambda: membership.poll(0.1))
        try:
            deliver_and_commit(world, delivery, *of)
        except (TransactionAborted, LostClaim, UnknownOutcome):
            return False
        return True

    until(committed)


def test_a_commit_that_nobody_answers_is_an_unknown_outcome(
    own_kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    world = make_world(own_kafka.bootstrap_servers, unique)
    try:
        membership, _ = world.member(world.worker, session_timeout_ms=10_000)
        delivery = world.delivery(membership, world.worker, transaction_timeout_ms=8_000)
        delivery.add(0, records(world, "a"))
        producer = delivery._producer
        assert producer is not None
        send = producer.send_offsets

        def pause_after(offsets: list[TopicPartition], metadata: object) -> None:
            send(offsets, metadata)
            own_kafka.pause()

        producer.send_offsets = pause_after  # type: ignore[method-assign,assignment]
        with pytest.raises(UnknownOutcome):
            delivery.commit([mark(0, world.worker)])
    finally:
        # For a while after its thaw it would answer nobody who begins with it.
        own_kafka.kill()
        close(world)
