"""The supervisor: starts worker processes, replaces those that end, and knows what all of them report.

In: how to start one, how many. Out: the exit status of `run`: 0 told to stop, 1 nothing left to read or a crash loop,
2 a worker found the configuration wrong. Worker processes are its only children.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from connector.config import Configuration
from connector.source import Background, Purpose
from connector.worker.about import About
from connector.worker.aging import aged, with_lags
from connector.worker.child import Child, end_in_order, started, stop_all
from connector.worker.holding import Target, held_reason
from connector.worker.initial_only import only_snapshots_and_over
from connector.worker.messages import (
    BEGIN_ANEW,
    BlockedMessage,
    EndMessage,
    Message,
    SlotsMessage,
    StatusMessage,
    WaitingMessage,
)
from connector.worker.order import WorkerOrder
from connector.worker.shared_state import SharedState
from connector.worker.state import State
from connector.worker.status_document import ConnectorStatus, Liveness, RunningWorker, ServiceStatus, WorkerStatus
from connector.worker.tenants import Preparation, Tenant

log = logging.getLogger(__name__)

# As many ends of workers in a row, for one cause and without a commit between them, are a crash loop.
CRASH_LOOP = 5
RESTART_PAUSE = 0.5
LONGEST_RESTART_PAUSE = 60.0
# Containers are killed ten seconds after they were asked to end.
STOP_SECONDS = 8.8
LOOK_SECONDS = 0.2

# Workers report every second, also that they sit in a call; one that says nothing at all is stopped, or hangs.
SILENT_SECONDS = 6.0
STARTING_SECONDS = 60.0

# A round takes a fraction of a second, or some when workers are stopped.
ROUND_SECONDS = 30.0
# Before there are workers: one look at all servers, which may be slow to answer.
CHECK_SECONDS = 300.0

REPORTS = Purpose(
    "reports",
    "no status report",
    "its streams may not be read; SIGUSR1 makes it log its stack traces",
    steady=True,
    grace=0.0,
)

SHARED = Purpose("shared state", "nobody hears what is asked of connectors", "a pause may not be obeyed", holds=False)


class Supervisor:
    """Owned by one thread; `status` may be read by others (the HTTP server)."""

    def __init__(
        self,
        command: Sequence[str],
        orders: Sequence[WorkerOrder],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        lasting: bool = False,
    ) -> None:
        """``lasting``: connectors come and go, and having none, or only failed ones, is no reason to end."""
        self._lasting = lasting
        self._monotonic = monotonic
        self.background = Background(monotonic)
        self._command = list(command)
        #: Told by any thread, as are ``tenants``: both are replaced as a whole, never changed.
        self.orders = list(orders)
        self._about = About()
        self._messages: queue.SimpleQueue[tuple[Child, Message]] = queue.SimpleQueue()
        #: What other threads want done in ours.
        self.requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.children: dict[int, Child] = {}
        self.due: dict[int, float] = {order.index: 0.0 for order in orders}
        self.tenants = {order.configuration.group: Tenant(order.configuration.connector.name) for order in self.orders}
        #: By connector, as marks or its first worker say; without a number each worker asks.
        self.slots: dict[str, int] = {}
        self._last: dict[int, tuple[WorkerStatus, float]] = {}
        self._last_end: dict[int, str] = {}
        self.shared: SharedState | None = None
        # Before there is any worker: what the checks in front wait for.
        self.waiting_for = "starting"

    def held(self) -> dict[str, str]:
        """Connectors, by their groups, that were asked not to run, with what is to be said of that."""
        now = round(time.time() * 1000)
        return {
            group: held_reason(tenant.name, tenant.target, self._last_words(group), now)
            for group, tenant in list(self.tenants.items())
            if tenant.target is not Target.RUNNING and tenant.over is None
        }

    def _last_words(self, group: str) -> list[WorkerStatus]:
        running = {index: child.status for index, child in list(self.children.items()) if child.status is not None}
        last = {index: status for index, (status, _) in list(self._last.items())}
        return [status for index, status in (last | running).items() if index in self.workers_of(group)]

    @property
    def restarts(self) -> int:
        """Workers that ended, of all connectors."""
        return sum(tenant.restarts for tenant in self.tenants.values())

    def prepare(self, configuration: Configuration, prepare: Callable[[], Preparation]) -> None:
        """Its workers are started when what is in front of them is done."""
        self.tenants[configuration.group].prepare(prepare)

    @property
    def waiting_for(self) -> str | None:
        return self._waiting_for

    @waiting_for.setter
    def waiting_for(self, what: str | None) -> None:
        self._waiting_for, self._round = what, self._monotonic()

    def run(self, stop: threading.Event) -> int:
        self.waiting_for = None
        try:
            while not stop.is_set():
                self._round = self._monotonic()
                while not self.requests.empty():
                    self.requests.get()()
                self._start_due()
                self._take_reports()
                self._look_after()
                for child in list(self.children.values()):
                    code = child.process.poll()
                    if code is not None:
                        ended = self._ended(child, code)
                        if ended is not None:
                            return ended
                if self._lasting:
                    continue
                if self.tenants and all(tenant.over is not None for tenant in self.tenants.values()):
                    return 2
                if only_snapshots_and_over(self.orders, self.children.values()):
                    return 0
                if self._nothing_left():
                    log.error("all tables have failed: nothing left to read")
                    return 1
            return 0
        finally:
            stop_all(list(self.children.values()), STOP_SECONDS)

    def kill(self) -> None:
        """A second signal: nothing is waited for."""
        for child in list(self.children.values()):
            child.process.kill()

    @property
    def _numbers(self) -> set[int]:
        return {order.index for order in self.orders}

    def _leftovers(self) -> list[Child]:
        numbers = self._numbers
        return [child for child in list(self.children.values()) if child.index not in numbers]

    def end_leftovers(self) -> None:
        """Workers of connectors that are no more, or are another now."""
        for child in self._leftovers():
            end_in_order(child)

    # -- children --------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        for order in self.orders:
            due = self.due.get(order.index)
            if due is None or due > now:
                continue
            tenant = self.tenants.get(order.configuration.group)
            if tenant is None:
                continue  # it was deleted a moment ago
            if any(child.group == order.configuration.group for child in self._leftovers()):
                continue  # those of another configuration end first
            prepared = tenant.preparation
            if tenant.may_start():
                if prepared is not None and prepared.slots is not None:
                    self.slots[tenant.name] = prepared.slots
                del self.due[order.index]
                self._start(order)

    def _start(self, order: WorkerOrder) -> None:
        known = replace(order, slots=self.slots.get(order.configuration.connector.name))
        child = started(self._command, known, self._messages.put, self._monotonic())
        if order.index in self._last:
            child.status, child.status_at = self._last[order.index]
        self.children[order.index] = child

    def _take_reports(self) -> None:
        until = time.monotonic() + LOOK_SECONDS
        while (left := until - time.monotonic()) > 0:
            try:
                child, message = self._messages.get(timeout=left)
            except queue.Empty:
                return
            self._take(child, message)

    def _look_after(self) -> None:
        """A worker that says nothing hangs, or sits in a call that does not come back."""
        for child in list(self.children.values()):
            silent = self._monotonic() - child.heard
            patience = SILENT_SECONDS if child.own else STARTING_SECONDS
            if child.waiting is None and silent >= patience:
                silence = f"no report for more than {patience:.0f} s (pid {child.pid})"
                self.background.task(REPORTS, f"worker {child.index}").is_now(silence)
        if self.shared is not None:
            self.background.task(SHARED).is_now(self.shared.error)
        self.background.tick()

    def _take(self, child: Child, message: Message) -> None:
        child.heard = self._monotonic()
        self.background.task(REPORTS, f"worker {child.index}").worked()
        match message:
            case StatusMessage(status=status):
                child.waiting = child.blocked = None
                if status.delivery.commits > (child.status.delivery.commits if child.status and child.own else 0):
                    if child.group in self.tenants:
                        self.tenants[child.group].causes.clear()
                    self._last_end.pop(child.index, None)
                child.status, child.status_at, child.own = with_lags(status, child.status), child.heard, True
            case WaitingMessage():
                child.waiting = f"{message.doing}: {message.error}"
            case BlockedMessage():
                child.blocked = f"for {message.seconds:.0f} s: {message.cause}"
            case SlotsMessage():
                self.slots[message.connector] = message.slots
            case EndMessage():
                child.cause = message.cause
            case _:
                assert_never(message)

    def _ended(self, child: Child, code: int) -> int | None:
        """What an end means: another start (None), or the end of everything."""
        self._drain(child)
        del self.children[child.index]
        if child.status is not None:
            self._last[child.index] = (child.status, child.status_at)
        self.background.task(REPORTS, f"worker {child.index}").dismiss()
        child.say_no_more()
        if child.index not in self._numbers:
            self._last.pop(child.index, None)
            return None
        tenant = self.tenants[child.group]
        if code == BEGIN_ANEW or (child.renewed and code != 2):
            self.due[child.index] = 0.0
            return None
        tenant.restarts += 1
        if code == 2:
            if self._is_alone:
                return 2
            self._give_up(tenant, child.group, child.cause)
        if tenant.over is not None:
            return None
        if code < 0:
            log.warning("worker %d was killed by signal %d; restarting it", child.index, -code)
            self._last_end[child.index] = f"killed by signal {-code}"
            self.due[child.index] = 0.0
            return None
        cause = child.cause or f"exit status {code}"
        log.error("worker %d ended: %s", child.index, cause)
        self._last_end[child.index] = cause
        ends = tenant.ended(cause)
        if ends >= CRASH_LOOP and self._is_alone:
            log.error("%d workers in a row failed for the same reason: %s", CRASH_LOOP, cause)
            return 1
        self.due[child.index] = time.monotonic() + min(LONGEST_RESTART_PAUSE, RESTART_PAUSE * 2 ** min(ends - 1, 10))
        return None

    @property
    def _is_alone(self) -> bool:
        """With a single connector its end is ours; beside others it is no reason to end those."""
        return len(self.tenants) == 1 and not self._lasting

    def _give_up(self, tenant: Tenant, group: str, why: str) -> None:
        tenant.give_up(why)
        for child in self.children.values():
            if child.group == group:
                child.process.terminate()

    def _drain(self, child: Child) -> None:
        """Reports that a dead worker left behind; its last words among them."""
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            try:
                origin, message = self._messages.get(timeout=0.05)
            except queue.Empty:
                return
            self._take(origin, message)

    def _nothing_left(self) -> bool:
        going = {group for group, tenant in self.tenants.items() if tenant.over is None}
        return bool(going) and all(map(self._has_nothing_left, going))

    def _has_nothing_left(self, group: str) -> bool:
        orders = [order for order in self.orders if order.configuration.group == group]
        children = [child for child in self.children.values() if child.group == group]
        statuses = [child.status for child in children if child.status and child.own]
        if len(statuses) < len(orders) or any(status.slots_pending for status in statuses):
            return False
        working = [status for status in statuses if status.slots]
        return bool(working) and all(status.nothing_left for status in working)

    def workers_of(self, group: str) -> list[int]:
        """The numbers of a connector's workers."""
        return sorted(order.index for order in self.orders if order.configuration.group == group)

    # -- looking at it ---------------------------------------------------------------------------------------

    def configurations(self) -> list[Configuration]:
        """Of the connectors, in order."""
        return list({order.configuration.group: order.configuration for order in self.orders}.values())

    def liveness(self) -> Liveness:
        """Whether this process does its work; how its workers and servers are is no part of it."""
        age = max(0.0, self._monotonic() - self._round)
        patience = ROUND_SECONDS if self.waiting_for is None else CHECK_SECONDS
        return Liveness(alive=age < patience, last_round_age_seconds=round(age, 1))

    def status(self) -> ServiceStatus:
        """What all workers of this process say."""
        numbers = self._numbers
        children = [child for child in list(self.children.values()) if child.index in numbers]
        present = {child.index for child in children}
        # What a worker said last stands until its successor says something: no figure vanishes with a process.
        gone = [(index, *last) for index, last in list(self._last.items()) if index in numbers - present]
        held = {index: reason for group, reason in self.held().items() for index in self.workers_of(group)}
        workers = [
            aged(
                child.status,
                self._age(child.status_at),
                held.get(child.index) or self._trouble(child),
                starting=child.starting,
            )
            for child in children
            if child.status
        ]
        workers += [
            aged(status, self._age(at), held.get(index) or f"worker {index} is started again", starting=True)
            for index, status, at in gone
        ]
        workers.sort(key=lambda worker: worker.index)
        reasons = [self.waiting_for] if self.waiting_for else [*self._reasons(children)]
        idle = State.RUNNING if self._lasting and not self.tenants else State.WAITING
        state = max((worker.state for worker in workers), default=idle)
        if any(tenant.over is not None for tenant in self.tenants.values()):
            state = State.FAILED
        elif reasons and (self.waiting_for or state is State.RUNNING):
            state = State.WAITING
        own = [str(failing) for failing in self.background.failing()]
        theirs = [each.text for worker in workers for each in worker.background]
        return ServiceStatus(
            connector=",".join(tenant.name for tenant in self.tenants.values()),
            host=self._about.host,
            pid=self._about.pid,
            version=self._about.version,
            started_ms=self._about.started_ms,
            state=state,
            waiting_for="; ".join(dict.fromkeys(reasons)) or None,
            failing=tuple(dict.fromkeys(own + theirs)),
            workers_wanted=len(self.orders) - len(held),
            workers_running=len(children),
            restarts=self.restarts,
            workers=tuple(workers),
            connectors=dict(self._connectors(workers)),
        )

    def _reasons(self, children: list[Child]) -> Iterator[str]:
        """Why not all is running, worker by worker."""
        present = {child.index for child in children}
        held = self.held()
        ours = {group: tenant.reason() for group, tenant in self.tenants.items()} | held
        yield from (reason for reason in ours.values() if reason is not None)
        for order in self.orders:
            if order.index not in present and ours.get(order.configuration.group) is None:
                yield f"worker {order.index} is started again{self._why(order.index)}"
        for child in children:
            trouble = self._trouble(child)
            if child.group in held:
                continue
            if trouble is not None:
                yield trouble
            elif child.status is not None and child.status.waiting_for:
                yield child.status.waiting_for
        yield from (str(failing) for failing in self.background.failing())

    def _trouble(self, child: Child) -> str | None:
        """Why a worker's last status is not what it would say now."""
        if child.waiting is not None:
            return f"{child.waiting}{self._why(child.index)}"
        if child.blocked is not None:
            return f"worker {child.index} (pid {child.pid}) is blocked {child.blocked}"
        if not child.own:
            return f"worker {child.index} is starting{self._why(child.index)}"
        if self._monotonic() - child.status_at >= SILENT_SECONDS:
            return f"worker {child.index} (pid {child.pid}) has not reported for {SILENT_SECONDS:.0f} s or more"
        return None

    def _why(self, index: int) -> str:
        """The end before: a worker that is started again and again is shown as that."""
        last = self._last_end.get(index)
        if last is None:
            return ""
        ends = max((len(tenant.causes) for tenant in self.tenants.values()), default=0)
        repeated = f", {ends} ends in a row" if ends > 1 else ""
        return f" (it ended before: {last}{repeated})"

    def _age(self, at: float) -> float:
        return max(0.0, self._monotonic() - at)

    def _connectors(self, workers: Sequence[RunningWorker]) -> Iterator[tuple[str, ConnectorStatus]]:
        """Of each connector of the process, what is said of all together."""
        held = self.held()
        for group, tenant in self.tenants.items():
            orders = self.workers_of(group)
            running = {child.index for child in self.children.values() if child.group == group}
            states = [worker.state for worker in workers if worker.index in orders]
            state = max(states, default=State.WAITING)
            if self.waiting_for or len(states) < len(orders) or tenant.reason() is not None:
                state = max(state, State.WAITING)
            yield (
                tenant.name,
                ConnectorStatus(
                    state=State.FAILED if tenant.over is not None else State.STOPPED if group in held else state,
                    waiting_for=held.get(group) or tenant.reason() or self.waiting_for,
                    given_up=tenant.over,
                    target=tenant.target.value,
                    workers=tuple(orders),
                    workers_wanted=0 if group in held else len(orders),
                    workers_running=len(running),
                    restarts=tenant.restarts,
                ),
            )
