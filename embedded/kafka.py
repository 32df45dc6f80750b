"""A real Apache Kafka broker on this machine: one node, KRaft, loopback only, for the demo, tests and benchmarks.

In go a port and a data folder (free and temporary when not given), out comes a running broker's `bootstrap_servers`.
It can be stopped, killed, paused and restarted on the same data and port, and ends with its program in any case.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

from connector.errors import EmbeddedError
from embedded import ports
from embedded.class_archive import archive_options
from embedded.process import TiedProcess
from spark_jobs.jvm import ENVIRONMENT, Java, cache_dir, find_java, jar_set, resolve

# The compiler's second stage never pays off in a broker that lives for minutes, and costs start-up time on few cores.
# Performance counters are a file in the system's temporary folder that outlives a killed JVM.
JVM_OPTIONS = (
    "-Xms128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    # The broker makes upper case of names by the language of whoever starts it: in Turkish, CLASSIC has another I.
    "-Duser.language=en",
    "-Dlog4j2.level=WARN",
)

# One node: nothing can be replicated, nobody else joins, and clients are tested for how they take failures, so what a
# production broker waits for is short here. Topics are never created by a reader's typing error.
_PROPERTIES = {
    "process.roles": "broker,controller",
    # What an idle broker does is done for each of its threads, and for a record twice a second by which other
    # controllers would tell how far behind they are: it takes twice the processor time with what is usual.
    "num.network.threads": "1",
    "num.io.threads": "2",
    "metadata.max.idle.interval.ms": "0",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.fetch.timeout.ms": "200",
    "broker.heartbeat.interval.ms": "1000",
}

#: Properties for a broker that is killed and started again: after SIGKILL the controller takes it back only when its
#: predecessor's session has run out. With Kafka's own nine seconds a broker may get no processor for a while and still
#: leads its partitions.
TO_BE_KILLED: Final = {"broker.session.timeout.ms": "2500"}


# A broker that cannot start ends, and says why: this is for one that hangs. So many JVMs at once as those of a cluster
# are slow to start on few processors.
_READY_SECONDS = 240.0
# A port that is free when it is chosen may be taken a second later, when the broker comes to it.
_PORT_ATTEMPTS = 3


class _PortTaken(EmbeddedError):
    pass


def random_id() -> str:
    """A Kafka identity: 22 characters of base64; one that begins with a dash would pass for an option."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode().replace("-", "_")


@dataclass(frozen=True)
class Member:
    """Which node of which cluster a broker is. ``controllers`` are the ports of all nodes' controllers, from node 1."""

    node: int = 1
    controllers: tuple[int, ...] = ()
    cluster: str = field(default_factory=random_id)


class EmbeddedKafka:
    """A broker to be used with `with`, or by `start` and `close`.

    `properties` are further broker properties and win over the built-in ones, `jvm_options` replace the class archive
    that makes the start quick. A data folder that was given is kept and
    can be started from again; a temporary one goes with the broker. `member` makes it one broker of several
    (`embedded/kafka_cluster.py`); it answers only when most of them run.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        data: str | os.PathLike[str] | None = None,
        properties: Mapping[str, str] | None = None,
        heap: str = "512m",
        jvm_options: Sequence[str] = (),
        ready_seconds: float = _READY_SECONDS,
        member: Member | None = None,
    ) -> None:
        self._given_port = port
        self._temporary = data is None
        self._data = None if data is None else Path(data).absolute()
        self._properties = dict(properties or {})
        self._heap = heap
        self._jvm_options = tuple(jvm_options)
        self._ready_seconds = ready_seconds
        self._member = member or Member()
        self._port = port
        self._process: TiedProcess | None = None

    @property
    def port(self) -> int:
        if self._port is None:
            raise EmbeddedError("the Kafka broker was not started yet")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"{ports.HOST}:{self.port}"

    @property
    def data(self) -> Path:
        if self._data is None:
            raise EmbeddedError("the Kafka broker was not started yet")
        return self._data

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self._process is None:
            raise EmbeddedError("the Kafka broker is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> EmbeddedKafka:
        """Starts the broker, on the data and port it had before, and returns when it answers."""
        if self.running:
            return self
        self._forget()
        java, classpath = find_java(), broker_classpath()
        chosen = self._port is None
        try:
            for attempt in range(_PORT_ATTEMPTS):
                if chosen:
                    self._port = ports.free_port()
                ports.require_free(self.port)
                try:
                    self._launch(java, classpath)
                    return self
                except _PortTaken:
                    if attempt == _PORT_ATTEMPTS - 1:
                        raise
                    self._forget()
        except BaseException:
            self.close()
            raise
        return self

    def _launch(self, java: Java, classpath: str) -> None:
        if self._data is None:
            self._data = Path(tempfile.mkdtemp(prefix="scylla-cdc-kafka-"))
        self._prepare_data(java, classpath)
        shared = self._jvm_options or archive_options(java, classpath)
        command = [str(java.executable), *JVM_OPTIONS, *shared, f"-Xmx{self._heap}", "-cp", classpath]
        # Compression libraries unpack themselves there and would stay behind after a kill.
        command.append(f"-Djava.io.tmpdir={self._data / 'tmp'}")
        self._process = TiedProcess(
            [*command, "kafka.Kafka", str(self._data / "server.properties")],
            self._log,
            environment=ENVIRONMENT,
            remove=[self._data] if self._temporary else [],
        )
        self._wait_until_ready()

    def stop(self) -> None:
        """SIGTERM: the broker closes its files in order. Data and port stay for a restart."""
        if self._process is not None:
            self._process.end(grace=30)
        self._forget()

    def kill(self) -> None:
        """SIGKILL. Data and port stay for a restart."""
        if self._process is not None:
            self._process.end(grace=0)
        self._forget()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        if self._process is not None:
            self._process.pause()

    def resume(self) -> None:
        """SIGCONT."""
        if self._process is not None:
            self._process.resume()

    def restart(self) -> None:
        """Stops the broker if it runs and starts it on the same data and port."""
        self.stop()
        self.start()

    def wait(self, timeout: float) -> int | None:
        """Waits for the broker to end by itself; its exit status, None when it still runs after `timeout`."""
        return None if self._process is None else self._process.wait(timeout)

    def close(self) -> None:
        """Ends the broker; temporary data are removed, so nothing has to be closed in order."""
        if self._temporary:
            self.kill()
            if self._data is not None:
                shutil.rmtree(self._data, ignore_errors=True)
                self._data = None
                self._port = self._given_port
        else:
            self.stop()

    def __enter__(self) -> EmbeddedKafka:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _log(self) -> Path:
        return self.data / "broker.log"

    def _forget(self) -> None:
        if self._process is not None:
            self._process.release()
            self._process = None

    def _prepare_data(self, java: Java, classpath: str) -> None:
        data, member = self.data, self._member
        # Alone, a broker's controller is nobody else's business: its port may be another one each time.
        # Two listeners of one port end the broker at its start. Its own is not bound yet, so it would count as free.
        controllers = member.controllers or (ports.free_port(beside=self.port),)
        logs = data / "logs"
        for folder in (logs, data / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        broker = f"PLAINTEXT://{ports.HOST}:{self.port}"
        properties = _PROPERTIES | {
            "node.id": str(member.node),
            "listeners": f"{broker},CONTROLLER://{ports.HOST}:{controllers[member.node - 1]}",
            "advertised.listeners": broker,
            "controller.quorum.voters": ",".join(
                f"{node}@{ports.HOST}:{port}" for node, port in enumerate(controllers, 1)
            ),
            "log.dirs": str(logs),
        }
        properties |= self._properties
        lines = [f"{name}={_escaped(value)}\n" for name, value in properties.items()]
        (data / "server.properties").write_text("".join(lines), encoding="ascii")
        if not (logs / "meta.properties").is_file():
            _format(java, classpath, data / "server.properties", logs, member)

    def _wait_until_ready(self) -> None:
        """Until a client gets an answer; a listening socket alone comes some hundred milliseconds too early."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        assert self._process is not None
        deadline = time.monotonic() + self._ready_seconds
        client = None
        while self._process.wait(0.02) is None:
            if time.monotonic() > deadline:
                raise EmbeddedError(f"the Kafka broker did not answer in {self._ready_seconds:g} s{self._tail()}")
            if client is None:
                with contextlib.suppress(OSError), socket.create_connection((ports.HOST, self.port), 1):
                    client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
                continue
            with contextlib.suppress(KafkaException):
                if client.list_topics(timeout=1).brokers:
                    return
        tail = self._tail()
        kind = _PortTaken if "Address already in use" in tail else EmbeddedError
        raise kind(f"the Kafka broker ended at its start (status {self._process.poll()}){tail}")

    def _tail(self) -> str:
        """The last lines of the broker's log, for an error."""
        try:
            lines = self._log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "".join(f"\n  {line}" for line in lines[-12:])


def _escaped(value: str) -> str:
    """As a Java properties file wants it: backslashes doubled, all but ASCII as UTF-16 escapes."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)


def broker_classpath() -> str:
    """The broker's jars, fetched if they are not there yet."""
    return os.pathsep.join(str(path) for path in resolve("broker"))


def _format(java: Java, classpath: str, properties: Path, logs: Path, member: Member) -> None:
    """Does what Kafka's storage tool does, with the tool's own result of an earlier time if there is one.

    Only the two identities in `meta.properties` differ between formatted folders, and starting a JVM for them would
    double the time until the broker is ready.
    """
    kept = cache_dir() / "kafka" / f"formatted-{jar_set('broker').roots[0].version}.checkpoint"
    checkpoint = logs / "bootstrap.checkpoint"
    if not kept.is_file():
        command = [str(java.executable), *JVM_OPTIONS, "-cp", classpath, "kafka.tools.StorageTool", "format"]
        command += ["-t", member.cluster, "-c", str(properties), "--ignore-formatted"]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
        if done.returncode != 0:
            raise EmbeddedError(f"Kafka's data folder could not be formatted:\n{done.stdout}{done.stderr}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        shutil.copyfile(checkpoint, fresh)
        os.replace(fresh, kept)
        return
    shutil.copyfile(kept, checkpoint)
    identities = f"version=1\nnode.id={member.node}\ncluster.id={member.cluster}\ndirectory.id={random_id()}\n"
    (logs / "meta.properties").write_text(identities)
