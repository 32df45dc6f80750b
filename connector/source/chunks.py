"""Chunks of a table: the rows of some tokens, read in one go, or the rows of some partitions.

In: a description, tokens, an open connection. Out: partitions in the order of their tokens, and up to which token they
are all there. Nothing but columns is selected: a selection with functions makes ScyllaDB show rows that do not exist.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import Any

from cassandra.metadata import Murmur3Token

from connector.changes import TableDescription, whole_rows
from connector.cql_names import qualified, quote_identifier
from connector.source.base_rows import read_keys, read_pages
from connector.source.connection import Connection
from connector.source.pages import Row
from connector.source.routing import aim
from connector.topology import MAX_TOKEN, MIN_TOKEN, Span

_length = Struct(">H").pack

#: What a row takes beside its bytes, in the objects that it is in.
BYTES_OF_A_ROW = 800


@dataclass(frozen=True, slots=True)
class Chunk:
    """All rows of the tokens up to and with ``upto``, by partition; ``seconds`` of its slowest page."""

    partitions: dict[Row, list[Row]]
    upto: int
    bytes: int
    pages: int
    seconds: float


def read_chunk(
    connection: Connection, description: TableDescription, span: Span, most_rows: int, most_bytes: int
) -> Chunk:
    """Whole partitions behind the first token of the span, until there is enough, or the span ends. Blocks."""
    shape = whole_rows(description)
    high = span[1]
    query = f"{_select(description)} WHERE {_token(description)} > ? AND {_token(description)} <= ?"

    def bind() -> Any:
        return aim(connection.statement(query, span), high, description.keyspace, description.name)

    partitions: dict[Row, list[Row]] = {}
    rows = size = pages = 0
    slowest, asked = 0.0, time.monotonic()
    for page in read_pages(connection, bind):
        answered = time.monotonic()
        slowest, asked, pages = max(slowest, answered - asked), answered, pages + 1
        for row in page.rows:
            partitions.setdefault(row[: shape.width], []).append(row)
        rows += len(page.rows)
        size += page.size + BYTES_OF_A_ROW * len(page.rows)
        if (rows >= most_rows or size >= most_bytes) and len(partitions) > 1:
            # Of the last one there may be more.
            partitions.popitem()
            return Chunk(partitions, token_of_key(next(reversed(partitions))), size, pages, slowest)
    return Chunk(partitions, high, size, max(1, pages), max(slowest, time.monotonic() - asked if not pages else 0.0))


def read_partitions(connection: Connection, description: TableDescription, keys: Iterable[Row]) -> dict[Row, list[Row]]:
    """All rows of some partitions; of those without any there is nothing. Blocks."""
    width = whole_rows(description).width
    where = " AND ".join(f"{quote_identifier(column.name)} = ?" for column in description.partition_key)
    ask = partial(read_keys, connection, f"{_select(description)} WHERE {where}")
    found: dict[Row, list[Row]] = {}
    for page in ask([[cell or b"" for cell in key] for key in keys]):
        for row in page.rows:
            found.setdefault(row[:width], []).append(row)
    return found


def token_of_key(key: Sequence[bytes | None]) -> int:
    """The token of a partition."""
    parts = ((_length(len(cell or b"")), cell or b"", b"\x00") for cell in key)
    whole = (key[0] or b"") if len(key) == 1 else b"".join(part for each in parts for part in each)
    token = int(Murmur3Token.hash_fn(whole))
    return MAX_TOKEN if token == MIN_TOKEN else token


def _select(description: TableDescription) -> str:
    names = ", ".join(quote_identifier(column.name) for column in whole_rows(description).columns)
    return f"SELECT {names} FROM {qualified(description.keyspace, description.name)}"


def _token(description: TableDescription) -> str:
    return f"token({', '.join(quote_identifier(column.name) for column in description.partition_key)})"
