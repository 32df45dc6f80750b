"""Whether a connector without positions has run before, by what stands in its topics.

In: a connector of which the offsets topic has no marks, Kafka. Out: a warning, or None: it is new, its positions were
deleted on purpose, or nobody can tell now. An offsets topic that is lost while workers run is missed by them
(`LastingTopic`); while none runs, only what was delivered by the lost positions tells of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from connector.config import Configuration
from connector.delivery import KafkaClients, compact_json, ends_of_topic, scan_partition, topic_partitions
from connector.errors import CdcError
from connector.topology import TENURE_SLOT
from connector.worker.schemas import last_versions
from connector.worker.settings import kafka_clients

log = logging.getLogger(__name__)

SHOWN = 3


def earlier(moment: str) -> str:
    """From when on all is to be read that was delivered after a moment: what is delivered is older by the lag."""
    return f"a time before {moment}, by more than the lag was then (scylla.confidence.window.size at the least)"


def lost_positions(configuration: Configuration) -> str | None:
    """To be asked before any worker is started."""
    clients, name = kafka_clients(configuration), configuration.connector.name
    topic = configuration.connector.delivery.offset_topic
    try:
        with clients.named():
            existing = topic_partitions(clients.admin())
            found = list(_traces(clients, configuration, existing))
            # Last: workers of another process, which begin just now, take the group before they deliver anything.
            if not found or (topic in existing and _has_a_word(clients, configuration)):
                return None
    except CdcError as error:
        log.debug("whether positions are lost is not known: %s", error)
        return None
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return (
        f"topic {topic} knows nothing of connector {name}, but it seems to have run before: "
        f"{'; '.join(found[:SHOWN])}{more}. If that topic was lost or replaced, every change that the logs still have "
        "is delivered again: to prevent that, stop the connector, and scylla-cdc offsets reset --to "
        f"{earlier('the loss')}, or offsets import if it was the Java connector's"
    )


def _has_a_word(clients: KafkaClients, configuration: Configuration) -> bool:
    """Whether anything is kept under its name: the group that runs it is recorded before its first delivery, and stays
    when its positions are deleted."""
    topic, name = configuration.connector.delivery.offset_topic, configuration.connector.name
    prefix = b"[" + compact_json(name) + b","
    records, _ = scan_partition(clients, topic, TENURE_SLOT, configuration.group, prefix, 0)
    return bool(records)


def _traces(clients: KafkaClients, configuration: Configuration, existing: Mapping[str, int]) -> Iterator[str]:
    """Topics that transforms route to, and a schemas topic that was given a name, may be others' as well."""
    connector = configuration.connector
    names, schemas = connector.output.names, connector.output.schema_topic
    tables = {names.data_topic(table.keyspace, table.name): table for table in connector.reading.tables}
    for topic in sorted(tables.keys() & existing.keys()) if not connector.output.transforms else ():
        records = sum(ends_of_topic(clients, topic, existing[topic]).values())
        if records:
            yield f"topic {topic} had {records} records"
    if schemas in existing and schemas == f"{connector.output.topic_prefix}.schemas":
        written = last_versions(clients, schemas, configuration.group)
        for table in sorted(written.keys() & {str(table) for table in connector.reading.tables}):
            yield f"topic {schemas} describes {table}"
