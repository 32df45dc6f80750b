"""The supervisor: starts worker processes, replaces those that end, and knows what all of them report.

In: how to start one, how many. Out: the exit status of `run`: 0 told to stop, 1 nothing left to read or a crash loop,
2 a worker found the configuration wrong. Worker processes are its only children.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from connector.config import Configuration
from connector.source import Purpose
from connector.worker.aging import with_lags
from connector.worker.child import Child, end_in_order, instruct, started, stop_all
from connector.worker.ended_workers import WELL_SECONDS
from connector.worker.initial_only import status_behind_snapshots
from connector.worker.instructions import LogLevel, ReadTables
from connector.worker.kept_topics import KEPT
from connector.worker.messages import (
    BlockedMessage,
    EndMessage,
    Message,
    RefusedMessage,
    SlotsMessage,
    StatusMessage,
    StreamsMessage,
    WaitingMessage,
)
from connector.worker.order import WorkerOrder
from connector.worker.service import SILENT_SECONDS, Service
from connector.worker.shared_state import SharedState
from connector.worker.slots import Noted
from connector.worker.state import State
from connector.worker.status_document import WorkerStatus
from connector.worker.tenants import Preparation, Tenant

log = logging.getLogger(__name__)

# Containers are killed ten seconds after they were asked to end.
STOP_SECONDS = 8.5
LOOK_SECONDS = 0.2

STARTING_SECONDS = 60.0
# Who ends in order says nothing more, and is cut off by itself after eight seconds.
ENDING_SECONDS = 15.0
# Of one that has ended, for what it said before: a report of thousands of tables takes a while to be read, longer where
# others want the processor. Who inherited its output may keep that open, and says nothing of why it has ended.
LAST_WORDS_SECONDS = 5.0
LAST_WORDS_LOOK_SECONDS = 0.02

REPORTS = Purpose(
    "reports",
    "no status report",
    "its streams may not be read; SIGUSR1 makes it log its stack traces",
    steady=True,
    grace=0.0,
)

SHARED = Purpose("shared state", "nobody hears what is asked of connectors", "a pause may not be obeyed", holds=False)


class Supervisor(Service):
    """Owned by one thread."""

    def __init__(
        self,
        command: Sequence[str],
        orders: Sequence[WorkerOrder],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        lasting: bool = False,
    ) -> None:
        """``lasting``: see `Service`; nor is it a reason to end if all connectors failed."""
        super().__init__(orders, monotonic, lasting=lasting)
        self._command = list(command)
        self._messages: queue.Queue[tuple[Child, Message]] = queue.Queue()
        #: What other threads want done in ours.
        self.requests: queue.Queue[Callable[[], None]] = queue.Queue()
        self.due: dict[int, float] = {order.index: 0.0 for order in orders}
        #: By connector, as marks or its first worker say; without it each worker asks.
        self.noted: dict[str, Noted] = {}
        #: The name of this start of each connector, if it is one.
        self.starts: dict[str, str | None] = {}
        #: What was found at the start of each connector, and needs a look.
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.shared: SharedState | None = None
        #: By connector: what other processes make of it by another configuration. Asked often.
        self.unlike: Callable[[], Mapping[str, str]] = dict
        #: By connector: which other process hears nothing, and runs it all the same. Asked often.
        self.hanging: Callable[[], Mapping[str, str]] = dict
        #: By workers that are there, or are to be started again: that their login is refused, and when they said so.
        self.refusals: dict[int, tuple[RefusedMessage, float]] = {}
        self._levels: dict[str, LogLevel] = {}
        #: By workers of connectors that are defined anew: who comes in their place.
        self._heirs: dict[int, int] = {}

    def prepare(self, configuration: Configuration, prepare: Callable[[], Preparation]) -> None:
        """Its workers are started when what is in front of them is done."""
        self.tenants[configuration.group].prepare(prepare)

    def run(self, stop: threading.Event) -> int:
        self.waiting_for = None
        try:
            while not stop.is_set():
                self._goes_on()
                while not self.requests.empty():
                    self.requests.get()()
                self._look_again()
                self._start_due()
                self._take_reports()
                self._goes_on()
                self._look_after()
                if (status := self._look_for_ends()) is not None:
                    return status
                if self._lasting:
                    continue
                if self.tenants and all(tenant.over is not None for tenant in self.tenants.values()):
                    return 2
                if (status := status_behind_snapshots(self.orders, self.children.values())) is not None:
                    return status
                if self._nothing_left():
                    log.error("all tables have failed: nothing left to read")
                    return 1
            return 0
        finally:
            stop_all(list(self.children.values()), STOP_SECONDS)

    def kill(self) -> None:
        """A second signal: nothing is waited for."""
        for child in self.children.values():
            child.process.kill()

    def _leftovers(self) -> list[Child]:
        numbers = self._numbers
        return [child for child in self.children.values() if child.index not in numbers]

    def end_leftovers(self) -> None:
        """Workers of connectors that are no more, or are another now."""
        for child in self._leftovers():
            end_in_order(child)
        for index in self._heirs.keys() - self.children.keys():
            self._bequeath(index)

    def succeed(self, workers: Sequence[int], others: Sequence[int]) -> None:
        """These come in the place of those, which go: their connector is defined anew."""
        heirs = dict(zip(workers, others, strict=False))
        self._heirs = {index: heirs.get(heir, heir) for index, heir in list(self._heirs.items())} | heirs

    def own_statuses(self) -> list[WorkerStatus]:
        """What the workers that run now said last."""
        return [child.status for child in self.children.values() if child.own and child.status is not None]

    def worker_names(self) -> list[str]:
        """Of those that run now, whether or not they have said anything yet."""
        return [child.name for child in self.children.values()]

    def tell_tables(self) -> None:
        """Workers whose orders name other tables than they were told; those that have not reported are told then."""
        for order in self.orders:
            child = self.children.get(order.index)
            if child is not None and child.own and child.configuration not in (None, order.configuration):
                instruct(child, ReadTables.of(order.configuration))
                child.configuration = order.configuration

    def tell_level(self, level: LogLevel) -> None:
        """All workers; those that have not reported yet are told when they do."""
        self._levels.pop(level.logger, None)
        self._levels[level.logger] = level
        for child in self.children.values():
            instruct(child, level)

    # -- children --------------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """What connectors were given up for may be mended by now."""
        for group, tenant in self.tenants.items():
            if tenant.over is None:
                continue
            workers = [index for index in self.workers_of(group) if index not in self.children]
            if workers and tenant.look_again():
                self.due |= dict.fromkeys(workers, 0.0)

    def _start_due(self) -> None:
        now, ending = time.monotonic(), {child.group for child in self._leftovers()}
        for order in self.orders:
            due = self.due.get(order.index)
            if due is None or due > now:
                continue
            tenant = self.tenants.get(order.configuration.group)
            if tenant is None:
                continue  # it was deleted a moment ago
            if order.configuration.group in ending:
                continue  # those of another configuration end first
            prepared = tenant.preparation
            if tenant.may_start():
                if prepared is not None and prepared.noted is not None:
                    self.noted[tenant.name] = prepared.noted
                del self.due[order.index]
                self._start(order)

    def _start(self, order: WorkerOrder) -> None:
        name = order.configuration.connector.name
        warnings = self.warnings.get(name, ())
        known = replace(order, noted=self.noted.get(name), start=self.starts.get(name), warnings=warnings)
        self._forget_refusal(order.index)
        child = started(self._command, known, self._messages.put, self._monotonic())
        if order.index in self._last:
            child.status, child.status_at = self._last[order.index]
        self.children = {**self.children, order.index: child}

    def _forget_refusal(self, index: int) -> None:
        self.refusals = {each: refusal for each, refusal in self.refusals.items() if each != index}

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
        for child in self.children.values():
            if child.renewed:
                self._cut_off(child)
            # Who is asked to end in the middle of its start has as long for that as any other.
            heard = (
                child.heard if child.ending_since in (None, math.inf) else max(child.heard, child.ending_since or 0.0)
            )
            silent = self._silence(heard)
            patience = ENDING_SECONDS if child.renewed else SILENT_SECONDS if child.own else STARTING_SECONDS
            if child.waiting is None and silent >= patience:
                silence = f"no report for more than {patience:.0f} s (pid {child.pid})"
                self.background.task(REPORTS, f"worker {child.index}").is_now(silence)
        self.elsewhere.look(self._silent())
        for topic, why in self.kept_topics.look(self.configurations()).items():
            self.background.task(KEPT, f"topic {topic}").is_now(why)
        unlike, hanging = self.unlike(), self.hanging()
        for tenant in self.tenants.values():
            tenant.unlike, tenant.unheard = unlike.get(tenant.name), hanging.get(tenant.name)
        if self.shared is not None:
            # Who has no right to it was told so, and runs what files say; without files there would be nothing to run.
            needless = self.shared.forbidden and not self._lasting
            self.background.task(SHARED).is_now(None if needless else self.shared.error)
        self.background.tick()

    def _cut_off(self, child: Child) -> None:
        """Who is stopped, or sits in the kernel, cannot end itself, and a restart is what people ask for then."""
        if child.ending_since is None:
            child.ending_since = self._monotonic()
        elif self._silence(child.ending_since) >= ENDING_SECONDS:
            log.warning("worker %d (pid %d) has not ended in %.0f s: killed", child.index, child.pid, ENDING_SECONDS)
            child.process.kill()
            child.ending_since = math.inf

    def _take(self, child: Child, message: Message) -> None:
        child.heard = self._monotonic()
        self.background.task(REPORTS, f"worker {child.index}").worked()
        match message:
            case StatusMessage(status=status):
                child.waiting = child.blocked = None
                if status.delivery.commits > (child.status.delivery.commits if child.status and child.own else 0):
                    if (tenant := self.tenants.get(child.group)) is not None:
                        tenant.forget_ends()
                    self.ended_workers.committed(child.index)
                if status.state is State.RUNNING and time.monotonic() - child.started >= WELL_SECONDS:
                    self.ended_workers.forget(child.index)  # it may own no slot, and commit nothing
                begins = not child.own
                child.status, child.status_at, child.own = with_lags(status, child.status), child.heard, True
                if begins:
                    for level in self._levels.values():
                        instruct(child, level)
                    self.tell_tables()
            case WaitingMessage():
                child.waiting = f"{message.doing}: {message.error}"
            case BlockedMessage():
                child.blocked = f"for {message.seconds:.0f} s: {message.cause}"
            case SlotsMessage():
                self.noted[message.connector] = Noted(message.slots)
            case RefusedMessage() if self.children.get(child.index) is not child:
                log.debug("worker %d (pid %d) has ended: %s", child.index, child.pid, message.cause)
            case RefusedMessage():
                self.refusals = {**self.refusals, child.index: (message, child.heard)}
            case StreamsMessage():
                child.streams = {**child.streams, message.table: message}
            case EndMessage():
                child.cause = message.cause
            case _:
                assert_never(message)

    def _look_for_ends(self) -> int | None:
        """Of workers; the status with which everything ends, if one of them says so."""
        for child in self.children.values():
            code = child.process.poll()
            if code is not None and (status := self._ended(child, code)) is not None:
                return status
        return None

    def _ended(self, child: Child, code: int) -> int | None:
        """What an end means: another start (None), or the end of everything."""
        self._drain(child)
        self._keep_topics(child)
        self.children = {index: each for index, each in self.children.items() if index != child.index}
        if child.status is not None:
            self._last[child.index] = (child.status, child.status_at)
        self.background.task(REPORTS, f"worker {child.index}").dismiss()
        child.say_no_more()
        tenant = self.tenants.get(child.group)
        if tenant is None or child.index not in self._numbers:
            self._forget_refusal(child.index)
            self.ended_workers.forget(child.index)
            self._bequeath(child.index)
            return None
        if child.renewed and code != 2:
            self.due[child.index] = 0.0
            return None
        tenant.restarts += 1
        if code == 2:
            if self._is_alone:
                return 2
            self._give_up(tenant, child.group, child.cause)
        if tenant.over is not None:
            return None
        brief = child.has_committed and time.monotonic() - child.started < WELL_SECONDS
        if code < 0:
            cause, pause = self.ended_workers.killed(child.index, -code, brief=brief)
            log.warning("worker %d was %s; restarting it%s", child.index, cause, f" in {pause:.1f} s" if pause else "")
            self.due[child.index] = time.monotonic() + pause
            return None
        cause = child.cause or (f"exit status {code}" if code else "in order, asked by somebody else")
        log.log(logging.ERROR if code else logging.INFO, "worker %d ended: %s", child.index, cause)
        in_a_row = tenant.ends.ended(cause)
        if tenant.ends.crashing is not None and self._is_alone:
            log.error("%d workers in a row ended for the same reason: %s", in_a_row, cause)
            return 1
        pause = self.ended_workers.ended(child.index, cause, brief=brief, in_a_row=in_a_row)
        self.due[child.index] = time.monotonic() + pause
        return None

    def _bequeath(self, index: int) -> None:
        """What a worker of a former definition said last stands until one of the new definition says something, which
        may be never."""
        heir, said = self._heirs.pop(index, None), self._last.pop(index, None)
        if said is not None and heir is not None and heir in self._numbers and heir not in self._last:
            status, at = said
            self._last[heir] = (status.model_copy(update={"index": heir}), at)

    def _keep_topics(self, child: Child) -> None:
        """Whoever takes its place knows nothing of them; of a connector that was deleted nothing is to be said."""
        name = child.connector
        if name is not None and child.own and child.status is not None and child.group in self.tenants:
            self.former_topics[name] = self.former_topics.get(name, frozenset()).union(child.status.topics)

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
        """Reports that a dead worker left behind; its last words among them, which say why."""
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        while time.monotonic() < deadline:
            said_all = child.is_heard_out
            try:
                origin, message = self._messages.get(timeout=0.0 if said_all else LAST_WORDS_LOOK_SECONDS)
            except queue.Empty:
                if said_all:
                    return
                continue
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
