"""Restarts that somebody asks for: of a whole connector, of single workers, of what is FAILED alone.

In: the supervisor and, from any thread, wishes. Out: what it does in its next round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from connector.worker.child import Child, instruct
from connector.worker.instructions import Instruction
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
        """Each ends in order, and another process takes its place."""
        chosen = set(workers)
        self._supervisor.requests.put(lambda: self._each(chosen, _renew))

    def try_again(self, workers: Iterable[int]) -> None:
        """What is FAILED in them; what they read beside it goes on."""
        chosen = set(workers)
        self._supervisor.requests.put(lambda: self._each(chosen, lambda child: instruct(child, Instruction.TRY_AGAIN)))

    def _begin_anew(self, group: str) -> None:
        supervisor = self._supervisor
        tenant = supervisor.tenants[group]
        if tenant.over is None:
            return
        log.info("connector %s: asked to be started again", tenant.name)
        tenant.begin_anew()
        running = supervisor.children.keys()
        supervisor.due |= {index: 0.0 for index in supervisor.workers_of(group) if index not in running}

    def _each(self, workers: set[int], act: Callable[[Child], None]) -> None:
        for index in sorted(workers & self._supervisor.children.keys()):
            act(self._supervisor.children[index])


def _renew(child: Child) -> None:
    log.info("worker %d: asked to be restarted", child.index)
    child.renewed = True
    child.process.terminate()
