"""What a client can ask: one frozen dataclass for each request opcode, and their parsers.

In: opcode, protocol version and the unpacked body. Out: a request value, or `Malformed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import INT, Malformed, Reader
from embedded.scylla.results import UNSET, BoundValue

_VALUES: Final = 0x01
_SKIP_METADATA: Final = 0x02
_PAGE_SIZE: Final = 0x04
_PAGING_STATE: Final = 0x08
_SERIAL_CONSISTENCY: Final = 0x10
_DEFAULT_TIMESTAMP: Final = 0x20
_NAMES: Final = 0x40
_LONG_MINIMUM: Final = -(2**63)

CONSISTENCY_NAMES: Final = {
    0x0: "ANY",
    0x1: "ONE",
    0x2: "TWO",
    0x3: "THREE",
    0x4: "QUORUM",
    0x5: "ALL",
    0x6: "LOCAL_QUORUM",
    0x7: "EACH_QUORUM",
    0x8: "SERIAL",
    0x9: "LOCAL_SERIAL",
    0xA: "LOCAL_ONE",
}
_SERIAL_LEVELS: Final = (0x8, 0x9)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What QUERY and EXECUTE carry beside the statement. `values` is a mapping when they were sent by name."""

    consistency: int = 0x1
    values: list[BoundValue] | dict[str, BoundValue] = field(default_factory=list)
    skip_metadata: bool = False
    page_size: int | None = None
    paging_state: bytes | None = None
    serial_consistency: int | None = None
    default_timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Startup:
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class Options:
    pass


@dataclass(frozen=True, slots=True)
class AuthResponse:
    token: bytes | None


@dataclass(frozen=True, slots=True)
class Register:
    events: list[str]


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class Prepare:
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """`metadata_id` is what the client knows the result's columns by; None where that was not agreed on."""

    id: bytes
    parameters: Parameters
    metadata_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """A statement of a batch: its text, or the id of a prepared one."""

    statement: str | bytes
    values: list[BoundValue] | dict[str, BoundValue]


@dataclass(frozen=True, slots=True)
class Batch:
    """`kind` is 0 logged, 1 unlogged, 2 counter; the values in `parameters` stay empty."""

    kind: int
    entries: list[BatchEntry]
    parameters: Parameters


Request = Startup | Options | AuthResponse | Register | Query | Prepare | Execute | Batch


def _consistency(reader: Reader) -> int:
    level = reader.short()
    if level not in CONSISTENCY_NAMES:
        raise Malformed(f"Unknown code {level} for a consistency level")
    return level


def _serial_consistency(reader: Reader) -> int:
    level = _consistency(reader)
    if level not in _SERIAL_LEVELS:
        raise Malformed(
            f"Invalid serial consistency level {CONSISTENCY_NAMES[level]}: only SERIAL and LOCAL_SERIAL are allowed"
        )
    return level


def _timestamp(reader: Reader) -> int:
    timestamp = reader.long()
    if timestamp == _LONG_MINIMUM:
        raise Malformed(f"Out of bound timestamp, must be in [{_LONG_MINIMUM + 1}, {2**63 - 1}] (got {timestamp})")
    return timestamp


def _named_values(reader: Reader, version: int) -> dict[str, BoundValue]:
    return {reader.string(): reader.value(version >= 4) for _ in range(reader.short())}


def _values(reader: Reader, version: int) -> list[BoundValue]:
    """The same as reading value by value, in one loop: this is where single-row INSERTs spend their parsing time."""
    count = reader.short()
    body, position, end = reader.body, reader.position, reader.end
    values: list[BoundValue] = []
    append, unpack = values.append, INT.unpack_from
    for _ in range(count):
        start = position + 4
        if start > end:
            raise Malformed("truncated frame: a value's length is missing")
        (length,) = unpack(body, position)
        position = start
        if length >= 0:
            position += length
            if position > end:
                raise Malformed(f"truncated frame: expected {length} bytes, {end - start} are left")
            append(body[start:position])
        elif length == -1:
            append(None)
        elif length == -2 and version >= 4:
            append(UNSET)
        else:
            raise Malformed(f"invalid value length {length}")
    reader.position = position
    return values


def _parameters(reader: Reader, version: int) -> Parameters:
    consistency = _consistency(reader)
    flags = reader.byte()
    if not flags:
        return Parameters(consistency)
    values: list[BoundValue] | dict[str, BoundValue] = []
    if flags & _VALUES:
        values = _named_values(reader, version) if flags & _NAMES else _values(reader, version)
    page_size = reader.int32() if flags & _PAGE_SIZE else None
    paging_state = reader.optional_bytes() if flags & _PAGING_STATE else None
    serial = _serial_consistency(reader) if flags & _SERIAL_CONSISTENCY else None
    timestamp = _timestamp(reader) if flags & _DEFAULT_TIMESTAMP else None
    return Parameters(
        consistency,
        values,
        bool(flags & _SKIP_METADATA),
        # Zero and below mean "not paged", as drivers send when fetch size is switched off.
        page_size if page_size is not None and page_size > 0 else None,
        paging_state or None,
        serial,
        timestamp,
    )


def _batch(reader: Reader, version: int) -> Batch:
    kind = reader.byte()
    if kind > 2:
        raise Malformed(f"Invalid BATCH message type {kind}")
    # In v3 and v4 the flags come after the statements, so whether values are named cannot be known while reading
    # them (CASSANDRA-10246): named values in a batch are refused, as ScyllaDB does.
    entries = []
    for _ in range(reader.short()):
        is_prepared = reader.byte()
        if is_prepared > 1:
            raise Malformed(f"Invalid query kind in BATCH messages. Must be 0 or 1 but got {is_prepared}")
        statement: str | bytes = reader.short_bytes() if is_prepared else reader.long_string()
        entries.append(BatchEntry(statement, _values(reader, version)))
    consistency = _consistency(reader)
    flags = reader.byte()
    if flags & _NAMES:
        raise Malformed("Named values are not supported in BATCH messages")
    serial = _serial_consistency(reader) if flags & _SERIAL_CONSISTENCY else None
    timestamp = _timestamp(reader) if flags & _DEFAULT_TIMESTAMP else None
    return Batch(kind, entries, Parameters(consistency, serial_consistency=serial, default_timestamp=timestamp))


def parse_request(opcode: int, version: int, body: bytes, *, metadata_ids: bool = False) -> Request:
    """The request in this body. Bytes behind it are ignored, as servers do. With `metadata_ids` EXECUTE carries one."""
    reader = Reader(body)
    if opcode == frame.EXECUTE:
        statement_id = reader.short_bytes()
        metadata_id = reader.short_bytes() if metadata_ids else None
        return Execute(statement_id, _parameters(reader, version), metadata_id)
    if opcode == frame.QUERY:
        return Query(reader.long_string(), _parameters(reader, version))
    if opcode == frame.PREPARE:
        return Prepare(reader.long_string())
    if opcode == frame.BATCH:
        return _batch(reader, version)
    if opcode == frame.OPTIONS:
        return Options()
    if opcode == frame.STARTUP:
        return Startup(reader.string_map())
    if opcode == frame.REGISTER:
        return Register(reader.string_list())
    if opcode == frame.AUTH_RESPONSE:
        return AuthResponse(reader.optional_bytes())
    raise Malformed(f"Invalid or unsupported opcode {opcode}")


def strip_custom_payload(body: bytes) -> bytes:
    """The body behind the custom payload that a frame with that flag begins with; nothing here reads payloads."""
    reader = Reader(body)
    reader.bytes_map()
    return body[reader.position :]
