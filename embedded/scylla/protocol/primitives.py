"""The primitive notations of the protocol: [string], [bytes], [value], [string map] and so on.

In: a request's body. Out: Python values, or `Malformed` when the body ends early or says something impossible; and the
other way round, bytes for responses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import Final

from embedded.scylla.results import UNSET, BoundValue

SHORT: Final = Struct(">H")
INT: Final = Struct(">i")
LONG: Final = Struct(">q")


class Malformed(ValueError):
    """The body of a request is not what its opcode demands."""


class Reader:
    """Reads a body from front to back and never beyond its end."""

    __slots__ = ("body", "end", "position")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.position = 0
        self.end = len(body)

    @property
    def remaining(self) -> int:
        return self.end - self.position

    def take(self, length: int) -> bytes:
        start = self.position
        stop = start + length
        if length < 0 or stop > self.end:
            raise Malformed(f"truncated frame: expected {length} bytes, {self.end - start} are left")
        self.position = stop
        return self.body[start:stop]

    def byte(self) -> int:
        return self.take(1)[0]

    def short(self) -> int:
        return int(SHORT.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(INT.unpack(self.take(4))[0])

    def long(self) -> int:
        return int(LONG.unpack(self.take(8))[0])

    def _text(self, length: int) -> str:
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise Malformed("Cannot decode string as UTF8") from error

    def string(self) -> str:
        return self._text(self.short())

    def long_string(self) -> str:
        return self._text(self.int32())

    def string_list(self) -> list[str]:
        return [self.string() for _ in range(self.short())]

    def string_map(self) -> dict[str, str]:
        return {self.string(): self.string() for _ in range(self.short())}

    def short_bytes(self) -> bytes:
        return self.take(self.short())

    def optional_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self.take(length)

    def bytes_map(self) -> dict[str, bytes | None]:
        return {self.string(): self.optional_bytes() for _ in range(self.short())}

    def value(self, unset_allowed: bool = True) -> BoundValue:
        length = self.int32()
        if length >= 0:
            return self.take(length)
        if length == -1:
            return None
        if length == -2 and unset_allowed:
            return UNSET
        raise Malformed(f"invalid value length {length}")


def encode_string(text: str) -> bytes:
    """A [string]; cut at what its two-byte length can say, since error texts may quote a whole statement."""
    raw = text.encode("utf-8", "replace")
    if len(raw) > 0xFFFF:
        raw = raw[:0xFFFF].decode("utf-8", "ignore").encode()
    return SHORT.pack(len(raw)) + raw


def encode_string_list(texts: Iterable[str]) -> bytes:
    encoded = [encode_string(text) for text in texts]
    return SHORT.pack(len(encoded)) + b"".join(encoded)


def encode_string_multimap(entries: Mapping[str, Sequence[str]]) -> bytes:
    parts = [SHORT.pack(len(entries))]
    for key, values in entries.items():
        parts += (encode_string(key), encode_string_list(values))
    return b"".join(parts)


def encode_bytes(raw: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if raw is None else INT.pack(len(raw)) + raw


def encode_short_bytes(raw: bytes) -> bytes:
    return SHORT.pack(len(raw)) + raw


def encode_bytes_map(entries: Mapping[str, bytes]) -> bytes:
    parts = [SHORT.pack(len(entries))]
    for key, raw in entries.items():
        parts += (encode_string(key), encode_bytes(raw))
    return b"".join(parts)


def encode_inet(address: IPv4Address | IPv6Address, port: int) -> bytes:
    packed = address.packed
    return bytes((len(packed),)) + packed + INT.pack(port)
