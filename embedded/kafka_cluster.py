"""Several real Kafka brokers on this machine that replicate everything among them, to try out what one cannot show:
leaders and coordinators that move.

In goes how many, out come `EmbeddedKafka`s that can be killed, paused and restarted one by one. Each is a controller
too, so the cluster works as long as most of them run.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from embedded import ports
from embedded.kafka import TO_BE_KILLED, EmbeddedKafka, Member, broker_classpath, random_id


class EmbeddedKafkaCluster:
    """To be used with `with`. Topics have a replica on each broker, and take writes while all but one are there."""

    def __init__(self, brokers: int = 3, *, properties: Mapping[str, str] | None = None, heap: str = "256m") -> None:
        chosen: set[int] = set()
        while len(chosen) < 2 * brokers:
            chosen.add(ports.free_port())
        own, controllers = sorted(chosen)[:brokers], tuple(sorted(chosen)[brokers:])
        cluster = random_id()
        copies, enough = str(brokers), str(max(1, brokers - 1))
        replicated = {
            "default.replication.factor": copies,
            "min.insync.replicas": enough,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.num.partitions": copies,
            "transaction.state.log.min.isr": enough,
            # Elections among several on busy processors: what does for one would be a new round all the time.
            "controller.quorum.election.timeout.ms": "1000",
            "controller.quorum.fetch.timeout.ms": "2000",
            "replica.lag.time.max.ms": "5000",
        }
        self.brokers = [
            EmbeddedKafka(
                port=port,
                heap=heap,
                member=Member(node, controllers, cluster),
                properties={**replicated, **TO_BE_KILLED, **(properties or {})},
            )
            for node, port in enumerate(own, 1)
        ]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def start(self) -> EmbeddedKafkaCluster:
        """Starts the brokers that do not run, and returns when each of them answers."""
        # What the brokers share is made once, not by all at the same time.
        broker_classpath()
        try:
            # None of them answers before there is a majority.
            with ThreadPoolExecutor(len(self.brokers)) as pool:
                list(pool.map(EmbeddedKafka.start, self.brokers))
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        for broker in self.brokers:
            broker.close()

    def __enter__(self) -> EmbeddedKafkaCluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
