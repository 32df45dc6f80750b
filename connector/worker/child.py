"""A worker process as its supervisor sees it: how it is started and stopped, and how its messages arrive.

In: an order; lines on the process's stdout. Out: a `Child`; each message, with whose it is.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from connector.config import Configuration
from connector.worker.instructions import Asked, LogLevel, TellStreams
from connector.worker.messages import Message, StreamsMessage, from_line
from connector.worker.order import WorkerOrder
from connector.worker.settings import identity
from connector.worker.status_document import WorkerStatus

log = logging.getLogger(__name__)


# Of questions to one that does not listen: nobody waits for the answers any more.
MOST_QUESTIONS = 100


@dataclass(slots=True)
class Child:
    """One worker process and what it last said."""

    index: int
    process: subprocess.Popen[bytes]
    #: Of its order: what ails one connector's workers says nothing of another's.
    group: str = ""
    #: What it is called wherever it reports.
    name: str = ""
    #: Of its order, or what it was told since.
    configuration: Configuration | None = None
    status: WorkerStatus | None = None
    waiting: str | None = None
    blocked: str | None = None
    cause: str = ""
    #: By table, as it told them last.
    streams: dict[str, StreamsMessage] = field(default_factory=dict)
    started: float = 0.0
    heard: float = 0.0
    # When ``status`` came: the last one of its predecessor, until it has one of its own.
    status_at: float = 0.0
    own: bool = False
    # Told to end by us: another one begins, when there is reason for it.
    renewed: bool = False
    #: Since when it is waited for then.
    ending_since: float | None = None
    #: What it is told, in order; None behind the last.
    words: queue.Queue[bytes | None] = field(default_factory=queue.Queue)
    #: Who hands on what it says: to its last word, however long ago it has ended.
    listener: threading.Thread | None = None

    @property
    def starting(self) -> bool:
        """What it said last is soon, or still, its predecessor's word."""
        return self.renewed or not self.own

    @property
    def connector(self) -> str | None:
        return None if self.configuration is None else self.configuration.connector.name

    @property
    def has_committed(self) -> bool:
        return self.own and self.status is not None and self.status.delivery.commits > 0

    def say_no_more(self) -> None:
        self.words.put(None)

    @property
    def is_heard_out(self) -> bool:
        """All that it ever said was handed on."""
        return self.listener is None or not self.listener.is_alive()

    @property
    def pid(self) -> int:
        return self.process.pid


def started(
    command: Sequence[str], order: WorkerOrder, put: Callable[[tuple[Child, Message]], None], now: float
) -> Child:
    """A new process with its order, listened to from now on."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ordered, who = order.configuration, identity(order.configuration, order.index)
    child = Child(
        order.index,
        process,
        ordered.group,
        name=who.client_id,
        configuration=ordered,
        started=time.monotonic(),
        heard=now,
    )
    child.words.put(pickle.dumps(replace(order, who=who)))
    threading.Thread(target=_tell, args=(child,), daemon=True, name=f"words for worker {order.index}").start()
    child.listener = threading.Thread(
        target=listen, args=(child, put), daemon=True, name=f"words of worker {order.index}"
    )
    child.listener.start()
    log.info("worker %d started, pid %d", order.index, process.pid)
    return child


def end_in_order(child: Child) -> None:
    """Its end is no failure."""
    log.info("worker %d: asked to end", child.index)
    child.renewed = True
    child.process.terminate()


def instruct(child: Child, instruction: Asked | LogLevel) -> None:
    """Only one that has reported: its order lies behind it. Returns at once, whether or not it listens."""
    if not child.own:
        return
    if isinstance(instruction, TellStreams) and child.words.qsize() >= MOST_QUESTIONS:
        log.debug("worker %d does not listen, and is not asked: %s", child.index, instruction)
        return
    child.words.put(instruction.line())


def signal_name(number: int) -> str:
    """What ended it, in a word that can be searched for."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return "of the system's own"


def _tell(child: Child) -> None:
    """A worker that is stopped, or hangs, reads nothing: whoever writes to it waits as long."""
    assert child.process.stdin is not None
    # Closed while it is still owed something, it complains of that once more.
    with contextlib.suppress(BrokenPipeError), child.process.stdin as told:
        while (words := child.words.get()) is not None:
            told.write(words)
            told.flush()


def stop_all(children: Sequence[Child], seconds: float) -> None:
    """In order, and by force what has not ended after that time."""
    for child in children:
        child.process.terminate()
    deadline = time.monotonic() + seconds
    late: list[Child] = []
    for child in children:
        try:
            code = child.process.wait(max(0.0, deadline - time.monotonic()))
            if code not in (0, -signal.SIGTERM):  # the signal itself ends one that has not begun
                # Mostly its own patience with a server: what it left open is ended by whoever takes its slots over.
                log.warning("worker %d did not stop in order: exit status %d", child.index, code)
        except subprocess.TimeoutExpired:
            log.warning("worker %d did not stop in time", child.index)
            late.append(child)
    # All of them before any is waited for.
    for child in late:
        child.process.kill()
    for child in late:
        child.process.wait()
    # What they say is closed by who listens to it: it may be in a read, which a close would wait for.
    for child in children:
        child.say_no_more()


def listen(child: Child, put: Callable[[tuple[Child, Message]], None]) -> None:
    """Until its output ends."""
    assert child.process.stdout is not None
    with child.process.stdout as lines:
        for line in lines:
            try:
                put((child, from_line(line)))
            except ValueError:
                log.warning("worker %d printed an invalid report: %r", child.index, line[:200])
