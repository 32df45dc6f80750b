"""Short stories of records, and of ends of transactions, that brokers take for others of the same producer and epoch.
As `scenarios.py`; seen with real brokers (`tests/delivery/test_delivery_spent.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connector.delivery import Delivery
from tests.delivery.conftest import mark
from tests.simulation.scenarios import Stage, stage

#: Longer than any connection is away.
AWAY_SECONDS = 15.0

Decide = Callable[[str, int, bool], int | None]


def client_of(delivery: Delivery) -> Any:
    assert delivery._producer is not None
    return delivery._producer.client


def one_key_in_doubt(on: Stage, delivery: Delivery, is_heard: bool) -> None:
    """A record is written and its answer lost, and the transaction aborted; another one with the record follows.
    ``is_heard``: the connection was lost as well; otherwise the leader answered, and did not know."""
    delivery.add(0, on.records("a"))
    on.broker.network.cut = 1.0
    client_of(delivery).flush(0.01)
    on.broker.network.cut = 0.0
    client_of(delivery)._losses = -1 if is_heard else on.broker.losses
    assert client_of(delivery), "its answer came"
    delivery.abort()
    on.scheduler.pass_time(AWAY_SECONDS)
    delivery.add(0, on.records("a"))
    delivery.commit([mark(0, "w")])
    on.scheduler.pass_time(1)
    assert on.keys() == ["a"], "taken for the one that was aborted"


def what_an_abort_left_in_the_log_is_not_taken_for_what_comes_next() -> None:
    for is_heard in (False, True):
        with stage() as on:
            delivery = on.world.delivery(on.world.member("w")[0], "w")
            one_key_in_doubt(on, delivery, is_heard)


def nor_where_nothing_but_a_producer_is() -> None:
    """As who ends what others left open has one: it begins again and again."""
    with stage() as on:
        producer = on.producer("other")
        producer.produce_all(on.records("a"))
        on.broker.network.cut = 1.0
        producer.client.flush(0.01)
        on.broker.network.cut = 0.0
        producer.abort()
        on.scheduler.pass_time(AWAY_SECONDS)
        producer.begin()
        producer.produce_all(on.records("a"))
        producer.flush(float("inf"))
        producer.commit()
        on.scheduler.pass_time(1)
        assert on.keys() == ["a"], "taken for the one that was aborted"


def _late(on: Stage, mishap: Callable[[Delivery], None]) -> None:
    """An end that was repeated, for what befell its answer, comes once more while the next transaction is open."""
    delivery = on.world.delivery(on.world.member("w")[0], "w")
    decide: Decide = on.broker.transactions.end
    asked: list[tuple[str, int, bool]] = []

    def decided(name: str, epoch: int, commit: bool) -> int | None:
        asked.append((name, epoch, commit))
        mishap(delivery)
        return decide(name, epoch, commit)

    on.broker.transactions.end = decided  # type: ignore[method-assign]
    delivery.add(0, on.records("a"))
    delivery.commit([mark(0, "w")])
    on.broker.transactions.end = decide  # type: ignore[method-assign]
    on.scheduler.pass_time(1)
    delivery.add(0, on.records("b"))
    assert delivery._producer is not None
    delivery._producer.flush(float("inf"))
    decide(*asked[0])
    on.scheduler.pass_time(1)
    assert on.keys() == ["a"], "committed before it was complete"
    delivery.abort()
    on.scheduler.pass_time(1)
    assert on.keys() == ["a"]


def an_end_that_comes_late_ends_no_other_transaction() -> None:
    """Its connection had ended."""
    with stage() as on:
        _late(on, lambda delivery: client_of(delivery).lose_connection())


def nor_does_one_that_was_asked_for_again() -> None:
    """Nothing was heard of any connection."""
    with stage() as on:

        def mishap(_: Delivery) -> None:
            on.broker.network.unanswered = 1.0 - on.broker.network.unanswered

        _late(on, mishap)
