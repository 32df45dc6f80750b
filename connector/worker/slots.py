"""How many slots a connector has: what its existing marks say, else what is configured.

In: the offsets topic. Out: the number that rules, and what is worth saying about it; which tables the topic names. It
raises where tables would be begun that the Java connector has read (`not_taken_over`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from connector.config import Configuration
from connector.delivery import KafkaClients, NamedTables, read_committed, topic_partitions
from connector.errors import ConfigurationError, Problem, RetriableDeliveryError
from connector.table_name import TableName
from connector.topology import noted_slots
from connector.worker.not_taken_over import MarkedTables, not_taken_over
from connector.worker.settings import kafka_clients, offsets_spec

log = logging.getLogger(__name__)

PROPERTY = "offset.storage.partitions"


@dataclass(frozen=True, slots=True)
class Noted:
    """What reading the offsets topic has told. ``tables`` are all that it names, up to the offsets ``read_to``."""

    slots: int
    tables: frozenset[TableName] = frozenset()
    read_to: Mapping[int, int] = field(default_factory=dict)


def slots_by_marks(configuration: Configuration, cancelled: Callable[[], bool]) -> Noted | None:
    """What marks say, once for all workers of a `run`; None where there are none or Kafka does not answer now."""
    try:
        noted = marks_now(configuration, cancelled)
    except RetriableDeliveryError as error:
        log.debug("the number of slots is not known yet: %s", error)
        return None
    if noted is None:
        return None
    _tell(configuration, noted.slots)
    return noted


def marks_now(configuration: Configuration, cancelled: Callable[[], bool]) -> Noted | None:
    """As `slots_by_marks`, but raises where Kafka does not answer."""
    clients, topic = kafka_clients(configuration), configuration.connector.delivery.offset_topic
    with clients.named():
        partitions = topic_partitions(clients.admin()).get(topic)
        return _noted(clients, configuration, partitions, cancelled) if partitions else None


def positions_of_others(configuration: Configuration, cancelled: Callable[[], bool]) -> list[Problem]:
    """What forbids to begin its tables: positions of the Java connector that nobody has taken over. Raises where Kafka
    does not answer now."""
    try:
        marks_now(configuration, cancelled)
    except ConfigurationError as error:
        return list(error.problems)
    return []


def slots_in_force(
    clients: KafkaClients, configuration: Configuration, partitions: int, cancelled: Callable[[], bool]
) -> Noted:
    """The number of slots, of a topic with ``partitions``.

    Marks name the number that they were written with: with another one, streams would belong to other slots, and nobody
    would find their positions. Further partitions are ignored; fewer cannot hold what is there.
    """
    noted = _noted(clients, configuration, partitions, cancelled)
    if noted is not None:
        _tell(configuration, noted.slots)
    else:
        given = PROPERTY in configuration.worker.given
        noted = Noted(offsets_spec(configuration).partitions if given else partitions)
    check_partitions(configuration.connector.delivery.offset_topic, partitions, noted.slots)
    return noted


def _noted(
    clients: KafkaClients, configuration: Configuration, partitions: int, cancelled: Callable[[], bool]
) -> Noted | None:
    named, marked = NamedTables(), MarkedTables()

    def note(key: bytes) -> None:
        named.note(key)
        marked.note(key)

    read = read_committed(
        clients,
        connector=configuration.connector.name,
        topic=configuration.connector.delivery.offset_topic,
        group=configuration.group,
        slots=range(partitions),
        cancelled=cancelled,
        noted=note,
    )
    entries = [entry for slot in read.values() for entry in slot.entries]
    if problems := not_taken_over(configuration, entries, marked.tables):
        raise ConfigurationError(problems)
    slots = noted_slots(entries)
    if slots is None:
        return None
    return Noted(slots, frozenset(named.tables), {slot: each.end for slot, each in read.items()})


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
