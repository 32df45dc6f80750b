"""A connector under test: its files, its processes, a workload, and what must come out.

The oracle is the log itself: every delta row of it, read back in one scan, must stand in the data topics exactly once,
per record key in the order of `cdc$time`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cassandra.cluster import Session
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from connector.config import load
from connector.delivery.clients import READ_COMMITTED
from connector.delivery.end_offsets import end_offsets
from connector.worker.reports import status_report
from tests.servers.patience import patience, seldom, until
from tests.servers.scylla import Scylla
from tests.worker.repeated import Repeated

DELTAS = (1, 2, 3, 4, -3, -4)


@contextlib.contextmanager
def cql(scylla: Scylla) -> Iterator[Session]:
    cluster = scylla.cluster()
    try:
        session = cluster.connect()
        # The server says when a write happened: one that its client sends late counts as one from the past.
        session.use_client_timestamp = False
        yield session
    finally:
        cluster.shutdown()


def dead_letters(topic: str) -> dict[str, str]:
    """Properties of a connector that tolerates rows it cannot read, and keeps them."""
    return {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": topic,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


@dataclass
class Service:
    """One connector: `start` runs `scylla-cdc run`, as often as wanted."""

    folder: Path
    scylla: Scylla
    kafka: str
    name: str
    tables: list[str]
    connector: dict[str, str] = field(default_factory=dict)
    worker: dict[str, str] = field(default_factory=dict)
    runs: list[subprocess.Popen[bytes]] = field(default_factory=list)
    #: The beginning of the command line of `start`.
    before: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = {
            "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
            "tasks.max": "2",
            **self.scylla.properties(),
            "scylla.table.names": ",".join(self.tables),
            "topic.prefix": self.name,
            "scylla.confidence.window.size": str(self.scylla.confidence_ms(500)),
            "scylla.query.time.window.size": "1000",
            "cdc.include.metadata": "true",
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
            **self.connector,
        }
        worker = {
            "bootstrap.servers": self.kafka,
            "group.id": "test",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.topic": f"{self.name}-offsets",
            "status.storage.topic": f"{self.name}-status",
            "config.storage.topic": f"{self.name}-configs",
            "offset.storage.partitions": "6",
            "session.timeout.ms": "3000",
            **self.worker,
        }
        self.config_file.write_text(json.dumps({"name": self.name, "config": config}))
        self.worker_file.write_text(json.dumps(worker))

    @property
    def config_file(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def worker_file(self) -> Path:
        return self.folder / f"{self.name}-worker.json"

    @property
    def log(self) -> str:
        return (self.folder / f"{self.name}.log").read_text(errors="replace")

    def last_words(self, lines: int = 25) -> str:
        there = (self.folder / f"{self.name}.log").exists()
        return "\n".join(self.log.splitlines()[-lines:]) if there else "it was never started"

    # -- processes -------------------------------------------------------------------------------------------

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of `scylla-cdc` about this connector, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "connector", *arguments, str(self.config_file), "--worker", str(self.worker_file)],
            capture_output=True,
            text=True,
            timeout=180 * patience(),
            check=False,
        )

    def report(self) -> dict[str, Any]:
        """What `scylla-cdc status --json` says, for those who look until something is so: without a process a look."""
        return status_report(load(self.config_file, self.worker_file)).document()

    def start(self, *arguments: str, files: bool = True) -> subprocess.Popen[bytes]:
        """``files``: with the connector's file; else it is to be defined through the API."""
        with open(self.folder / f"{self.name}.log", "ab") as log:
            run = subprocess.Popen(
                [
                    *(
                        *self.before,
                        sys.executable,
                        "-m",
                        "connector",
                        "run",
                        *([str(self.config_file)] if files else []),
                    ),
                    *("--worker", str(self.worker_file), *arguments),
                ],
                stderr=log,
                stdout=log,
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
            )
        self.runs.append(run)
        return run

    def workers(self, run: subprocess.Popen[bytes] | None = None) -> list[int]:
        """The pids of the worker processes."""
        found: list[int] = []
        for each in [run] if run is not None else self.runs:
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{each.pid}/task/{each.pid}/children").read_text()
                found += [int(pid) for pid in text.split()]
        return found

    def stop(self, run: subprocess.Popen[bytes], seconds: float = 90) -> int:
        """As systemd and terminals do it: the signal goes to the workers as well."""
        workers = self.workers(run)
        run.send_signal(signal.SIGTERM)
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

        def what_it_does() -> str:
            run.send_signal(signal.SIGABRT)
            run.wait(90)
            return f"the end of a run that was asked to stop: {self.log[-6000:]}"

        until(lambda: run.poll() is not None, seconds, what_it_does)
        self.runs.remove(run)
        return run.wait()

    def ended(self, run: subprocess.Popen[bytes], seconds: float = 180) -> int:
        """The status of a run that ends by itself."""
        until(lambda: run.poll() is not None, seconds, lambda: f"the end of a run: {self.log[-3000:]}")
        return run.wait()

    def stopped(self, run: subprocess.Popen[bytes]) -> None:
        """An orderly stop: again where a busy machine needs longer for it than containers are given."""

        def times_late() -> int:
            return sum(map(self.log.count, (" did not stop in ", " so cut off: ", "Timeout (0:")))

        def in_time() -> bool:
            nonlocal run
            assert run.poll() is None, f"it had ended with {run.poll()}: {self.log[-6000:]}"
            before = times_late()
            status = self.stop(run)
            late = times_late() > before
            # One that was cut off itself, and not only its workers, says so by 1.
            assert status == 0 or (late and status == 1), f"it ended with {status}: {self.log[-6000:]}"
            if not late:
                return True
            run = self.start()
            until(lambda: self.report()["state"] == "RUNNING", 180, step=seldom)
            return False

        until(in_time, 300, "a stop in time", step=lambda: None)

    def close(self) -> None:
        for run in self.runs:
            for pid in [*self.workers(run), run.pid]:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
            run.kill()
            run.wait()

    def http_port(self) -> int:
        def port() -> int | None:
            marker = "on http://127.0.0.1:"
            text = self.log
            return int(text.rpartition(marker)[2].split()[0]) if marker in text else None

        return int(until(port, 90, lambda: f"the HTTP port in {self.log}"))

    def get(self, path: str) -> tuple[int, str]:
        request = f"http://127.0.0.1:{self.http_port()}{path}"
        try:
            with urllib.request.urlopen(request, timeout=60 * patience()) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def post(self, path: str, method: str = "POST", body: object = None) -> int:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port()}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60 * patience()) as answer:
            return int(answer.status)

    def ask(self, path: str, method: str, body: object = None) -> int:
        """As `post`, for those who ask until it is done."""
        try:
            return self.post(path, method, body)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    # -- what came out ---------------------------------------------------------------------------------------

    def settled(self) -> None:
        """Nothing that was committed is hidden: a commit is answered before its markers stand in every partition."""
        admin = AdminClient({"bootstrap.servers": self.kafka, "log_level": 0})
        topics = admin.list_topics(timeout=60 * patience()).topics
        mine = [name for name in topics if name.startswith((f"{self.name}.", f"{self.name}-"))]
        places = [(name, at) for name in mine for at in topics[name].partitions]
        there = end_offsets(admin, places)

        def visible() -> bool:
            stable = end_offsets(admin, places, READ_COMMITTED)
            return all(stable[place] >= end for place, end in there.items())

        until(visible, 90, f"the markers of all that {self.name} has committed", step=seldom)

    def topic(self, table: str) -> str:
        return f"{self.name}.{table}"

    def delivered(
        self, topic: str, isolation: str = "read_committed", read: Callable[[bytes], Any] = json.loads
    ) -> list[dict[str, Any]]:
        """All records of a topic: ``key``, ``value``, ``partition``, ``offset``, ``timestamp``, ``headers``.

        Values as ``read`` gives them, keys as they are.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka,
                "group.id": "check",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
            }
        )
        records: list[dict[str, Any]] = []
        try:
            metadata = consumer.list_topics(topic, 60).topics[topic]
            partitions = sorted(metadata.partitions)
            if metadata.error is not None:
                return []
            consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
            ended: set[int] = set()
            deadline = time.monotonic() + 120 * patience()
            while len(ended) < len(partitions):
                assert time.monotonic() < deadline, f"{topic} could not be read"
                for message in consumer.consume(1000, 0.1):
                    error = message.error()
                    if error is not None and error.code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
                    elif error is None:
                        records.append(
                            {
                                "key": message.key(),
                                "value": None if message.value() is None else read(message.value()),
                                "partition": message.partition(),
                                "offset": message.offset(),
                                "timestamp": message.timestamp()[1],
                                "headers": message.headers(),
                            }
                        )
        finally:
            consumer.close()
        return records


class RowsMissing(AssertionError):
    """Of a table's log, although there was time enough: `tests/worker/lost_rows.py` tells their story."""

    def __init__(self, table: str, rows: Counter[tuple[str, str, int]], of: int) -> None:
        super().__init__(f"{len(rows)} of {of} rows of {table} missing, e.g. {next(iter(rows))}")
        self.table, self.rows = table, rows


def logged(session: Session, table: str) -> Counter[tuple[str, str, int]]:
    """Every delta row of a table's log: (stream, time, number)."""
    rows = session.execute(
        f'SELECT "cdc$stream_id" AS s, "cdc$time" AS t, "cdc$batch_seq_no" AS n, "cdc$operation" AS o '
        f"FROM {table}_scylla_cdc_log"
    )
    return Counter((row.s.hex(), str(row.t), row.n) for row in rows if row.o in DELTAS)


def exactly_once(
    service: Service,
    session: Session,
    table: str,
    seconds: float = 180,
    gone: Counter[tuple[str, str, int]] | None = None,
) -> int:
    """Wait until every row of the log is delivered; then none is doubled and every key is in order. The number.

    ``gone``: rows of logs that are no more; they may have been delivered.
    """
    expected: Counter[tuple[str, str, int]] = Counter()

    def complete() -> bool:
        nonlocal expected
        expected = logged(session, table)
        return not expected - found(service, table)

    try:
        until(complete, seconds, f"delivery of {table}", step=seldom)
    except AssertionError:
        missing = expected - found(service, table)
        raise RowsMissing(table, missing, sum(expected.values())) from None
    seen = found(service, table)
    doubled = seen - (expected | (gone or Counter()))
    assert not doubled, f"{len(doubled)} records too many, e.g. {next(iter(doubled))}"
    in_order(service.delivered(service.topic(table)))
    return sum(seen.values())


def found(service: Service, table: str) -> Counter[tuple[str, str, int]]:
    records = (record["value"] for record in service.delivered(service.topic(table)))
    sources = (value["source"] for value in records if value is not None)
    return Counter((source["stream_id"], source["time"], source["batch_seq_no"]) for source in sources)


def in_order(records: list[dict[str, Any]]) -> None:
    """Per record key the write times never go back."""
    last: dict[bytes, int] = defaultdict(int)
    for record in sorted(records, key=lambda record: (record["partition"], record["offset"])):
        if record["value"] is None:
            continue
        at = record["value"]["source"]["ts_us"]
        assert at >= last[record["key"]], f"{record['key']!r}: {at} after {last[record['key']]}"
        last[record["key"]] = at


class Workload(Repeated):
    """Writes until stopped: inserts, updates, deletes and batches over a few hundred keys of several tables."""

    def __init__(self, session: Session, tables: list[str], seed: int, pause: float = 0.004) -> None:
        super().__init__(pause)
        self._session = session
        self._tables = tables
        self._random = random.Random(seed)
        self.written = 0

    def once(self) -> None:
        self._write(self._random.choice(self._tables))
        self.written += 1

    def _write(self, table: str) -> None:
        draw = self._random.random
        pk, ck = self._random.randrange(60), self._random.randrange(4)
        if draw() < 0.5:
            statement = f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, {ck}, '{self.written}')"
        elif draw() < 0.6:
            statement = f"UPDATE {table} SET v = '{self.written}' WHERE pk = {pk} AND ck = {ck}"
        elif draw() < 0.5:
            statement = f"DELETE FROM {table} WHERE pk = {pk} AND ck = {ck}"
        else:
            rows = "; ".join(
                f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, {each}, '{self.written}')" for each in range(4)
            )
            statement = f"BEGIN UNLOGGED BATCH {rows}; APPLY BATCH"
        self._session.execute(statement)


def create_table(
    scylla: Scylla,
    session: Session,
    keyspace: str,
    *,
    tablets: bool,
    cdc: str = "{'enabled': true}",
    columns: str = "v text",
) -> str:
    session.execute(scylla.keyspace_ddl(keyspace, tablets=tablets))
    session.execute(f"CREATE TABLE {keyspace}.t (pk int, ck int, {columns}, PRIMARY KEY (pk, ck)) WITH cdc = {cdc}")
    return f"{keyspace}.t"
