"""What landing has to know of Kafka's topics outside of Spark's own reading: partitions, ends, the schemas topic.

In: a session and the Java client's properties. Out: offsets, and the schema records of each table in order. The client
is the one on Spark's class path, so one set of ``kafka.*`` properties serves both.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.java_objects import elements, java_class
from spark_jobs.model import TableDefinition, parse_definition, table_named
from spark_jobs.session import require_class

log = logging.getLogger(__name__)

Offsets = dict[tuple[str, int], int]

_POLL_MS = 200
_SILENCE_S = 60.0
_NO_ID = "A" * 22
"""A topic's id of zeros, as Kafka writes ids."""
_LISTED_S = 2.0
"""For so long a listing of topics serves all tables."""
_LOOKED_AT_S = 10.0
"""How often it is asked whether a schemas topic in which nothing came is still the one that was read."""


class Topics:
    """One consumer of the driver. Calls from several threads take turns."""

    def __init__(self, session: SparkSession, properties: Mapping[str, str]) -> None:
        require_class(
            session, "org.apache.kafka.clients.consumer.KafkaConsumer", "org.apache.kafka:kafka-clients:3.9.1"
        )
        self._session = session
        self._servers = properties["bootstrap.servers"]
        settings = self._java("java.util.HashMap")()
        for name, value in {
            "request.timeout.ms": "15000",
            "default.api.timeout.ms": "20000",
            # The broker answers one request of a connection at a time: what is asked while it waits for more of a topic
            # that was read to its end waits as well.
            "fetch.max.wait.ms": "20",
            **properties,
            # A committed table version must not be hidden by somebody's open transaction.
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": "false",
            # Where a topic's first records are gone, what is left is read; Kafka would go on at its end.
            "auto.offset.reset": "earliest",
            "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        }.items():
            settings.put(name, value)
        self._lock = threading.RLock()
        self._listed: tuple[float, Any] | None = None
        self._settings = settings
        self._consumer = self._java("org.apache.kafka.clients.consumer.KafkaConsumer")(settings)
        self._admin: Any = None

    def close(self) -> None:
        with self._lock:
            for client in (self._consumer, self._admin):
                if client is not None:
                    client.close(self._java("java.time.Duration").ofSeconds(2))

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """The partitions of those topics that exist."""
        with self._lock:
            known = self._topics()
            found: dict[str, list[int]] = {}
            for topic in topics:
                listed = known.get(topic)
                if listed is not None:
                    found[topic] = sorted(info.partition() for info in elements(listed))
            return found

    def _topics(self) -> Any:
        """All topics: the listing costs as much as there are topics, not as much as is asked for."""
        if self._listed is None or time.monotonic() - self._listed[0] > _LISTED_S:
            try:
                listed = self._consumer.listTopics()
            except Py4JJavaError as error:
                raise LandingError(f"Kafka at {self._servers} does not answer: {_cause(error)}") from error
            self._listed = time.monotonic(), listed
        return self._listed[1]

    def offsets(self, topics: Iterable[str], beginning: bool = False) -> Offsets:
        """The end (or the beginning) of every partition."""
        with self._lock:
            places = {
                (topic, number): self._place(topic, number)
                for topic, numbers in self.partitions(topics).items()
                for number in numbers
            }
            wanted = self._java("java.util.ArrayList")()
            for place in places.values():
                wanted.add(place)
            try:
                answer = self._consumer.beginningOffsets(wanted) if beginning else self._consumer.endOffsets(wanted)
            except Py4JJavaError as error:
                self._listed = None
                raise LandingError(f"Kafka at {self._servers} tells no offsets: {_cause(error)}") from error
            return {named: answer.get(place) for named, place in places.items()}

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of those topics that exist; a topic that is deleted and created again has another one. Brokers that
        know no ids tell none."""
        with self._lock:
            there = list(self.partitions(topics))
            wanted = self._java("java.util.ArrayList")()
            for topic in there:
                wanted.add(topic)
            if self._admin is None:
                # No consumer tells them.
                self._admin = self._java("org.apache.kafka.clients.admin.Admin").create(self._settings)
            try:
                answer = self._admin.describeTopics(wanted).allTopicNames().get()
            except Py4JJavaError as error:
                self._listed = None
                raise LandingError(f"Kafka at {self._servers} tells no ids of topics: {_cause(error)}") from error
            found = {topic: str(answer.get(topic).topicId().toString()) for topic in there}
            return {topic: id_ for topic, id_ in found.items() if id_ != _NO_ID}

    def read_from(self, topic: str, offset: int, end: int) -> list[tuple[int, str | None]]:
        """The values of a topic's only partition between two offsets, with their offsets."""
        if offset >= end:
            return []
        found: list[tuple[int, str | None]] = []
        with self._lock:
            place = self._place(topic, 0)
            assigned = self._java("java.util.ArrayList")()
            assigned.add(place)
            self._consumer.assign(assigned)
            self._consumer.seek(place, offset)
            at, deadline = offset, time.monotonic() + _SILENCE_S
            while at < end:
                records = self._consumer.poll(self._java("java.time.Duration").ofMillis(_POLL_MS))
                for record in elements(records.records(place)):
                    found.append((record.offset(), record.value()))
                before, at = at, self._consumer.position(place)
                if at != before:
                    deadline = time.monotonic() + _SILENCE_S
                elif time.monotonic() > deadline:
                    # Every table waits for this one consumer: better an error that is tried again.
                    raise LandingError(f"{topic} could not be read from offset {at} to {end}")
        return found

    def _place(self, topic: str, number: int) -> Any:
        return self._java("org.apache.kafka.common.TopicPartition")(topic, number)

    def _java(self, name: str) -> Any:
        return java_class(self._session, name)


class SchemaTopic:
    """The table versions in the schemas topic, read on from where the last reading ended."""

    def __init__(self, topics: Topics, topic: str) -> None:
        self._topics = topics
        self._topic = topic
        self._at = 0
        self._id: str | None = None
        self._looked_at = -_LOOKED_AT_S
        self._began = 0.0
        self._lock = threading.Lock()
        self._versions: dict[str, list[TableDefinition]] = {}
        #: Tables whose newest record cannot be read, and what is said of it.
        self._damaged: dict[str, str] = {}

    def versions(self, table: str) -> list[TableDefinition]:
        """As ``read``, of one table; ``LandingError`` where its newest record cannot be read."""
        found = self.read().get(table, [])
        if table in self._damaged:
            raise LandingError(self._damaged[table])
        return found

    def read(self) -> Mapping[str, list[TableDefinition]]:
        """Reads to the topic's high watermark; a table's versions in the order of the topic, the last is current.

        Records that are none of ours are passed over, tables whose newest record is damaged are left out.
        """
        if not self._topic:
            return self._versions
        asked = time.monotonic()
        with self._lock:
            if self._began <= asked:
                # Else another table's reading began after this one asked, and has everything that it could find.
                began = time.monotonic()
                self._read_on()
                self._began = began
            known = self._versions.items()
            return {name: list(versions) for name, versions in known if name not in self._damaged}

    def _read_on(self) -> None:
        end = self._topics.offsets([self._topic]).get((self._topic, 0), 0)
        if self._is_another(end):
            self._at = 0
            self._damaged.clear()
        for offset, value in self._topics.read_from(self._topic, self._at, end):
            self._at = offset + 1
            if value is not None:
                self._take(offset, value)
        self._at = max(self._at, end)

    def _is_another(self, end: int) -> bool:
        """Whether it was created again, perhaps with as many records by now, or more: its id says so."""
        if end == self._at and time.monotonic() < self._looked_at + _LOOKED_AT_S:
            return False
        self._looked_at = time.monotonic()
        before, self._id = self._id, self._topics.ids([self._topic]).get(self._topic, self._id)
        return end < self._at or before not in (None, self._id)

    def _take(self, offset: int, value: str) -> None:
        try:
            definition = parse_definition(value)
        except LandingError as error:
            place, table = f"topic {self._topic}, partition 0, offset {offset}", table_named(value)
            if table is None:
                log.warning("%s: skipped, it is not a table description: %s", place, error)
            else:
                self._damaged[table] = f"{place}: {error}"
            return
        self._damaged.pop(definition.name, None)
        versions = self._versions.setdefault(definition.name, [])
        if definition in versions:
            versions.remove(definition)
        versions.append(definition)


def starting_offsets(partitions: Mapping[str, list[int]], positions: Offsets) -> str:
    """Spark's ``startingOffsets``: each partition's position, the beginning (-2) where there is none."""
    return json.dumps(
        {
            topic: {str(number): positions.get((topic, number), -2) for number in numbers}
            for topic, numbers in partitions.items()
        }
    )


def subscribed(there: Collection[str], topics: Sequence[str]) -> tuple[str, str]:
    """Spark's option for these topics. By a pattern it lists all topics each time it looks, but finds those that are
    not there yet.

    >>> subscribed(["p.ks.t", "p.ks.u"], ["p.ks.t", "p.ks.u"])
    ('subscribe', 'p.ks.t,p.ks.u')
    """
    missing = [topic for topic in topics if topic not in there]
    return ("subscribePattern", topics_pattern(topics)) if missing else ("subscribe", ",".join(topics))


def topics_pattern(topics: Sequence[str]) -> str:
    """A pattern of exactly these topics: Spark looks for it anywhere in a name, so ends must be said.

    >>> topics_pattern(["p.ks.t", "p.ks.u"])
    '^\\\\Qp.ks.t\\\\E$|^\\\\Qp.ks.u\\\\E$'
    """
    return "|".join(f"^\\Q{topic}\\E$" for topic in topics)


def _cause(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage())
