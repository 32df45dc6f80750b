"""Workers whose login is refused begin anew once what they log in with has changed: nobody needs to ask for it.

In: what workers say of refusals, and what loads their connector once more. Out: those of them that logged in with
something else are asked to end, and started with what is there by then. While it is the same nothing is done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from connector.config import login_digest
from connector.errors import CdcError
from connector.pauses import Attempts
from connector.worker.holding import Target
from connector.worker.now_and_then import NowAndThen
from connector.worker.refused_logins import FIRST_PAUSE, OVER_SECONDS, login_attempts
from connector.worker.renewal import Renewal
from connector.worker.steering import Steering
from connector.worker.supervisor import Supervisor
from connector.worker.tenants import Tenant

log = logging.getLogger(__name__)

# Workers say it every other second.
HEARD_SECONDS = 10.0
# Between two starts for it, the longest: a store that makes another login for whoever asks always has a new one.
LONGEST_REST = 900.0


@dataclass(slots=True)
class _Connector:
    looks: Attempts = field(default_factory=login_attempts)
    starts: Attempts = field(default_factory=lambda: Attempts(FIRST_PAUSE, LONGEST_REST, over=2 * OVER_SECONDS))
    #: Why it is not looked at, as it was told.
    told: str | None = None


class Relogin:
    """Of the connectors of one service."""

    def __init__(
        self,
        supervisor: Supervisor,
        renewal: Renewal,
        steering: Steering,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._supervisor, self._renewal, self._steering, self._monotonic = supervisor, renewal, steering, monotonic
        self._connectors: dict[str, _Connector] = {}
        self._thread = NowAndThen(self.look, "logins", "what workers log in with")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def look(self) -> None:
        """Now and then, in one thread."""
        for group, tenant in list(self._supervisor.tenants.items()):
            refused = self._refused(group)
            tenant.refused = "; ".join(dict.fromkeys(cause for cause, _ in refused.values())) or None
            if refused and tenant.target is Target.RUNNING and tenant.over is None:
                self._look_at(tenant, {index: login for index, (_, login) in refused.items()})
        names = {tenant.name for tenant in list(self._supervisor.tenants.values())}
        self._connectors = {name: each for name, each in self._connectors.items() if name in names}

    def _refused(self, group: str) -> dict[int, tuple[str, str]]:
        """Workers that say so now, or said it last and have ended: what they were told, and their logins."""
        children, refusals, now = self._supervisor.children, self._supervisor.refusals, self._monotonic()
        found = {}
        for index in self._supervisor.workers_of(group):
            child = children.get(index)
            if index in refusals and (child is None or not child.renewed):
                said, at = refusals[index]
                if child is None or now - at < HEARD_SECONDS:
                    found[index] = (said.cause, said.login)
        return found

    def _look_at(self, tenant: Tenant, logins: dict[int, str]) -> None:
        now, known = self._monotonic(), self._connectors.setdefault(tenant.name, _Connector())
        if not known.looks.is_due(now):
            return
        try:
            configuration = self._renewal.renewed(tenant.name, asked=False)
        except CdcError as error:
            if known.told != str(error):
                text = "connector %s: its login is refused, and what it logs in with cannot be read: %s"
                log.warning(text, tenant.name, error)
            known.told = str(error)
            return
        known.told = None
        login = None if configuration is None else login_digest(configuration)
        others = [index for index, before in logins.items() if login not in (None, before)]
        if not others or not known.starts.is_due(now):
            return
        tenant.renewed_logins += len(others)
        names = ", ".join(map(str, others))
        text = (
            "connector %s: its login is refused (%s), and what it logs in with is another now: started anew: worker %s"
        )
        log.warning(text, tenant.name, tenant.refused, names)
        self._steering.renew(others)
