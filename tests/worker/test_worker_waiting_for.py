"""From its start on, a worker says what it waits for until it reads its slots: until then nobody may call it well."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, ClassVar

from connector.delivery import KafkaClients
from connector.source import DescribedTable
from connector.table_name import TableName
from connector.worker.state import State
from connector.worker.status import Snapshots, stands_still, waiting_for
from connector.worker.worker import JOIN_SECONDS, MEMBER_SECONDS, Worker
from tests.topology.single import TABLE, WHOLE, Single, tablets


def worker(member: str = "m", settled: bool = True, pending: tuple[int, ...] = (), ready: bool = True) -> Any:
    return SimpleNamespace(
        background=SimpleNamespace(failing=lambda lasting: []),
        delivery=SimpleNamespace(ready=ready),
        clients=SimpleNamespace(address="k:9092", health=SimpleNamespace(error=None)),
        membership=SimpleNamespace(member_id=member, settled=settled),
        restoring=SimpleNamespace(pending=frozenset(pending)),
        configuration=SimpleNamespace(group="g-orders"),
    )


def test_each_step_of_a_start_is_waited_for_by_name() -> None:
    assert waiting_for(worker("", False, ready=False)) == ["a Kafka producer (Kafka at k:9092)"]
    assert waiting_for(worker("", False)) == ["the consumer group g-orders to take the worker in"]
    assert waiting_for(worker(settled=False)) == ["the consumer group g-orders to say which slots are the worker's"]
    assert waiting_for(worker(pending=(2, 1))) == ["slots 1, 2 to be restored"]


def test_all_tables_wait_for_what_is_about_none_of_them() -> None:
    assert stands_still(worker(ready=False)), "the producer is that of all"
    failing = {
        "table": SimpleNamespace(holds=True, about="ks.t", error="topic t: refused"),
        "its transaction": SimpleNamespace(holds=True, about="", error="topic t: refused"),
        "clock": SimpleNamespace(holds=False, about="", error="no answer"),
        "group": SimpleNamespace(holds=True, about="", error="no coordinator"),
    }

    def stands(*names: str) -> bool:
        one = worker()
        one.background.failing = lambda lasting: [failing[name] for name in names]
        return stands_still(one)

    assert not stands("table") and not stands("clock", "table"), "others are delivered"
    assert not stands("table", "its transaction"), "without the one, others are committed"
    assert stands("group") and stands("table", "group") and stands("its transaction")


def test_a_table_of_a_worker_that_stands_still_is_not_running() -> None:
    class Tables(dict[TableName, DescribedTable]):
        missing: ClassVar[dict[TableName, str]] = {}

    single = Single(tablets(1_000, WHOLE), now=2_000)
    single.read_all()
    one: Any = SimpleNamespace(
        planner=single.planner,
        tables=Tables(),
        background=SimpleNamespace(failing=lambda lasting: []),
        membership=SimpleNamespace(owned=frozenset({0}), settled=True),
        silent_slots=SimpleNamespace(besides=lambda owned: frozenset()),
        transactions=SimpleNamespace(measures=SimpleNamespace(latency={}, rows={})),
        pipeline=SimpleNamespace(records=Counter(), dead_letters=Counter()),
        late=SimpleNamespace(found={}),
        encoder=SimpleNamespace(skipped={}),
        restoring=SimpleNamespace(expired={}),
    )
    about: Any = None

    def state(*, stands: bool) -> State:
        return Snapshots(one, about)._tables(2_000, False, stands)[str(TABLE)].state

    assert state(stands=False) is State.RUNNING
    assert state(stands=True) is State.WAITING


def test_who_was_given_nothing_waits_for_nothing() -> None:
    assert waiting_for(worker()) == []


def test_a_group_and_a_topic_that_cannot_be_reached_are_told_with_kafkas_address() -> None:
    """librdkafka says "1/1 brokers are down", and of a topic that it has no leader, and not which Kafka that is."""
    told: dict[str, str | None] = {}
    down = "_ALL_BROKERS_DOWN: 1/1 brokers are down"
    lonely: Any = SimpleNamespace(
        clients=KafkaClients({"bootstrap.servers": "k:9092"}),
        membership=SimpleNamespace(member_id="", last_error=down),
        follower=SimpleNamespace(
            poll=lambda but: [],
            caught_up=frozenset(),
            beginnings=0,
            fell_back=False,
            last_error="_NOENT: no leaders found",
        ),
        _slots=SimpleNamespace(owned=frozenset()),
        _member_at=0.0,
        _member_due=0.0,
        _beginnings=0,
        _followed=frozenset(),
        _group=SimpleNamespace(is_now=lambda error: told.update(group=error)),
        _following=SimpleNamespace(is_now=lambda error: told.update(following=error)),
    )
    Worker._look_at_the_group(lonely, JOIN_SECONDS)
    Worker._follow(lonely)
    assert told == {
        "group": f"Kafka at k:9092: {down}",
        "following": "Kafka at k:9092: _NOENT: no leaders found",
    }
    lonely.membership.last_error = lonely.follower.last_error = None
    Worker._look_at_the_group(lonely, JOIN_SECONDS + MEMBER_SECONDS)
    Worker._follow(lonely)
    assert told == {"group": "Kafka at k:9092: no answer from the group's coordinator", "following": None}
