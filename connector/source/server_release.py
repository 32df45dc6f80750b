"""The release of ScyllaDB, which `system.versions` has: drivers see the release of Cassandra that it is compatible to.

In: a connection. Out: a text for people, or None.
"""

from __future__ import annotations

import logging

from connector.errors import SourceError
from connector.source.connection import Connection

log = logging.getLogger(__name__)


def server_release(connection: Connection) -> str | None:
    """Asked of one node, None if it does not say; during an upgrade others may differ."""
    try:
        rows = connection.query("SELECT version FROM system.versions")
    except SourceError as error:
        log.debug("the release of ScyllaDB is not known: %s", error)
        return None
    return str(rows[0]["version"]) if rows else None
