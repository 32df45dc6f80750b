"""How many slots a connector has: what its existing marks say, else what is configured.

In: the offsets topic. Out: the number that rules, and what is worth saying about it.
"""

from __future__ import annotations

import logging

from connector.delivery import KafkaClients, read_committed
from connector.errors import ConfigurationError, Problem
from connector.topology import noted_slots

log = logging.getLogger(__name__)

PROPERTY = "offset.storage.partitions"


def slots_in_force(
    clients: KafkaClients, *, connector: str, topic: str, group: str, partitions: int, configured: int, given: bool
) -> int:
    """The number of slots.

    Marks name the number that they were written with: with another one, streams would belong to other slots, and nobody
    would find their positions. Further partitions are ignored; fewer cannot hold what is there.
    """
    slots = read_committed(clients, connector=connector, topic=topic, group=group, slots=range(partitions))
    noted = noted_slots([entry for slot in slots.values() for entry in slot.entries])
    if noted is None:
        wanted = configured if given else partitions
        return _enough(topic, partitions, wanted)
    if given and noted != configured:
        log.warning(
            "%s = %d has no effect: the positions of this connector are kept in %d slots", PROPERTY, configured, noted
        )
    return _enough(topic, partitions, noted)


def _enough(topic: str, partitions: int, wanted: int) -> int:
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
    return wanted
