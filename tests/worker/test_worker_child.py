"""A worker process that reads nothing of what it is told keeps nobody who tells it."""

from __future__ import annotations

import queue
import sys
import threading
import zlib
from typing import Any

from connector.worker.child import MOST_QUESTIONS, Child, instruct, started
from connector.worker.instructions import ReadTables, TellStreams
from connector.worker.order import WorkerOrder
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded
from tests.servers.patience import patience, until

# More than a pipe holds.
TABLES = ",".join(f"shop.{'t' * 40}{number}" for number in range(2_000))
DEAF = "import threading; print('{}', flush=True); threading.Event().wait()"
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
