"""A base table read by token ranges and by keys: every row once, whatever the ring, the pages and the errors."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from cassandra.cluster import Session

from connector.errors import SourceError, TableMissing
from connector.source.base_rows import (
    FIRST_TOKEN,
    LAST_TOKEN,
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
from connector.source.settings import ConnectionSettings
from embedded.scylla.process import EmbeddedScylla
from tests.source.conftest import address

Table = Callable[..., str]


def test_ranges_hold_every_token_once() -> None:
    draw = random.Random(1)
    for _ in range(300):
        tokens = [draw.randrange(FIRST_TOKEN, LAST_TOKEN + 1) for _ in range(draw.randrange(20))]
        tokens += draw.sample([FIRST_TOKEN, FIRST_TOKEN + 1, -1, 0, 1, LAST_TOKEN - 1, LAST_TOKEN], 3)
        least, hands = draw.randint(1, 9), draw.randint(1, 9)
        ranges = token_ranges(tokens, least)
        assert ranges[0][0] == FIRST_TOKEN and ranges[-1][1] == LAST_TOKEN
        assert all(before[1] == after[0] for before, after in pairwise(ranges))
        assert all(low < high for low, high in ranges) and len(ranges) >= least
        runs = dealt(ranges, hands)
        assert [span for run in runs for span in run] == ranges and len(runs) <= hands
    assert len(dealt(token_ranges([], 8), 4)) == 4


@pytest.fixture
def connection(scylla: EmbeddedScylla) -> Iterator[Connection]:
    opened = Connection(ConnectionSettings((address(scylla.address),), fetch_size=7))
    opened.open()
    yield opened
    opened.close()


def all_rows(connection: Connection, query: BaseQuery) -> Counter[tuple[bytes | None, ...]]:
    found: Counter[tuple[bytes | None, ...]] = Counter()
    text = query.by_token()
    for low, high in token_ranges(ring_tokens(connection), 3):
        for page in read_pages(connection, lambda span=(low, high): connection.statement(text, span)):
            found.update(tuple(row) for row in page.rows)
    return found


@pytest.mark.scylla
@pytest.mark.parametrize("tablets", [True, False])
def test_every_row_comes_once(connection: Connection, session: Session, table: Table, tablets: bool) -> None:
    name = table(tablets=tablets, columns='v text, "Odd name" int, s int static')
    for pk in range(60):
        for ck in range(pk % 9):
            session.execute(f"INSERT INTO {name} (pk, ck, v, \"Odd name\") VALUES ({pk}, {ck}, 'x', 1)")
        session.execute(f"INSERT INTO {name} (pk, s) VALUES ({pk}, {pk})")
    query = base_query(describe_base(connection, *name.split("."))[0], ["v", "Odd name", "s"])
    assert query.columns == ("pk", "ck", "Odd name", "s", "v") and query.timed == ("Odd name", "s", "v")
    found = all_rows(connection, query)
    assert len(found) == sum(max(pk % 9, 1) for pk in range(60)) and set(found.values()) == {1}
    keys = [[pk.to_bytes(4, "big", signed=True)] for pk in range(-5, 60)]
    by_key = Counter(tuple(row) for page in read_keys(connection, query.by_key(), keys) for row in page.rows)
    assert by_key == found


@pytest.mark.scylla
def test_errors_that_pass_are_waited_for(
    connection: Connection, session: Session, table: Table, scylla: EmbeddedScylla
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
