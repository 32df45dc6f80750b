"""A connector on simulated servers: its processes run the product's own `run_worker`, and are started again at an end.

In: a world, a configuration, a seed. Out: the processes with their last words, and what stands in the topics.
"""

from __future__ import annotations

import contextlib
import gc
import http
import logging
import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from connector.config import Configuration, OutputConfig, load
from connector.native import Native, load_native
from connector.source import Connection
from connector.source.settings import ChunkSize, SnapshotSettings
from connector.table_name import TableName
from connector.topology import Action
from connector.worker import process as worker_process
from connector.worker.instructions import Asked, ReadTables
from connector.worker.messages import BlockedMessage, Message, StatusMessage, WaitingMessage
from connector.worker.signals import Signal
from connector.worker.state import State
from connector.worker.status_document import WorkerStatus
from tests.native.both_ways import kernel_if_built
from tests.simulation.kafka import clients_of
from tests.simulation.kafka_broker import Broker
from tests.simulation.kafka_log import Fate, Stored, Topic
from tests.simulation.registry import SimulatedRegistry
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.source_connection import Cluster, SimulatedConnection
from tests.simulation.source_world import World
from tests.simulation.virtual import Event, installed

NAME = "c"
OFFSETS = "offsets"
SCHEMAS = f"{NAME}.schemas"
DEAD_LETTERS = "dead"
SIGNALS = "signals"
RESTART_SECONDS = 0.5
FRESH_SECONDS = 5.0


def configuration(world: World, slots: int, connector: dict[str, str], worker: dict[str, str]) -> Configuration:
    tables = ",".join(str(table.name) for table in world.tables)
    config = {
        "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
        "scylla.cluster.ip.addresses": "10.0.0.1:9042",
        "scylla.table.names": tables,
        "topic.prefix": NAME,
        "scylla.confidence.window.size": str(world.confidence_ms),
        "scylla.query.time.window.size": "1000",
        "cdc.include.metadata": "true",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": DEAD_LETTERS,
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
        **connector,
    }
    given = {
        "bootstrap.servers": "simulated:9092",
        "group.id": "group",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.storage.topic": OFFSETS,
        "status.storage.topic": "status",
        "offset.storage.partitions": str(slots),
        "session.timeout.ms": "3000",
        **worker,
    }
    return load({"name": NAME, "config": config}, given, {})


@dataclass(eq=False)
class Worker:
    """One process of the service, and what it said last."""

    index: int
    process: Process
    stop: Any
    status: WorkerStatus | None = None
    said_at: float = 0.0
    ended: int | None = None
    waiting: WaitingMessage | None = None
    blocked: BlockedMessage | None = None
    #: What it said of each table, without what it said over and over.
    turns: dict[str, list[State]] = field(default_factory=dict)
    instructions: queue.Queue[Asked] = field(default_factory=queue.Queue)


@dataclass
class Service:
    """``wanted`` workers; whoever ends or is killed is started again, as by the supervisor.

    ``elsewhere`` is the same connector under another consumer group, by mistake: its ``strangers`` are started once.
    """

    scheduler: Scheduler
    broker: Broker
    cluster: Cluster
    configuration: Configuration
    elsewhere: Configuration
    wanted: int
    workers: dict[int, Worker] = field(default_factory=dict)
    started: int = 0
    ends: list[int] = field(default_factory=list)
    registry: SimulatedRegistry = field(kw_only=True)
    strangers: list[Worker] = field(default_factory=list)
    #: Nobody is started before that time.
    closed_until: float = 0.0
    #: Tables of which some worker said that rows may have expired unread.
    expired: set[str] = field(default_factory=set)
    #: Somebody has deleted the positions: all is delivered, some of it once more.
    positions_lost: bool = False

    def start(self) -> None:
        for index in range(self.wanted):
            self.start_worker(index)

    def start_worker(self, index: int) -> Worker:
        worker = self.workers[index] = self._spawned(index, self.configuration)
        return worker

    def read_tables(self, tables: Sequence[TableName]) -> None:
        """Another list of tables, as the supervisor takes it: those that run are told, those that come know it."""
        self.configuration = self.configuration.with_tables(tables, ",".join(map(str, tables)))
        for worker in self.living:
            worker.instructions.put(ReadTables.of(self.configuration))

    def signal(self, action: Action, *tables: TableName) -> None:
        """Somebody asks for something about snapshots; whoever does not live hears it later."""
        signal = Signal(f"{self.scheduler.now}", action, tuple(map(str, tables)))
        now = self.broker.time_ms
        record = Stored(NAME.encode(), signal.record(), (), now, None, Fate.NONE, now)
        self.broker.partition(SIGNALS, 0).append(record)

    def start_stranger(self) -> None:
        self.strangers.append(self._spawned(0, self.elsewhere))

    def end_strangers(self) -> None:
        for stranger in self.strangers:
            if stranger.ended is None:
                self.scheduler.kill(stranger.process)

    def _spawned(self, index: int, configuration: Configuration) -> Worker:
        self.started += 1
        worker = Worker(index, Process(f"worker {index}, {self.started}"), Event(self.scheduler))

        def report(said: Message) -> None:
            worker.said_at = self.scheduler.now
            if isinstance(said, StatusMessage):
                worker.status, worker.waiting, worker.blocked = said.status, None, None
                for name, table in said.status.tables.items():
                    if (turns := worker.turns.setdefault(name, []))[-1:] != [table.state]:
                        turns.append(table.state)
                self.expired |= {name for name, table in said.status.tables.items() if table.expired}
            elif isinstance(said, WaitingMessage):
                worker.waiting = said
            elif isinstance(said, BlockedMessage):
                worker.blocked = said

        def run() -> None:
            worker.ended = worker_process.run_worker(configuration, index, worker.stop, report, worker.instructions)
            self.ends.append(worker.ended)
            self.scheduler.kill_later(worker.process)
            self._restart_later(worker)

        self.scheduler.spawn(worker.process, run)
        return worker

    def kill(self, worker: Worker) -> None:
        self._restart_later(worker)
        self.scheduler.kill(worker.process)

    def close(self, seconds: float) -> None:
        """Everybody ends at once, and is started again after so long."""
        self.closed_until = max(self.closed_until, self.scheduler.now + seconds)
        for worker in list(self.living):
            self.kill(worker)

    def rest(self, seconds: float) -> None:
        """Everybody ends in good order, and is started again after so long at the earliest."""
        self.closed_until = max(self.closed_until, self.scheduler.now + seconds)
        for worker in list(self.living):
            self.stop_worker(worker)

    def stop_worker(self, worker: Worker) -> None:
        """In good order."""
        worker.stop.set()

    def _restart_later(self, worker: Worker) -> None:
        def again() -> None:
            if self.workers.get(worker.index) is worker and worker.index < self.wanted:
                self.start_worker(worker.index)

        self.scheduler.later(max(RESTART_SECONDS, self.closed_until - self.scheduler.now), again)

    @property
    def living(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if worker.process.alive and worker.ended is None]

    def troubles(self) -> list[str]:
        """What keeps the service from being RUNNING, by its own words."""
        found: list[str] = []
        for index in range(self.wanted):
            worker = self.workers[index]
            status = worker.status
            if not worker.process.alive or worker.ended is not None:
                found.append(f"worker {index} does not run")
            elif status is None:
                found.append(f"worker {index} is not ready: {worker.waiting}")
            elif self.scheduler.now - worker.said_at > FRESH_SECONDS:
                found.append(f"worker {index} has been silent since {worker.said_at:.1f}")
            elif worker.blocked is not None:
                found.append(f"worker {index} is blocked: {worker.blocked.cause}")
            elif status.state is not State.RUNNING:
                tables = ", ".join(f"{name} {table.state}" for name, table in status.tables.items())
                found.append(f"worker {index} is {status.state}: {status.waiting_for}; {tables}")
        return found

    def records(self, topic: str) -> list[tuple[int, Stored]]:
        """What a read_committed consumer gets, or got before its topic was deleted, with its partition."""
        partitions = [partition for found in self._named(topic) for partition in found.partitions]
        return [(partition.number, record) for partition in partitions for record in partition.committed()]

    def undecided(self, topic: str) -> list[Stored]:
        """What was deleted with a topic before it was seen there, if anybody was ever to see it."""
        partitions = [partition for found in self._named(topic)[:-1] for partition in found.partitions]
        seen = {id(record) for partition in partitions for record in partition.committed()}
        return [
            record
            for partition in partitions
            for record in partition.records
            if record is not None and id(record) not in seen
        ]

    def _named(self, topic: str) -> list[Topic]:
        """One after the other."""
        deleted = [each for each in self.broker.deleted if each.name == topic]
        there = self.broker.topics.get(topic)
        return deleted if there is None else [*deleted, there]

    def values(self, topic: str) -> list[tuple[int, bytes | None, dict[str, Any]]]:
        return [
            (number, record.key, self.registry.decoded(record.value))
            for number, record in self.records(topic)
            if record.value is not None
        ]


def _loaded_native(wanted: bool, _: OutputConfig) -> Native:
    """The real kernel, once for all processes; no block reaches a Kafka that is simulated."""
    return Native(kernel_if_built() if wanted else None)


@contextlib.contextmanager
def service(
    world: World,
    seed: int,
    *,
    workers: int,
    slots: int,
    connector: dict[str, str] | None = None,
    worker: dict[str, str] | None = None,
) -> Iterator[Service]:
    """A service that can be started; at the end nothing of it is left."""
    scheduler = Scheduler(seed)
    broker = Broker(scheduler)
    broker.create(SIGNALS)
    cluster = Cluster(scheduler, world)
    registry = SimulatedRegistry(scheduler)
    settings = configuration(world, slots, connector or {}, worker or {})
    elsewhere = configuration(world, slots, connector or {}, {**(worker or {}), "group.id": "another group"})
    quiet = logging.getLogger("connector")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL + 1)
    more = {
        **clients_of(broker),
        id(http): registry.client(),
        id(Connection): partial(SimulatedConnection, cluster),
        id(load_native): _loaded_native,
        # A chunk is a few rows here, so that tables have several, and partitions are larger than one.
        id(SnapshotSettings().chunk): ChunkSize(4, 1 << 20),
    }
    # What a killed process left is ended by the collector, whenever that runs: a seed would not be one run.
    collects = gc.isenabled()
    gc.disable()
    try:
        with installed(scheduler, more):
            try:
                yield Service(scheduler, broker, cluster, settings, elsewhere, workers, registry=registry)
            finally:
                scheduler.close()
    finally:
        quiet.setLevel(level)
        if collects:
            gc.enable()
