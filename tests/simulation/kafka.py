"""The simulated Kafka in place of confluent-kafka, in the one module of the product that makes clients of it.

In: a broker. Out: what `installed` of `virtual.py` takes to replace producers, consumers and admin clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import admin

from connector.delivery import no_bulk_client
from connector.native import bulk_client
from tests.simulation.kafka_admin import AdminClient
from tests.simulation.kafka_broker import Broker
from tests.simulation.kafka_consumer import Consumer, Message
from tests.simulation.kafka_producer import Producer


def clients_of(broker: Broker) -> Mapping[int, Any]:
    return {
        id(confluent_kafka.Producer): partial(Producer, broker),
        id(confluent_kafka.Consumer): partial(Consumer, broker),
        id(confluent_kafka.Message): Message,
        id(admin.AdminClient): partial(AdminClient, broker),
        # There is no librdkafka that it could read past.
        id(bulk_client): no_bulk_client,
    }
