"""What can go wrong while a connector works, as things that a soak lets happen: each of them mends what it broke.

In: a running connector and its servers. Out: `Mishap`s by kind, chosen by weight from a seed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cassandra.cluster import Session
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, TopicMetadata

from embedded.kafka import EmbeddedKafka
from embedded.kafka_cluster import EmbeddedKafkaCluster
from embedded.scylla.admin_client import AdminClient as ScyllaAdmin
from tests.servers.double import Double
from tests.servers.patience import let_pass
from tests.servers.scylla import Scylla, stream_set
from tests.soak.reassignment import Reassignment
from tests.worker.harness import Service, logged, until


@dataclass(frozen=True)
class Mishap:
    """``happen`` says what it did, in a few words; nothing, if there was nothing to do it to."""

    weight: int
    happen: Callable[[], str]


class Chaos:
    """Chooses. The same seed and the same kinds make the same sequence."""

    def __init__(self, draw: random.Random, mishaps: Sequence[Mishap]) -> None:
        self._random = draw
        self._mishaps = mishaps
        self.happened: list[str] = []

    def step(self) -> None:
        mishap = self._random.choices(self._mishaps, [each.weight for each in self._mishaps])[0]
        self.happened.append(mishap.happen())

    def go_on(self, about: str, going_on: Callable[[], bool], pauses: tuple[float, float] = (0.5, 4)) -> None:
        """One mishap after the other, each told when it is over; ``pauses``: the shortest and longest in between."""
        while going_on():
            let_pass(self._random.uniform(*pauses))
            self.step()
            print(f"{time.strftime('%H:%M:%S')} {about}: {self.happened[-1]}", flush=True)


def until_then(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds, from now on, are not over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


class Workers:
    """Processes are killed, paused, joined by others and replaced."""

    def __init__(self, service: Service, draw: random.Random, pause_seconds: float = 5.0) -> None:
        self._service = service
        self._random = draw
        self._pause_seconds = pause_seconds
        self.mishaps = [
            Mishap(4, self.kill_worker),
            Mishap(2, self.kill_supervisor),
            Mishap(2, self.pause_worker),
            Mishap(1, self.second_container),
        ]

    def kill_worker(self) -> str:
        workers = self._service.workers()
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(workers), signal.SIGKILL)
        return "kill worker"

    def kill_supervisor(self) -> str:
        run = self._service.runs.pop(0)
        run.kill()
        run.wait()
        self._service.start()
        return "kill supervisor"

    def pause_worker(self) -> str:
        """Long enough to be thrown out of the group; then it comes back as a zombie."""
        workers = self._service.workers()
        if workers:
            pid = self._random.choice(workers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                let_pass(self._pause_seconds)
                os.kill(pid, signal.SIGCONT)
        return "pause worker"

    def second_container(self) -> str:
        run = self._service.start("--tasks", "1")
        until(lambda: self._service.workers(run), 60, "a second container's worker")
        let_pass(self._random.uniform(1, 6))
        assert self._service.stop(run) == 0
        return "second container"


class OneBroker:
    """The only broker is killed and comes back."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._kafka = kafka
        self.mishaps = [Mishap(1, self.restart_broker)]

    def restart_broker(self) -> str:
        self._kafka.kill()
        self._kafka.restart()
        return "restart broker"


class Brokers:
    """Brokers of a cluster go and come back one at a time; leaders and coordinators move."""

    def __init__(
        self,
        cluster: EmbeddedKafkaCluster,
        reassignment: Reassignment,
        draw: random.Random,
        pause_seconds: float = 15.0,
    ) -> None:
        self._cluster = cluster
        self._reassignment = reassignment
        self._random = draw
        self._pause_seconds = pause_seconds
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self.mishaps = [
            Mishap(3, self.kill_broker),
            Mishap(1, self.restart_broker),
            Mishap(2, self.pause_broker),
            Mishap(3, self.move_leaders),
            Mishap(2, self.reassign),
        ]

    def kill_broker(self) -> str:
        """Down long enough that its leaders and coordinators move, then back."""
        broker = self._random.choice(self._cluster.brokers)
        number = self._cluster.brokers.index(broker) + 1
        broker.kill()
        let_pass(self._random.choice([0.0, 4.0, 8.0]))
        self._cluster.start()
        self._settle()
        return f"kill broker {number}"

    def restart_broker(self) -> str:
        """In good order: leaders are handed over before it goes."""
        broker = self._random.choice(self._cluster.brokers)
        broker.restart()
        self._settle()
        return f"restart broker {self._cluster.brokers.index(broker) + 1}"

    def pause_broker(self) -> str:
        broker = self._random.choice(self._cluster.brokers)
        broker.pause()
        let_pass(self._pause_seconds)
        broker.resume()
        self._settle()
        return f"pause broker {self._cluster.brokers.index(broker) + 1}"

    def move_leaders(self) -> str:
        """Preferred leaders lead again, of all topics, Kafka's own included."""
        self._reassignment.elect()
        return "preferred leaders"

    def reassign(self) -> str:
        """Every partition goes to all brokers but one, then to all in another order; whoever comes first leads."""
        nodes = list(range(1, len(self._cluster.brokers) + 1))
        places = [(name, number) for name, topic in self._topics().items() for number in topic.partitions]
        for count in (max(1, len(nodes) - 1), len(nodes)):
            wanted = {place: self._random.sample(nodes, count) for place in places}
            if self._reassignment.move(wanted):
                self._settle(wanted)
                self.move_leaders()
        return "reassign"

    def _topics(self) -> Mapping[str, TopicMetadata]:
        try:
            topics: Mapping[str, TopicMetadata] = self._admin.list_topics(timeout=5).topics
        except KafkaException:
            return {}
        return topics

    def _settle(self, wanted: Mapping[tuple[str, int], Sequence[int]] | None = None) -> None:
        """Until every partition has all of its replicas (those that are ``wanted``): the next mishap must not take the
        last one."""

        def all_in_sync() -> bool:
            partitions = {
                (name, number): each
                for name, topic in self._topics().items()
                for number, each in topic.partitions.items()
            }
            return bool(partitions) and all(
                each.leader >= 0
                and len(each.isrs) == len(each.replicas)
                and (not wanted or place not in wanted or set(each.replicas) == set(wanted[place]))
                for place, each in partitions.items()
            )

        until(all_in_sync, 120, "replicas in sync")


class Streams:
    """Other streams: new generations, splits, merges, and on the double changes that keep some of them."""

    def __init__(self, scylla: Scylla, session: Session, draw: random.Random, tablets: str | None) -> None:
        self._scylla = scylla
        self._session = session
        self._random = draw
        self._tablets = tablets
        self._fewest: int | None = None
        self.of_every_server: list[Mishap] = []
        if scylla.able("generation"):
            self.of_every_server.append(Mishap(2, self.new_generation))
        if tablets is not None and scylla.able("split"):
            self.of_every_server.append(Mishap(2, self.resize_tablets))
        self.mishaps = list(self.of_every_server)
        if isinstance(scylla, Double):
            self.mishaps += [Mishap(2, self.change_some_tablets), Mishap(1, self.join_and_leave)]

    def new_generation(self) -> str:
        self._scylla.new_generation()
        return "new generation"

    def resize_tablets(self) -> str:
        """A real server has more of them from the beginning, and splits or merges when it gets to it."""
        if self._fewest is None:
            assert self._tablets is not None
            self._fewest = 1 if isinstance(self._scylla, Double) else stream_set(self._session, self._tablets)[1]
        count = self._fewest * self._random.choice([1, 2, 4, 8])
        self._session.execute(f"ALTER TABLE {self._tablets} WITH tablets = {{'min_tablet_count': {count}}}")
        return f"{count} tablets"

    def change_some_tablets(self) -> str:
        assert self._tablets is not None
        self._admin.change_streams(self._tablets, random=self._random.randrange(1 << 30))
        return "some other tablets"

    def join_and_leave(self) -> str:
        joined = self._admin.add_node()
        let_pass(self._random.uniform(0.2, 3))
        self._admin.remove_node(joined["node"])
        return "node joins and leaves"

    @property
    def _admin(self) -> ScyllaAdmin:
        assert isinstance(self._scylla, Double)
        return self._scylla.admin


class Nodes:
    """Nodes of ScyllaDB go, come back, answer late, wrongly or with an old view."""

    def __init__(self, admin: ScyllaAdmin, draw: random.Random, confidence_ms: int) -> None:
        self._admin = admin
        self._confidence_ms = confidence_ms
        self._random = draw
        self.mishaps = [
            Mishap(2, self.stop_node),
            Mishap(2, self.stale_node),
            Mishap(3, self.faulty_node),
            Mishap(1, self.cut_connections),
        ]

    def stop_node(self) -> str:
        # The workload and the oracle stay on the first.
        number = self._random.choice([1, 2])
        self._admin.stop_node(number)
        let_pass(self._random.uniform(0.5, 6))
        self._admin.start_node(number)
        return f"node {number} down"

    def stale_node(self) -> str:
        """Its view of the streams is no older than order allows."""
        number = self._random.choice([0, 1, 2])
        self._admin.make_stale(number, behind_ms=self._random.randint(1, self._confidence_ms // 4))
        let_pass(self._random.uniform(0.5, 6))
        self._admin.make_fresh(number)
        return f"node {number} stale"

    def faulty_node(self) -> str:
        action = self._random.choice(
            [*("overloaded", "unavailable", "read_timeout", "read_failure", "server_error", "rate_limit"),
             *("drop", "drop_mid_page", "silence", "delay", "unprepared")]
        )  # fmt: skip
        options = {"delay_ms": self._random.choice([300, 2000])} if action == "delay" else {}
        fault = self._admin.add_fault(
            action,
            # Of the connector's queries only: its logs and its stream sets.
            pattern=r"cdc.stream_id. (in|=)|cdc_streams|cdc_generation|cdc_timestamps|system_schema|toTimestamp",
            opcode="EXECUTE",
            probability=self._random.choice([0.1, 0.5, 1.0]),
            seed=self._random.randrange(1 << 30),
            **options,
        )
        let_pass(self._random.uniform(0.5, 5))
        self._admin.remove_fault(fault)
        return action

    def cut_connections(self) -> str:
        self._admin.drop_connections(self._random.choice([1, 2]))
        return "connections cut"


class Clocks:
    """Time jumps: forwards as far as it likes, backwards by less than the confidence window."""

    def __init__(self, admin: ScyllaAdmin, draw: random.Random, confidence_ms: int) -> None:
        self._admin = admin
        self._random = draw
        self._confidence_ms = confidence_ms
        self.mishaps = [Mishap(1, self.step)]

    def step(self) -> str:
        ms = self._random.choice([-self._confidence_ms // 2, 300, 3_000, 20_000])
        self._admin.move_clock(ms / 1000)
        return f"clock {ms:+} ms"


class Columns:
    """Columns come and go under load."""

    def __init__(self, session: Session, draw: random.Random, tables: Sequence[str]) -> None:
        self._session = session
        self._random = draw
        self._tables = tables
        self._added: dict[str, list[str]] = {table: [] for table in tables}
        self._number = 0
        self.mishaps = [Mishap(2, self.alter)]

    def alter(self) -> str:
        table = self._random.choice(self._tables)
        added = self._added[table]
        if added and self._random.random() < 0.5:
            name = added.pop(self._random.randrange(len(added)))
            self._session.execute(f"ALTER TABLE {table} DROP {name}")
            return f"drop {name}"
        self._number += 1
        kind = self._random.choice(["int", "text", "map<int, text>", "frozen<list<int>>"])
        added.append(f"x{self._number}")
        self._session.execute(f"ALTER TABLE {table} ADD x{self._number} {kind}")
        return f"add x{self._number}"


class Logs:
    """A table whose log goes and comes back: dropped with it, or switched off. Nobody else writes it.

    ``gone`` are the rows of logs that went: each of them may be delivered, once.
    """

    def __init__(self, session: Session, draw: random.Random, table: str) -> None:
        self._session = session
        self._random = draw
        self.table = table
        self._number = 0
        self.gone: Counter[tuple[str, str, int]] = Counter()
        self.mishaps = [Mishap(2, self.recreate), Mishap(2, self.switch)]

    def write(self) -> None:
        for _ in range(self._random.choice([0, 1, 30])):
            self._number += 1
            self._session.execute(f"INSERT INTO {self.table} (pk, ck, v) VALUES ({self._number % 7}, 0, 'v')")

    def recreate(self) -> str:
        self._goes()
        self._session.execute(f"DROP TABLE {self.table}")
        let_pass(self._random.choice([0.0, 0.3, 2.0]))
        self._session.execute(
            f"CREATE TABLE {self.table} (pk int, ck int, v text, PRIMARY KEY (pk, ck)) WITH cdc = {{'enabled': true}}"
        )
        self.write()
        return "table dropped and made again"

    def switch(self) -> str:
        self._goes()
        self._session.execute(f"ALTER TABLE {self.table} WITH cdc = {{'enabled': false}}")
        let_pass(self._random.choice([0.0, 0.3, 2.0]))
        self._session.execute(f"ALTER TABLE {self.table} WITH cdc = {{'enabled': true}}")
        self.write()
        return "log switched off and on"

    def _goes(self) -> None:
        self.write()
        let_pass(self._random.choice([0.0, 1.0, 3.0]))
        self.gone |= logged(self._session, self.table)


class Reads:
    """Queries of the log fail."""

    def __init__(self, admin: ScyllaAdmin) -> None:
        self._admin = admin
        self.mishaps = [Mishap(1, self.faults)]

    def faults(self) -> str:
        self._admin.add_fault("read_timeout", pattern="_scylla_cdc_log.*cdc.stream_id", probability=0.3, count=50)
        return "faults"
