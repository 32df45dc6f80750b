"""What somebody asks of a running service: restarts of a connector, of workers, of what is FAILED alone; pauses.

In: the supervisor and, from any thread, wishes. Out: what it does in its next round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from connector.worker.child import Child, end_in_order, instruct
from connector.worker.holding import Target
from connector.worker.instructions import Instruction, LogLevel
from connector.worker.log_levels import set_level
from connector.worker.supervisor import Supervisor

log = logging.getLogger(__name__)


class Steering:
    """Of one supervisor. Connectors are named by their groups, workers by their numbers."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def begin_anew(self, group: str) -> None:
        """A connector that was given up."""
        self._supervisor.requests.put(lambda: self._begin_anew(group))

    def renew(self, workers: Iterable[int]) -> None:
        """Each ends in order, and another process takes its place; one that is started again later is at once."""
        self._supervisor.requests.put(partial(self._renew, set(workers)))

    def try_again(self, workers: Iterable[int]) -> None:
        """What is FAILED in them; what they read beside it goes on."""
        chosen = set(workers)
        self._supervisor.requests.put(lambda: self._each(chosen, lambda child: instruct(child, Instruction.TRY_AGAIN)))

    def forget_topics(self, connector: str) -> None:
        """Which topics it has written to; its workers go on."""
        self._supervisor.requests.put(partial(self._forget_topics, connector))

    def log_level(self, logger: str, level: int) -> list[str]:
        """Of this process, at once, and of its workers, also those to come; which loggers' levels it changes here."""
        log.info("logger %s: level %s, as asked", logger, logging.getLevelName(level))
        changed = set_level(logger, level)
        self._supervisor.requests.put(lambda: self._supervisor.tell_level(LogLevel(logger, level)))
        return changed

    def wish(self, connector: str, target: Target) -> None:
        """What was asked of a connector, ours or not, in this process or another."""
        for group, tenant in self._supervisor.tenants.items():
            if tenant.name == connector:
                # At once for those who look, soon for its workers.
                tenant.target = target
                self._supervisor.requests.put(partial(self._follow_wish, group))

    def _follow_wish(self, group: str) -> None:
        tenant, workers = self._supervisor.tenants.get(group), set(self._supervisor.workers_of(group))
        if tenant is None:
            return  # deleted since it was asked
        log.info("connector %s: asked to be %s", tenant.name, tenant.target.value)
        if tenant.target is not Target.RUNNING:
            self._each(workers, end_in_order)

    def _forget_topics(self, connector: str) -> None:
        self._supervisor.former_topics.pop(connector, None)
        mine = {index for index, child in self._supervisor.children.items() if child.connector == connector}
        self._each(mine, lambda child: instruct(child, Instruction.FORGET_TOPICS))

    def _begin_anew(self, group: str) -> None:
        supervisor = self._supervisor
        tenant = supervisor.tenants.get(group)
        if tenant is None or tenant.over is None:
            return  # deleted since it was asked, or begun by somebody else
        log.info("connector %s: asked to be started again", tenant.name)
        tenant.begin_anew()
        running = supervisor.children.keys()
        supervisor.due |= {index: 0.0 for index in supervisor.workers_of(group) if index not in running}

    def _renew(self, workers: set[int]) -> None:
        self._each(workers, end_in_order)
        self._supervisor.due |= dict.fromkeys(workers & self._supervisor.due.keys(), 0.0)

    def _each(self, workers: set[int], act: Callable[[Child], None]) -> None:
        for index in sorted(workers & self._supervisor.children.keys()):
            act(self._supervisor.children[index])
