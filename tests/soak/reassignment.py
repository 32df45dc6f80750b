"""Moves partitions and their leaders: by Kafka's own Java client, through py4j. confluent-kafka cannot do the former,
and fails with a SystemError at the latter (2.16).

In: the brokers and, for each partition, the nodes that shall hold it, first the one that should lead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from embedded.kafka import broker_classpath
from spark_jobs.jvm.java import find_java

Place = tuple[str, int]


class Reassignment:
    """A JVM of its own, with the brokers' jars."""

    def __init__(self, bootstrap_servers: str) -> None:
        # A JVM that is told to die with us: nothing outlives a soak.
        self._gateway = JavaGateway.launch_gateway(
            classpath=broker_classpath(),
            javaopts=["-Xmx64m", "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"],
            java_path=str(find_java().executable),
            die_on_exit=True,
        )
        jvm: Any = self._gateway.jvm
        properties = jvm.java.util.Properties()
        properties.setProperty("bootstrap.servers", bootstrap_servers)
        self._jvm = jvm
        self._admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)

    def __enter__(self) -> Reassignment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.shutdown()

    def elect(self) -> bool:
        """Who should lead a partition leads it again, in all topics, Kafka's own included."""
        preferred = self._jvm.org.apache.kafka.common.ElectionType.PREFERRED
        return self._done(lambda: self._admin.electLeaders(preferred, None))

    def move(self, wanted: Mapping[Place, Sequence[int]]) -> bool:
        """Whether the controller took it."""
        jvm, moves = self._jvm, self._jvm.java.util.HashMap()
        for (topic, partition), nodes in wanted.items():
            where = jvm.org.apache.kafka.common.TopicPartition(topic, partition)
            replicas = jvm.java.util.ArrayList()
            for node in nodes:
                replicas.add(node)
            target = jvm.org.apache.kafka.clients.admin.NewPartitionReassignment(replicas)
            moves.put(where, jvm.java.util.Optional.of(target))
        return self._done(lambda: self._admin.alterPartitionReassignments(moves))

    def _done(self, ask: Callable[[], Any]) -> bool:
        try:
            ask().all().get(30, self._jvm.java.util.concurrent.TimeUnit.SECONDS)
        except Py4JJavaError:
            return False
        return True
