"""How many replicas the topics have that keep what is nowhere else, positions above all.

In: what is configured, how many brokers there are. Out: how many a new one gets; which of those that are there have
fewer. A broker's own default is one, and one replica is lost with its broker.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, ClusterMetadata

from connector.delivery.failures import describe
from connector.delivery.listing import listed

log = logging.getLogger(__name__)

USUAL: Final = 3

#: What is said of a number of replicas, among other things: some brokers take none but their own, or odd ones.
_OF_REPLICAS: Final = frozenset(
    {
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
    }
)


def brokers_there(admin: AdminClient) -> int:
    return max(1, len(listed(admin).brokers))


def wanted(replication: int | None, brokers: int) -> int:
    """``replication`` as configured; None: nobody has said it."""
    return min(USUAL, brokers) if replication is None else replication


def less_than_usual(replication: int | None, brokers: int) -> str:
    """What is to be said of a topic that has just been created."""
    if replication is not None or brokers >= USUAL:
        return ""
    return f" with {_replicas(brokers)}, as there {'is one broker' if brokers == 1 else f'are {brokers} brokers'}"


def may_be_of_replicas(error: KafkaError) -> bool:
    return error.code() in _OF_REPLICAS


def tell_other_number(topic: str, brokers: int, error: KafkaError) -> None:
    """That a topic gets the brokers' own number, as they have refused ours."""
    ours = _replicas(wanted(None, brokers))
    log.warning("topic %s with %s: %s; it gets as many as its brokers give it", topic, ours, describe(error))


def too_few(there: ClusterMetadata, replications: Mapping[str, int | None]) -> list[str]:
    """What is to be said of existing topics that have fewer than they are to have. In: what is configured, by name."""
    brokers = max(1, len(there.brokers))
    found: dict[tuple[int, int], list[str]] = {}
    for name, replication in replications.items():
        topic, least = there.topics.get(name), wanted(replication, brokers)
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=0) if topic else 0
        if 0 < fewest < least:
            found.setdefault((fewest, least), []).append(name)
    return [_told(names, fewest, least) for (fewest, least), names in found.items()]


def _told(names: Iterable[str], fewest: int, least: int) -> str:
    which = ", ".join(names)
    loss = (
        "it is gone with the only broker that has it, and cannot be written while that is away"
        if fewest == 1
        else "it may stand in as few brokers"
    )
    return (
        f"of what is kept in {which} there {'is' if fewest == 1 else 'are'} {_replicas(fewest)}, {least} are to be: "
        f"{loss}; add replicas (kafka-reassign-partitions.sh --execute), or set …storage.replication.factor to {fewest}"
    )


def _replicas(number: int) -> str:
    return "one replica" if number == 1 else f"{number} replicas"
