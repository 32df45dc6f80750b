"""The simulated Kafka answers as the real one: what is tested on a broker runs here once more, on the other.

Each of these tests stands in `tests/delivery`, where a real broker takes part in it; here it gets a simulated one.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.delivery import test_delivery_hanging_transactions as hanging
from tests.delivery import test_delivery_restore as restoring
from tests.delivery import test_delivery_topics as topics
from tests.delivery import test_delivery_transaction as transacting
from tests.delivery.conftest import SLOTS, World, close, make_world
from tests.simulation.kafka import clients_of
from tests.simulation.kafka_broker import Broker
from tests.simulation.scheduler import Scheduler
from tests.simulation.virtual import installed

# Not asked of the simulated one: it takes every name.
REAL_ALONE = {topics.test_a_topic_that_cannot_be_created_names_its_property}


class OwnKafka:
    """What tests do to a broker of their own."""

    bootstrap_servers = "simulated:9092"

    def __init__(self, broker: Broker) -> None:
        self.simulated = broker

    def kill(self) -> None:
        self.simulated.stop(3_600)

    def pause(self) -> None:
        self.simulated.stop(3_600)

    def resume(self) -> None:
        self.simulated.away_until = 0.0
        for topic in self.simulated.topics.values():
            for partition in topic.partitions:
                partition.available_at = 0.0

    restart = resume


def forget_markers(world: World, broker: OwnKafka, *names: str) -> None:
    """In place of the function that cuts them from a real broker's files."""
    simulated = broker.simulated
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


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler(7)
    broker = Broker(scheduler)
    broker.transactions.marker_seconds = 0.001
    scheduler.broker = broker  # type: ignore[attr-defined]
    with (
        installed(scheduler, clients_of(broker)),
        installed(scheduler, {id(hanging.forget_markers): forget_markers}, "tests.delivery"),
        installed(scheduler, {}, "tests.servers.patience"),
    ):
        yield scheduler
        scheduler.close()


def scenarios() -> list[Callable[..., None]]:
    modules = (restoring, transacting, hanging, topics)
    found = [vars(module)[name] for module in modules for name in vars(module) if name.startswith("test_")]
    return [test for test in found if test not in REAL_ALONE and "code" not in arguments(test)]


def arguments(test: Callable[..., None]) -> tuple[str, ...]:
    return test.__code__.co_varnames[: test.__code__.co_argcount]


@pytest.mark.parametrize("test", scenarios(), ids=lambda test: test.__name__)
def test_the_simulated_kafka_answers_as_the_real_one(
    test: Callable[..., None], scheduler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = itertools.count()

    def unique(prefix: str) -> str:
        return f"{prefix}-{next(numbers)}"

    own = OwnKafka(scheduler.broker)
    wanted = arguments(test)
    world = make_world(own.bootstrap_servers, unique) if {"world", "crashed"} & {*wanted} else None
    given: dict[str, Any] = {
        "world": world,
        "crashed": (world, own),
        "kafka": own,
        "own_kafka": own,
        "unique": unique,
        "caplog": caplog,
        "clients": SimpleNamespace(admin=None),
    }
    if "clients" in wanted:
        given["clients"] = topics.KafkaClients({"bootstrap.servers": own.bootstrap_servers})
    with caplog.at_level(logging.INFO):
        test(**{name: given[name] for name in wanted})
    if world is not None:
        close(world)


def test_all_of_them_are_asked() -> None:
    assert len(scenarios()) >= 25
    assert SLOTS == 3
