"""What a process is and whom it talks to: where it runs, since when, which versions.

In: connections. Out: facts for the status, known once and for all; None where a server does not say.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field

from connector import __version__
from connector.delivery import KafkaClients, broker_release
from connector.source import Connection, server_release


@dataclass(frozen=True, slots=True)
class About:
    """``scylla_version`` and ``kafka_version`` are those of the servers that answered at the start."""

    scylla_version: str | None = None
    kafka_version: str | None = None
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    version: str = __version__
    started_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    #: What needs a look, as it was found at the start.
    warnings: tuple[str, ...] = ()


def about(connection: Connection, clients: KafkaClients, warnings: tuple[str, ...] = ()) -> About:
    """This process, and the servers; asks each once."""
    return About(server_release(connection), broker_release(clients), warnings=warnings)
