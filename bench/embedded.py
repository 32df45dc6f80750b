"""The embedded ScyllaDB: how soon it is ready, how fast it takes single-row INSERTs into a CDC table, fills a log with
generated rows, and serves log pages to a reader that throws them away. One connection, raw frames, both sides on this
machine; "per CPU-second" is the server's CPU time.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import Reader, encode_string

INSERTS = 40_000
PRELOADED = 500_000
PAGE = 5_000
IN_FLIGHT = 64
ROUNDS = 3
KEYSPACE = (
    "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    " AND tablets = {'enabled': false}"
)
TABLE = "CREATE TABLE bench.{} (pk bigint, ck int, v int, w text, PRIMARY KEY (pk, ck)) WITH cdc = {{'enabled': true}}"
LOWEST = bytes.fromhex("00000000000010008080808080808080")
HIGHEST = bytes.fromhex("ffffffffffff1fff7f7f7f7f7f7f7f7f")


def main() -> dict[str, str]:
    began = time.monotonic()
    with EmbeddedScylla(vnodes=8, ring_delay=0, seed=1) as server:
        figures = {"ready": f"{time.monotonic() - began:.2f} s"}
        server.admin.cql(KEYSPACE)
        for table in ("inserted", "preloaded"):
            server.admin.cql(TABLE.format(table))
        with Wire(server) as wire:
            figures["prepared INSERTs into a CDC table"] = _insert(server, wire)
            figures["preload"] = _preload(server)
            figures["log rows served"] = _read(server, wire)
    return figures


class Wire:
    """One connection that keeps several requests in flight."""

    def __init__(self, server: EmbeddedScylla) -> None:
        self._socket = socket.create_connection((server.host, server.port), 60)
        self._file = self._socket.makefile("rb", buffering=1 << 20)
        self.send(frame.STARTUP, struct.pack(">H", 1) + encode_string("CQL_VERSION") + encode_string("3.0.0"))
        self.receive()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def send(self, opcode: int, body: bytes) -> None:
        self._socket.sendall(frame.HEADER.pack(4, 0, 1, opcode, len(body)) + body)

    def receive(self) -> bytes:
        header = frame.read_header(self._file.read(frame.HEADER_LENGTH), 0)
        body: bytes = self._file.read(header.length)
        if header.opcode == frame.ERROR:
            reader = Reader(body)
            raise RuntimeError(f"error 0x{reader.int32():04x}: {reader.string()}")
        return body

    def prepare(self, statement: str) -> bytes:
        """The statement's id as EXECUTE begins with it."""
        raw = statement.encode()
        self.send(frame.PREPARE, struct.pack(">i", len(raw)) + raw)
        identifier = Reader(self.receive()[4:]).short_bytes()
        return struct.pack(">H", len(identifier)) + identifier


def _values(*values: bytes) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(struct.pack(">i", len(value)) + value for value in values)


def _cpu_seconds(server: EmbeddedScylla) -> float:
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(server: EmbeddedScylla) -> int:
    pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _rate(count: int, wall: float, cpu: float) -> str:
    return f"{count / wall:,.0f}/s, {count / cpu:,.0f} per CPU-second"


def _insert(server: EmbeddedScylla, wire: Wire) -> str:
    statement = wire.prepare("INSERT INTO bench.inserted (pk, ck, v, w) VALUES (?, ?, ?, ?)")
    began, cpu = time.monotonic(), _cpu_seconds(server)
    for number in range(INSERTS + IN_FLIGHT):
        if number >= IN_FLIGHT:
            wire.receive()
        if number < INSERTS:
            cells = (struct.pack(">q", number % 997), struct.pack(">i", number), struct.pack(">i", 7), b"some text")
            wire.send(frame.EXECUTE, statement + struct.pack(">HB", 1, 1) + _values(*cells))
    return _rate(INSERTS, time.monotonic() - began, _cpu_seconds(server) - cpu)


def _preload(server: EmbeddedScylla) -> str:
    began, memory = time.monotonic(), _memory(server)
    server.admin.preload("bench.preloaded", rows=PRELOADED, seed=1)
    rate = f"{PRELOADED / (time.monotonic() - began):,.0f} rows/s"
    return f"{rate}, {(_memory(server) - memory) / PRELOADED:.0f} bytes of memory per row"


def _read(server: EmbeddedScylla, wire: Wire) -> str:
    statement = wire.prepare(
        'SELECT * FROM bench.preloaded_scylla_cdc_log WHERE "cdc$stream_id" = ? AND "cdc$time" > ? AND "cdc$time" <= ?'
    )
    generations = server.admin.streams()["generations"]
    streams = {
        bytes.fromhex(raw)
        for generation in generations
        for of_range in generation["ranges"]
        for raw in of_range["streams"]
    }
    rows, began, cpu = 0, time.monotonic(), _cpu_seconds(server)
    for _ in range(ROUNDS):
        for stream in streams:
            rows += _read_stream(wire, statement, stream)
    return f"{rows:,} rows, " + _rate(rows, time.monotonic() - began, _cpu_seconds(server) - cpu)


def _read_stream(wire: Wire, statement: bytes, stream: bytes) -> int:
    rows, state = 0, None
    values = _values(stream, LOWEST, HIGHEST)
    while True:
        body = struct.pack(">HB", 1, 0x07 if state is None else 0x0F) + values + struct.pack(">i", PAGE)
        if state is not None:
            body += struct.pack(">i", len(state)) + state
        wire.send(frame.EXECUTE, statement + body)
        reader = Reader(wire.receive())
        reader.int32()
        flags = reader.int32()
        reader.int32()
        state = reader.optional_bytes() if flags & 2 else None
        rows += reader.int32()
        if state is None:
            return rows
