"""Phantom rows: what ScyllaDB makes of partitions with only static values, found and replaced by what is there.

In: a query, the pages of a scan with it, a way to read partitions by their keys. Out: the same rows without phantoms,
in the same order; how many partitions were read a second time, and how many phantoms there were.

Where a selection holds any function, WRITETIME for one, ScyllaDB 2026.1 gives the row of a partition that has only
static values the clustering key of the row before it, instead of nulls. Such a row looks like one of which only the key
was inserted. Read alone, by its key, the partition has no row before it and comes right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from connector.errors import RetriableSourceError
from connector.source.base_rows import BaseQuery, TokenRange, read_keys, read_pages
from connector.source.connection import Connection
from connector.source.pages import RawPage, Row

ByKeys = Callable[[Sequence[Row]], Iterable[RawPage]]
"""The pages of whole partitions, in any order."""


@dataclass(slots=True)
class SecondLooks:
    """What it cost, and what came of it."""

    partitions: int = 0
    phantoms: int = 0


def scan(connection: Connection, query: BaseQuery, span: TokenRange, looks: SecondLooks) -> Iterator[RawPage]:
    """The rows of a token range, none of which is a phantom. Whoever is refused them is told which they are."""
    try:
        yield from _scanned(connection, query, span, looks)
    except RetriableSourceError as error:
        low, high = span
        error.args = (f"rows with {low} < {query.token} <= {high}: {error}",)
        raise


def _scanned(connection: Connection, query: BaseQuery, span: TokenRange, looks: SecondLooks) -> Iterator[RawPage]:
    pages = read_pages(connection, partial(connection.statement, query.by_token(), span), described=query.description)
    if not query.deceivable:
        return pages

    def by_keys(keys: Sequence[Row]) -> Iterable[RawPage]:
        return read_keys(connection, query.by_key(), [[cell or b"" for cell in key] for key in keys], query.description)

    return without_phantoms(pages, query, by_keys, looks)


def without_phantoms(
    pages: Iterable[RawPage], query: BaseQuery, by_keys: ByKeys, looks: SecondLooks
) -> Iterator[RawPage]:
    """The scan's pages, with the partitions in doubt as ``by_keys`` shows them."""
    suspicion = _Suspicion(query)
    held: Row | None = None
    page: RawPage | None = None
    for page in pages:
        if not page.rows:
            yield page
            continue
        rows, doubtful = suspicion.of(page.rows)
        if held is not None:
            rows.insert(0, held)
            # A partition that goes on has rows, and shows no row for its static values alone.
            goes_on = len(rows) > 1 and suspicion.partition(rows[1]) == suspicion.partition(held)
            doubtful = [at + 1 for at in doubtful]
            if not goes_on:
                doubtful.insert(0, 0)
            held = None
        if doubtful and doubtful[-1] == len(rows) - 1:
            held = rows.pop()
            doubtful.pop()
        if rows:
            yield _looked_at(page, rows, doubtful, suspicion, by_keys, looks)
    if page is not None and held is not None:
        yield _looked_at(page, [held], [0], suspicion, by_keys, looks)


class _Suspicion:
    """Which rows may be phantoms. Keeps the row before the next page."""

    def __init__(self, query: BaseQuery) -> None:
        self._width = len(query.partition_key)
        self._keys = self._width + query.clustering
        self._regular = query.regular
        self._before: Row | None = None

    def partition(self, row: Row) -> Row:
        return row[: self._width]

    def same_key(self, one: Row, other: Row) -> bool:
        return one[: self._keys] == other[: self._keys]

    def of(self, page: Sequence[Row]) -> tuple[list[Row], list[int]]:
        """The rows of a page, and the places of those in doubt: alone in their partition as far as this page tells, no
        regular value, and the clustering key of the row before. What is before the first row of a page only the server
        knows, so that its clustering key is never trusted."""
        rows, doubtful = list(page), []
        before, width, keys, regular = self._before, self._width, self._keys, self._regular
        for at, row in enumerate(rows):
            if (
                row[width] is not None
                and (before is None or row[:width] != before[:width])
                and (at == 0 or before is None or row[width:keys] == before[width:keys])
                and (at + 1 == len(rows) or rows[at + 1][:width] != row[:width])
                and all(row[place] is None for place in regular)
            ):
                doubtful.append(at)
            before = row
        self._before = before
        return rows, doubtful


def _looked_at(
    page: RawPage, rows: list[Row], doubtful: Sequence[int], suspicion: _Suspicion, by_keys: ByKeys, looks: SecondLooks
) -> RawPage:
    """A page with whole partitions in the place of the rows in doubt."""
    if not doubtful:
        return RawPage(page.columns, page.types, rows, page.size)
    there: dict[Row, list[Row]] = {suspicion.partition(rows[at]): [] for at in doubtful}
    for partition in by_keys(list(there)):
        for row in partition.rows:
            there[suspicion.partition(row)].append(row)
    looks.partitions += len(doubtful)
    found: list[Row] = []
    done = 0
    for at in doubtful:
        whole = there[suspicion.partition(rows[at])]
        looks.phantoms += not any(suspicion.same_key(row, rows[at]) for row in whole)
        found += rows[done:at]
        found += whole
        done = at + 1
    return RawPage(page.columns, page.types, [*found, *rows[done:]], page.size)
