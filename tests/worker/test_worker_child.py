"""A worker process that reads nothing of what it is told keeps nobody who tells it."""

from __future__ import annotations

import queue
import sys
import threading
import zlib
from typing import Any

import pytest

from connector.worker import child as worker_child
from connector.worker.child import MOST_QUESTIONS, Child, instruct, started
from connector.worker.instructions import ReadTables, TellStreams
from connector.worker.messages import Message, from_line
from connector.worker.order import WorkerOrder
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded
from tests.servers.patience import patience, until

# More than a pipe holds.
TABLES = ",".join(f"shop.{'t' * 40}{number}" for number in range(2_000))
DEAF = "import threading; print('{}', flush=True); threading.Event().wait()"
LAST_WORDS = """
import json, sys
print(json.dumps({"event": "end", "cause": "FatalDeliveryError: no rights"}), flush=True)
sys.exit(1)
"""
HEEDFUL = """
import pickle, sys
tables = pickle.load(sys.stdin.buffer).configuration.connector.reading.tables
sys.exit(10 * len(tables) + sum(1 for _ in sys.stdin.buffer))
"""


def begun(program: str, tables: str = TABLES) -> Child:
    order = WorkerOrder(loaded({"scylla.table.names": tables}), 0)
    messages: queue.Queue[Any] = queue.Queue()
    children: list[Child] = []
    starts = threading.Thread(
        target=lambda: children.append(started([sys.executable, "-c", program], order, messages.put, 0.0)), daemon=True
    )
    starts.start()
    starts.join(60 * patience())
    assert children, "it waits for a worker that does not read"
    children[0].own = True
    return children[0]


def test_one_that_does_not_listen_is_told_without_waiting_and_not_without_end() -> None:
    child = begun(DEAF)
    try:
        for _ in range(10 * MOST_QUESTIONS):
            instruct(child, TellStreams("shop.orders"))
        assert MOST_QUESTIONS <= child.words.qsize() <= MOST_QUESTIONS + 1
        before = child.words.qsize()
        instruct(child, ReadTables((("shop", "orders"),), "shop.orders"))
        assert child.words.qsize() == before + 1, "what it is to do is never left out"
    finally:
        child.process.kill()
        child.say_no_more()
        child.process.wait()
    assert child.process.stdin is not None
    until(lambda: child.process.stdin.closed, what="nobody waits for it any more")  # type: ignore[union-attr]


def test_one_that_listens_is_told_all_and_ends_with_its_input() -> None:
    child = begun(HEEDFUL, "a.b,a.c,a.d")
    for _ in range(4):
        instruct(child, TellStreams("a.b"))
    child.say_no_more()
    assert child.process.wait(60 * patience()) == 34


class Messages(queue.Queue[Any]):
    """Knows when somebody has looked in vain."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = threading.Event()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        try:
            return super().get(block, timeout)
        except queue.Empty:
            self.looked.set()
            raise


def test_its_last_words_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of thousands of tables in front of them takes longer to be read than the process to be gone."""
    order, messages = WorkerOrder(loaded(), 0), Messages()

    def late(line: bytes) -> Message:
        assert messages.looked.wait(60 * patience())
        return from_line(line)

    monkeypatch.setattr(worker_child, "from_line", late)
    supervisor = Supervisor([sys.executable, "-c", LAST_WORDS], [order])
    supervisor._messages = messages
    supervisor._start(order)
    [child] = supervisor.children.values()
    assert child.process.wait(60 * patience()) == 1
    assert supervisor._ended(child, 1) is None
    assert child.cause == "FatalDeliveryError: no rights"


def test_what_it_is_called_is_known_before_it_says_anything() -> None:
    """Others tell by its reports whether a process that says nothing any more still runs it."""
    child = begun(
        "import pickle, sys, zlib; sys.exit(zlib.crc32(pickle.load(sys.stdin.buffer).who.client_id.encode()) % 251)"
    )
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)])
    supervisor.children = {0: child}
    child.say_no_more()
    assert child.process.wait(60 * patience()) == zlib.crc32(child.name.encode()) % 251
    assert supervisor.worker_names() == [child.name] and child.name.startswith(f"{loaded().client_name}-")
