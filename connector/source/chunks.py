"""Chunks of a table: the rows of some tokens, read in one go, or the rows of some partitions.

In: a question, tokens, an open connection. Out: partitions in the order of their tokens, and up to which token, or row
of a partition that is too large, they are all there. Nothing but columns is selected, unless times of cells are asked
for: a selection with functions makes ScyllaDB show rows that do not exist, which have to be found (`phantom_rows`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, takewhile
from struct import Struct
from typing import Any

from cassandra.metadata import Murmur3Token

from connector.changes import (
    BYTES_OF_AN_UNCUT_ROW,
    Scanner,
    TableDescription,
    UncutPartitions,
    UncutRows,
    WholeRows,
    whole_rows,
)
from connector.cql_names import qualified, quote_identifier
from connector.source.base_rows import base_query, every_page, read_keys, read_pages
from connector.source.connection import Connection
from connector.source.pages import RawPage, Row
from connector.source.phantom_rows import SecondLooks, without_phantoms
from connector.source.routing import aim
from connector.source.settings import ChunkSize
from connector.topology import MAX_TOKEN, MIN_TOKEN, Inside, Span

_length = Struct(">H").pack

# In a condition: texts, and names that something is equal to.
_STRINGS = re.compile(r"'(?:[^']|'')*'|\$\$.*?\$\$", re.DOTALL)
_EQUALITIES = re.compile(r'(?:"((?:[^"]|"")+)"|\b([A-Za-z]\w*))\s*=')

# What is refused holds one of the few places for chunks until it is given up: whoever asked tries it again himself.
ATTEMPTS = 3

#: What a row takes beside its bytes, in the objects that it is in.
BYTES_OF_A_ROW = 800

Partitions = dict[Row, list[Row]] | UncutPartitions


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows are wanted: all of a table, or those that a CQL condition is true of. ``dated``: with the times of
    their cells."""

    description: TableDescription
    where: str | None = None
    dated: bool = False

    @property
    def shape(self) -> WholeRows:
        return whole_rows(self.description, self.dated)

    @property
    def deceivable(self) -> bool:
        """A scan may show rows that do not exist."""
        return bool(self.shape.timed and self.shape.statics and self.description.clustering_key)

    @property
    def of_one_partition(self) -> bool:
        """The condition itself names the partition."""
        return self.where is not None and _is_of_one_partition(self.where, self.description)

    def cql(self, condition: str) -> str:
        columns = self.shape.columns
        names = [quote_identifier(column.name) for column in columns]
        timed = [quote_identifier(columns[at].name) for at in self.shape.timed]
        names += [f"{function}({name})" for function in ("TTL", "WRITETIME") for name in timed]
        table = qualified(self.description.keyspace, self.description.name)
        query = f"SELECT {', '.join(names)} FROM {table} WHERE {condition}"
        return query if self.where is None else f"{query}{' AND ' if condition else ''}{self.where} ALLOW FILTERING"


@lru_cache(maxsize=64)
def _is_of_one_partition(where: str, description: TableDescription) -> bool:
    """Whether a condition says what each column of the partition key is equal to."""
    found = _EQUALITIES.findall(_STRINGS.sub("''", where))
    equal = {quoted.replace('""', '"') if quoted else plain.lower() for quoted, plain in found}
    return all(column.name in equal for column in description.partition_key)


@dataclass(frozen=True, slots=True)
class Chunk:
    """All rows of the tokens up to and with ``upto``, by partition; those ``inside`` the partition behind it, where
    that is too large; ``seconds`` of its slowest page."""

    partitions: Partitions
    upto: int
    bytes: int
    pages: int
    seconds: float
    inside: Inside | None = None


def read_chunk(
    connection: Connection, question: Question, span: Span, start: Inside | None, enough: ChunkSize
) -> Chunk:
    """What follows the first token of the span, or ``start`` in the partition behind it, until there is enough, or the
    span ends. A partition is cut only if it is too large by itself. Blocks."""
    shape = question.shape
    read = _Pages(enough)
    if start is None:
        pages = _behind(connection, question, span, read.goes_on)
    else:
        pages = _rest_of(connection, question, start, read.goes_on, without_rows=True)
    found = _Found(connection.scanner, shape)
    for page in read.timed(pages):
        found.add(page.rows)
        if read.goes_on():
            continue
        partitions = found.partitions()
        last = next(reversed(partitions))
        token = token_of_key(last)
        open_ = [*takewhile(lambda key: token_of_key(key) == token, reversed(partitions))]  # noqa: B023
        if len(open_) < len(partitions):
            # Of the last one there may be more.
            for key in open_:
                del partitions[key]
            return read.chunk(partitions, token_of_key(next(reversed(partitions))))
        end = page.rows[-1][shape.width : shape.keys]
        if len(open_) == 1 and end and end[0] is not None:
            part = 1 if start is None else start.part + 1
            return read.chunk(partitions, token - 1, Inside(last, end, part, question.description.table_id))
    return read.chunk(found.partitions(), token_of_key(start.partition) if start else span[1])


class _Found:
    """The rows of pages, by partition. Where rows of a snapshot are as they were selected nobody cuts them."""

    def __init__(self, scanner: Scanner | None, shape: WholeRows) -> None:
        self._scanner = None if shape.flags_of_all is None else scanner
        self._shape = shape
        self._pages: list[Sequence[Row]] = []

    def add(self, rows: Sequence[Row]) -> None:
        self._pages.append(rows)

    def partitions(self) -> Partitions:
        width = self._shape.width
        if self._scanner is not None and any(isinstance(rows, UncutRows) for rows in self._pages):
            return UncutPartitions.of(self._scanner, self._pages, len(self._shape.columns), width)
        found: dict[Row, list[Row]] = {}
        for row in chain.from_iterable(self._pages):
            found.setdefault(row[:width], []).append(row)
        return found


class _Pages:
    """Pages as they come, counted and timed: those without rows as well, which cost the server what others do."""

    def __init__(self, enough: ChunkSize) -> None:
        self._enough = enough
        self.rows = self.bytes = self.pages = 0
        self.slowest = 0.0

    def timed(self, pages: Iterable[RawPage]) -> Iterator[RawPage]:
        asked = time.monotonic()
        for page in pages:
            answered = time.monotonic()
            self.slowest, asked = max(self.slowest, answered - asked), answered
            self.pages += 1
            self.rows += len(page.rows)
            self.bytes += _memory(page)
            if page.rows:
                yield page
                asked = time.monotonic()
        self.slowest = max(self.slowest, time.monotonic() - asked)

    def goes_on(self, page: RawPage | None = None) -> bool:
        """Whether there is not enough yet, also with one more page."""
        rows, size = (0, 0) if page is None else (len(page.rows), _memory(page))
        return self.rows + rows < self._enough.rows and self.bytes + size < self._enough.bytes

    def chunk(self, partitions: Partitions, upto: int, inside: Inside | None = None) -> Chunk:
        return Chunk(partitions, upto, self.bytes, max(1, self.pages), self.slowest, inside)


def _memory(page: RawPage) -> int:
    each = BYTES_OF_AN_UNCUT_ROW if isinstance(page.rows, UncutRows) else BYTES_OF_A_ROW
    return page.size + each * len(page.rows)


def _behind(
    connection: Connection, question: Question, span: Span, goes_on: Callable[[RawPage], bool]
) -> Iterator[RawPage]:
    description = question.description
    if question.of_one_partition:
        return _with_ends(connection, question, _of_the_one(connection, question, span))
    token = f"token({', '.join(quote_identifier(column.name) for column in description.partition_key)})"
    query = question.cql(f"{token} > ? AND {token} <= ?")

    def bind() -> Any:
        return aim(connection.statement(query, span), span[1], description.keyspace, description.name)

    pages = read_pages(connection, bind, goes_on, without_rows=True, described=description, attempts=ATTEMPTS)
    if question.deceivable:
        base = replace(base_query(description, ()), regular=tuple(question.shape.regulars))
        pages = without_phantoms(pages, base, partial(_whole, connection, question), SecondLooks())
    return _with_ends(connection, question, pages)


def _of_the_one(connection: Connection, question: Question, span: Span) -> Iterator[RawPage]:
    """The rows of the partition that the condition names, if it is one of these: no server takes that beside tokens."""
    width = question.shape.width
    statement = partial(connection.statement, question.cql(""), ())
    for page in read_pages(connection, statement, without_rows=True, described=question.description, attempts=ATTEMPTS):
        if page.rows and not span[0] < token_of_key(page.rows[0][:width]) <= span[1]:
            return
        yield page


def _with_ends(connection: Connection, question: Question, pages: Iterator[RawPage]) -> Iterator[RawPage]:
    """The second in which a cell ends, for what is left of it now."""
    shape = question.shape

    def dated(page: RawPage) -> RawPage:
        now_s = connection.clock.now_ms() // 1000
        return replace(page, rows=[shape.with_ends(row, now_s) for row in page.rows])

    return map(dated, pages) if shape.timed else pages


def _rest_of(
    connection: Connection,
    question: Question,
    start: Inside,
    goes_on: Callable[[RawPage], bool] = every_page,
    without_rows: bool = False,
) -> Iterator[RawPage]:
    """The rows of a partition behind one of them, in the order of storage: those that share all of its clustering key
    but the last column with it, then all but the last two, and so on. Relations of several columns are not understood
    by every server where columns descend."""
    description = question.description
    key = [quote_identifier(column.name) for column in description.partition_key]
    clustering = [quote_identifier(column.name) for column in description.clustering_key]
    for count in range(len(clustering) - 1, -1, -1):
        then = "<" if description.clustering_key[count].order == "desc" else ">"
        where = [*(f"{name} = ?" for name in (*key, *clustering[:count])), f"{clustering[count]} {then} ?"]
        cells = [cell or b"" for cell in (*start.partition, *start.after[: count + 1])]
        bind = partial(connection.raw_statement, question.cql(" AND ".join(where)), cells)
        pages = read_pages(connection, bind, goes_on, without_rows, question.description, ATTEMPTS)
        yield from _with_ends(connection, question, pages)


def read_part(
    connection: Connection, question: Question, key: Row, start: Inside | None, stop: Inside | None
) -> dict[Row, list[Row]]:
    """The rows of a partition behind one of them, up to and with another. Blocks."""
    shape = question.shape
    found: list[Row] = []
    for page in _rest_of(connection, question, start) if start else _of_key(connection, question, [key]):
        ends = stop is not None and shape.is_behind(page.rows[-1], stop.after)
        found += [row for row in page.rows if stop is None or not shape.is_behind(row, stop.after)]
        if ends:
            break
    return {key: found} if found else {}


def read_partitions(connection: Connection, question: Question, keys: Iterable[Row]) -> dict[Row, list[Row]]:
    """All rows of some partitions; of those without any there is nothing. Blocks."""
    width = question.shape.width
    found: dict[Row, list[Row]] = {}
    for page in _of_key(connection, question, keys):
        for row in page.rows:
            found.setdefault(row[:width], []).append(row)
    return found


def _of_key(connection: Connection, question: Question, keys: Iterable[Row]) -> Iterator[RawPage]:
    return _with_ends(connection, question, _whole(connection, question, keys))


def _whole(connection: Connection, question: Question, keys: Iterable[Row]) -> Iterator[RawPage]:
    names = [quote_identifier(column.name) for column in question.description.partition_key]
    query = question.cql(" AND ".join(f"{name} = ?" for name in names))
    cells = [[cell or b"" for cell in key] for key in keys]
    return read_keys(connection, query, cells, question.description, ATTEMPTS)


def token_of_key(key: Sequence[bytes | None]) -> int:
    """The token of a partition."""
    parts = ((_length(len(cell or b"")), cell or b"", b"\x00") for cell in key)
    whole = (key[0] or b"") if len(key) == 1 else b"".join(part for each in parts for part in each)
    token = int(Murmur3Token.hash_fn(whole))
    return MAX_TOKEN if token == MIN_TOKEN else token
