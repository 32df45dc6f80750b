"""The service as Kafka Connect's API shows it: a connector is one of the configurations, a task one of its workers.

In: the supervisor's status and configurations. Out: a `Cluster` for `connector.rest`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Literal, Protocol

from connector.aside import aside
from connector.config import Configuration
from connector.delivery import KafkaClients, cluster_id
from connector.errors import CdcError, Problem, StillRunning
from connector.formats import step_options
from connector.rest import ConnectorView, LoggerLevel, Offset, StepOption, Steps
from connector.table_name import TableName
from connector.worker.connector_views import view_of, view_of_broken
from connector.worker.connectors import Connectors
from connector.worker.holding import Target
from connector.worker.log_levels import levels
from connector.worker.plausible_times import implausible
from connector.worker.positions import Positions, StoredPosition
from connector.worker.processes import Processes, as_known_here, tasks_of, together
from connector.worker.settings import kafka_clients
from connector.worker.shared_state import Event
from connector.worker.state import State
from connector.worker.status_document import ServiceStatus

# For workers to end that were told to; an answer must not take longer than clients wait.
END_SECONDS = 12.0
LOOK_SECONDS = 0.1
# For Kafka to say which one it is: probes ask for `/`, and give an answer a second.
CLUSTER_ID_SECONDS = 0.5

#: What is wrong with a connector's configuration beside the worker's file of this service.
Validate = Callable[[Mapping[str, str]], Sequence[Problem]]


class Service(Protocol):
    """The supervisor, as it is looked at here."""

    def status(self) -> ServiceStatus: ...

    def configurations(self) -> Sequence[Configuration]: ...

    def topics(self, connector: str) -> Sequence[str]: ...


class Wishes(Protocol):
    """Where what is to be done is said so that all processes hear it."""

    def wish(self, connector: str, target: Target) -> None: ...

    def define(self, connector: str, config: dict[str, str] | None) -> None: ...

    def tell(self, connector: str, event: Event, content: Mapping[str, Any]) -> None: ...


class Restarts(Protocol):
    """Who can restart what: connectors by their groups, workers by their numbers."""

    def begin_anew(self, group: str) -> None: ...

    def renew(self, workers: Iterable[int]) -> None: ...

    def try_again(self, workers: Iterable[int]) -> None: ...

    def forget_topics(self, connector: str) -> None: ...

    def log_level(self, logger: str, level: int) -> list[str]: ...


class ConnectCluster:
    """As one process knows it. ``worker_id``: host and port of its API, as Connect names workers, once it is served.
    ``processes``: all of the group, where each says what it runs; else this one answers for itself alone."""

    def __init__(
        self,
        service: Service,
        restarts: Restarts,
        wishes: Wishes,
        validate: Validate,
        worker: Configuration,
        *,
        defined: Connectors | None = None,
        renew: Callable[[str], object] = lambda connector: None,
        clients: KafkaClients | None = None,
    ) -> None:
        """``worker`` is of its worker file: its connector does not matter. ``defined``: those that came by the API.
        ``renew``: called with a connector before workers of it are started again. ``clients``: of this process."""
        self._renew = renew
        self._service, self._restarts, self._wishes, self._validate = service, restarts, wishes, validate
        self._clients, self._defined = clients or kafka_clients(worker), defined
        self.worker_id = ""
        self.processes: Processes | None = None
        self._cluster_id: str | None = None
        self._answer: Future[None] | None = None
        self._asking = threading.Lock()

    def cluster_id(self) -> str | None:
        """Asked until it is known; by one at a time, and those who look at a Kafka that is away do not wait for it."""
        with self._asking:
            if self._answer is None or (self._answer.done() and self._cluster_id is None):
                self._answer = aside(self._ask_for_cluster_id, "cluster id")
            answer = self._answer
        wait([answer], CLUSTER_ID_SECONDS)
        return self._cluster_id

    def _ask_for_cluster_id(self) -> None:
        self._cluster_id = cluster_id(self._clients)

    def connectors(self) -> Sequence[ConnectorView]:
        own = self.own()
        if self.processes is None:
            return own
        deleted = self._defined.just_deleted() if self._defined is not None else ()
        return as_known_here(together(self.processes.present()), own, deleted)

    def own(self) -> Sequence[ConnectorView]:
        """What runs in this process."""
        configurations, status = self._service.configurations(), self._service.status()
        broken = dict(self._defined.broken) if self._defined else {}
        known = [each for each in configurations if each.connector.name in status.connectors]
        views = {
            each.connector.name: view_of(each, status, self._service.topics(each.connector.name), self.worker_id)
            for each in known
        }
        for name, each in broken.items():
            views[name] = view_of_broken(each, self.given(name), views.get(name), self.worker_id)
        return list(views.values())

    def numbers(self, own: ConnectorView) -> list[int]:
        """Of this process's tasks, among those of all."""
        if self.processes is None:
            return [*range(len(own.tasks))]
        places = tasks_of(self.processes.present(), own.name)
        return [number for number, place in enumerate(places) if place.process == self.processes.id]

    def offsets(self, connector: str) -> Sequence[Offset]:
        configuration = self._configuration(connector)
        positions = None if configuration is None else Positions(configuration)
        if positions is None or not positions.exist():
            return ()
        return [_offset(each) for each in sorted(positions.stored(), key=_place)]

    def alter_offsets(self, connector: str, offsets: Sequence[Offset] | None) -> None:
        configuration = self._configuration(connector)
        if configuration is None:
            raise CdcError(f"connector {connector} cannot be loaded in this process: its tables are not known")
        starts = starts_of(configuration, offsets)
        _once_ended(partial(self._alter, connector, Positions(configuration), starts))

    def _alter(self, connector: str, positions: Positions, starts: Mapping[TableName, int | None]) -> None:
        status = self._service.status().connectors.get(connector)
        if status is not None and status.workers_running:
            raise StillRunning(f"connector {connector} is being stopped: its workers have not ended yet")
        positions.alter(starts)

    @property
    def writable(self) -> bool:
        return self._defined is not None

    def given(self, connector: str) -> Mapping[str, str]:
        return self._defined.given.get(connector, {}) if self._defined else {}

    def unheard(self, connector: str) -> str | None:
        return None if self.processes is None else self.processes.hanging().get(connector)

    def with_secrets(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        return self._defined.with_secrets(connector, config) if self._defined else dict(config)

    def define(self, connector: str, config: Mapping[str, str] | None) -> None:
        self._wishes.define(connector, None if config is None else dict(config))

    def direct(self, connector: str, target: Literal["RUNNING", "PAUSED", "STOPPED"]) -> None:
        self._wishes.wish(connector, Target(target))

    def restart(self, connector: str, *, itself: bool, tasks: Collection[int]) -> None:
        if self.processes is None:
            self._restart(connector, itself, tasks)
            return
        places = tasks_of(self.processes.present(), connector)
        chosen: dict[str, list[int]] = {}
        for task in sorted(tasks):
            if task < len(places):
                chosen.setdefault(places[task].process, []).append(places[task].number)
        # Here it is done in any case: others hear of it only where wishes can be written.
        self._restart(connector, itself, chosen.pop(self.processes.id, ()))
        if chosen or (itself and len(self.processes.present()) > 1):
            try:
                self._wishes.tell(connector, "restart", {"by": self.processes.id, "itself": itself, "tasks": chosen})
            except CdcError as error:
                told = "what this process runs of it is restarted, and others may not have heard that they should"
                raise CdcError(f"{told}: {error}") from None

    def forget_topics(self, connector: str) -> None:
        self._wishes.tell(connector, "forget topics", {})

    def levels(self) -> Mapping[str, LoggerLevel]:
        return {name: LoggerLevel(level, since) for name, (level, since) in levels().items()}

    def set_level(self, logger: str, level: int) -> Sequence[str]:
        return self._restarts.log_level(logger, level)

    def set_level_everywhere(self, logger: str, level: int) -> None:
        self._wishes.tell("", "log level", {"logger": logger, "level": level})

    def told(self, connector: str, event: Event, content: Mapping[str, Any]) -> None:
        """What was said to all processes, by this one or another."""
        mine = "" if self.processes is None else self.processes.id
        match event:
            case "restart" if content.get("by") != mine:
                self._restart(connector, bool(content.get("itself")), content.get("tasks", {}).get(mine, ()))
            case "forget topics":
                self._restarts.forget_topics(connector)
            case "log level":
                self._restarts.log_level(str(content["logger"]), int(content["level"]))

    def _restart(self, connector: str, itself: bool, tasks: Collection[int]) -> None:
        """Of this process, with the numbers that its tasks have here."""
        if self._defined is not None and itself:
            self._defined.load_again(connector)
        self._renew(connector)
        configuration, status = self._configuration(connector), self._service.status()
        if configuration is None:
            return
        if itself:
            self._restarts.begin_anew(configuration.group)
        found = status.connectors.get(connector)
        numbers = () if found is None else found.workers
        chosen = {numbers[task] for task in tasks if task < len(numbers)}
        failed = {worker.index for worker in status.workers if worker.state is State.FAILED} & chosen
        self._restarts.try_again(failed)
        self._restarts.renew(chosen - failed)

    def problems(self, config: Mapping[str, str]) -> Sequence[Problem]:
        return self._validate(config)

    def step_options(self, what: Steps, class_name: str) -> Sequence[StepOption]:
        return step_options(what, class_name)

    def _configuration(self, connector: str) -> Configuration | None:
        return next((each for each in self._service.configurations() if each.connector.name == connector), None)


def _once_ended(change: Callable[[], None]) -> None:
    """What asks for all workers to have ended, here and in other processes, soon after they were told to."""
    deadline = time.monotonic() + END_SECONDS
    while True:
        try:
            return change()
        except StillRunning:
            if time.monotonic() >= deadline:
                raise
            time.sleep(LOOK_SECONDS)


def starts_of(configuration: Configuration, offsets: Sequence[Offset] | None) -> dict[TableName, int | None]:
    """Where each table is to begin; positions are moved for whole tables."""
    tables = configuration.connector.reading.tables
    if offsets is None:
        return dict.fromkeys(tables)
    starts: dict[TableName, int | None] = {}
    for each in offsets:
        if each.partition.keys() != {"keyspace_name", "table_name"}:
            raise CdcError("Partition objects must have the keys 'keyspace_name' and 'table_name' and no others")
        table = TableName(str(each.partition["keyspace_name"]), str(each.partition["table_name"]))
        if table not in tables:
            raise CdcError(f"{table} is not a table of connector {configuration.connector.name}")
        start = None if each.offset is None else each.offset.get("read_to")
        is_time = isinstance(start, int) and not isinstance(start, bool)
        if each.offset is not None and (each.offset.keys() != {"read_to"} or not is_time):
            raise CdcError("Offset objects must be null or have the key 'read_to' alone, milliseconds since 1970")
        # 0 is the oldest change that the log has.
        if start and (why := implausible(start)) is not None:
            raise CdcError(f"'read_to' of {table}, {start}, is {why}")
        starts[table] = start
    return starts


def _place(each: StoredPosition) -> tuple[str, int, bytes]:
    return str(each.table), each.slot, each.stream or b""


def _offset(each: StoredPosition) -> Offset:
    """By the names of the offsets topic."""
    place = {"keyspace_name": each.table.keyspace, "table_name": each.table.name}
    if each.stream is None:
        return Offset({**place, "slot": each.slot}, {"read_to": each.read_to})
    after = each.detail.get("after")
    more = {} if after is None else {"after": str(after)}
    return Offset({**place, "stream_id": each.stream.hex()}, {"read_to": each.read_to, **more})
