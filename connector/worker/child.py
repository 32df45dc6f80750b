"""A worker process as its supervisor sees it, and how its messages arrive.

In: lines on the process's stdout. Out: each message, with whose it is.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from connector.worker.messages import Message, from_line
from connector.worker.status_document import WorkerStatus

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Child:
    """One worker process and what it last said."""

    index: int
    process: subprocess.Popen[bytes]
    #: Of its order: what ails one connector's workers says nothing of another's.
    group: str = ""
    status: WorkerStatus | None = None
    waiting: str | None = None
    blocked: str | None = None
    cause: str = ""
    started: float = 0.0
    heard: float = 0.0
    # When ``status`` came: the last one of its predecessor, until it has one of its own.
    status_at: float = 0.0
    own: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid


def listen(child: Child, put: Callable[[tuple[Child, Message]], None]) -> None:
    """Until its output ends."""
    assert child.process.stdout is not None
    with child.process.stdout as lines:
        for line in lines:
            try:
                put((child, from_line(line)))
            except ValueError:
                log.warning("worker %d printed an invalid report: %r", child.index, line[:200])
