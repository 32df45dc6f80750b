"""Passwords and key stores that are changed while a service runs: workers that start from then on have the new ones.

In: a connector's name. Out: its workers' orders, with what its references name by now.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from connector.config import Configuration
from connector.errors import CdcError, ConfigurationError, Problem
from connector.secrets import known
from connector.worker.holding import Target
from connector.worker.slots import Noted
from connector.worker.supervisor import Supervisor
from connector.worker.tenants import Checks, Preparation

log = logging.getLogger(__name__)


class Renewal:
    """Of the connectors of one service. ``load`` loads one again as it was defined, None where it is no more; ``lock``
    is held meanwhile by whoever gives it other orders."""

    def __init__(
        self, supervisor: Supervisor, load: Callable[[str], Configuration | None], lock: threading.Lock
    ) -> None:
        self._supervisor, self._load, self._lock = supervisor, load, lock

    def renew(self, connector: str, *, asked: bool = True) -> Configuration | None:
        """Before its workers are started again. As `renewed`, but for what cannot be loaded: that is told."""
        try:
            return self.renewed(connector, asked=asked)
        except CdcError as error:
            log.warning("connector %s: goes on with what its references named before: %s", connector, error)
            return None

    def renew_all(self) -> None:
        """Where the process itself logs in anew: what it looks at for them, and workers that end and begin again."""
        for configuration in self._supervisor.configurations():
            self.renew(configuration.connector.name)

    def directed(self, follow: Callable[[str, Target], None], connector: str, target: Target) -> None:
        """Behind a pause as well."""
        if target is Target.RUNNING:
            self.renew(connector)
        follow(connector, target)

    def checked(
        self, checks: Checks, configuration: Configuration, stop: threading.Event, waiting: Preparation
    ) -> tuple[Sequence[Problem], Noted | None]:
        """What it was given up for may be mended in what its references name."""
        try:
            return checks(self.renewed(configuration.connector.name) or configuration, stop, waiting)
        except ConfigurationError as error:
            return error.problems, None

    def renewed(self, connector: str, *, asked: bool = True) -> Configuration | None:
        """The configuration by which its workers start from now on. What cannot be loaded raises, and nothing changes.
        ``asked``: somebody asked for it, and hears what counts here only with another start of the process."""
        with self._lock:
            now = self._load(connector)
            before = next((each for each in self._supervisor.configurations() if each.connector.name == connector), now)
            if now is None or before is None or now.but(notices=before.notices, warnings=before.warnings) == before:
                return before
            if not now.is_written_as(before):
                # Half of a process by another worker's file would not find the other half.
                text = "connector %s: its worker's file has changed: start the process anew"
                log.log(logging.WARNING if asked else logging.DEBUG, text, connector)
                return before
            log.info("connector %s: its references name something else now", connector)
            self._supervisor.orders = [
                replace(order, configuration=now, secrets=known()) if order.configuration == before else order
                for order in self._supervisor.orders
            ]
            return now
