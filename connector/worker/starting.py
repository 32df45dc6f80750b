"""Starts of a connector, for `snapshot.mode=always`: of a connector, not of one of its processes.

In: a configuration, Kafka, which is waited for. Out: a name for the start, which the snapshots that it begins have.
"""

from __future__ import annotations

import logging
import secrets
import threading

from connector.config import Configuration
from connector.delivery import group_members
from connector.errors import RetriableDeliveryError, RightMissing
from connector.worker.checks import Waiting
from connector.worker.settings import kafka_clients

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0


def name_of_start(configuration: Configuration, stop: threading.Event, waiting: Waiting) -> str | None:
    """None where workers of the connector run already, and where nobody wants to know."""
    if configuration.connector.reading.snapshot_mode != "always":
        return None
    clients = kafka_clients(configuration)
    while not stop.is_set():
        try:
            with clients.named():
                members = group_members(clients, [configuration.group])
            return None if members else secrets.token_hex(8)
        except (RetriableDeliveryError, RightMissing) as error:
            waiting.waiting_for = str(error)
            log.warning("whether the connector runs already is not known yet: %s", error)
        stop.wait(PAUSE_SECONDS)
    return None
