"""The supervisor: starts worker processes, replaces those that end, and knows what all of them report.

In: how to start one, how many. Out: the exit status of `run`: 0 told to stop, 1 nothing left to read or a crash loop,
2 a worker found the configuration wrong. Worker processes are its only children.
"""

from __future__ import annotations

import json
import logging
import pickle
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from connector.worker.order import WorkerOrder
from connector.worker.status import nothing_left

log = logging.getLogger(__name__)

# As many ends of workers in a row, for one cause and without a commit between them, are a crash loop.
CRASH_LOOP = 5
RESTART_PAUSE = 0.5
STOP_SECONDS = 12.0
LOOK_SECONDS = 0.2


@dataclass(slots=True)
class Child:
    """One worker process and what it last said."""

    index: int
    process: subprocess.Popen[bytes]
    status: dict[str, Any] = field(default_factory=dict)
    waiting: dict[str, Any] | None = None
    cause: str = ""
    started: float = 0.0

    @property
    def pid(self) -> int:
        return self.process.pid


class Supervisor:
    """Owned by one thread; `status` may be read by others (the HTTP server)."""

    def __init__(self, command: Sequence[str], orders: Sequence[WorkerOrder]) -> None:
        self._command = list(command)
        self._orders = list(orders)
        self._reports: queue.SimpleQueue[tuple[Child, dict[str, Any]]] = queue.SimpleQueue()
        self.children: dict[int, Child] = {}
        self._due: dict[int, float] = {order.index: 0.0 for order in orders}
        self._commits = 0
        self._causes: list[str] = []
        self.restarts = 0
        self.waiting_for: str | None = "starting"

    def run(self, stop: threading.Event) -> int:
        """Until ``stop`` is set or there is a reason to end."""
        try:
            while not stop.is_set():
                self._start_due()
                self._take_reports()
                for child in list(self.children.values()):
                    code = child.process.poll()
                    if code is not None:
                        ended = self._ended(child, code)
                        if ended is not None:
                            return ended
                if self._nothing_left():
                    log.error("nothing is left to read: every table has failed")
                    return 1
            return 0
        finally:
            self._stop_all()

    def kill(self) -> None:
        """A second signal: nothing is waited for."""
        for child in list(self.children.values()):
            child.process.kill()

    # -- children --------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        for order in self._orders:
            due = self._due.get(order.index)
            if due is not None and due <= now:
                del self._due[order.index]
                self._start(order)

    def _start(self, order: WorkerOrder) -> None:
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child = Child(order.index, process, started=time.monotonic())
        self.children[order.index] = child
        assert process.stdin is not None
        try:
            pickle.dump(order, process.stdin)
            process.stdin.flush()
        except BrokenPipeError:
            log.warning("worker %d ended while it was being started", order.index)
        threading.Thread(target=self._listen, args=(child,), daemon=True, name=f"reports-{order.index}").start()
        log.info("worker %d started, pid %d", order.index, process.pid)

    def _listen(self, child: Child) -> None:
        assert child.process.stdout is not None
        for line in child.process.stdout:
            try:
                self._reports.put((child, json.loads(line)))
            except ValueError:
                log.debug("worker %d printed: %r", child.index, line)

    def _take_reports(self) -> None:
        until = time.monotonic() + LOOK_SECONDS
        while (left := until - time.monotonic()) > 0:
            try:
                child, report = self._reports.get(timeout=left)
            except queue.Empty:
                return
            self._take(child, report)

    def _take(self, child: Child, report: dict[str, Any]) -> None:
        kind = report.get("event")
        if kind == "status":
            self.waiting_for = None
            child.waiting = None
            commits = report["status"]["delivery"]["commits"]
            if commits > child.status.get("delivery", {}).get("commits", 0):
                self._commits += 1
                self._causes.clear()
            child.status = report["status"]
        elif kind == "waiting":
            child.waiting = report
            self.waiting_for = f"{report['doing']}: {report['error']}"
        elif kind == "end":
            child.cause = f"{report['cause']}: {report['error']}"
        elif kind == "configuration":
            child.cause = "configuration"

    def _ended(self, child: Child, code: int) -> int | None:
        """What an end means: another start (None), or the end of everything."""
        self._drain(child)
        del self.children[child.index]
        if child.process.stdin is not None:
            child.process.stdin.close()
        self.restarts += 1
        if code == 2:
            return 2
        if code < 0:
            log.warning("worker %d was ended by signal %d; replacing it", child.index, -code)
            self._due[child.index] = 0.0
            return None
        cause = child.cause or f"exit status {code}"
        log.error("worker %d ended: %s", child.index, cause)
        if self._causes and self._causes[-1] != cause:
            self._causes.clear()
        self._causes.append(cause)
        if len(self._causes) >= CRASH_LOOP:
            log.error("%d workers in a row ended for the same reason: %s", CRASH_LOOP, cause)
            return 1
        self._due[child.index] = time.monotonic() + RESTART_PAUSE * len(self._causes)
        return None

    def _drain(self, child: Child) -> None:
        """Reports that a dead worker left behind; its last words among them."""
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            try:
                origin, report = self._reports.get(timeout=0.05)
            except queue.Empty:
                return
            self._take(origin, report)

    def _nothing_left(self) -> bool:
        statuses = [child.status for child in self.children.values()]
        if not statuses or len(statuses) < len(self._orders) or not all(statuses):
            return False
        working = [status for status in statuses if status["slots"]]
        settled = not any(status["slots_pending"] for status in statuses)
        return settled and bool(working) and all(nothing_left(status) for status in working)

    def _stop_all(self) -> None:
        children = list(self.children.values())
        for child in children:
            child.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for child in children:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("worker %d did not stop in time", child.index)
                child.process.kill()
                child.process.wait()
            for pipe in (child.process.stdin, child.process.stdout):
                if pipe is not None:
                    pipe.close()

    # -- looking at it ---------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What all workers of this process say."""
        children = list(self.children.values())
        workers = [child.status for child in children if child.status]
        waiting = self.waiting_for
        return {
            "state": "WAITING" if waiting else _worst(workers),
            "waiting_for": waiting,
            "workers_wanted": len(self._orders),
            "workers_running": len(children),
            "restarts": self.restarts,
            "workers": workers,
        }


def _worst(workers: list[dict[str, Any]]) -> str:
    states = {worker["state"] for worker in workers}
    return next((state for state in ("FAILED", "WAITING", "RUNNING") if state in states), "WAITING")
