"""A TCP path between clients and a broker of Kafka: answers that do not come back, connections that end, and requests
that are under way for longer than their connection.

librdkafka has a connection to a broker as a leader, and another one to it as the coordinator of transactions.

In: the broker's port. Out: a port in front of it, and the mishaps. `far_kafka` is a broker reached by one alone.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as Folder

from embedded import ports
from embedded.kafka import EmbeddedKafka

#: Kafka's numbers of requests.
RECORDS = 0
END_TRANSACTION = 26
_LENGTH = 4


@dataclass(eq=False, slots=True)
class _Connection:
    client: socket.socket
    broker: socket.socket
    holds: bool = False
    held: bytearray = field(default_factory=bytearray)
    answers: int = 0
    has_records: bool = False

    def end(self) -> None:
        for side in (self.client, self.broker):
            _shut(side)


class Path:
    """To one broker. What happens to it is told by attributes and methods; new connections are whole again."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._connections: list[_Connection] = []
        #: Answers to whoever sends records get lost, and nobody is told.
        self.swallows = False

    def lead_to(self, port: int) -> None:
        threading.Thread(target=self._accept, args=(port,), daemon=True).start()

    def close(self) -> None:
        _shut(self._listening)
        self._listening.close()
        self.cut()

    def cut(self, all_of_them: bool = True) -> None:
        """Connections end, for both sides: those with records alone, or all."""
        for each in list(self._connections):
            if each.has_records or all_of_them:
                each.end()

    def hold(self) -> None:
        """What is sent from now on, on the connections that there are, stays under way."""
        for each in self._connections:
            each.holds = True

    @property
    def under_way(self) -> list[int]:
        """Kafka's numbers of the requests that are held."""
        return [number for each in self._connections for number in _requests(bytes(each.held))]

    def cut_clients(self) -> None:
        """For clients the connections have ended; the broker does not know yet."""
        for each in self._connections:
            _shut(each.client)

    def arrive(self) -> None:
        """All that is under way."""
        for each in self._connections:
            each.answers, each.holds = 0, False
            if each.held:
                each.broker.sendall(each.held)

    @property
    def answered(self) -> bool:
        """Whether the broker has answered whatever arrived late."""
        return all(each.answers for each in self._connections if each.held)

    def _accept(self, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                try:
                    connection = _Connection(client, socket.create_connection(("127.0.0.1", port)))
                except OSError:
                    client.close()
                    continue
                self._connections.append(connection)
                for pump in (self._pass_requests, self._pass_answers):
                    threading.Thread(target=pump, args=(connection,), daemon=True).start()

    def _pass_requests(self, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while sent := connection.client.recv(1 << 16):
                connection.has_records |= RECORDS in _requests(sent)
                if connection.holds:
                    connection.held += sent
                else:
                    connection.broker.sendall(sent)
        if not connection.holds:
            connection.end()

    def _pass_answers(self, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while answer := connection.broker.recv(1 << 16):
                connection.answers += 1
                if not (self.swallows and connection.has_records):
                    with contextlib.suppress(OSError):
                        connection.client.sendall(answer)
        connection.end()
        self._connections.remove(connection)


@dataclass(frozen=True)
class FarKafka:
    """A broker, and the only path to it."""

    kafka: EmbeddedKafka
    path: Path

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.path.port}"

    def stored(self, topic: str) -> int:
        """Bytes in the log of the topic's first partition, as nobody has to ask for."""
        folder: Folder = self.kafka.data / "logs" / f"{topic}-0"
        return sum(file.stat().st_size for file in folder.glob("*.log"))


@contextlib.contextmanager
def far_kafka() -> Iterator[FarKafka]:
    path, port = Path(), ports.free_port()
    path.lead_to(port)
    told = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{path.port}"}
    try:
        with EmbeddedKafka(port=port, properties=told) as kafka:
            yield FarKafka(kafka, path)
    finally:
        path.close()


def _requests(sent: bytes) -> Iterator[int]:
    at = 0
    while at < len(sent):
        yield int.from_bytes(sent[at + _LENGTH : at + _LENGTH + 2])
        at += _LENGTH + int.from_bytes(sent[at : at + _LENGTH])


def _shut(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)
