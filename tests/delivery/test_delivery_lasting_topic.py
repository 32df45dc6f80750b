"""A topic whose contents are nowhere else is missed when it is gone, and when another one has its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from connector.delivery import KafkaClients, LastingTopic
from connector.delivery.clients import READ_COMMITTED
from connector.delivery.records import OutgoingRecord
from connector.errors import RetriableDeliveryError
from embedded.kafka import EmbeddedKafka
from tests.delivery.conftest import World, mark
from tests.servers.patience import until

pytestmark = pytest.mark.kafka

LOSS = "it was the only one"


def trouble(look: Callable[[], None]) -> str:
    try:
        look()
    except RetriableDeliveryError as error:
        return str(error)
    return ""


def test_a_topic_that_is_gone_or_made_anew_is_told_and_not_forgotten(
    kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    name, admin = unique("lasting"), AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def create() -> None:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)

    topic = LastingTopic(KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}), name, LOSS)
    create()
    until(lambda: not trouble(topic.check), what="a topic that is there")
    admin.delete_topics([name])[name].result(60)
    assert not trouble(topic.confirm), "nobody has looked since"
    until(lambda: trouble(topic.check) == f"topic {name} does not exist any more: {LOSS}", what="its end")
    assert "does not exist" in trouble(topic.confirm)
    create()
    again = f"topic {name} was deleted and created again: {LOSS}"
    until(lambda: trouble(topic.confirm) == again, what="another one")
    assert topic.replaced and trouble(topic.confirm) == again


def test_nothing_is_committed_where_positions_are_lost(world: World) -> None:
    membership, _ = world.member(world.worker)

    def lost() -> None:
        raise RetriableDeliveryError(LOSS)

    delivery = world.delivery(membership, world.worker, positions=lost)
    delivery.add(0, [OutgoingRecord(world.data, b"k", b"v")])
    with pytest.raises(RetriableDeliveryError, match=LOSS):
        delivery.commit([mark(0, world.worker)])
    delivery.abort()
    assert world.read(world.data, READ_COMMITTED) == world.read(world.offsets, READ_COMMITTED) == []
