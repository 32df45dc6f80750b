"""The errors a CQL statement can end with: one class per protocol error code, with that code's extra fields.

In: raised anywhere below the protocol layer. Out: the protocol layer writes `code`, the message and
`fields()` into an ERROR frame. The layout of the extra fields is the native protocol's (v4, section 9).
"""

from __future__ import annotations

import struct

from connector.errors import EmbeddedError


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


class CqlError(EmbeddedError):
    """Root of everything that is answered to the client as an ERROR frame."""

    code = 0x0000

    def fields(self) -> bytes:
        """What follows the message in the frame's body."""
        return b""


class ServerError(CqlError):
    """Something unexpected happened on the server."""


class ProtocolError(CqlError):
    """The client broke the protocol."""

    code = 0x000A


class BadCredentials(CqlError):
    """Authentication failed."""

    code = 0x0100


class Unavailable(CqlError):
    """Too few replicas are alive for the consistency level."""

    code = 0x1000

    def __init__(self, message: str, consistency: int, required: int, alive: int) -> None:
        super().__init__(message)
        self.consistency, self.required, self.alive = consistency, required, alive

    def fields(self) -> bytes:
        return struct.pack(">Hii", self.consistency, self.required, self.alive)


class Overloaded(CqlError):
    """The coordinator has too much to do."""

    code = 0x1001


class IsBootstrapping(CqlError):
    """The coordinator is still joining."""

    code = 0x1002


class TruncateError(CqlError):
    """A TRUNCATE failed."""

    code = 0x1003


class WriteTimeout(CqlError):
    """Too few replicas acknowledged a write in time."""

    code = 0x1100

    def __init__(
        self, message: str, consistency: int, received: int, required: int, write_type: str = "SIMPLE"
    ) -> None:
        super().__init__(message)
        self.consistency, self.received, self.required, self.write_type = (
            consistency,
            received,
            required,
            write_type,
        )

    def fields(self) -> bytes:
        return struct.pack(">Hii", self.consistency, self.received, self.required) + _string(self.write_type)


class ReadTimeout(CqlError):
    """Too few replicas answered a read in time."""

    code = 0x1200

    def __init__(
        self, message: str, consistency: int, received: int, required: int, data_present: bool = False
    ) -> None:
        super().__init__(message)
        self.consistency, self.received, self.required, self.data_present = (
            consistency,
            received,
            required,
            data_present,
        )

    def fields(self) -> bytes:
        return struct.pack(">HiiB", self.consistency, self.received, self.required, self.data_present)


class ReadFailure(CqlError):
    """A replica failed while reading."""

    code = 0x1300

    def __init__(
        self,
        message: str,
        consistency: int,
        received: int,
        required: int,
        failures: int = 1,
        data_present: bool = False,
    ) -> None:
        super().__init__(message)
        self.consistency, self.received, self.required = consistency, received, required
        self.failures, self.data_present = failures, data_present

    def fields(self) -> bytes:
        return struct.pack(">HiiiB", self.consistency, self.received, self.required, self.failures, self.data_present)


class FunctionFailure(CqlError):
    """A function could not be evaluated."""

    code = 0x1400

    def __init__(self, message: str, keyspace: str, function: str, argument_types: tuple[str, ...]) -> None:
        super().__init__(message)
        self.keyspace, self.function, self.argument_types = keyspace, function, argument_types

    def fields(self) -> bytes:
        listed = struct.pack(">H", len(self.argument_types)) + b"".join(map(_string, self.argument_types))
        return _string(self.keyspace) + _string(self.function) + listed


class WriteFailure(CqlError):
    """A replica failed while writing."""

    code = 0x1500

    def __init__(
        self,
        message: str,
        consistency: int,
        received: int,
        required: int,
        failures: int = 1,
        write_type: str = "SIMPLE",
    ) -> None:
        super().__init__(message)
        self.consistency, self.received, self.required = consistency, received, required
        self.failures, self.write_type = failures, write_type

    def fields(self) -> bytes:
        numbers = struct.pack(">Hiii", self.consistency, self.received, self.required, self.failures)
        return numbers + _string(self.write_type)


class SyntaxException(CqlError):
    """The statement is not CQL."""

    code = 0x2000


class Unauthorized(CqlError):
    """The user may not do this."""

    code = 0x2100


class InvalidRequest(CqlError):
    """CQL, but not a request that can be carried out."""

    code = 0x2200


class ConfigurationException(CqlError):
    """An option of a schema statement is wrong."""

    code = 0x2300


class AlreadyExists(CqlError):
    """The keyspace or table that should be created exists; `table` is empty for a keyspace."""

    code = 0x2400

    def __init__(self, message: str, keyspace: str, table: str = "") -> None:
        super().__init__(message)
        self.keyspace, self.table = keyspace, table

    def fields(self) -> bytes:
        return _string(self.keyspace) + _string(self.table)


class Unprepared(CqlError):
    """The statement id is unknown here: prepare again."""

    code = 0x2500

    def __init__(self, statement_id: bytes) -> None:
        super().__init__(f"No prepared statement with ID {statement_id.hex()} found.")
        self.statement_id = statement_id

    def fields(self) -> bytes:
        return struct.pack(">H", len(self.statement_id)) + self.statement_id
