"""Whose nodes are asked where a cluster has several datacenters, and what that means for what is read.

In: the settings of a connection, the datacenters of the nodes that the driver knows. Out: what to tell the user.
"""

from __future__ import annotations

from collections.abc import Collection

from connector.source.settings import ConnectionSettings

LOCAL = "LOCAL_"

OF_CHANGES = (
    "changes that arrive there later than the confidence window after they were written in another one are lost"
)
OF_ROWS = "rows that have not arrived there yet are not seen"


def loose_datacenter(settings: ConnectionSettings, datacenters: Collection[str], what: str = OF_CHANGES) -> str | None:
    """What is wrong with reads that any datacenter may answer by itself; None where they are not so. ``what``: becomes
    of what is read.

    To ScyllaDB, "local" is the datacenter of the node that is asked, and any node is, where none is chosen.
    """
    level = settings.consistency.upper()
    if settings.local_dc or len(datacenters) < 2 or not level.startswith(LOCAL):
        return None
    return (
        f"scylla.local.dc is not set, and scylla.consistency.level={level} reads in the datacenter of whichever node "
        f"is asked ({', '.join(sorted(datacenters))}): {what}. Set scylla.local.dc to the datacenter where writes are "
        "acknowledged, or scylla.consistency.level to quorum"
    )


def nobody_there(settings: ConnectionSettings, datacenters: Collection[str]) -> str:
    """Why none of the nodes that the driver knows may be asked."""
    named = ", ".join(sorted(datacenters)) or "no datacenter that is known"
    return f"no node is in datacenter {settings.local_dc} (scylla.local.dc), only in {named}"
