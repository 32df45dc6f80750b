"""From its start on, a worker says what it waits for until it reads its slots: until then nobody may call it well."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from connector.delivery import KafkaClients
from connector.worker.status import waiting_for
from connector.worker.worker import JOIN_SECONDS, MEMBER_SECONDS, Worker


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
