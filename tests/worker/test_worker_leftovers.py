"""What fails again and again while a server is away leaves nothing behind.

Workers hardly ever collect garbage, so a circle of an error, its frames and whoever keeps the error would keep clients
of servers too, each with its threads and connections, for as long as the outage lasts.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from connector.aside import aside
from connector.config import RegistryConfig
from connector.delivery import KafkaClients, LastingTopic, lasting_topic, listing
from connector.delivery.bounded import bounded
from connector.errors import FatalDeliveryError, RetriableDeliveryError
from connector.registry import patient
from connector.registry.client import SchemaRegistry
from connector.registry.patient import PatientRegistry
from connector.source import Background
from connector.worker import status_topic
from connector.worker.collector import EVERY_SECONDS, Leftovers
from connector.worker.settings import identity
from connector.worker.status_topic import StatusTopic
from tests.config.files import loaded
from tests.servers.patience import until
from tests.worker.test_worker_status_topic import status_of

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Client:
    """Of a server that is away."""

    def ask(self, *_: Any) -> None:
        raise RetriableDeliveryError("it is away")


def aside_it(client: Client) -> None:
    error = aside(lambda: client.ask(), "asking").exception()
    assert isinstance(error, RetriableDeliveryError)


def bounded_it(client: Client) -> None:
    with pytest.raises(RetriableDeliveryError):
        bounded(lambda seconds: client.ask(seconds), "asking", 1, 60)


@pytest.mark.parametrize("asked", [aside_it, bounded_it])
def test_a_call_that_failed_keeps_nothing_that_it_had_at_hand(asked: Callable[[Client], None]) -> None:
    client = Client()
    left = weakref.ref(client)
    asked(client)
    del client
    until(lambda: left() is None, what="the end of what it had")


def test_a_question_to_a_registry_that_failed_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "PATIENCE_SECONDS", 90.0)

    class Registry(SchemaRegistry):
        def id_for(self, subject: str, schema_json: str) -> int:
            raise FatalDeliveryError("incompatible")

    made: list[weakref.ref[Registry]] = []

    def make() -> Registry:
        registry = Registry(RegistryConfig(urls=("http://registry:8081",)))
        made.append(weakref.ref(registry))
        return registry

    asking = PatientRegistry(make)
    for _ in range(3):
        with pytest.raises(FatalDeliveryError):
            asking.id_for("refused", "{}")
    until(lambda: not any(each() for each in made), what="the end of all clients")


def test_who_writes_the_status_while_kafka_is_away_has_one_client_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_topic, "PUBLISH_SECONDS", 0.0)
    monkeypatch.setattr(status_topic, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(listing, "CALL_SECONDS", 0.01)
    configuration = loaded(worker={"bootstrap.servers": NOBODY})
    clients = KafkaClients({"bootstrap.servers": NOBODY, "log_level": 0})
    looked = 0
    asking = clients.admin

    def admin() -> Any:
        nonlocal looked
        looked += 1
        return asking()

    monkeypatch.setattr(KafkaClients, "admin", lambda _: admin())
    topic = StatusTopic(clients, configuration, identity(configuration, 0), Background())
    try:
        until(lambda: topic.publish(status_of(1)) or looked >= 6, what="several looks")
        until(lambda: topic.publish(status_of(1)) or len(clients._admins) <= 2, what="the end of their clients")
    finally:
        topic.close()


def in_a_circle() -> Client:
    client = Client()
    client.itself = client  # type: ignore[attr-defined]
    return client


def test_what_only_the_collector_finds_goes_now_and_then() -> None:
    """Circles of an error, its frame and who keeps the error; the collector by itself is off here."""
    leftovers = Leftovers()

    def left() -> weakref.ref[Client]:
        return weakref.ref(in_a_circle())

    for now in (5.0, 5.0 + EVERY_SECONDS):
        kept = left()
        leftovers.clear(now)
        assert kept() is None
        kept = left()
        leftovers.clear(now + EVERY_SECONDS - 1)
        assert kept() is not None, "not in each turn"


def test_what_was_in_use_when_leftovers_were_looked_for_goes_as_well() -> None:
    """The collector takes it for something that stays. Its threads tell that it does."""
    threads, now = 10, EVERY_SECONDS
    leftovers = Leftovers(lambda: threads)
    leftovers.clear(now)
    client = in_a_circle()
    left = weakref.ref(client)
    leftovers.clear(now := now + EVERY_SECONDS)
    del client
    leftovers.clear(now := now + EVERY_SECONDS)
    assert left() is not None, "who has many objects looks at all of them for a reason only"
    threads += 4
    leftovers.clear(now + EVERY_SECONDS)
    assert left() is None


def test_clients_that_were_asked_when_leftovers_were_looked_for_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting_topic, "CALL_SECONDS", 0.5)
    clients = KafkaClients({"bootstrap.servers": NOBODY, "log_level": 0})
    leftovers, made = Leftovers(), list[weakref.ref[Any]]()
    asking = clients.admin

    def admin(_: KafkaClients) -> Any:
        made.append(weakref.ref(client := asking()))
        return client

    monkeypatch.setattr(KafkaClients, "admin", admin)

    def first_is_gone() -> bool:
        answer = aside(LastingTopic(clients, "topic", "it is gone").check, "asking")
        before = len(made)
        until(lambda: len(made) > before or answer.done(), what="a client that asks")
        leftovers.clear(len(made) * EVERY_SECONDS)
        assert isinstance(answer.exception(), RetriableDeliveryError)
        return made[0]() is None

    until(first_is_gone, what="the end of the first client, while others fail as it did", step=lambda: None)
