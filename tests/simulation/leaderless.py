"""Short stories of a partition that nobody leads when a transaction is brought to its end, as `scenarios.py`.

A coordinator of Kafka 4.1 or later takes such a partition for deleted, says that the transaction is committed, and goes
on: seen with real brokers. What is written there next ends together with what is open there.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from connector.delivery import Delivery, DeliverySettings, Standing
from connector.delivery.records import REPEATED_HEADER
from connector.errors import ClockSetBack, TransactionAborted
from tests.delivery.conftest import mark
from tests.simulation.kafka_log import Fate, Partition
from tests.simulation.outages import refused
from tests.simulation.scenarios import Stage, stage

SURE_SECONDS = 6.0


class Told:
    """Topics that were said to be blocked, or away."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    def __call__(self, topic: str, why: str, owners: object) -> None:
        self.topics.append(topic)


class Leaderless:
    """A worker's delivery, and the partition of its records."""

    def __init__(self, on: Stage) -> None:
        self.on, self.told, self.stood = on, Told(), Standing(SURE_SECONDS)
        self.delivery = self._delivery("w")
        self.partition: Partition = on.broker.partition(on.world.data, -1, b"a")
        on.broker.skip_leaderless()

    def _delivery(self, name: str, outlived: bool = False, exactly_once: bool = True) -> Delivery:
        world = self.on.world
        delivery = Delivery(
            world.clients,
            DeliverySettings("c", world.offsets, name, exactly_once=exactly_once),
            world.member(name)[0],
            topics=lambda: [world.data],
            group=world.group,
            unseen=self.told,
            stood=self.stood,
            outlived=outlived,
        )
        delivery.start()
        world.deliveries.append(delivery)
        return delivery

    def commit(self, *keys: str) -> None:
        self.delivery.add(0, self.on.records(*keys))
        self.delivery.commit([mark(0, "w")])

    def lose_leader(self, seconds: float = 3.0) -> None:
        self.on.broker.move_leader(self.partition, seconds)

    def write_and_lose_leader(self, key: str, seconds: float = 3.0) -> None:
        """In a transaction that stays open: what its end was to be is for the caller to say."""
        self.delivery.add(0, self.on.records(key))
        assert self.delivery._producer is not None
        self.delivery._producer.flush(float("inf"))
        self.lose_leader(seconds)

    def commit_without_leader(self) -> None:
        """Everywhere but in the partition, which has a leader again afterwards."""
        self.on.broker.transactions.marker_seconds = 0.001
        self.write_and_lose_leader("a")
        self.delivery.commit([mark(0, "w")])
        self.on.scheduler.pass_time(1)

    @property
    def fates(self) -> list[Fate]:
        return [record.fate for record in self.partition.records if record is not None]


def nothing_is_written_behind_a_partition_that_missed_its_marker() -> None:
    """Nor is what stands there ever aborted: its positions are committed."""
    with stage() as on:
        one = Leaderless(on)
        one.commit_without_leader()
        assert refused(lambda: one.delivery.add(0, on.records("a"))), "written behind a commit that has no end"
        one.delivery.start(again=True)
        assert one.told.topics == [on.world.data], "records are sent to a topic that nobody leads"
        on.scheduler.pass_time(3)
        one.delivery.start(again=True)
        assert one.fates == [Fate.OPEN]
        assert one.told.topics == [on.world.data] * 2, "records are sent behind a commit that has no end"


def a_leader_that_is_lost_costs_nothing_where_all_markers_are_written() -> None:
    """The partitions are asked, and delivery goes on; nothing is restored."""
    with stage() as on:
        one = Leaderless(on)
        one.commit("a")
        on.scheduler.pass_time(1)
        one.lose_leader(0.2)
        on.scheduler.pass_time(1)
        one.commit("b")
        assert on.keys() == ["a", "b"]


def what_is_certainly_left_is_committed_again() -> None:
    """By a record that says of itself that it was there before; as soon as no worker that lives can end it."""
    with stage() as on:
        one = Leaderless(on)
        one.commit_without_leader()
        on.scheduler.pass_time(3)
        one.delivery.start(again=True)
        assert one.stood.look(on.world.clients, on.world.data), "it may be another worker's open transaction"
        on.scheduler.pass_time(SURE_SECONDS)
        assert one.stood.look(on.world.clients, on.world.data) is None
        one.delivery.start(again=True)
        on.scheduler.pass_time(1)
        assert one.fates == [Fate.COMMITTED] * 2
        repeated = [record for record in one.partition.records if record is not None and record.headers]
        assert [dict(record.headers) for record in repeated] == [{REPEATED_HEADER: b"0"}]
        one.commit("a")
        assert on.keys() == ["a", "a", "a"]


def what_either_of_two_may_have_committed_is_committed_by_both_in_turn() -> None:
    """By times alone it may be of either; a record of whoever is tried first is behind it, and changes nothing."""
    with stage() as on:
        one = Leaderless(on)
        other = on.world.delivery(on.world.membership[0], "v")
        other.add(1, [])
        on.scheduler.pass_time(1)
        one.commit_without_leader()
        on.scheduler.pass_time(1)
        other.commit([mark(1, "v")])
        # They end, and their heirs find out.
        on.world.membership[0].close()
        on.scheduler.pass_time(3)
        for _ in range(2):
            on.restoring(unseen=one.told, stood=one.stood)
            on.scheduler.pass_time(SURE_SECONDS + 4)
        repeated = [record for record in one.partition.records if record is not None and record.headers]
        assert len(repeated) == 2 and one.partition.stable == one.partition.end, "one of them is tried again and again"
        assert {*one.fates} == {Fate.COMMITTED}


def a_transaction_of_others_is_not_committed_for_them() -> None:
    """It is younger than the last word of whoever looks, and open as long as its owner lives."""
    with stage() as on:
        one = Leaderless(on)
        one.commit("a")
        on.scheduler.pass_time(1)
        other = on.producer("other")
        other.produce_all(on.records("a"))
        other.flush(float("inf"))
        one.commit("b")
        one.delivery.start(again=True)
        on.scheduler.pass_time(SURE_SECONDS / 2)
        one.stood.look(on.world.clients, on.world.data)
        other.abort()
        on.scheduler.pass_time(SURE_SECONDS)
        one.delivery.start(again=True)
        assert on.keys() == ["a", "b"]


def what_is_of_another_time_is_not_committed_again() -> None:
    """However long it stands: nothing says that it was ever committed."""
    with stage() as on:
        one = Leaderless(on)
        one.commit("a")
        on.scheduler.pass_time(1)
        other = on.producer("other")
        other.produce_all(on.records("a"))
        other.flush(float("inf"))
        on.scheduler.pass_time(1)
        one.commit("b")
        for _ in range(2):
            one.delivery.start(again=True)
            on.scheduler.pass_time(3 * SURE_SECONDS)
        headers = [record.headers for record in one.partition.records if record is not None]
        assert headers and not any(headers)


def a_leader_that_is_lost_while_the_last_commit_ends_stops_what_is_on_its_way() -> None:
    """Before the first record of the next transaction is written: its coordinator waits for the partition just then."""
    with stage() as on:
        one = Leaderless(on)
        on.broker.transactions.marker_seconds = 0.4
        one.commit("a")
        one.delivery.add(0, on.records("a"))
        one.lose_leader()
        assert refused(lambda: one.delivery.commit([mark(0, "w", 2)])), "written behind what may have no end"


def a_topic_that_nobody_leads_ends_a_transaction_soon() -> None:
    """Long before the transaction's time is up: others wait with it."""
    with stage() as on:
        one = Leaderless(on)
        one.write_and_lose_leader("a", 60.0)
        one.delivery.add(0, on.records("a"))
        began = on.scheduler.now
        with contextlib.suppress(TransactionAborted):
            one.delivery.commit([mark(0, "w", 2)])
        failure = one.delivery.last_failure
        assert failure is not None and failure.topic == on.world.data, "who is to blame is not known"
        assert on.scheduler.now - began < 5, "all wait for one topic"


def what_the_first_one_left_is_known_to_the_third() -> None:
    """The second one could not look, and was gone before it could."""
    with stage() as on:
        one = Leaderless(on)
        first = on.producer("first", mark(0, "first"))
        first.commit()
        first.begin()
        first.produce_all(on.records("a"))
        first.flush(float("inf"))
        on.scheduler.pass_time(1)
        one.lose_leader(30.0)
        on.scheduler.pass_time(1)
        seen = on.restoring(unseen=one.told, stood=one.stood)
        on.scheduler.pass_time(5)
        assert seen and one.told.topics == [on.world.data], "nobody looked"
        second = one.delivery
        second.commit([mark(0, "w")])
        second.close()
        # What the first one claimed would name it, and is old enough to be compacted.
        on.scheduler.pass_time(2)
        on.broker.partition(on.world.offsets, 0).compact(1_000)
        on.world.membership[0].close()
        on.scheduler.pass_time(30)
        assert one.fates == [Fate.OPEN]
        assert not on.restoring(unseen=one.told, stood=Standing(SURE_SECONDS))
        on.scheduler.pass_time(10)
        assert one.fates[0] is Fate.ABORTED, "whoever left it is not known any more"


def what_has_the_time_of_a_broker_is_not_taken_for_committed() -> None:
    with stage() as on:
        on.broker.topics[on.world.data].config["message.timestamp.type"] = "LogAppendTime"
        one = Leaderless(on)
        one.commit_without_leader()
        on.scheduler.pass_time(3)
        one.delivery.start(again=True)
        on.scheduler.pass_time(3 * SURE_SECONDS)
        one.delivery.start(again=True)
        assert one.fates == [Fate.OPEN], "nobody knows whether it is committed"


def words_that_have_the_time_of_a_broker_abort_nothing() -> None:
    """Its clock is behind the worker's: every record looks younger than the worker's last word."""
    with stage() as on:
        on.broker.topics[on.world.offsets].config["message.timestamp.type"] = "LogAppendTime"
        on.broker.skew = -5.0
        one = Leaderless(on)
        one.commit_without_leader()
        on.scheduler.pass_time(3)
        one.delivery.start(again=True)
        assert one.fates == [Fate.OPEN], "it is committed, and was aborted"


def entries_that_are_committed_again_keep_their_time() -> None:
    """Whoever commits them again has a clock that is behind, and what he writes is all that compaction leaves."""
    with stage() as on:
        one = Leaderless(on)
        slot = on.broker.partition(on.world.offsets, 0)
        on.broker.transactions.marker_seconds = 0.001
        one.delivery.add(0, on.records("a"))
        decide = on.broker.transactions.end

        def decided(name: str, epoch: int, commit: bool) -> int | None:
            on.broker.transactions.end = decide  # type: ignore[method-assign]
            for partition in (one.partition, slot):
                on.broker.move_leader(partition, 3.0)
            on.scheduler.pass_time(1.0)
            return decide(name, epoch, commit)

        on.broker.transactions.end = decided  # type: ignore[method-assign]
        one.delivery.commit([mark(0, "w")])
        on.scheduler.pass_time(5)
        on.scheduler.outside.skew = -60.0
        one.delivery.start(again=True)
        on.scheduler.pass_time(1)
        assert [record.fate for record in slot.records if record is not None] == [Fate.COMMITTED] * 2
        slot.compact(1_000)
        one.delivery.close()
        # Its heir would wait for it as long as for one that was killed.
        on.world.membership.pop().close()
        one.stood = Standing(SURE_SECONDS)
        one.delivery = one._delivery("w")
        one.delivery.start(again=True)
        assert one.fates == [Fate.OPEN], "it is committed, and was aborted"


def a_clock_that_is_set_back_ends_a_worker() -> None:
    """What it left open from then on would look older than what it has committed."""
    with stage() as on:
        one = Leaderless(on)
        one.commit("a")
        on.scheduler.outside.skew = -5.0
        try:
            one.delivery.add(0, on.records("b"))
        except ClockSetBack:
            return
        raise AssertionError("it went on")


def a_record_is_repeated_as_it_was_last() -> None:
    """A reader that keeps the newest of each key is told nothing old."""
    with stage() as on:
        one = Leaderless(on)
        one.commit_without_leader()
        on.scheduler.pass_time(3)
        other = on.producer("other")
        other.produce_all([replace(record, value=b"newer") for record in on.records("a")])
        other.commit()
        one.delivery.start(again=True)
        on.scheduler.pass_time(SURE_SECONDS)
        assert one.stood.look(on.world.clients, on.world.data) is None
        one.delivery.start(again=True)
        on.scheduler.pass_time(1)
        values = [record.value for record in one.partition.records if record is not None]
        assert values == [b"v", b"newer", b"newer"]


def what_has_the_time_of_a_broker_is_not_judged_by_it() -> None:
    """A leader that came back late stamps records long after the last word of the transaction that they belong to."""
    with stage() as on:
        on.broker.topics[on.world.data].config["message.timestamp.type"] = "LogAppendTime"
        one = Leaderless(on)
        on.broker.transactions.marker_seconds = 0.001
        one.delivery.add(0, on.records("a"))
        one.lose_leader(1.0)
        decide = on.broker.transactions.end

        def decided(name: str, epoch: int, commit: bool) -> int | None:
            on.broker.transactions.end = decide  # type: ignore[method-assign]
            one.lose_leader(3.0)
            on.scheduler.pass_time(1.0)
            return decide(name, epoch, commit)

        on.broker.transactions.end = decided  # type: ignore[method-assign]
        one.delivery.commit([mark(0, "w")])
        on.scheduler.pass_time(5)
        one.delivery.start(again=True)
        assert one.fates == [Fate.OPEN], "it is committed, and was aborted"
        assert one.told.topics == [on.world.data], "records are sent behind it"


def nothing_is_ever_written_behind_what_may_be_its_own() -> None:
    """It was aborted, and is stamped so soon after the last commit that it might belong to that: however long it
    stands, the marker of the next commit would commit it as well."""
    with stage() as on:
        on.broker.topics[on.world.data].config["message.timestamp.type"] = "LogAppendTime"
        one = Leaderless(on)
        one.commit("a")
        on.scheduler.pass_time(1)
        one.write_and_lose_leader("b")
        on.scheduler.pass_time(1)
        one.delivery.abort()
        on.scheduler.pass_time(4)
        for _ in range(3):
            one.delivery.start(again=True)
            assert one.told.topics.pop() == on.world.data and not one.told.topics, "records are sent behind it"
            on.scheduler.pass_time(2 * SURE_SECONDS + 1)
            told = one.stood.look(on.world.clients, on.world.data)
            assert told is not None and "end it (kafka-transactions.sh" in told, "records are sent behind it"
        # Somebody does.
        on.broker.partition(on.world.data, -1, b"b").open.clear()
        assert one.stood.look(on.world.clients, on.world.data) is None
        one.delivery.start(again=True)
        assert not one.told.topics


def what_is_older_than_a_worker_may_be_its_own_where_its_id_is() -> None:
    """The process before it had the same one, and left what is aborted and stands: the next marker commits it."""
    with stage() as on:
        on.broker.topics[on.world.data].config["message.timestamp.type"] = "LogAppendTime"
        one = Leaderless(on)
        one.commit("a")
        one.write_and_lose_leader("b")
        on.scheduler.pass_time(1)
        one.delivery.close()
        on.world.membership.pop().close()
        on.scheduler.pass_time(2 * SURE_SECONDS)
        one.delivery = one._delivery("w", outlived=True)
        for _ in range(2):
            one.delivery.start(again=True)
            assert one.told.topics.pop() == on.world.data, "records are sent behind it"
            on.scheduler.pass_time(2 * SURE_SECONDS + 1)
            assert one.stood.look(on.world.clients, on.world.data), "records are sent behind it"


def what_was_there_before_a_worker_is_not_waited_for_for_ever() -> None:
    """Somebody else's, who is gone: no marker of this one speaks for it."""
    with stage() as on:
        on.broker.topics[on.world.data].config["message.timestamp.type"] = "LogAppendTime"
        other = on.producer("other")
        other.produce_all(on.records("a"))
        other.flush(float("inf"))
        on.scheduler.pass_time(2 * SURE_SECONDS)
        one = Leaderless(on)
        one.commit()
        one.delivery.start(again=True)
        on.scheduler.pass_time(2 * SURE_SECONDS + 1)
        assert one.stood.look(on.world.clients, on.world.data) is None
        one.told.topics.clear()
        one.delivery.start(again=True)
        assert not one.told.topics, "its readers are blocked, and its records wait as well"


def what_is_open_is_no_own_of_who_writes_without_transactions() -> None:
    """None of its markers comes to a data topic: somebody else's transaction there would stop it for good."""
    with stage() as on:
        on.broker.topics[on.world.data].config["message.timestamp.type"] = "LogAppendTime"
        one = Leaderless(on)
        one.delivery.close()
        # The next one would wait until it counts as dead, which no idle machine is patient enough for.
        on.world.membership.pop().close()
        one.delivery = one._delivery("w", exactly_once=False)
        other = on.producer("other")
        other.produce_all(on.records("a"))
        other.flush(float("inf"))
        on.scheduler.pass_time(1)
        one.delivery.add(0, on.records("b"))
        one.delivery.commit([mark(0, "w")])
        one.delivery.start(again=True)
        on.scheduler.pass_time(2 * SURE_SECONDS + 1)
        assert one.stood.look(on.world.clients, on.world.data) is None, "no record is sent any more"


def what_it_has_ended_in_vain_is_not_waited_for_for_ever() -> None:
    """By its time it might be of the worker's commit: that was committed once more, and it still stands."""
    with stage() as on:
        one = Leaderless(on)
        one.delivery.add(0, on.records("b"))
        on.scheduler.pass_time(1)
        other = on.producer("other")
        other.produce_all(on.records("a"))
        other.flush(float("inf"))
        on.scheduler.pass_time(1)
        one.delivery.commit([mark(0, "w")])
        for _ in range(3):
            one.delivery.start(again=True)
            on.scheduler.pass_time(2 * SURE_SECONDS + 1)
        assert one.stood.look(on.world.clients, on.world.data) is None
        one.told.topics.clear()
        one.delivery.start(again=True)
        assert not one.told.topics, "its readers are blocked, and its records wait as well"
