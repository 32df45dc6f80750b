"""Bodies of responses: results, errors, events and the answers of the handshake.

In: columns, rows, errors, names. Out: bytes of a body without its header; `frame_bytes` puts header, warnings and
compression around it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from embedded.scylla.errors import CqlError
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import (
    INT,
    SHORT,
    encode_bytes,
    encode_bytes_map,
    encode_inet,
    encode_short_bytes,
    encode_string,
    encode_string_list,
)
from embedded.scylla.protocol.types import encode_type, marshal_class
from embedded.scylla.results import ColumnSpec

_VOID: Final = INT.pack(1)
_ROWS: Final = INT.pack(2)
_SET_KEYSPACE: Final = INT.pack(3)
_PREPARED: Final = INT.pack(4)
_SCHEMA_CHANGE: Final = INT.pack(5)

_GLOBAL_SPEC: Final = 0x0001
_HAS_MORE_PAGES: Final = 0x0002
_NO_METADATA: Final = 0x0004
_METADATA_CHANGED: Final = 0x0008
# ScyllaDB's extension: a client that opted in learns from this bit that a prepared statement is conditional.
LWT_MARK: Final = -0x80000000

_NULL: Final = b"\xff\xff\xff\xff"


def _one_table(columns: Sequence[ColumnSpec]) -> bool:
    return len({(column.keyspace, column.table) for column in columns}) == 1


def _specs(columns: Sequence[ColumnSpec]) -> tuple[int, bytes]:
    """Flags, and the specs behind the column count."""
    if _one_table(columns):
        first = columns[0]
        parts = [encode_string(first.keyspace), encode_string(first.table)]
        parts += [encode_string(column.name) + encode_type(column.type) for column in columns]
        return _GLOBAL_SPEC, b"".join(parts)
    return 0, b"".join(
        encode_string(column.keyspace)
        + encode_string(column.table)
        + encode_string(column.name)
        + encode_type(column.type)
        for column in columns
    )


@lru_cache(maxsize=1024)
def _cached_specs(columns: tuple[ColumnSpec, ...]) -> tuple[int, bytes]:
    return _specs(columns)


def rows_metadata(
    columns: Sequence[ColumnSpec], skip: bool, paging_state: bytes | None, changed: bytes | None = None
) -> bytes:
    """What stands before the row count. `changed` is the id of columns that the client does not know: they are told."""
    flags, specs = _cached_specs(tuple(columns))
    state = b""
    if paging_state is not None:
        flags, state = flags | _HAS_MORE_PAGES, encode_bytes(paging_state)
    if changed is not None:
        flags, specs = flags | _METADATA_CHANGED, encode_short_bytes(changed) + specs
    elif skip:
        flags, specs = flags | _NO_METADATA, b""
    return INT.pack(flags) + INT.pack(len(columns)) + state + specs


@lru_cache(maxsize=1024)
def metadata_id(columns: tuple[ColumnSpec, ...] | None) -> bytes:
    """What a client recognises by that the columns of a prepared statement are still those that it knows: made, as in
    ScyllaDB, from their names and types, fields of user types included."""
    told = (encode_string(column.name) + encode_string(marshal_class(column.type)) for column in columns or ())
    return hashlib.sha256(b"".join(told)).digest()[:16]


def encode_cells(rows: Iterable[Sequence[bytes | None]]) -> tuple[int, bytes]:
    """Row count and content of rows given cell by cell."""
    parts: list[bytes] = []
    append, pack = parts.append, INT.pack
    count = 0
    for row in rows:
        count += 1
        for cell in row:
            if cell is None:
                append(_NULL)
            else:
                append(pack(len(cell)))
                append(cell)
    return count, b"".join(parts)


def rows_body(metadata: bytes, count: int, content: bytes) -> bytes:
    return b"".join((_ROWS, metadata, INT.pack(count), content))


def void_body() -> bytes:
    return _VOID


def set_keyspace_body(keyspace: str) -> bytes:
    return _SET_KEYSPACE + encode_string(keyspace)


def _schema_change(change: str, target: str, keyspace: str, name: str) -> bytes:
    parts = [encode_string(change), encode_string(target), encode_string(keyspace)]
    if target != "KEYSPACE":
        parts.append(encode_string(name))
    return b"".join(parts)


def schema_change_body(change: str, target: str, keyspace: str, name: str) -> bytes:
    return _SCHEMA_CHANGE + _schema_change(change, target, keyspace, name)


def prepared_body(
    version: int,
    statement_id: bytes,
    binds: Sequence[ColumnSpec],
    key_indexes: Sequence[int],
    columns: Sequence[ColumnSpec] | None,
    *,
    lwt_mark: bool = False,
    metadata_ids: bool = False,
) -> bytes:
    """`columns` is None for statements that give no rows. v3 knows no partition key indexes; nor are they told where
    the bind variables belong to several tables."""
    flags, specs = _specs(binds) if binds else (0, b"")
    if not flags & _GLOBAL_SPEC:
        key_indexes = ()
    parts = [
        _PREPARED,
        encode_short_bytes(statement_id),
        encode_short_bytes(metadata_id(None if columns is None else tuple(columns))) if metadata_ids else b"",
        INT.pack(flags | LWT_MARK if lwt_mark else flags),
        INT.pack(len(binds)),
    ]
    if version >= 4:
        parts.append(INT.pack(len(key_indexes)))
        parts += [SHORT.pack(index) for index in key_indexes]
    parts.append(specs)
    parts.append(INT.pack(_NO_METADATA) + INT.pack(0) if columns is None else rows_metadata(columns, False, None))
    return b"".join(parts)


def error_body(error: CqlError) -> bytes:
    return INT.pack(error.code) + encode_string(str(error)) + error.fields()


def status_event_body(event: str, change: str, address: IPv4Address | IPv6Address, port: int) -> bytes:
    """STATUS_CHANGE and TOPOLOGY_CHANGE."""
    return encode_string(event) + encode_string(change) + encode_inet(address, port)


def schema_event_body(change: str, target: str, keyspace: str, name: str) -> bytes:
    return encode_string("SCHEMA_CHANGE") + _schema_change(change, target, keyspace, name)


def frame_bytes(
    version: int,
    stream: int,
    opcode: int,
    body: bytes,
    *,
    warnings: Sequence[str] = (),
    payload: Mapping[str, bytes] | None = None,
    compressor: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """A whole response frame. Warnings exist from v4 on."""
    flags = 0
    if payload and version >= 4:
        flags |= frame.FLAG_CUSTOM_PAYLOAD
        body = encode_bytes_map(payload) + body
    if warnings and version >= 4:
        flags |= frame.FLAG_WARNING
        body = encode_string_list(warnings) + body
    if compressor is not None and body:
        flags |= frame.FLAG_COMPRESSED
        body = compressor(body)
    return frame.response_header(version, flags, stream, opcode, len(body)) + body
