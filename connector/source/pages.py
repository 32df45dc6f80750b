"""Raw pages: the rows of a result as cells of bytes, cut by the driver's compiled parser but not decoded.

In: result frames. Out: `RawPage`: column names, the CQL spelling of their types, rows as tuples of ``bytes | None``.
Decoding by the driver would lose what its Python types cannot hold (dates before year 1, nanoseconds) and would run in
the driver's only thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from struct import Struct
from typing import Any, ClassVar

from cassandra import DriverException
from cassandra.cqltypes import BytesType
from cassandra.protocol import ProtocolHandler, ResultMessage

from connector.changes import Scanner

# Taken from the insides of the driver, here and in `connection.py` and `routing.py`. The test
# `test_source_driver_insides.py` holds each to the version in `requirements.lock`: a new one fails there first.
# - `ProtocolHandler.message_types_by_opcode[0x08]` is the result message, with the compiled parser where that is built.
# - `recv_results_rows(f, version, user_types, result_metadata, encryption)` gets a seekable body that stands before the
#   metadata. It calls `recv_results_metadata(f, user_types)`, uses the argument where that set no `column_metadata`,
#   and leaves `parsed_rows`: a list of tuples; a cell of a column of `BytesType` is its bytes, or None for null.
# - A column is (keyspace, table, name, type class). The metadata begins with flags and the number of columns.
# - `result_metadata` is what the statement knew when the request was made, in one pair with the id that was sent.
# - The driver keeps `column_metadata` and `result_metadata_id` of a message for its statement, from PREPARED as from a
#   page; it hands `column_names` and `parsed_rows` to the row factory.
# - `ResponseFuture._paging_state` is the page's own while callbacks run, `_final_result` what the row factory made. A
#   future knows its callbacks until `clear_callbacks`, and the driver's timers know it until they would have rung.
#   `attempted_hosts` are those that were asked, in their order, `coordinator_host` who answered. It calls its callbacks
#   for each answer, where several nodes were asked.
# - `BoundStatement.values` are the bytes that are sent; it takes attributes of ours (`stream_token`).
# - `Metadata.token_map` (`ring`, `token_class`, `token_to_host_owner`), `Metadata._tablets.get_tablet_for_key`, and a
#   tablet's `replicas` of (host id, shard).

Row = tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class RawPage:
    """One page. ``types`` are the driver's type classes in column order; see `signature`. ``size``: of its body;
    ``node``: who gave it, where that is known."""

    columns: tuple[str, ...]
    types: tuple[Any, ...]
    rows: Sequence[Row]
    size: int = 0
    node: Any = None

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
_FLAGS_AND_COUNT = Struct(">ii")
_ROW_COUNT = Struct(">i")
# What only logs have, and every log has.
_OF_LOGS = "cdc$operation"
# Of other pages those of so many rows are left uncut as well: rows of a table.
_MANY = 20


class _Blobs(_CompiledResult):  # type: ignore[misc]
    """The compiled parser of rows, told that every column is a blob. It never leaves this module: what the driver keeps
    of a message, for this statement's next pages, is of the message that was received."""

    parsed_rows: Any

    def recv_results_metadata(self, f: Any, user_type_map: Any) -> None:
        """Read already, so that the compiled parser takes the columns that it is given."""


class _RawResult(_CompiledResult):  # type: ignore[misc]
    """A result whose rows stay bytes; its metadata is what the server sent, if it sent any."""

    scanner: ClassVar[Scanner | None] = None

    column_metadata: Any
    column_names: Any
    column_types: Any
    parsed_rows: Any

    def recv_results_rows(self, f: Any, version: int, user_types: Any, remembered: Any, encryption: Any) -> None:
        start = f.tell()
        _, count = _FLAGS_AND_COUNT.unpack(f.read(_FLAGS_AND_COUNT.size))
        f.seek(start)
        self.recv_results_metadata(f, user_types)
        # A server that was asked to leave out what the driver remembers of the statement sends no metadata, unless the
        # columns changed. What is remembered is what the request was made with, not what others learned meanwhile.
        columns = self.column_metadata or remembered or ()
        if len(columns) != count:
            raise DriverException(f"rows of {count} columns came without their names, and {len(columns)} are known")
        self.column_names = [column[2] for column in columns]
        self.column_types = [column[3] for column in columns]
        blobs, as_blobs = _Blobs(self.kind), [(*column[:3], BytesType) for column in columns]

        def cut(f: Any) -> Sequence[Row]:
            blobs.recv_results_rows(f, version, user_types, as_blobs, encryption)
            return blobs.parsed_rows  # type: ignore[no-any-return]

        rows = self._uncut(f, cut)
        if rows is None:
            rows = cut(f)
        size = f.tell() - start
        self.parsed_rows = RawPage(tuple(self.column_names), tuple(self.column_types), rows, size)

    def _uncut(self, f: Any, cut: Callable[[Any], Sequence[Row]]) -> Sequence[Row] | None:
        """The rows of a page, left as they came; None if there are few, or they are not as rows are."""
        scanner = type(self).scanner
        if scanner is None:
            return None
        body, at = f.getvalue(), f.tell()
        (count,) = _ROW_COUNT.unpack_from(body, at)
        of_log = _OF_LOGS in self.column_names
        if count < (1 if of_log else _MANY):
            return None

        def cut_later() -> Sequence[Row]:
            again = BytesIO(body)
            again.seek(at)
            return cut(again)

        at_rows = at + _ROW_COUNT.size
        if of_log:
            rows = scanner.scan(body, at_rows, self.column_names, count, cut_later)
        else:
            rows = scanner.scan_selected(body, at_rows, len(self.column_names), count, 0, cut_later)
        if rows is not None:
            f.seek(rows.starts[count])
        return rows


class RawProtocolHandler(ProtocolHandler):  # type: ignore[misc]
    """`Session.client_protocol_handler` of our session."""

    message_types_by_opcode: ClassVar[dict[int, Any]] = {
        **ProtocolHandler.message_types_by_opcode,
        ResultMessage.opcode: _RawResult,
    }


@lru_cache(maxsize=16)
def raw_protocol_handler(scanner: Scanner | None) -> type[ProtocolHandler]:
    """The handler of a session; with a scanner pages stay uncut."""
    if scanner is None:
        return RawProtocolHandler
    # The driver knows messages and handlers by their classes.
    result = type("_UncutResult", (_RawResult,), {"scanner": scanner})
    opcodes = {**RawProtocolHandler.message_types_by_opcode, ResultMessage.opcode: result}
    return type("UncutProtocolHandler", (RawProtocolHandler,), {"message_types_by_opcode": opcodes})


def raw_rows(_: Sequence[str], page: RawPage) -> RawPage:
    """The session's row factory: the page is the result."""
    return page
