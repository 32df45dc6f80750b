"""A service as it is seen: which connectors and workers it has, and what is to be said of all of them.

In: what a `Supervisor` notes of its workers and connectors. Out: the status of the service, whether its process lives,
why something does not run. Read by other threads (the HTTP server) as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

from connector.config import Configuration
from connector.source import Background
from connector.worker.about import About
from connector.worker.aging import aged, of_owners
from connector.worker.child import Child
from connector.worker.elsewhere import Elsewhere
from connector.worker.ended_workers import EndedWorkers
from connector.worker.holding import Target, held_reason
from connector.worker.kept_topics import KeptTopics
from connector.worker.order import WorkerOrder
from connector.worker.state import State
from connector.worker.status_document import ConnectorStatus, Liveness, RunningWorker, ServiceStatus, WorkerStatus
from connector.worker.tenants import Tenant

# Workers report every second, also that they sit in a call; one that says nothing at all is stopped, or hangs.
SILENT_SECONDS = 6.0

# A round takes a fraction of a second, or some when workers are stopped.
ROUND_SECONDS = 30.0
# Who took so long for a part of a round stood still, and could hear nobody: it is no silence of workers.
STOOD_STILL_SECONDS = SILENT_SECONDS / 2
# Before there are workers: one look at all servers, which may be slow to answer.
CHECK_SECONDS = 300.0


class Service:
    """What a `Supervisor` runs. ``lasting``: connectors come and go, and having none is no trouble."""

    def __init__(
        self, orders: Sequence[WorkerOrder], monotonic: Callable[[], float] = time.monotonic, *, lasting: bool = False
    ) -> None:
        self._lasting = lasting
        self._monotonic = monotonic
        self._about = About()
        self.background = Background(monotonic)
        self.elsewhere = Elsewhere(monotonic)
        self.kept_topics = KeptTopics(monotonic)
        #: What is told by any thread, as are ``tenants`` and ``children``: they are replaced as a whole, never changed.
        self.orders = list(orders)
        self.tenants = {order.configuration.group: Tenant(order.configuration.connector.name) for order in self.orders}
        self.children: dict[int, Child] = {}
        self._last: dict[int, tuple[WorkerStatus, float]] = {}
        self.ended_workers = EndedWorkers()
        #: By connector: topics that workers which have ended had written to.
        self.former_topics: dict[str, frozenset[str]] = {}
        self._listens_since = -math.inf
        # Before there is any worker: what the checks in front wait for.
        self.waiting_for = "starting"

    @property
    def waiting_for(self) -> str | None:
        return self._waiting_for

    @waiting_for.setter
    def waiting_for(self, what: str | None) -> None:
        self._waiting_for, self._round = what, self._monotonic()

    @property
    def orders(self) -> list[WorkerOrder]:
        return self._ordered[0]

    @orders.setter
    def orders(self, orders: list[WorkerOrder]) -> None:
        # Of each connector its workers are asked for over and over: there may be a thousand.
        numbers: dict[str, list[int]] = {}
        for order in orders:
            numbers.setdefault(order.configuration.group, []).append(order.index)
        self._ordered = orders, {group: tuple(sorted(its)) for group, its in numbers.items()}

    def workers_of(self, group: str) -> list[int]:
        """The numbers of a connector's workers."""
        return [*self._ordered[1].get(group, ())]

    def topics(self, connector: str) -> list[str]:
        """That records were written to, by its workers and those before them."""
        former = self.former_topics.get(connector, frozenset())
        mine = [child for child in self.children.values() if child.own and child.connector == connector]
        return sorted(former.union(*(child.status.topics for child in mine if child.status is not None)))

    def held(self) -> dict[str, str]:
        """Connectors, by their groups, that were asked not to run, with what is to be said of that."""
        now = round(time.time() * 1000)
        return {
            group: held_reason(tenant.name, tenant.target, self._last_words(group), now, tenant.unheard)
            for group, tenant in list(self.tenants.items())
            if tenant.target is not Target.RUNNING and tenant.over is None
        }

    def _last_words(self, group: str) -> list[WorkerStatus]:
        running = {index: child.status for index, child in self.children.items() if child.status is not None}
        last = {index: status for index, (status, _) in list(self._last.items())}
        return [status for index, status in (last | running).items() if index in self.workers_of(group)]

    def excused(self) -> frozenset[int]:
        """Workers that nobody misses for `/ready`, since no other process would do better: those of connectors that
        were given up, or wait for a server, and have run before. Where connectors come and go, of any: whoever mends
        one there has to get through to this process."""
        excused = {
            child.index
            for child in list(self.children.values())
            if child.waiting is not None and (self._lasting or child.index in self._last)
        }
        for group, tenant in list(self.tenants.items()):
            numbers = self.workers_of(group)
            # With files, what never ran may be what an update has broken: those before it do better.
            if (tenant.over is not None and not self._last.keys().isdisjoint(numbers)) or (
                self._lasting and (tenant.over is not None or tenant.reason() is not None)
            ):
                excused.update(numbers)
        return frozenset(excused.difference(*map(self.workers_of, self.held())) & self._numbers)

    @property
    def restarts(self) -> int:
        """Workers that ended, of all connectors."""
        return sum(tenant.restarts for tenant in self.tenants.values())

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
        children = [child for child in self.children.values() if child.index in numbers]
        present = {child.index for child in children}
        # What a worker said last stands until its successor says something: no figure vanishes with a process.
        gone = [(index, *last) for index, last in list(self._last.items()) if index in numbers - present]
        held = {index: reason for group, reason in self.held().items() for index in self.workers_of(group)}
        ailing = {
            index: tenant.reason()
            for group, tenant in self.tenants.items()
            if tenant.over is not None
            for index in self.workers_of(group)
        } | held
        workers = [
            aged(
                child.status,
                self._age(child.status_at),
                ailing.get(child.index) or self._trouble(child),
                starting=child.starting,
            )
            for child in children
            if child.status
        ]
        workers += [
            aged(
                status,
                self._age(at),
                ailing.get(index) or f"worker {index} is started again",
                starting=True,
                rests=ailing.get(index) is not None,
            )
            for index, status, at in gone
        ]
        workers = self._with_owners_places(workers)
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

    def _with_owners_places(self, workers: Sequence[RunningWorker]) -> list[RunningWorker]:
        """Also where another process has come to read what ours read."""
        others = self.elsewhere.others({worker.worker for worker in workers})
        ages: dict[int, float] = {id(worker): age for worker, age in others}
        ages |= {id(worker): worker.last_report_age_seconds for worker in workers}
        said: list[WorkerStatus] = [*workers, *(worker for worker, _ in others)]
        shown = of_owners(said, lambda worker: ages[id(worker)])
        return [worker for worker in shown if isinstance(worker, RunningWorker)]

    def _silent(self) -> list[Configuration]:
        """Connectors of which a worker that runs, or should, has said nothing for a while."""
        said = {index: at for index, (_, at) in list(self._last.items())}
        said |= {child.index: child.status_at for child in self.children.values() if child.status is not None}
        old = {index for index, at in said.items() if self._age(at) >= SILENT_SECONDS}
        held = self.held()
        silent = [each.configuration for each in self.orders if each.index in old]
        return list({each.group: each for each in silent if each.group not in held}.values())

    def _reasons(self, children: list[Child]) -> Iterator[str]:
        """Why not all is running, worker by worker."""
        present = {child.index for child in children}
        held = self.held()
        ours = {group: tenant.reason() for group, tenant in self.tenants.items()} | held
        yield from (reason for reason in ours.values() if reason is not None)
        yield from (tenant.remark for tenant in self.tenants.values() if tenant.remark is not None)
        for order in self.orders:
            if order.index not in present and ours.get(order.configuration.group) is None:
                again = " again" if order.index in self._last or self.ended_workers.last(order.index) else ""
                yield f"worker {order.index} is started{again}{self.ended_workers.in_words(order.index)}"
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
            return f"{child.waiting}{self.ended_workers.in_words(child.index)}"
        if child.blocked is not None:
            return f"worker {child.index} (pid {child.pid}) is blocked {child.blocked}"
        if not child.own:
            return f"worker {child.index} is starting{self.ended_workers.in_words(child.index)}"
        if child.renewed:
            return f"worker {child.index} (pid {child.pid}) is ending in order, and begins again"
        if self._silence(child.status_at) >= SILENT_SECONDS:
            return f"worker {child.index} (pid {child.pid}) has not reported for {SILENT_SECONDS:.0f} s or more"
        return None

    def _goes_on(self) -> None:
        """Called again and again, within rounds as well."""
        now = self._monotonic()
        if now - self._round >= STOOD_STILL_SECONDS:
            self._listens_since = now
        self._round = now

    def _silence(self, at: float) -> float:
        """Of one that was heard then last: as long as somebody listened."""
        return self._monotonic() - max(at, self._listens_since)

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
            if self.waiting_for or len(states) < len(orders) or tenant.reason() or tenant.remark:
                state = max(state, State.WAITING)
            yield (
                tenant.name,
                ConnectorStatus(
                    state=State.FAILED if tenant.over is not None else State.STOPPED if group in held else state,
                    waiting_for=held.get(group) or tenant.reason() or tenant.remark or self.waiting_for,
                    given_up=tenant.over,
                    crashing=tenant.ends.crashing,
                    crashing_workers={index: why for index, why in self.ended_workers.crashing() if index in orders},
                    login_refused=tenant.refused,
                    logins_renewed=tenant.renewed_logins,
                    target=tenant.target.value,
                    workers=tuple(orders),
                    workers_wanted=0 if group in held else len(orders),
                    workers_running=len(running),
                    restarts=tenant.restarts,
                ),
            )

    @property
    def _numbers(self) -> set[int]:
        return {order.index for order in self.orders}
