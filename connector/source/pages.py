"""Raw pages: the rows of a result as cells of bytes, cut by the driver's compiled parser but not decoded.

In: result frames. Out: `RawPage`: column names, the CQL spelling of their types, rows as tuples of ``bytes | None``.
Decoding by the driver would lose what its Python types cannot hold (dates before year 1, nanoseconds) and would run in
the driver's only thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from cassandra.cqltypes import BytesType
from cassandra.protocol import ProtocolHandler, ResultMessage

Row = tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class RawPage:
    """One page. ``types`` are the driver's type classes in column order; see `signature`."""

    columns: tuple[str, ...]
    types: tuple[Any, ...]
    rows: Sequence[Row]

    @property
    def signature(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns: changes exactly when the log's table did."""
        return _signature(self.columns, self.types)

    @property
    def shape(self) -> tuple[str, ...]:
        """As `signature`, user types with their fields: also changes when only a type was altered."""
        return tuple(f"{name} {_shape(kind)}" for name, kind in zip(self.columns, self.types))

    def decoded(self) -> Iterator[dict[str, Any]]:
        """Rows with the driver's Python values, for the small tables of the server's own."""
        for row in self.rows:
            yield {
                name: None if cell is None else kind.from_binary(cell, 4)
                for name, kind, cell in zip(self.columns, self.types, row)
            }


def _shape(kind: Any) -> str:
    fields = getattr(kind, "fieldnames", None) or ()
    inner = ",".join(_shape(each) for each in kind.subtypes)
    return f"{kind.typename}({inner};{','.join(map(str, fields))})" if inner else str(kind.typename)


@lru_cache(maxsize=4096)
def _signature(columns: tuple[str, ...], types: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, kind.cql_parameterized_type()) for name, kind in zip(columns, types))


_CompiledResult: Any = ProtocolHandler.message_types_by_opcode[ResultMessage.opcode]


class _RawResult(_CompiledResult):  # type: ignore[misc]
    """The compiled result parser, told that every column is a blob."""

    column_metadata: Any
    column_names: Any
    parsed_rows: Any
    true_types: tuple[Any, ...] = ()

    def recv_results_metadata(self, f: Any, user_type_map: Any) -> None:
        super().recv_results_metadata(f, user_type_map)
        if self.column_metadata:
            self.true_types = tuple(column[3] for column in self.column_metadata)
            self.column_metadata = [(*column[:3], BytesType) for column in self.column_metadata]

    def recv_results_rows(self, *arguments: Any) -> None:
        super().recv_results_rows(*arguments)
        self.parsed_rows = RawPage(tuple(self.column_names), self.true_types, self.parsed_rows)


class RawProtocolHandler(ProtocolHandler):  # type: ignore[misc]
    """`Session.client_protocol_handler` of our session."""

    message_types_by_opcode: ClassVar[dict[int, Any]] = {
        **ProtocolHandler.message_types_by_opcode,
        ResultMessage.opcode: _RawResult,
    }


def raw_rows(_: Sequence[str], page: RawPage) -> RawPage:
    """The session's row factory: the page is the result."""
    return page
