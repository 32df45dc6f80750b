"""A table read in chunks: every row once, in the order of tokens, and no chunk larger than what is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.cluster import Session

from connector.changes import Row, whole_rows
from connector.errors import SourceError
from connector.source.chunks import Question, read_chunk, read_part, read_partitions, token_of_key
from connector.source.connection import Connection
from connector.source.descriptions import describe_base
from connector.source.pages import RawPage
from connector.source.settings import ChunkSize
from connector.topology import MAX_TOKEN, MIN_TOKEN, Inside
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
PAGE = 7


@pytest.fixture
def connection(scylla: Scylla) -> Iterator[Connection]:
    opened = Connection(scylla.settings(fetch_size=PAGE))
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def question(scylla: Scylla, session: Session, connection: Connection, unique: Callable[[str], str]) -> Question:
    """Partitions of no row, one row, some, and many more than a chunk holds; clustering columns in both directions."""
    keyspace = unique("ks").replace("-", "_")
    session.execute(scylla.keyspace_ddl(keyspace, tablets=True))
    session.execute(
        f"CREATE TABLE {keyspace}.t (pk int, a int, b text, c int, s int static, v int, PRIMARY KEY (pk, a, b, c)) "
        "WITH CLUSTERING ORDER BY (a ASC, b DESC, c ASC)"
    )
    for pk in range(12):
        session.execute(f"INSERT INTO {keyspace}.t (pk, s) VALUES ({pk}, {pk})")
        for number in range((0, 1, 5, 70)[pk % 4]):
            a, b, c = number % 3, "xyz"[number // 3 % 3], number
            session.execute(f"INSERT INTO {keyspace}.t (pk, a, b, c, v) VALUES ({pk}, {a}, '{b}', {c}, {number})")
    return Question(describe_base(connection, keyspace, "t")[0])


def test_every_row_comes_once_and_no_chunk_is_large(connection: Connection, question: Question) -> None:
    enough = ChunkSize(10, 1 << 30)
    every = read_chunk(connection, question, (MIN_TOKEN, MAX_TOKEN), None, ChunkSize(1 << 30, 1 << 30))
    wanted = [row for rows in every.partitions.values() for row in rows]
    assert len(wanted) == 3 * (1 + 1 + 5 + 70) and every.upto == MAX_TOKEN
    assert [*every.partitions] == sorted(every.partitions, key=token_of_key)
    found: list[Row] = []
    low, inside, parts = MIN_TOKEN, None, 0
    while low < MAX_TOKEN:
        chunk = read_chunk(connection, question, (low, MAX_TOKEN), inside, enough)
        rows = [row for rows in chunk.partitions.values() for row in rows]
        assert len(rows) <= enough.rows + 2 * PAGE
        found += rows
        low, inside, parts = chunk.upto, chunk.inside, parts + (chunk.inside is not None)
    assert found == wanted
    assert parts >= 3 * 3


def test_no_page_is_asked_for_that_nobody_wants(connection: Connection, question: Question) -> None:
    """A table is read once, and not a page more for each chunk: behind what is enough there mostly is one."""
    key = ((3).to_bytes(4, "big"),)
    within = token_of_key(key) - 1, token_of_key(key)
    read_part(connection, question, key, None, None)
    for rows, pages in ((1, 1), (PAGE, 1), (PAGE + 1, 2), (3 * PAGE, 3)):
        before = connection.queries
        chunk = read_chunk(connection, question, within, None, ChunkSize(rows, 1 << 30))
        assert chunk.pages == pages == connection.queries - before
        assert chunk.inside is not None
        before = connection.queries
        rest = read_chunk(connection, question, within, chunk.inside, ChunkSize(1, 1 << 30))
        assert rest.pages == 1 == connection.queries - before


def test_a_part_is_read_again_between_the_same_rows(connection: Connection, question: Question) -> None:
    key = ((3).to_bytes(4, "big"),)
    token = token_of_key(key)
    shape = whole_rows(question.description)
    enough = ChunkSize(10, 1 << 30)
    start: Inside | None = None
    for _ in range(3):
        chunk = read_chunk(connection, question, (token - 1, token), start, enough)
        assert read_part(connection, question, key, start, chunk.inside) == chunk.partitions
        start = chunk.inside
        assert start is not None and start.after == chunk.partitions[key][-1][shape.width : shape.keys]


def test_only_rows_of_which_a_condition_is_true(connection: Connection, question: Question) -> None:
    few = Question(question.description, "v < 2")
    chunk = read_chunk(connection, few, (MIN_TOKEN, MAX_TOKEN), None, ChunkSize(1 << 30, 1 << 30))
    assert sorted(row[-1] for rows in chunk.partitions.values() for row in rows) == sorted(
        number.to_bytes(4, "big") for number in (0,) * 9 + (1,) * 6
    )


@pytest.mark.parametrize(
    ("where", "is_wanted"),
    [
        ("pk = 3", lambda pk, a, c: pk == 3),
        ("pk = 3 AND a > 0", lambda pk, a, c: pk == 3 and a > 0),
        ("pk = 1 AND v = 5", lambda pk, a, c: False),
        ("a > 0", lambda pk, a, c: a > 0),
        ("c < 60 AND a > 0", lambda pk, a, c: a > 0 and c < 60),
        ("pk > 3", None),
    ],
)
def test_a_condition_may_speak_of_keys(
    connection: Connection, question: Question, where: str, is_wanted: Callable[[int, int, int], bool] | None
) -> None:
    """Partitions in several chunks, and read again: what a server refuses beside tokens or bounds is not asked."""
    few = Question(question.description, where)
    if is_wanted is None:
        with pytest.raises(SourceError, match="restricted"):
            read_chunk(connection, few, (MIN_TOKEN, MAX_TOKEN), None, ChunkSize(10, 1 << 30))
        return
    found: list[Row] = []
    low, inside = MIN_TOKEN, None
    for high in (0, MAX_TOKEN):
        while low < high:
            chunk = read_chunk(connection, few, (low, high), inside, ChunkSize(10, 1 << 30))
            for key in chunk.partitions:
                assert read_part(connection, few, key, inside, chunk.inside)[key] == chunk.partitions[key]
            found += [row for rows in chunk.partitions.values() for row in rows]
            low, inside = chunk.upto, chunk.inside
    every = read_chunk(connection, question, (MIN_TOKEN, MAX_TOKEN), None, ChunkSize(1 << 30, 1 << 30))
    rows = [row for rows in every.partitions.values() for row in rows if row[1] is not None]
    numbers = [[int.from_bytes(row[at] or b"", "big") for at in (0, 1, 3)] for row in rows]
    assert found == [row for row, (pk, a, c) in zip(rows, numbers, strict=True) if is_wanted(pk, a, c)]


def test_cells_with_a_ttl_tell_when_they_end_and_no_row_is_made_up(
    connection: Connection, question: Question, session: Session
) -> None:
    """Partitions of static values alone stand among those with rows: where a function is selected, ScyllaDB gives them
    the clustering key of the row before."""
    name, written = question.description.full_name, connection.clock.now_ms() * 1000 + 17
    session.execute(
        f"UPDATE {name} USING TTL 5000 AND TIMESTAMP {written} SET v = 7 WHERE pk = 1 AND a = 0 AND b = 'x' AND c = 0"
    )
    session.execute(f"UPDATE {name} USING TTL 9000 SET s = 7 WHERE pk = 4")
    all_ = ChunkSize(1 << 30, 1 << 30)
    plain = read_chunk(connection, question, (MIN_TOKEN, MAX_TOKEN), None, all_)
    with_times = Question(question.description, dated=True)
    dated = read_chunk(connection, with_times, (MIN_TOKEN, MAX_TOKEN), None, all_)
    shape, now = with_times.shape, connection.clock.now_ms() // 1000
    width = len(shape.columns)
    assert {key: [row[:width] for row in rows] for key, rows in dated.partitions.items()} == plain.partitions
    left = {
        (int.from_bytes(key[0] or b"", "big"), shape.columns[at].name): end - now
        for key, rows in dated.partitions.items()
        for row in rows
        for at in shape.timed
        if (end := shape.end_of(row, at)) is not None
    }
    assert left.keys() == {(1, "v"), (4, "s")}
    assert 4900 <= left[1, "v"] <= 5001 and 8900 <= left[4, "s"] <= 9001
    (key,) = [key for key in dated.partitions if key[0] == (1).to_bytes(4, "big")]
    (again,) = read_partitions(connection, with_times, [key])[key]
    assert again[:width] == dated.partitions[key][0][:width] and again[width:] != (None,) * 2 * len(shape.timed)
    assert shape.written_at(again, [column.name for column in shape.columns].index("v")) == written


class Sparse:
    """A server that looks for a few rows, and mostly answers with pages of none: so ScyllaDB does where it filters, and
    behind so many tombstones."""

    scanner = None

    def __init__(self, pages: Sequence[Sequence[Row]]) -> None:
        self.pages = pages
        self.clock = self

    def now_ms(self) -> int:
        return 0

    def statement(self, query: str, values: Sequence[Any]) -> SimpleNamespace:
        return SimpleNamespace()

    raw_statement = statement

    def page_async(self, _: Any, done: Any, failed: Any, paging_state: bytes | None) -> None:
        at = int(paging_state or b"0")
        done(RawPage((), (), self.pages[at]), b"%d" % (at + 1) if at + 1 < len(self.pages) else None)


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("where", [None, "pk = 3"])
def test_pages_without_rows_are_counted_as_others_are(dated: bool, where: str | None, question: Question) -> None:
    """They cost the server as much."""
    few = Question(question.description, where, dated)
    width = len(few.shape.columns) + 2 * len(few.shape.timed)
    row = ((3).to_bytes(4, "big"), b"", b"", b"", *[None] * (width - 4))
    for pages in ([[]] * 9, [[], [], [row], [], []], [[row], []]):
        connection: Any = Sparse(pages)
        chunk = read_chunk(connection, few, (MIN_TOKEN, MAX_TOKEN), None, ChunkSize(10, 1 << 30))
        assert chunk.pages == len(pages)
        assert [*chunk.partitions] == [row[:1]] * any(pages) and chunk.upto == MAX_TOKEN
    stop = Inside(row[:1], row[1:4], 1)
    connection = Sparse([[], [row], []])
    found = read_chunk(connection, few, (MIN_TOKEN, MAX_TOKEN), stop, ChunkSize(10, 1 << 30))
    assert found.pages == 3 * len(question.description.clustering_key)
    assert read_part(connection, few, row[:1], stop, stop) == {row[:1]: [row] * 3}
