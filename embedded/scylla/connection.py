"""One client connection: frames in, frames out, and the states from OPTIONS to READY.

In: bytes from the transport. Out: response frames; events when the client registered. A frame that is not one costs
this connection and nothing else; a request that is wrong costs an error.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from embedded.scylla.answers import Answer, Session, statement_texts
from embedded.scylla.auth import ANONYMOUS, AUTHENTICATOR
from embedded.scylla.errors import (
    ConfigurationException,
    CqlError,
    ProtocolError,
    ServerError,
    SyntaxException,
    Unprepared,
)
from embedded.scylla.faults import RateLimited
from embedded.scylla.handshake import requested_compression, supported_body
from embedded.scylla.nodes import Client, Node
from embedded.scylla.protocol import frame, responses
from embedded.scylla.protocol.compression import COMPRESSORS, DECOMPRESSORS, BadCompression
from embedded.scylla.protocol.frame import Header
from embedded.scylla.protocol.primitives import Malformed, encode_bytes, encode_string
from embedded.scylla.protocol.requests import (
    AuthResponse,
    Batch,
    Execute,
    Options,
    Prepare,
    Query,
    Register,
    Request,
    Startup,
    parse_request,
    strip_custom_payload,
)
from embedded.scylla.versions import METADATA_ID, RATE_LIMIT

if TYPE_CHECKING:
    from embedded.scylla.faults import Fault
    from embedded.scylla.listener import Listener

Compressor = Callable[[bytes], bytes]

# Before a client has logged in it gets no more memory than a handshake needs.
_MAX_HANDSHAKE: Final = 1024 * 1024
_HIGH_WATER: Final = 8 * 1024 * 1024

CONNECTED: Final = "ESTABLISHED"
AUTHENTICATING: Final = "AUTHENTICATING"
READY: Final = "READY"


class Connection(asyncio.Protocol):
    """Requests are answered in the order in which they came, except those that a fault delays."""

    def __init__(self, server: Listener, node: Node, *, shard_aware: bool) -> None:
        self._server = server
        self._cluster = server.cluster
        self.node = node
        self.session = Session(node)
        self.stage = CONNECTED
        self.startup: dict[str, str] = {}
        self.peer: tuple[str, int] = ("", 0)
        self._shard_aware = shard_aware
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._version: int | None = None
        self._compression: str | None = None
        self._compress: Compressor | None = None
        self._write_blocked = False
        self._closing = False
        # Since when the rest of a frame, or of the handshake, is outstanding; 0 if nothing is.
        self._owing_since = time.monotonic()

    # The transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.peer = self._transport.get_extra_info("peername")[:2]
        counters = self._cluster.counters
        if not self.node.up or self._cluster.faults.refuses(self.node.number):
            counters.refused += 1
            self.abort()
            return
        counters.connections += 1
        # On the shard-aware port the client has chosen its source port so that the remainder is the shard it wants.
        wanted = self.peer[1] % self.node.shards if self._shard_aware else None
        self.session.shard = self.node.attach(self, wanted)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._server.tune(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._buffer.clear()
        self.node.detach(self)
        self._cluster.events.forget(self)

    def pause_writing(self) -> None:
        """The client does not read its answers: stop taking its requests until it does."""
        self._write_blocked = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._write_blocked = False
        if self._transport is not None and not self._closing:
            self._transport.resume_reading()
            self._owing_since = time.monotonic()
            self._consume()

    def data_received(self, data: bytes) -> None:
        self._cluster.counters.bytes_in += len(data)
        self._buffer += data
        self._consume()

    def abort(self) -> None:
        """End the connection at once, unsent answers included."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        """End the connection when what was written has been sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        # A client may go while its requests are being answered; asyncio warns of what is written to it from then on.
        if self._transport is not None and not self._closing and not self._transport.is_closing():
            self._cluster.counters.bytes_out += len(data)
            self._transport.write(data)

    # Frames

    def _consume(self) -> None:
        buffer = self._buffer
        start = 0
        while not self._closing and not self._write_blocked and start < len(buffer):
            header = self._next_header(start)
            if header is None:
                break
            body_start = start + frame.HEADER_LENGTH
            stop = body_start + header.length
            if stop > len(buffer):
                break
            body = bytes(memoryview(buffer)[body_start:stop])
            start = stop
            self._frame(header, body)
        if self._closing:
            buffer.clear()
        elif start:
            del buffer[:start]
        if self.stage == READY:
            if not buffer:
                self._owing_since = 0.0
            elif start or not self._owing_since:
                self._owing_since = time.monotonic()

    def overdue(self, patience: float) -> bool:
        """Whether the client has been owing the rest of a frame or of the handshake for so many seconds. One that may
        not go on, as it does not read its answers, owes nothing; nor does one that is merely idle."""
        return 0.0 < self._owing_since < time.monotonic() - patience and not self._write_blocked

    def _next_header(self, start: int) -> Header | None:
        """The header, if it is all there; what can be refused is refused by the first byte already."""
        version = self._buffer[start]
        if version & frame.RESPONSE_BIT or version not in frame.VERSIONS:
            stream = 0
            if len(self._buffer) - start >= 4:
                stream = int.from_bytes(self._buffer[start + 2 : start + 4], "big", signed=True)
            shown = version & ~frame.RESPONSE_BIT
            self._fatal(stream, ProtocolError(f"Invalid or unsupported protocol version: {shown}"))
            return None
        if len(self._buffer) - start < frame.HEADER_LENGTH:
            return None
        header = frame.read_header(self._buffer, start)
        limit = frame.MAX_BODY_LENGTH if self.stage == READY else _MAX_HANDSHAKE
        if not 0 <= header.length <= limit:
            size = header.length & 0xFFFFFFFF
            self._fatal(
                header.stream,
                ProtocolError(f"request size too large (need estimate {size} bytes, max allowed {limit} bytes)"),
            )
            return None
        if self._version is not None and version != self._version:
            text = f"Invalid message version. Got {version} but previous messages on this connection had version"
            self._fatal(header.stream, ProtocolError(f"{text} {self._version}"))
            return None
        return header

    def _frame(self, header: Header, body: bytes) -> None:
        self.session.version = header.version
        try:
            if header.flags & frame.FLAG_COMPRESSED:
                if self._compression is None:
                    raise BadCompression("a compressed frame, but no compression was agreed on")
                body = DECOMPRESSORS[self._compression](body)
            if header.flags & frame.FLAG_CUSTOM_PAYLOAD:
                body = strip_custom_payload(body)
            metadata_ids = METADATA_ID in self.session.extensions
            request = parse_request(header.opcode, header.version, body, metadata_ids=metadata_ids)
        except BadCompression as error:
            self._fatal(header.stream, ProtocolError(str(error)))
            return
        except Malformed as error:
            self._cluster.counters.protocol_errors += 1
            self._error(header.stream, ProtocolError(str(error)))
            return
        counters = self._cluster.counters
        counters.requests[frame.OPCODE_NAMES[header.opcode]] += 1
        counters.requests_by_node[str(self.node.number)] += 1
        if isinstance(request, Query | Execute | Prepare | Batch):
            self._statement(header.stream, header.opcode, request)
        else:
            self._handshake(header.stream, request)

    def _send(self, stream: int, opcode: int, body: bytes) -> None:
        self._write(responses.frame_bytes(self.session.version, stream, opcode, body, compressor=self._compress))

    def _error(self, stream: int, error: CqlError) -> None:
        if isinstance(error, RateLimited) and RATE_LIMIT not in self.session.extensions:
            error = ConfigurationException(str(error))
        self._cluster.counters.errors[type(error).__name__] += 1
        self._send(stream, frame.ERROR, responses.error_body(error))

    def _fatal(self, stream: int, error: CqlError) -> None:
        """The connection cannot be trusted any more: say why, uncompressed, and hang up."""
        self._cluster.counters.protocol_errors += 1
        self._compress = None
        self.session.version = self._version or frame.NEWEST_VERSION
        self._error(stream, error)
        self._close()

    def push_event(self, body: bytes) -> None:
        self._send(frame.EVENT_STREAM, frame.EVENT, body)

    # Handshake

    def _handshake(self, stream: int, request: Request) -> None:
        try:
            if isinstance(request, Options):
                self._send(stream, frame.SUPPORTED, supported_body(self._server, self.node, self.session.shard))
            elif isinstance(request, Startup):
                self._start(stream, request)
            elif isinstance(request, AuthResponse):
                self._authenticate(stream, request)
            elif isinstance(request, Register):
                self._expect_ready("REGISTER")
                self._cluster.events.register(self, request.events)
                self._send(stream, frame.READY, b"")
        except CqlError as error:
            self._error(stream, error)

    def _start(self, stream: int, request: Startup) -> None:
        if self.stage != CONNECTED:
            raise ProtocolError("Unexpected message STARTUP, the connection has been started")
        if "CQL_VERSION" not in request.options:
            raise ProtocolError("Missing value CQL_VERSION in STARTUP message")
        compression = requested_compression(request.options)
        self.startup = request.options
        self.session.extensions = self.node.version.offered & request.options.keys()
        self._version = self.session.version
        if self._cluster.settings.credentials is None:
            self.session.user = ANONYMOUS
            self.stage = READY
            self._send(stream, frame.READY, b"")
        else:
            self.stage = AUTHENTICATING
            self._send(stream, frame.AUTHENTICATE, encode_string(AUTHENTICATOR))
        # What was agreed counts from the next frame on: the answer to STARTUP itself goes out as it is.
        if compression is not None:
            self._compression = compression
            self._compress = COMPRESSORS[compression]

    def _authenticate(self, stream: int, request: AuthResponse) -> None:
        credentials = self._cluster.settings.credentials
        if self.stage != AUTHENTICATING or credentials is None:
            raise ProtocolError("Unexpected message AUTH_RESPONSE, no authentication is under way")
        self.session.user = credentials.check(request.token)
        self.stage = READY
        self._send(stream, frame.AUTH_SUCCESS, encode_bytes(None))

    def _expect_ready(self, message: str) -> None:
        if self.stage == CONNECTED:
            raise ProtocolError(f"Unexpected message {message}, expecting STARTUP or OPTIONS")
        if self.stage == AUTHENTICATING:
            raise ProtocolError(f"Unexpected message {message}, expecting AUTH_RESPONSE")

    # Statements

    def _statement(self, stream: int, opcode: int, request: Query | Execute | Prepare | Batch) -> None:
        try:
            self._expect_ready(frame.OPCODE_NAMES[opcode])
        except CqlError as error:
            self._error(stream, error)
            return
        faults = self._cluster.faults
        if faults.rules:
            texts = statement_texts(request, self.node)
            fault = faults.strike(self.node.number, frame.OPCODE_NAMES[opcode], texts)
            if fault is not None:
                self._cluster.counters.faults[fault.action] += 1
                self._faulty(stream, request, fault)
                return
        self._reply(stream, self._answer(request))

    def _answer(self, request: Query | Execute | Prepare | Batch) -> Answer | CqlError:
        try:
            return self._server.answerer.answer(self.session, request)
        except CqlError as error:
            return error
        except RecursionError:
            return SyntaxException("line 1:0 the statement is nested too deeply")
        except Exception as error:
            # A mistake of ours must show, but it must not take the server down with it.
            traceback.print_exc(file=sys.stderr)
            return ServerError(f"{type(error).__name__}: {error}")

    def _reply(self, stream: int, answer: Answer | CqlError) -> None:
        if self._closing:
            return
        if isinstance(answer, CqlError):
            self._error(stream, answer)
        else:
            self._write(
                responses.frame_bytes(
                    self.session.version,
                    stream,
                    answer.opcode,
                    answer.body,
                    warnings=answer.warnings,
                    payload=answer.payload,
                    compressor=self._compress,
                )
            )

    def _faulty(self, stream: int, request: Query | Execute | Prepare | Batch, fault: Fault) -> None:
        """Do what the rule says instead of, before or after what the client asked for."""
        after = fault.when == "after"
        if fault.action == "delay":
            loop = asyncio.get_running_loop()
            if after:
                answer = self._answer(request)
                loop.call_later(fault.delay_ms / 1000, lambda: self._reply(stream, answer))
            else:
                loop.call_later(
                    fault.delay_ms / 1000,
                    lambda: None if self._closing else self._reply(stream, self._answer(request)),
                )
            return
        if fault.action == "drop_mid_page":
            answer = self._answer(request)
            if isinstance(answer, Answer):
                whole = responses.frame_bytes(self.session.version, stream, answer.opcode, answer.body)
                self._write(whole[: max(frame.HEADER_LENGTH + 1, len(whole) // 2)])
            self._close()
            return
        if after:
            outcome = self._answer(request)
            if isinstance(outcome, CqlError):
                self._error(stream, outcome)
                return
        if fault.action == "drop":
            self.abort()
        elif fault.action == "unprepared" and isinstance(request, Execute):
            self.node.prepared.pop(request.id, None)
            self._error(stream, Unprepared(request.id))
        elif fault.action == "unprepared":
            self._reply(stream, self._answer(request))
        elif fault.action != "silence":
            level = 1 if isinstance(request, Prepare) else request.parameters.consistency
            self._error(stream, fault.error(level))

    def client(self) -> Client:
        return Client(
            self.peer[0],
            self.peer[1],
            self.stage,
            self.session.version,
            self.session.user,
            self.session.keyspace,
            self._compression,
            self._server.encrypted,
            self.startup,
        )
