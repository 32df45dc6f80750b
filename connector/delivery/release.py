"""What a cluster says of itself: its id, and the release of a broker, as far as it says one: the protocol has none.

In: clients. Out: a text for people, or None.
"""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from connector.delivery.clients import CALL_SECONDS, KafkaClients

log = logging.getLogger(__name__)

# Until 3.9 brokers had this setting, whose default is their own release; 4.0 took it away.
PROTOCOL = "inter.broker.protocol.version"
BEHIND_IT = "4.0 or newer"


def cluster_id(clients: KafkaClients) -> str | None:
    """None if no broker answers."""
    try:
        found = clients.admin().list_topics(timeout=CALL_SECONDS).cluster_id
    except KafkaException as error:
        log.debug("the cluster's id is not known: %s", error)
        return None
    return None if found is None else str(found)


def broker_release(clients: KafkaClients) -> str | None:
    """Asked of one broker; None if it does not answer, or does not let us see its settings."""
    try:
        admin = clients.admin()
        brokers = admin.list_topics(timeout=CALL_SECONDS).brokers
        resource = ConfigResource(ResourceType.BROKER, str(min(brokers)))
        futures = admin.describe_configs([resource], request_timeout=CALL_SECONDS)
        settings = {name: entry.value for name, entry in futures[resource].result(timeout=2 * CALL_SECONDS).items()}
    except (KafkaException, TimeoutError, ValueError) as error:
        log.debug("the broker's release is not known: %s", error)
        return None
    if not settings:
        return None
    return str(settings[PROTOCOL]).partition("-")[0] if settings.get(PROTOCOL) else BEHIND_IT
