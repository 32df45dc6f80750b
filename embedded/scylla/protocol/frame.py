"""Frames of the CQL native protocol: the nine-byte header, opcodes and flags.

In: bytes as they came from a socket. Out: `Header` values and whole response frames as bytes.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

HEADER: Final = Struct(">BBhBi")
HEADER_LENGTH: Final = HEADER.size
# ScyllaDB and Cassandra refuse frames above 256 MiB; the length field itself could say 2 GiB.
MAX_BODY_LENGTH: Final = 256 * 1024 * 1024

VERSIONS: Final = (3, 4)
NEWEST_VERSION: Final = 4
RESPONSE_BIT: Final = 0x80

FLAG_COMPRESSED: Final = 0x01
FLAG_CUSTOM_PAYLOAD: Final = 0x04
FLAG_WARNING: Final = 0x08

ERROR: Final = 0x00
STARTUP: Final = 0x01
READY: Final = 0x02
AUTHENTICATE: Final = 0x03
OPTIONS: Final = 0x05
SUPPORTED: Final = 0x06
QUERY: Final = 0x07
RESULT: Final = 0x08
PREPARE: Final = 0x09
EXECUTE: Final = 0x0A
REGISTER: Final = 0x0B
EVENT: Final = 0x0C
BATCH: Final = 0x0D
AUTH_RESPONSE: Final = 0x0F
AUTH_SUCCESS: Final = 0x10

EVENT_STREAM: Final = -1

OPCODE_NAMES: Final = {
    STARTUP: "STARTUP",
    OPTIONS: "OPTIONS",
    QUERY: "QUERY",
    PREPARE: "PREPARE",
    EXECUTE: "EXECUTE",
    REGISTER: "REGISTER",
    BATCH: "BATCH",
    AUTH_RESPONSE: "AUTH_RESPONSE",
}


class Header(NamedTuple):
    """What stands before every body. `version` still carries its direction bit."""

    version: int
    flags: int
    stream: int
    opcode: int
    length: int


def read_header(data: bytes | bytearray | memoryview, offset: int) -> Header:
    """The header at `offset`; the caller has made sure that nine bytes are there."""
    return Header._make(HEADER.unpack_from(data, offset))


def response_header(version: int, flags: int, stream: int, opcode: int, length: int) -> bytes:
    return HEADER.pack(version | RESPONSE_BIT, flags, stream, opcode, length)
