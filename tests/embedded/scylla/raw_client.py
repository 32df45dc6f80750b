"""A CQL client that speaks frames and nothing else: it sends what a test says, right or wrong, and shows the answers.

In: opcodes and bodies. Out: `Response` values; rows as lists of raw cells by column name.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embedded.scylla.protocol import frame
from embedded.scylla.protocol.compression import COMPRESSORS, DECOMPRESSORS
from embedded.scylla.protocol.primitives import Reader, encode_string, encode_string_list

Value = bytes | None | str
UNSET = "UNSET"
LONG = 0x40


def text(value: str) -> bytes:
    return value.encode()


def long_string(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def value_bytes(value: Value) -> bytes:
    if value is None:
        return struct.pack(">i", -1)
    if value == UNSET:
        return struct.pack(">i", -2)
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">i", len(raw)) + raw


def parameters(
    values: Sequence[Value] | dict[str, Value] = (),
    *,
    consistency: int = 1,
    page_size: int | None = None,
    paging_state: bytes | None = None,
    timestamp: int | None = None,
    skip_metadata: bool = False,
) -> bytes:
    flags, parts = 0, []
    if values:
        flags |= 0x01
        parts.append(struct.pack(">H", len(values)))
        if isinstance(values, dict):
            flags |= 0x40
            parts += [encode_string(name) + value_bytes(value) for name, value in values.items()]
        else:
            parts += [value_bytes(value) for value in values]
    if skip_metadata:
        flags |= 0x02
    if page_size is not None:
        flags |= 0x04
        parts.append(struct.pack(">i", page_size))
    if paging_state is not None:
        flags |= 0x08
        parts.append(value_bytes(paging_state))
    if timestamp is not None:
        flags |= 0x20
        parts.append(struct.pack(">q", timestamp))
    return struct.pack(">HB", consistency, flags) + b"".join(parts)


@dataclass(frozen=True)
class Response:
    version: int
    flags: int
    stream: int
    opcode: int
    body: bytes

    @property
    def error(self) -> tuple[int, str]:
        assert self.opcode == frame.ERROR, self
        reader = Reader(self.body)
        return reader.int32() & 0xFFFFFFFF, reader.string()


@dataclass(frozen=True)
class Result:
    """A RESULT of rows. `types` are the type codes of the columns."""

    columns: list[str]
    types: list[int]
    rows: list[list[bytes | None]]
    paging_state: bytes | None
    metadata_flags: int
    metadata_id: bytes | None = None

    def dicts(self) -> list[dict[str, bytes | None]]:
        return [dict(zip(self.columns, row)) for row in self.rows]


@dataclass(frozen=True)
class PreparedStatement:
    id: bytes
    flags: int
    binds: list[str]
    key_indexes: list[int]
    columns: list[str]
    types: list[int]
    metadata_id: bytes | None = None


def _skip_type(reader: Reader) -> int:
    code = reader.short()
    if code == 0:
        reader.string()
    elif code in (0x20, 0x22):
        _skip_type(reader)
    elif code == 0x21:
        _skip_type(reader)
        _skip_type(reader)
    elif code == 0x30:
        reader.string(), reader.string()
        for _ in range(reader.short()):
            reader.string()
            _skip_type(reader)
    elif code == 0x31:
        for _ in range(reader.short()):
            _skip_type(reader)
    return code


def _columns(reader: Reader, count: int, flags: int) -> tuple[list[str], list[int]]:
    if flags & 1 and count:
        reader.string(), reader.string()
    names, types = [], []
    for _ in range(count):
        if not flags & 1:
            reader.string(), reader.string()
        names.append(reader.string())
        types.append(_skip_type(reader))
    return names, types


def parse_rows(body: bytes, known: PreparedStatement | None = None) -> Result:
    reader = Reader(body)
    assert reader.int32() == 2, "not rows"
    flags, count = reader.int32(), reader.int32()
    state = reader.optional_bytes() if flags & 2 else None
    metadata_id = reader.short_bytes() if flags & 8 else None
    if flags & 4:
        names = known.columns if known else [str(at) for at in range(count)]
        types = known.types if known else [0] * count
    else:
        names, types = _columns(reader, count, flags)
    rows = [[reader.optional_bytes() for _ in range(count)] for _ in range(reader.int32())]
    assert reader.remaining == 0
    return Result(names, types, rows, state, flags, metadata_id)


def parse_prepared(body: bytes, version: int = 4, *, metadata_ids: bool = False) -> PreparedStatement:
    reader = Reader(body)
    assert reader.int32() == 4, "not prepared"
    statement_id = reader.short_bytes()
    metadata_id = reader.short_bytes() if metadata_ids else None
    flags, count = reader.int32(), reader.int32()
    keys = [reader.short() for _ in range(reader.int32())] if version >= 4 else []
    binds, _ = _columns(reader, count, flags)
    result_flags, result_count = reader.int32(), reader.int32()
    columns, types = ([], []) if result_flags & 4 else _columns(reader, result_count, result_flags)
    assert reader.remaining == 0
    return PreparedStatement(statement_id, flags, binds, keys, columns, types, metadata_id)


class RawClient:
    """One connection."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        version: int = 4,
        tls: ssl.SSLContext | None = None,
        local_port: int | None = None,
        timeout: float = 20.0,
    ) -> None:
        source = None if local_port is None else ("127.0.0.1", local_port)
        self._socket = socket.create_connection((host, port), timeout, source)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self.version = version
        self.compression: str | None = None
        self.events: list[Response] = []
        self.metadata_ids = False
        self._stream = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send_bytes(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def send(self, opcode: int, body: bytes = b"", *, stream: int | None = None, flags: int = 0) -> int:
        if stream is None:
            self._stream = self._stream % 30_000 + 1
            stream = self._stream
        if self.compression is not None and body:
            body, flags = COMPRESSORS[self.compression](body), flags | frame.FLAG_COMPRESSED
        self.send_bytes(frame.HEADER.pack(self.version, flags, stream, opcode, len(body)) + body)
        return stream

    def _exactly(self, count: int) -> bytes:
        parts, missing = [], count
        while missing:
            piece = self._socket.recv(min(missing, 1 << 20))
            if not piece:
                raise ConnectionError("the server closed the connection")
            parts.append(piece)
            missing -= len(piece)
        return b"".join(parts)

    def receive(self) -> Response:
        """The next frame, whatever it is."""
        version, flags, stream, opcode, length = frame.HEADER.unpack(self._exactly(frame.HEADER_LENGTH))
        body = self._exactly(length)
        if flags & frame.FLAG_COMPRESSED:
            assert self.compression is not None
            body = DECOMPRESSORS[self.compression](body)
        return Response(version, flags, stream, opcode, body)

    def answer(self, stream: int) -> Response:
        """The answer on this stream; events on the way are kept."""
        while True:
            response = self.receive()
            if response.opcode == frame.EVENT:
                self.events.append(response)
            else:
                assert response.stream == stream, response
                return response

    def ask(self, opcode: int, body: bytes = b"", *, flags: int = 0) -> Response:
        return self.answer(self.send(opcode, body, flags=flags))

    def event(self) -> Response:
        if self.events:
            return self.events.pop(0)
        response = self.receive()
        assert response.opcode == frame.EVENT, response
        return response

    def startup(self, **options: str) -> Response:
        pairs = {"CQL_VERSION": "3.0.0", **options}
        body = struct.pack(">H", len(pairs)) + b"".join(encode_string(k) + encode_string(v) for k, v in pairs.items())
        response = self.ask(frame.STARTUP, body)
        self.metadata_ids = "SCYLLA_USE_METADATA_ID" in options
        if "COMPRESSION" in options and response.opcode != frame.ERROR:
            self.compression = options["COMPRESSION"]
        return response

    def login(self, user: str, password: str) -> Response:
        return self.ask(frame.AUTH_RESPONSE, value_bytes(f"\0{user}\0{password}"))

    def register(self, *events: str) -> Response:
        return self.ask(frame.REGISTER, encode_string_list(events))

    def query(self, statement: str, values: Sequence[Value] | dict[str, Value] = (), **options: Any) -> Response:
        return self.ask(frame.QUERY, long_string(statement) + parameters(values, **options))

    def rows(self, statement: str, values: Sequence[Value] | dict[str, Value] = (), **options: Any) -> Result:
        response = self.query(statement, values, **options)
        assert response.opcode == frame.RESULT, response.error
        return parse_rows(response.body)

    def done(self, statement: str, values: Sequence[Value] | dict[str, Value] = (), **options: Any) -> None:
        response = self.query(statement, values, **options)
        assert response.opcode == frame.RESULT, response.error

    def prepare(self, statement: str) -> PreparedStatement:
        response = self.ask(frame.PREPARE, long_string(statement))
        assert response.opcode == frame.RESULT, response.error
        return parse_prepared(response.body, self.version, metadata_ids=self.metadata_ids)

    def execute(self, statement: PreparedStatement, values: Sequence[Value] = (), **options: Any) -> Response:
        body = struct.pack(">H", len(statement.id)) + statement.id
        if self.metadata_ids:
            known = statement.metadata_id or b""
            body += struct.pack(">H", len(known)) + known
        body += parameters(values, **options)
        return self.ask(frame.EXECUTE, body)

    def batch(self, entries: Sequence[tuple[str | PreparedStatement, Sequence[Value]]], *, kind: int = 0) -> Response:
        parts = [struct.pack(">BH", kind, len(entries))]
        for statement, values in entries:
            if isinstance(statement, str):
                parts.append(b"\0" + long_string(statement))
            else:
                parts.append(b"\1" + struct.pack(">H", len(statement.id)) + statement.id)
            parts.append(struct.pack(">H", len(values)) + b"".join(value_bytes(value) for value in values))
        parts.append(struct.pack(">HB", 1, 0))
        return self.ask(frame.BATCH, b"".join(parts))
