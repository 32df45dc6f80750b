"""All declared properties together: by file, by name, with the families that begin with a prefix."""

from __future__ import annotations

from connector.config.properties.connection import CONNECTION, READING
from connector.config.properties.framework import CONNECTOR_FAMILIES, FRAMEWORK
from connector.config.properties.http import HTTP
from connector.config.properties.inherited import INHERITED
from connector.config.properties.neighbours import neighbour_of
from connector.config.properties.output import OUTPUT
from connector.config.properties.property import Effect, Family, Property, Section
from connector.config.properties.worker import WORKER, WORKER_FAMILIES

CONNECTOR_SECTIONS: tuple[Section, ...] = (CONNECTION, READING, OUTPUT, FRAMEWORK, INHERITED)
WORKER_SECTIONS: tuple[Section, ...] = (WORKER, HTTP)


def _by_name(sections: tuple[Section, ...]) -> dict[str, Property]:
    found: dict[str, Property] = {}
    for section in sections:
        for declared in section.properties:
            for name in (declared.name, *declared.aliases):
                if name in found:
                    raise AssertionError(f"{name} is declared twice")
                found[name] = declared
    return found


CONNECTOR: dict[str, Property] = _by_name(CONNECTOR_SECTIONS)
WORKER_BY_NAME: dict[str, Property] = _by_name(WORKER_SECTIONS)

#: What older files and neighbouring connectors call a property of this one.
RENAMED: dict[str, str] = {
    "scylla.name": "topic.prefix",
    "database.server.name": "topic.prefix",
    "table.include.list": "scylla.table.names",
    "scylla.tables": "scylla.table.names",
    "scylla.table.name": "scylla.table.names",
    "scylla.hosts": "scylla.cluster.ip.addresses",
    "scylla.contact.points": "scylla.cluster.ip.addresses",
    "dead.letter.queue.topic": "errors.deadletterqueue.topic.name",
    "offset.storage.topic": "offsets.storage.topic",
}


def family_of(name: str, families: tuple[Family, ...]) -> Family | None:
    """The family that a name belongs to: that of the longest prefix."""
    found = [family for family in families if name.startswith(family.prefix) and len(name) > len(family.prefix)]
    return max(found, key=lambda family: len(family.prefix), default=None)


def idle_reason(name: str, *, worker: bool) -> str | None:
    """Why it makes no difference what a property of this name says in a worker's file or a connector's, if it does
    not."""
    declared: Property | Family | None
    if worker:
        declared = WORKER_BY_NAME.get(name) or family_of(name, WORKER_FAMILIES)
    else:
        declared = CONNECTOR.get(name) or family_of(name, CONNECTOR_FAMILIES)
    if declared is not None:
        return declared.reason if declared.effect is Effect.NONE else None
    neighbour = None if worker else neighbour_of(name)
    return None if neighbour is None else neighbour.reason


__all__ = [
    "CONNECTOR",
    "CONNECTOR_FAMILIES",
    "CONNECTOR_SECTIONS",
    "RENAMED",
    "WORKER_BY_NAME",
    "WORKER_FAMILIES",
    "WORKER_SECTIONS",
    "family_of",
    "idle_reason",
]
