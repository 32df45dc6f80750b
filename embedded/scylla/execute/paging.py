"""Where a page ended, as bytes that any connection may bring back.

In: the last row given and what is left of the limits. Out: a paging state, and from it the place again;
broken ones raise `ProtocolError`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from embedded.scylla.errors import ProtocolError
from embedded.scylla.mutation import ClusteringKey

_HEAD = struct.Struct(">BqqB")
_LENGTH = struct.Struct(">i")
_ROWS, _OPAQUE = 1, 2
NO_LIMIT = -1


class Position(NamedTuple):
    """Behind this row of this partition (`row` None: behind its statics, that is behind the whole partition).
    `remaining` and `in_partition` are the rows that LIMIT and PER PARTITION LIMIT still allow, `NO_LIMIT` if any.
    `opaque` is a store's own position, in place of key and row."""

    key: bytes
    row: ClusteringKey | None
    remaining: int
    in_partition: int
    opaque: bytes | None = None


def pack_position(position: Position) -> bytes:
    kind = _ROWS if position.opaque is None else _OPAQUE
    parts = [position.key, *(position.row or ())] if position.opaque is None else [position.opaque]
    head = _HEAD.pack(kind, position.remaining, position.in_partition, position.row is not None)
    return head + b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def unpack_position(state: bytes) -> Position:
    try:
        kind, remaining, in_partition, has_row = _HEAD.unpack_from(state)
        parts, at = [], _HEAD.size
        while at < len(state):
            (length,) = _LENGTH.unpack_from(state, at)
            at += 4
            if length < 0 or at + length > len(state):
                raise ValueError("a part is cut off")
            parts.append(state[at : at + length])
            at += length
        if kind == _OPAQUE:
            return Position(b"", None, remaining, in_partition, parts[0])
        if kind != _ROWS:
            raise ValueError("unknown kind")
        return Position(parts[0], tuple(parts[1:]) if has_row else None, remaining, in_partition)
    except (struct.error, ValueError, IndexError):
        raise ProtocolError("Invalid value for the paging state") from None
