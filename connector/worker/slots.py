"""How many slots a connector has: what its existing marks say, else what is configured.

In: the offsets topic. Out: the number that rules, and what is worth saying about it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from connector.config import Configuration
from connector.delivery import KafkaClients, read_committed, topic_partitions
from connector.errors import ConfigurationError, Problem, RetriableDeliveryError
from connector.topology import noted_slots
from connector.worker.settings import kafka_clients, offsets_spec

log = logging.getLogger(__name__)

PROPERTY = "offset.storage.partitions"


def slots_by_marks(configuration: Configuration, cancelled: Callable[[], bool]) -> int | None:
    """What marks say, once for all workers of a `run`; None where there are none or Kafka does not answer now."""
    clients, topic = kafka_clients(configuration), configuration.connector.delivery.offset_topic
    try:
        partitions = topic_partitions(clients.admin()).get(topic)
        noted = _noted(clients, configuration, partitions, cancelled) if partitions else None
    except RetriableDeliveryError as error:
        log.debug("the number of slots is not known yet: %s", error)
        return None
    if noted is not None:
        _tell(configuration, noted)
    return noted


def slots_in_force(
    clients: KafkaClients, configuration: Configuration, partitions: int, cancelled: Callable[[], bool]
) -> int:
    """The number of slots, of a topic with ``partitions``.

    Marks name the number that they were written with: with another one, streams would belong to other slots, and nobody
    would find their positions. Further partitions are ignored; fewer cannot hold what is there.
    """
    slots = _noted(clients, configuration, partitions, cancelled)
    if slots is not None:
        _tell(configuration, slots)
    else:
        slots = offsets_spec(configuration).partitions if PROPERTY in configuration.worker.given else partitions
    check_partitions(configuration.connector.delivery.offset_topic, partitions, slots)
    return slots


def _noted(
    clients: KafkaClients, configuration: Configuration, partitions: int, cancelled: Callable[[], bool]
) -> int | None:
    slots = read_committed(
        clients,
        connector=configuration.connector.name,
        topic=configuration.connector.delivery.offset_topic,
        group=configuration.group,
        slots=range(partitions),
        cancelled=cancelled,
    )
    return noted_slots([entry for slot in slots.values() for entry in slot.entries])


def _tell(configuration: Configuration, noted: int) -> None:
    configured = offsets_spec(configuration).partitions
    if PROPERTY in configuration.worker.given and noted != configured:
        log.warning(
            "%s = %d has no effect: the positions of this connector are kept in %d slots", PROPERTY, configured, noted
        )


def check_partitions(topic: str, partitions: int, wanted: int) -> None:
    """Raises when a topic has fewer partitions than there are slots."""
    if partitions < wanted:
        raise ConfigurationError(
            [
                Problem(
                    property=PROPERTY,
                    value=str(wanted),
                    problem=f"topic {topic} has only {partitions} partitions",
                    suggestion=f"add partitions to it, or set {PROPERTY}={partitions} for a connector that is new",
                )
            ]
        )
