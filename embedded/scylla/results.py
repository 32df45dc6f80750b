"""What goes into and comes out of executing a statement, in the protocol layer's terms.

In: a `RequestContext` made from the frame's parameters. Out: one of the `Result` values, which the protocol
layer writes as a RESULT frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from connector.values import CqlType
from embedded.scylla.schema import SchemaEvent


class _Unset:
    """The type of `UNSET`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()
"""A bound value that was left out (length -2 in the frame), which is something else than null."""

BoundValue = bytes | None | _Unset


class ColumnSpec(NamedTuple):
    """A column of a result, or a bind variable."""

    keyspace: str
    table: str
    name: str
    type: CqlType


@dataclass(slots=True)
class RequestContext:
    """Who asks and how. `node` is whatever the server knows the answering node by; `default_timestamp` is in
    microseconds, or None when the frame carries none."""

    keyspace: str | None = None
    user: str | None = None
    consistency: int = 1
    serial_consistency: int = 8
    default_timestamp: int | None = None
    page_size: int | None = None
    paging_state: bytes | None = None
    node: Any = None


@dataclass(frozen=True, slots=True)
class Void:
    """Done; nothing to show."""

    warnings: tuple[str, ...] = ()


Row = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, either as `rows` or already as they go on the wire in `body` (for each value its length and its bytes)."""

    columns: tuple[ColumnSpec, ...]
    rows: Sequence[Row] = ()
    body: bytes | None = None
    count: int = -1
    paging_state: bytes | None = None
    warnings: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        return self.count if self.count >= 0 else len(self.rows)


@dataclass(frozen=True, slots=True)
class SetKeyspace:
    """The connection's keyspace from now on."""

    keyspace: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What the statement changed, as the RESULT says it (companion tables are told by events only)."""

    event: SchemaEvent
    warnings: tuple[str, ...] = field(default=())


Result = Void | Rows | SetKeyspace | SchemaChange
