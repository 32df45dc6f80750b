"""The connectors of a run without files: defined through the API, and the same in every process of the group.

In: definitions, as the config topic has them. Out: workers for each; those that cannot be loaded here, with the reason:
what ran before goes on, and they are tried again.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from connector.config import Configuration
from connector.errors import CdcError, ConfigurationError, Problem
from connector.pauses import doubled
from connector.secrets import MASK
from connector.worker.holding import Target
from connector.worker.order import WorkerOrder
from connector.worker.renewal import Renewal
from connector.worker.shared_state import SharedState
from connector.worker.supervisor import Supervisor
from connector.worker.tenants import Checks, Preparation, Tenant

log = logging.getLogger(__name__)

# Between attempts to write a definition.
PAUSE_SECONDS = 2.0
# Between attempts to load one: a store of secrets that is away for a moment must not cost more than that.
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
LOOK_SECONDS = 0.5
# Other processes have heard by then of what was deleted, or are gone. Who says still that he runs it does: by a file.
HEARD_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Broken:
    """A connector whose definition cannot be loaded in this process; others may have what it refers to."""

    name: str
    reason: str
    attempts: int = 1

    def pause(self) -> float:
        return doubled(FIRST_PAUSE, self.attempts, LONGEST_PAUSE)


@dataclass
class Connectors:
    """``load`` makes a configuration of properties, beside this process's worker file; ``order`` what a worker of it is
    told; ``count`` how many it is to have. ``forbids``: why tables must not be begun beside those that are read."""

    supervisor: Supervisor
    shared: SharedState
    load: Callable[[Mapping[str, str]], Configuration]
    count: Callable[[Configuration], int]
    order: Callable[[Configuration, int], WorkerOrder]
    checks: Checks
    forbids: Callable[[Configuration, Callable[[], bool]], Sequence[Problem]]
    stop: threading.Event
    #: As they were given, passwords and all.
    given: dict[str, dict[str, str]] = field(default_factory=dict)
    broken: dict[str, Broken] = field(default_factory=dict)
    #: Names that nobody has defined again, and when that was heard.
    deleted: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._one_at_a_time = threading.Lock()
        self._tries = False
        self.renewal = Renewal(self.supervisor, self._as_defined, self._one_at_a_time)

    def take(self, name: str, config: Mapping[str, str] | None) -> None:
        """A definition that was made, here or in another process; None: the connector is no more."""
        with self._one_at_a_time:
            self.broken.pop(name, None)
            if config is None:
                if self.given.pop(name, None) is not None:
                    log.info("connector %s: deleted", name)
                self.deleted[name] = time.monotonic()
                self._dismiss(self._group(name))
                self.supervisor.former_topics.pop(name, None)
            else:
                self.given[name] = dict(config)
                self.deleted.pop(name, None)
                self._begin(name, config)

    def define_first(self, definitions: Iterable[dict[str, str]], stop: threading.Event) -> None:
        """What files say of connectors that nobody has defined yet; what was defined by the API stays that."""
        for config in definitions:
            name = config["name"]
            self._forget_wishes(name)
            while name not in self.given and not stop.is_set():
                try:
                    self.shared.define(name, config)
                except CdcError as error:
                    self.supervisor.waiting_for = f"connector {name} cannot be defined: {error}"
                    log.warning("%s; trying again", self.supervisor.waiting_for)
                    stop.wait(PAUSE_SECONDS)

    def _forget_wishes(self, name: str) -> None:
        """Whoever deleted it may have been interrupted before he took away what it was to do."""
        if name in self.deleted and self.shared.target(name) is not Target.RUNNING:
            with contextlib.suppress(CdcError):
                self.shared.wish(name, Target.RUNNING)

    def just_deleted(self) -> set[str]:
        """Those that others may still run because they have not heard of it."""
        now = time.monotonic()
        return {name for name, since in list(self.deleted.items()) if now - since < HEARD_SECONDS}

    def load_again(self, name: str) -> None:
        """What a definition refers to may be there by now."""
        if name in self.broken:
            self.take(name, self.given[name])

    def _begin(self, name: str, config: Mapping[str, str]) -> None:
        try:
            configuration = self._loaded(name, config)
        except CdcError as error:
            log.error("connector %s: its definition cannot be used in this process: %s", name, error)
            self._set_aside(Broken(name, str(error)))
            return
        self._run(name, configuration)

    def _loaded(self, name: str, config: Mapping[str, str]) -> Configuration:
        """The API lets nothing else pass, but others may write to the topic."""
        configuration = self.load(config)
        if configuration.connector.name != name:
            raise ConfigurationError([Problem("name", f"it is defined as {name}", configuration.connector.name)])
        return configuration

    def _as_defined(self, name: str) -> Configuration | None:
        """Once more. Of a definition that cannot be used `load_again` takes care."""
        config = None if name in self.broken else self.given.get(name)
        return None if config is None else self._loaded(name, config)

    def _run(self, name: str, configuration: Configuration, attempts: int = 1) -> None:
        before = self._runs(configuration)
        if before is not None and (why := self._not_to_be_begun(before, configuration)):
            said = self.broken.get(name)
            if said is None or said.reason != why:
                log.error("connector %s: its new tables are not begun: %s", name, why)
            self._set_aside(Broken(name, why, attempts))
            return
        if before is not None and before.differs_in_tables_alone(configuration):
            self._read_on(configuration)
        else:
            orders = [self.order(configuration, next(self._numbers)) for _ in range(self.count(configuration))]
            tenant = Tenant(name, target=self.shared.target(name))
            checks = partial(self.renewal.checked, self.checks)
            tenant.prepare(partial(Preparation, configuration, self.stop, checks))
            self._admit(tenant, orders)
        # Behind that: who sees nothing broken sees the new one.
        if self.broken.pop(name, None) is not None:
            log.info("connector %s: its definition can be used now", name)

    def _set_aside(self, broken: Broken) -> None:
        """It is tried again. Meanwhile its workers go on by the definition before: of that nothing is wrong."""
        supervisor, group = self.supervisor, self._group(broken.name)
        self.broken[broken.name] = broken
        tenant = supervisor.tenants.get(group)
        if tenant is not None and tenant.over is None and supervisor.workers_of(group):
            tenant.unheeded = (
                f"connector {broken.name} goes on by its former definition: the new one cannot be used: {broken.reason}"
            )
        else:
            self._dismiss(group)
            supervisor.tenants = {**supervisor.tenants, group: Tenant(broken.name, over=broken.reason)}
        if not self._tries:
            self._tries = True
            threading.Thread(target=self._try_again, daemon=True, name="definitions").start()

    def _try_again(self) -> None:
        """Until none is broken any more."""
        due: dict[str, float] = {}
        while not self.stop.wait(LOOK_SECONDS):
            now = time.monotonic()
            for broken in list(self.broken.values()):
                if now < due.setdefault(broken.name, now + broken.pause()):
                    continue
                del due[broken.name]
                self._try(broken)
            with self._one_at_a_time:
                if not self.broken:
                    self._tries = False
                    return

    def _try(self, broken: Broken) -> None:
        config = self.given.get(broken.name)
        if config is None:
            return
        try:
            found: Configuration | CdcError = self._loaded(broken.name, config)
        except CdcError as error:
            found = error
        with self._one_at_a_time:
            if self.given.get(broken.name) != config or self.broken.get(broken.name) is not broken:
                return  # defined anew, deleted or tried meanwhile
            if isinstance(found, CdcError):
                self._set_aside(Broken(broken.name, str(found), broken.attempts + 1))
                return
            self._run(broken.name, found, broken.attempts + 1)

    def _admit(self, tenant: Tenant, orders: list[WorkerOrder]) -> None:
        """A connector with its workers, in place of what it was; who looks sees the one or the other."""
        supervisor, group = self.supervisor, self._group(tenant.name)
        supervisor.noted.pop(tenant.name, None)
        supervisor.succeed(supervisor.workers_of(group), [order.index for order in orders])
        supervisor.due |= {order.index: 0.0 for order in orders}
        supervisor.tenants = {**supervisor.tenants, group: tenant}
        supervisor.orders = [*self._others(group), *orders]
        supervisor.requests.put(supervisor.end_leftovers)

    def _runs(self, configuration: Configuration) -> Configuration | None:
        """What it was before, if its workers run."""
        tenant = self.supervisor.tenants.get(configuration.group)
        runs = tenant is not None and tenant.over is None and tenant.target is Target.RUNNING
        if tenant is None or not runs or tenant.preparation is not None:
            return None
        for before in self.supervisor.configurations():
            if before.group == configuration.group:
                return before
        return None

    def _not_to_be_begun(self, before: Configuration, configuration: Configuration) -> str:
        """Why none of the tables that come to it may be read: what stands in front of workers never looked at them, or
        would end those that run before it does."""
        if set(configuration.connector.reading.tables) <= set(before.connector.reading.tables):
            return ""
        try:
            return "; ".join(map(str, self.forbids(configuration, self.stop.is_set)))
        except CdcError as error:
            return f"it is not known yet whether they may be: {error}"

    def _read_on(self, configuration: Configuration) -> None:
        """By the same workers: of the tables that stay nothing is interrupted."""
        supervisor = self.supervisor
        tables = ", ".join(map(str, configuration.connector.reading.tables))
        log.info("connector %s: reads %s from now on", configuration.connector.name, tables)
        supervisor.orders = [
            replace(order, configuration=configuration) if order.configuration.group == configuration.group else order
            for order in supervisor.orders
        ]
        supervisor.tenants[configuration.group].unheeded = None
        supervisor.requests.put(supervisor.tell_tables)

    def _dismiss(self, group: str) -> None:
        supervisor = self.supervisor
        supervisor.orders = self._others(group)
        supervisor.tenants = {each: tenant for each, tenant in supervisor.tenants.items() if each != group}
        supervisor.requests.put(supervisor.end_leftovers)

    def _others(self, group: str) -> list[WorkerOrder]:
        return [order for order in self.supervisor.orders if order.configuration.group != group]

    def _group(self, name: str) -> str:
        return Configuration.group_of(self.shared.group_id, name)

    def with_secrets(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """Who sends back what was shown does not know the passwords: those are what they were."""
        known = self.given.get(name, {})
        return {each: known.get(each, text) if text == MASK else text for each, text in config.items()}
