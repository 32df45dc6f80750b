"""Rows of a base table by token ranges or by partition keys, as raw pages with write times.

In: a description and an open connection. Out: ranges that together hold every token once; the texts of the queries;
pages, the next one asked for while the last is worked on, each as the description has the table. What may be tried
again is, from the page it failed at.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from connector.changes import TableDescription
from connector.cql_names import qualified, quote_identifier
from connector.errors import RetriableSourceError, SourceError
from connector.source.added_again import is_vouched
from connector.source.connection import Connection
from connector.source.lagging import OtherSchema, require_shown
from connector.source.log_reader import ELSEWHERE_SECONDS
from connector.source.pages import RawPage
from connector.source.second_asking import take_time
from connector.topology import MAX_TOKEN, MIN_TOKEN
from connector.values import is_multi_cell

# No key has the first token: a range begins behind its first token and ends with its last.

ATTEMPTS = 9
KEYS_TOGETHER = 32
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0

TokenRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BaseQuery:
    """What is selected of a table, in order: ``columns`` (partition key, ``clustering`` columns, others), then the
    write times of ``timed`` and, if ``ending``, the seconds that are left of them. ``regular`` are the places of
    regular values and their times."""

    description: TableDescription
    partition_key: tuple[str, ...]
    columns: tuple[str, ...]
    timed: tuple[str, ...]
    clustering: int
    regular: tuple[int, ...]
    has_statics: bool
    ending: bool = False

    @property
    def deceivable(self) -> bool:
        """A scan may show rows that do not exist (see `connector.source.phantom_rows`)."""
        return bool(self.has_statics and self.clustering and self.timed)

    @property
    def token(self) -> str:
        return f"token({', '.join(map(quote_identifier, self.partition_key))})"

    def by_token(self) -> str:
        return f"{self._select()} WHERE {self.token} > ? AND {self.token} <= ?"

    def by_key(self) -> str:
        return f"{self._select()} WHERE {' AND '.join(f'{quote_identifier(name)} = ?' for name in self.partition_key)}"

    def _select(self) -> str:
        names = [quote_identifier(name) for name in self.columns]
        asked = ("WRITETIME", "TTL") if self.ending else ("WRITETIME",)
        names += [f"{function}({quote_identifier(name)})" for function in asked for name in self.timed]
        return f"SELECT {', '.join(names)} FROM {qualified(self.description.keyspace, self.description.name)}"


def base_query(description: TableDescription, wanted: Iterable[str], ending: bool = False) -> BaseQuery:
    """The key columns and the wanted ones; write times, and perhaps TTLs, of those that are one cell."""
    partition = sorted((c for c in description.columns if c.kind == "partition_key"), key=lambda c: c.position)
    clustering = sorted((c for c in description.columns if c.kind == "clustering"), key=lambda c: c.position)
    chosen = set(wanted)
    others = [column for column in description.columns if not column.is_key and column.name in chosen]
    timed = [column for column in others if not is_multi_cell(column.type)]
    selected = [*partition, *clustering, *others, *timed]
    return BaseQuery(
        description,
        tuple(column.name for column in partition),
        tuple(column.name for column in (*partition, *clustering, *others)),
        tuple(column.name for column in timed),
        clustering=len(clustering),
        regular=tuple(at for at, column in enumerate(selected) if column.kind == "regular"),
        has_statics=any(column.kind == "static" for column in description.columns),
        ending=ending,
    )


def ring_tokens(connection: Connection) -> list[int]:
    """The tokens of all nodes, as the node that answers knows them."""
    rows = connection.query("SELECT tokens FROM system.local") + connection.query("SELECT tokens FROM system.peers")
    return sorted({int(token) for row in rows for token in row["tokens"] or ()})


def token_ranges(tokens: Iterable[int], least: int) -> list[TokenRange]:
    """Ranges that hold every token exactly once, cut at the given tokens, and evenly so that there are enough.

    >>> token_ranges([0], 1)
    [(-9223372036854775808, 0), (0, 9223372036854775807)]
    """
    even = {MIN_TOKEN + (2**64 * at) // least for at in range(1, least)}
    cuts = sorted({token for token in (*tokens, *even) if MIN_TOKEN < token < MAX_TOKEN})
    return list(zip([MIN_TOKEN, *cuts], [*cuts, MAX_TOKEN], strict=True))


def dealt(ranges: Sequence[TokenRange], hands: int) -> list[list[TokenRange]]:
    """The ranges in ``hands`` runs of neighbours, about equally wide."""
    runs: list[list[TokenRange]] = [[] for _ in range(hands)]
    for low, high in ranges:
        runs[min((high - 1 - MIN_TOKEN) * hands >> 64, hands - 1)].append((low, high))
    return [run for run in runs if run]


def every_page(page: RawPage) -> bool:
    return True


def read_pages(
    connection: Connection,
    bind: Callable[[], object],
    goes_on: Callable[[RawPage], bool] = every_page,
    without_rows: bool = False,
    described: TableDescription | None = None,
    attempts: int = ATTEMPTS,
) -> Iterator[RawPage]:
    """All pages of a query; those without rows, of which there are many where a condition is true of few rows, only if
    they are wanted. ``bind`` makes its statement, anew for every page that is tried again. ``goes_on``: whether behind
    this page another one will be wanted: only then it is asked for before this one is worked on. ``described``: as what
    a page of a table itself has to show it; of a node that knows another schema no page is taken. ``attempts``: so
    often each page is asked for."""
    pages = _pages(connection, bind, _ask(connection, bind, None), goes_on, described, attempts)
    yield from pages if without_rows else with_rows(pages)


def with_rows(pages: Iterable[RawPage]) -> Iterator[RawPage]:
    return (page for page in pages if page.rows)


def read_keys(
    connection: Connection,
    query: str,
    keys: Iterable[Sequence[bytes]],
    described: TableDescription,
    attempts: int = ATTEMPTS,
) -> Iterator[RawPage]:
    """The pages of one query per key, some of them asked at once. ``attempts``: as of `read_pages`."""
    waiting: deque[tuple[Callable[[], object], Future[Answer]]] = deque()
    left = iter(keys)
    while True:
        while len(waiting) < KEYS_TOGETHER and (key := next(left, None)) is not None:
            bind = partial(connection.raw_statement, query, key)
            waiting.append((bind, _ask(connection, bind, None)))
        if not waiting:
            return
        yield from with_rows(_pages(connection, *waiting.popleft(), every_page, described, attempts))


#: A page, where it ends, and when it was asked for.
Answer = tuple[RawPage, bytes | None, float]


def _pages(
    connection: Connection,
    bind: Callable[[], object],
    first: Future[Answer],
    goes_on: Callable[[RawPage], bool],
    described: TableDescription | None,
    attempts: int,
) -> Iterator[RawPage]:
    state: bytes | None = None
    waiting: Future[Answer] | None = first
    while waiting is not None:
        page, state = _answered(connection, bind, state, waiting, described, attempts)
        waiting = _ask(connection, bind, state) if state and goes_on(page) else None
        yield page
        if state and waiting is None:
            waiting = _ask(connection, bind, state)


def _ask(connection: Connection, bind: Callable[[], object], state: bytes | None) -> Future[Answer]:
    answer: Future[Answer] = Future()
    asked = time.monotonic()
    try:
        statement = bind()
    except SourceError as error:
        # Preparing the statement asks the server as well.
        answer.set_exception(error)
        return answer
    connection.page_async(
        take_time(statement),
        lambda page, after: answer.set_result((page, after, asked)),
        answer.set_exception,
        paging_state=state,
    )
    return answer


def _answered(
    connection: Connection,
    bind: Callable[[], object],
    state: bytes | None,
    waiting: Future[Answer],
    described: TableDescription | None,
    attempts: int,
) -> tuple[RawPage, bytes | None]:
    pause, left, others = _FIRST_PAUSE_S, attempts - 1, 0
    refused: set[Any] = set()
    while True:
        try:
            page, after, asked = waiting.result()
            if described is None:
                return page, after
            require_shown(described, page)
            if is_vouched(connection, described, page.node, asked):
                return page, after
        except SourceError as error:
            if isinstance(error, RetriableSourceError) and not isinstance(error, OtherSchema):
                if not left:
                    raise
                left -= 1
                time.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(pause * 2, _LONGEST_PAUSE_S)
            else:
                # A node that lags behind the schema refuses the query as well: it does not know a column. Who was asked
                # to prepare it the driver does not tell, so that the same one may be asked again.
                if described is None:
                    raise
                others += 1
                if error.node is not None:
                    refused.add(error.node)
                    connection.avoid(error.node, ELSEWHERE_SECONDS)
                hosts = connection.hosts() or connection.asked_hosts()
                if refused.issuperset(hosts) or others > 2 * len(hosts):
                    raise
        waiting = _ask(connection, bind, state)
