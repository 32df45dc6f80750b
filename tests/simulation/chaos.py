"""What goes wrong in a simulation: drawn from its seed, at drawn moments, until it has to end.

In: a service, how rough it is to be. Out: processes killed, paused, stopped in good order, at any step; brokers,
leaders and coordinators away, answers lost, markers forgotten, topics compacted; nodes that lag, lie, time out,
are away, and clocks that step. ``count`` says how often.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaError

from connector.worker.instructions import Instruction
from tests.simulation.scheduler import Process
from tests.simulation.service import DEAD_LETTERS, NAME, OFFSETS, Service, Worker


@dataclass(frozen=True)
class Roughness:
    """``seconds`` between two mishaps on average; ``at_steps``: the part of steps that are a process's last or that
    it stands still at; ``only``: of which kinds (all)."""

    seconds: float = 1.5
    at_steps: float = 0.0005
    until: float = 14.0
    only: tuple[str, ...] = ()


class Chaos:
    def __init__(self, service: Service, roughness: Roughness, seed: int) -> None:
        self._service = service
        self._rough = roughness
        self._random = random.Random(seed ^ 0xC4A05)
        self._scheduler = service.scheduler
        self.count: Counter[str] = Counter()
        kinds: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "pause": self._pause,
            "long pause": self._long_pause,
            "orderly stop": self._stop,
            "broker away": self._broker_away,
            "broker crash": self._broker_crash,
            "power loss": self._power_loss,
            "leader moves": self._leader_moves,
            "coordinator moves": self._coordinator_moves,
            "disk full": self._disk_full,
            "lost answers": self._lost_answers,
            "slow markers": self._slow_markers,
            "compaction": self._compaction,
            "reads time out": self._reads_time_out,
            "nodes away": self._nodes_away,
            "node lies": self._node_lies,
            "clock steps": self._clock_steps,
            "own clock steps": self._own_clock_steps,
            "try again": self._try_again,
        }
        # Those that are drawn only where they are named.
        named: dict[str, Callable[[], None]] = {
            "another group": self._another_group,
            "clock ahead": self._clock_ahead,
            "long stop": self._long_stop,
            "other tables": self._other_tables,
            "connector pauses": self._connector_pauses,
            "registry refuses": self._registry_refuses,
            "registry away": self._registry_away,
            "registry slow": self._registry_slow,
            "snapshot asked": self._snapshot_asked,
            "snapshot pauses": self._snapshot_pauses,
            "stranded client": self._stranded_client,
            "leaders learn late": self._leaders_learn_late,
            "records unanswered": self._records_unanswered,
            "ranges away": self._ranges_away,
            "times change": self._times_change,
            "times of offsets change": self._times_of_offsets_change,
            "topic deleted": self._topic_deleted,
            "positions deleted": self._positions_deleted,
            "partitions grow": self._partitions_grow,
        }
        self._kinds = {name: kind for name, kind in kinds.items() if not roughness.only or name in roughness.only}
        self._kinds |= {name: kind for name, kind in named.items() if name in roughness.only}
        # Each run has its own favourites, so that every pair of mishaps gets runs in which it is likely.
        self._weights = [self._random.choice([0.0, 1.0, 1.0, 4.0]) for _ in self._kinds]
        if not any(self._weights):
            self._weights = [1.0] * len(self._weights)

    def start(self) -> None:
        if self._rough.seconds > 0:
            self._next()
        if self._rough.at_steps:
            self._scheduler.disturb = self._at_step

    @property
    def over(self) -> bool:
        return self._scheduler.now >= self._rough.until

    @property
    def mishaps(self) -> int:
        return (
            sum(self.count.values())
            + self._service.broker.mishaps
            + self._service.cluster.mishaps
            + self._service.registry.mishaps
        )

    def calm_down(self) -> None:
        """From now on nothing goes wrong any more; whoever stands still goes on."""
        broker, cluster = self._service.broker, self._service.cluster
        for topic in broker.topics.values():
            topic.refuses = None
        for partition in broker.all_partitions:
            partition.slow = False
        self._scheduler.disturb = lambda process: None
        self._service.end_strangers()
        self._service.read_tables([table.name for table in cluster.world.tables])
        self._service.registry.mend()
        if self.count["snapshot pauses"]:
            self._service.signal("resume")
        broker.network.lost = broker.network.unanswered = broker.network.cut = 0.0
        broker.network.seconds = 0.004
        broker.transactions.marker_seconds = 0.02
        cluster.timeouts = cluster.errors = 0.0
        cluster.lost = []
        cluster.seconds = 0.006
        for node in cluster.nodes:
            node.confused_until = 0.0
            node.shift_ms = 0.0

    # -- inside ------------------------------------------------------------------------------------------------

    def _next(self) -> None:
        def strike() -> None:
            if self.over:
                return
            (name,) = self._random.choices(list(self._kinds), self._weights)
            self.count[name] += 1
            self._kinds[name]()
            self._next()

        self._scheduler.later(self._random.expovariate(1 / self._rough.seconds), strike)

    def _at_step(self, process: Process) -> None:
        if self.over or self._random.random() >= self._rough.at_steps:
            return
        worker = next((each for each in self._service.living if each.process is process), None)
        if worker is None:
            return
        if self._random.random() < 0.4:
            self.count["kill at a step"] += 1
            self._service.kill(worker)
        else:
            self.count["pause at a step"] += 1
            self._scheduler.pause(process, self._random.choice([0.2, 2.0, 5.0, 9.0]))

    def _worker(self) -> Worker | None:
        living = self._service.living
        return self._random.choice(living) if living else None

    def _kill(self) -> None:
        worker = self._worker()
        if worker is not None:
            self._service.kill(worker)

    def _pause(self) -> None:
        worker = self._worker()
        if worker is not None:
            self._scheduler.pause(worker.process, self._random.uniform(0.05, 2.5))

    def _long_pause(self) -> None:
        """Longer than the session, perhaps than a transaction's timeout."""
        worker = self._worker()
        if worker is not None:
            self._scheduler.pause(worker.process, self._random.uniform(3.0, 12.0))

    def _stop(self) -> None:
        worker = self._worker()
        if worker is not None:
            self._service.stop_worker(worker)

    def _broker_away(self) -> None:
        self._service.broker.stop(self._random.uniform(0.1, 4.0))

    def _broker_crash(self) -> None:
        self._service.broker.stop(self._random.uniform(0.3, 3.0), forget_markers=True)

    def _power_loss(self) -> None:
        """The brokers and every worker at once: what is decided, nobody hears of."""
        for worker in list(self._service.living):
            self._service.kill(worker)
        self._service.broker.stop(self._random.uniform(0.3, 3.0), forget_markers=True)

    def _leader_moves(self) -> None:
        broker = self._service.broker
        if partitions := broker.all_partitions:
            broker.move_leader(self._random.choice(partitions), self._random.uniform(0.1, 3.0))

    def _leaders_learn_late(self) -> None:
        """That they are it, while somebody writes to them for the first time."""
        for partition in self._service.broker.all_partitions:
            partition.slow = True

    def _coordinator_moves(self) -> None:
        self._service.broker.move_coordinator(self._random.uniform(0.1, 3.0))

    def _disk_full(self) -> None:
        """No leader takes a record of the data topics, for a while."""
        topics = [topic for name, topic in self._service.broker.topics.items() if name.startswith(f"{NAME}.")]
        for topic in topics:
            topic.refuses = KafkaError.KAFKA_STORAGE_ERROR

        def free() -> None:
            for topic in topics:
                topic.refuses = None

        self._scheduler.later(self._random.uniform(0.1, 3.0), free)

    def _lost_answers(self) -> None:
        network = self._service.broker.network
        network.lost, network.unanswered = self._random.choice([(0.0, 0.0), (0.02, 0.0), (0.0, 0.05), (0.05, 0.05)])
        network.seconds = self._random.choice([0.004, 0.05, 0.2])

    def _records_unanswered(self) -> None:
        """They are written, and whoever sent them does not hear of it, for longer than he waits."""
        self._service.broker.transactions.looks_every = 10.0
        self._service.broker.network.cut = self._random.choice([0.0, 0.2, 0.5])

    def _times_change(self) -> None:
        """Who says when the records of the data topics were written: their brokers, or whoever writes."""
        kind = self._random.choice(["LogAppendTime", "CreateTime"])
        for name, topic in self._service.broker.topics.items():
            if name.startswith(f"{NAME}."):
                topic.config["message.timestamp.type"] = kind

    def _times_of_offsets_change(self) -> None:
        """Who says when positions were written."""
        topic = self._service.broker.topics.get(OFFSETS)
        if topic is not None:
            topic.config["message.timestamp.type"] = self._random.choice(["LogAppendTime", "CreateTime"])

    def _slow_markers(self) -> None:
        self._service.broker.transactions.marker_seconds = self._random.choice([0.001, 0.02, 0.5, 2.0])

    def _compaction(self) -> None:
        topic = self._service.broker.topics.get(OFFSETS)
        for partition in topic.partitions if topic is not None else ():
            partition.compact(self._random.randint(0, partition.end))

    def _reads_time_out(self) -> None:
        cluster = self._service.cluster
        cluster.timeouts, cluster.errors = self._random.choice([(0.0, 0.0), (0.2, 0.0), (0.0, 0.2), (0.1, 0.1)])
        cluster.seconds = self._random.choice([0.006, 0.05, 0.5])

    def _nodes_away(self) -> None:
        cluster = self._service.cluster
        cluster.away_until = max(cluster.away_until, self._scheduler.now + self._random.uniform(0.2, 4.0))

    def _ranges_away(self) -> None:
        """Nobody holds what one or two nodes did, or all are back."""
        step = 1 << 59
        nodes = self._random.choice([0, 1, 1, 2])
        lost = [place for place in range(32) if self._random.random() < nodes / 3]
        self._service.cluster.lost = [((place - 16) * step, (place - 15) * step - 1) for place in lost]

    def _node_lies(self) -> None:
        node = self._random.choice(self._service.cluster.nodes)
        longest = max(0, self._service.cluster.world.longest_lag - node.lag) / 1000
        node.confused_until = self._scheduler.now + min(longest, self._random.uniform(0.2, 3.0))

    def _clock_steps(self) -> None:
        """A node's clock falls behind, or comes back: none of them may ever be trusted to be ahead. Where rows stand
        among changes, one of them is right: whoever writes is not ahead of all."""
        cluster = self._service.cluster
        old = any(table.history for table in cluster.world.tables)
        node = self._random.choice(cluster.nodes[1:] if old and len(cluster.nodes) > 1 else cluster.nodes)
        node.shift_ms = self._random.choice([0.0, -50.0, -400.0, -3_000.0])
        if old and len(cluster.nodes) == 1:
            node.shift_ms = 0.0

    def _clock_ahead(self) -> None:
        """A node's clock is ahead of another one's, or comes back: whoever is asked first need not be right."""
        if others := self._service.cluster.nodes[1:]:
            self._random.choice(others).shift_ms = self._random.choice([0.0, 400.0, 3_000.0, 60_000.0])

    def _registry_refuses(self) -> None:
        """The schemas of one table, for a while: as incompatible, or whoever asks is not allowed to."""
        registry, table = self._service.registry, self._random.choice(self._service.cluster.world.tables)
        status = self._random.choice([401, 403, 409, 422, 503])
        registry.refused[table.name.name] = status, {"error_code": status, "message": "refused"}
        self._scheduler.later(self._random.uniform(0.2, 6.0), lambda: registry.refused.clear())

    def _registry_away(self) -> None:
        self._service.registry.away_until = self._scheduler.now + self._random.uniform(0.2, 4.0)

    def _registry_slow(self) -> None:
        self._service.registry.seconds = self._random.choice([0.01, 0.5, 3.0])

    def _snapshot_asked(self) -> None:
        """All rows of a table once more, whatever is under way."""
        table = self._random.choice(self._service.cluster.world.tables)
        self._service.signal("start", table.name)

    def _snapshot_pauses(self) -> None:
        self._service.signal("pause")
        self._scheduler.later(self._random.uniform(0.1, 4.0), lambda: self._service.signal("resume"))

    def _stranded_client(self) -> None:
        worker = self._worker()
        if worker is not None:
            self._service.broker.strand(worker.process)

    def _try_again(self) -> None:
        """Somebody asks for what is FAILED, and mostly nothing is."""
        worker = self._worker()
        if worker is not None:
            worker.instructions.put(Instruction.TRY_AGAIN)

    def _long_stop(self) -> None:
        """Longer than logs keep their rows; once all has begun, for what was never begun has no rows to miss."""
        if self._service.troubles():
            return
        ttl = max(table.ttl for table in self._service.cluster.world.tables)
        self._service.close(ttl + self._random.uniform(5.0, 15.0))

    def _connector_pauses(self) -> None:
        """As it is asked to: everybody ends in good order, and is started again when it is resumed."""
        self._service.rest(self._random.uniform(0.1, 6.0))

    def _other_tables(self) -> None:
        """Some tables are not read for a while."""
        names = [table.name for table in self._service.cluster.world.tables]
        some = self._random.sample(names, self._random.randint(1, len(names)))
        self._service.read_tables(some)

    def _another_group(self) -> None:
        """Somebody starts the connector once more, under another group; it stays if nobody else is there just then."""
        self._service.start_stranger()

    def _topic_deleted(self) -> None:
        """Somebody empties it in this way. Who makes it anew is quicker than the connector, or not."""
        broker = self._service.broker
        names = [name for name in broker.topics if name.startswith(f"{NAME}.") or name in (DEAD_LETTERS, "status")]
        if not names:
            return
        name = self._random.choice(names)
        config = broker.delete(name).config
        after, partitions = self._random.choice([0.0, 0.05, 2.0]), self._random.randint(1, 3)
        if self._random.random() < 0.5:

            def create() -> None:
                if name not in broker.topics:
                    broker.create(name, partitions, **config)

            self._scheduler.later(after, create)

    def _positions_deleted(self) -> None:
        """By somebody who may think better of it; sooner or later the connector is started again, and begins anew."""
        broker = self._service.broker
        if OFFSETS not in broker.topics:
            return
        topic = broker.delete(OFFSETS)
        self._service.positions_lost = True

        def create() -> None:
            if OFFSETS not in broker.topics:
                broker.create(OFFSETS, len(topic.partitions), **topic.config)

        if self._random.random() < 0.7:
            self._scheduler.later(self._random.choice([0.0, 0.05, 0.5, 3.0]), create)
        end = self._service.rest if self._random.random() < 0.5 else self._service.close
        self._scheduler.later(self._random.uniform(0.0, 8.0), lambda: end(0.1))

    def _partitions_grow(self) -> None:
        broker = self._service.broker
        names = [name for name in broker.topics if name.startswith(f"{NAME}.") or name in (DEAD_LETTERS, OFFSETS)]
        if names:
            broker.grow(self._random.choice(names))

    def _own_clock_steps(self) -> None:
        worker = self._worker()
        if worker is not None:
            worker.process.skew = self._random.choice([0.0, -5.0, 5.0, -3_600.0, 3_600.0])
