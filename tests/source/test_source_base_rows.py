"""A base table read by token ranges and by keys: every row once, whatever the ring, the pages and the errors."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pytest
from cassandra.cluster import Session

from connector.errors import SourceError, TableMissing
from connector.source.base_rows import (
    BaseQuery,
    base_query,
    dealt,
    read_keys,
    read_pages,
    ring_tokens,
    token_ranges,
)
from connector.source.connection import Connection
from connector.source.descriptions import describe_base
from connector.source.phantom_rows import SecondLooks, scan
from connector.topology import MAX_TOKEN, MIN_TOKEN
from tests.servers.scylla import Scylla

Table = Callable[..., str]


def test_ranges_hold_every_token_once() -> None:
    draw = random.Random(1)
    for _ in range(300):
        tokens = [draw.randrange(MIN_TOKEN, MAX_TOKEN + 1) for _ in range(draw.randrange(20))]
        tokens += draw.sample([MIN_TOKEN, MIN_TOKEN + 1, -1, 0, 1, MAX_TOKEN - 1, MAX_TOKEN], 3)
        least, hands = draw.randint(1, 9), draw.randint(1, 9)
        ranges = token_ranges(tokens, least)
        assert ranges[0][0] == MIN_TOKEN and ranges[-1][1] == MAX_TOKEN
        assert all(before[1] == after[0] for before, after in pairwise(ranges))
        assert all(low < high for low, high in ranges) and len(ranges) >= least
        runs = dealt(ranges, hands)
        assert [span for run in runs for span in run] == ranges and len(runs) <= hands
    assert len(dealt(token_ranges([], 8), 4)) == 4


@pytest.fixture
def connection(scylla: Scylla) -> Iterator[Connection]:
    opened = Connection(scylla.settings(fetch_size=7))
    opened.open()
    yield opened
    opened.close()


def all_rows(connection: Connection, query: BaseQuery) -> Counter[tuple[bytes | None, ...]]:
    found: Counter[tuple[bytes | None, ...]] = Counter()
    for span in token_ranges(ring_tokens(connection), 3):
        for page in scan(connection, query, span, SecondLooks()):
            found.update(tuple(row) for row in page.rows)
    return found


@pytest.mark.scylla
@pytest.mark.any_scylla
@pytest.mark.parametrize("tablets", [True, False])
def test_every_row_comes_once(connection: Connection, session: Session, table: Table, tablets: bool) -> None:
    name = table(tablets=tablets, columns='v text, "Odd name" int, s int static')
    for pk in range(60):
        for ck in range(pk % 9):
            session.execute(f"INSERT INTO {name} (pk, ck, v, \"Odd name\") VALUES ({pk}, {ck}, 'x', 1)")
        session.execute(f"INSERT INTO {name} (pk, s) VALUES ({pk}, {pk})")
    described = describe_base(connection, *name.split("."))[0]
    query = base_query(described, ["v", "Odd name", "s"])
    assert query.columns == ("pk", "ck", "Odd name", "s", "v") and query.timed == ("Odd name", "s", "v")
    found = all_rows(connection, query)
    assert len(found) == sum(max(pk % 9, 1) for pk in range(60)) and set(found.values()) == {1}
    keys = [[pk.to_bytes(4, "big", signed=True)] for pk in range(-5, 60)]
    by_key = Counter(tuple(row) for page in read_keys(connection, query.by_key(), keys, described) for row in page.rows)
    assert by_key == found


@pytest.mark.scylla
@pytest.mark.any_scylla
@pytest.mark.parametrize("tablets", [True, False])
@pytest.mark.parametrize("columns", ["v text, s int static, m map<int, int>", "s int static"])
def test_rows_that_never_were_are_not_read(
    scylla: Scylla, session: Session, table: Table, tablets: bool, columns: str
) -> None:
    """Partitions of statics only, before and behind all others: where write times are selected, the server shows them
    with the clustering key of the row before."""
    name = table(tablets=tablets, columns=columns)
    expected: Counter[tuple[int, int | None]] = Counter()
    for pk in range(40):
        session.execute(f"INSERT INTO {name} (pk, s) VALUES ({pk}, {pk})")
        for ck in range(pk % 3):
            # Rows of a key alone look the same.
            named, value = (", v", ", 'x'") if "v text" in columns and pk % 2 else ("", "")
            session.execute(f"INSERT INTO {name} (pk, ck{named}) VALUES ({pk}, {ck}{value})")
        expected.update((pk, ck) for ck in ([None] if pk % 3 == 0 else range(pk % 3)))
    whole = (MIN_TOKEN, MAX_TOKEN)
    for size in (1, 2, 3, 7, 1000):
        opened = Connection(scylla.settings(fetch_size=size))
        opened.open()
        try:
            query = base_query(describe_base(opened, *name.split("."))[0], ["v", "s", "m"])
            looks = SecondLooks()
            found = Counter(
                (number(row[0]), number(row[1])) for page in scan(opened, query, whole, looks) for row in page.rows
            )
            assert found == expected, f"pages of {size}"
            # On a server without the fault there are none.
            bind = partial(opened.statement, query.by_token(), whole)
            bare = sum(row[1] is None for page in read_pages(opened, bind) for row in page.rows)
            assert looks.phantoms == sum(ck is None for _, ck in expected) - bare
        finally:
            opened.close()


def number(cell: bytes | None) -> int | None:
    return None if cell is None else int.from_bytes(cell, "big", signed=True)


@pytest.mark.scylla
@pytest.mark.only_double("the server answers with errors at its tester's wish")
def test_errors_that_pass_are_waited_for(
    connection: Connection, session: Session, table: Table, scylla: Scylla
) -> None:
    name = table(tablets=True)
    for pk in range(40):
        session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES ({pk}, 0, 'x')")
    query = base_query(describe_base(connection, *name.split("."))[0], ["v"])
    for action in ("read_timeout", "unavailable", "overloaded"):
        scylla.admin.add_fault(action, table=name, count=2, skip=1)
    unprepared = scylla.admin.add_fault("overloaded", table=name, opcode="PREPARE", count=1)
    assert len(all_rows(connection, query)) == 40
    assert scylla.admin.fault(unprepared)["fired"] == 1
    session.execute(f"DROP TABLE {name}")
    with pytest.raises(SourceError):
        all_rows(connection, query)
    with pytest.raises(TableMissing, match="does not exist"):
        describe_base(connection, *name.split("."))
    with pytest.raises(TableMissing, match="there is no keyspace nowhere"):
        describe_base(connection, "nowhere", "t")
