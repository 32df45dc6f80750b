"""Where list elements stand: their positions come from the write's timestamp and a running number, as in ScyllaDB."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from connector.timeuuid import EPOCH_TICKS
from connector.values.binary import encode
from connector.values.types import native
from embedded.scylla.engine import BatchEntry
from embedded.scylla.errors import InvalidRequest, ServerError
from embedded.scylla.mutation import FULL_SLICE
from tests.embedded.scylla.cql_session import START_US, CqlSession

REFERENCE_US = 1_262_304_000_000_000
"""The start of 2010, at which the times of prepended elements are mirrored."""

ROW = "WHERE pk = 0 AND ck = 0"
INT = native("int")


@pytest.fixture
def cql() -> CqlSession:
    session = CqlSession()
    session.execute(
        "CREATE TABLE t (pk int, ck int, s list<int> static, l list<int>, k list<int>, PRIMARY KEY (pk, ck))"
    )
    return session


def positions(cql: CqlSession, column: str = "l") -> list[UUID]:
    """The positions of a list in row 0 of partition 0, or of a static one."""
    table = cql.engine.schema.table("ks", "t")
    assert table is not None
    view = cql.engine.stores[table.id].partition(encode(INT, 0), cql.clock.now_seconds())
    assert view is not None
    live = view.static() if column == "s" else next(iter(view.rows([FULL_SLICE]))).cells
    elements = live[column]
    assert isinstance(elements, list)
    return [UUID(bytes=key) for key, _ in elements]


def ticks(position: UUID) -> int:
    """100-ns ticks since 1970."""
    return position.time - EPOCH_TICKS


def shown(cql: CqlSession, column: str = "l") -> Any:
    ((value,),) = cql.rows(f"SELECT {column} FROM t {ROW}")
    return value


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t USING TIMESTAMP 1700000000000000 SET l = [1, 2, 3] WHERE pk = 0 AND ck = 0",
        "UPDATE t USING TIMESTAMP 1700000000000000 SET l = l + [1, 2, 3] WHERE pk = 0 AND ck = 0",
        "INSERT INTO t (pk, ck, l) VALUES (0, 0, [1, 2, 3]) USING TIMESTAMP 1700000000000000",
        """INSERT INTO t JSON '{"pk": 0, "ck": 0, "l": [1, 2, 3]}' USING TIMESTAMP 1700000000000000""",
        "BEGIN BATCH USING TIMESTAMP 1700000000000000 UPDATE t SET l = l + [1, 2] WHERE pk = 0 AND ck = 0; "
        "UPDATE t SET l = l + [3] WHERE pk = 0 AND ck = 0; APPLY BATCH",
    ],
)
def test_positions_are_the_timestamp_and_a_running_number(cql: CqlSession, statement: str) -> None:
    cql.execute(statement)
    found = positions(cql)
    assert [ticks(position) for position in found] == [1_700_000_000_000_000 * 10] * 3
    assert [position.bytes[8:10] for position in found] == [b"\x80\x80", b"\x80\x81", b"\x80\x82"]
    assert len({position.node for position in found}) == 1
    assert shown(cql) == [1, 2, 3]


def test_prepended_elements_have_the_timestamp_mirrored_at_2010(cql: CqlSession) -> None:
    cql.execute(f"UPDATE t USING TIMESTAMP {START_US} SET l = [1, 2] + l {ROW}")
    found = positions(cql)
    # The last of 2^17 numbers: seven ticks for the upper three bits, the lower fourteen with one bit flipped.
    assert [ticks(position) for position in found] == [(2 * REFERENCE_US - START_US) * 10 + 7] * 2
    assert [position.bytes[8:10] for position in found] == [b"\xbf\x7e", b"\xbf\x7f"]
    cql.execute(f"UPDATE t USING TIMESTAMP {START_US + 1} SET l = [3, 4] + l {ROW}")
    assert shown(cql) == [3, 4, 1, 2]


def test_every_write_of_the_process_has_the_same_node(cql: CqlSession) -> None:
    cql.execute("UPDATE t SET l = l + [1], k = [2] + k, s = [3] WHERE pk = 0 AND ck = 0")
    nodes = {position.node for column in "lks" for position in positions(cql, column)}
    cql.execute(f"UPDATE t SET l = [4] {ROW}")
    assert {position.node for position in positions(cql)} == nodes
    assert len(nodes) == 1


@pytest.mark.parametrize(("first", "second", "expected"), [(1, 2, 2), (2, 1, 2), (-1, 1, -1)])
def test_writes_of_one_timestamp_meet_on_the_same_positions(
    cql: CqlSession, first: int, second: int, expected: int
) -> None:
    for value in (first, second):
        cql.execute(f"UPDATE t USING TIMESTAMP 5 SET l = l + [{value}] {ROW}")
        cql.execute(f"UPDATE t USING TIMESTAMP {START_US} SET k = [{value}] + k {ROW}")
    # The greater bytes win: -1 beats 1.
    assert (shown(cql), shown(cql, "k")) == ([expected], [expected])


def test_two_assignments_of_one_timestamp_merge_element_by_element(cql: CqlSession) -> None:
    cql.execute(f"UPDATE t USING TIMESTAMP 5 SET l = [1, 9, 3] {ROW}")
    cql.execute(f"UPDATE t USING TIMESTAMP 5 SET l = [7, 2] {ROW}")
    assert shown(cql) == [7, 9, 3]


def test_a_ttl_wins_on_the_same_position(cql: CqlSession) -> None:
    cql.execute(f"UPDATE t USING TIMESTAMP 5 AND TTL 10 SET l = l + [1] {ROW}")
    cql.execute(f"UPDATE t USING TIMESTAMP 5 SET l = l + [2] {ROW}")
    assert shown(cql) == [1]


def test_an_earlier_timestamp_lands_before_what_was_written_earlier(cql: CqlSession) -> None:
    cql.execute(f"UPDATE t USING TIMESTAMP 20 SET l = l + [2] {ROW}")
    cql.execute(f"UPDATE t USING TIMESTAMP 10 SET l = l + [1] {ROW}")
    assert shown(cql) == [1, 2]
    cql.execute(f"UPDATE t USING TIMESTAMP 15 SET l = [3] {ROW}")
    assert shown(cql) == [3, 2]


def test_each_timestamp_of_a_batch_counts(cql: CqlSession) -> None:
    cql.execute(
        f"BEGIN BATCH UPDATE t USING TIMESTAMP 20 SET l = l + [3] {ROW}; "
        f"UPDATE t USING TIMESTAMP 10 SET l = l + [1, 2] {ROW}; APPLY BATCH"
    )
    assert shown(cql) == [1, 2, 3]
    assert [(ticks(each), each.bytes[9]) for each in positions(cql)] == [(100, 0x81), (100, 0x82), (200, 0x80)]


def test_a_batch_that_is_one_text_counts_through_all_its_statements(cql: CqlSession) -> None:
    appends = [f"UPDATE t SET l = l + [{value}] {ROW}" for value in (3, 1, 2)]
    prepends = [f"UPDATE t SET k = {value} + k {ROW}" for value in ("[1, 2]", "[3]", "[4]")]
    cql.execute(f"BEGIN BATCH USING TIMESTAMP {START_US} {'; '.join(appends + prepends)}; APPLY BATCH")
    assert (shown(cql), shown(cql, "k")) == ([3, 1, 2], [4, 3, 1, 2])


def test_a_batch_message_counts_each_statement_from_zero(cql: CqlSession) -> None:
    """Its statements have options of their own in ScyllaDB, so that their elements meet, and the greatest stays."""
    entries = [BatchEntry(f"UPDATE t SET l = l + [{value}], k = [{value}] + k {ROW}") for value in (3, 1, 2)]
    cql.engine.batch("unlogged", entries, cql.context(default_timestamp=START_US))
    assert (shown(cql), shown(cql, "k")) == ([3], [3])


def test_several_rows_of_one_statement_share_the_count(cql: CqlSession) -> None:
    cql.execute("UPDATE t USING TIMESTAMP 5 SET l = l + [1], s = s + [8] WHERE pk = 0 AND ck IN (0, 1)")
    # Statics are written once for each row.
    assert cql.rows("SELECT l, s FROM t") == [([1], [8, 8]), ([1], [8, 8])]


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE t SET l = l + [1], s = s + [2], k = k + [3] {ROW}",
        "INSERT INTO t (pk, l, ck, s, k) VALUES (0, [1], 0, [2], [3])",
    ],
)
def test_the_lists_of_a_statement_are_counted_in_its_order(cql: CqlSession, statement: str) -> None:
    cql.execute(statement)
    assert [positions(cql, column)[0].bytes[9] for column in "lsk"] == [0x80, 0x81, 0x82]


def test_an_index_finds_the_position_whatever_wrote_it(cql: CqlSession) -> None:
    cql.execute(f"UPDATE t USING TIMESTAMP 20 SET l = l + [2, 3] {ROW}")
    cql.execute(f"UPDATE t USING TIMESTAMP 10 SET l = l + [1] {ROW}")
    before = positions(cql)
    cql.execute(f"UPDATE t USING TIMESTAMP 30 SET l[0] = 7 {ROW}")
    cql.execute(f"DELETE l[1] FROM t USING TIMESTAMP 30 {ROW}")
    assert shown(cql) == [7, 3]
    assert positions(cql) == [before[0], before[2]]
    # A write at the position of a removed element comes too late.
    cql.execute(f"UPDATE t USING TIMESTAMP 20 SET l = l + [9, 9] {ROW}")
    assert shown(cql) == [7, 9]


def test_a_conditional_write_has_the_servers_timestamp(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (pk, ck, l) VALUES (0, 0, [1]) IF NOT EXISTS")
    cql.clock.move(1000)
    cql.execute(f"UPDATE t SET l = l + [2, 3] {ROW} IF l = [1]", default_timestamp=5)
    first, second, third = positions(cql)
    assert ticks(first) == START_US * 10
    assert ticks(second) == ticks(third) == (START_US + 1000) * 10
    assert shown(cql) == [1, 2, 3]


@pytest.mark.parametrize("timestamp", [-5, 5, REFERENCE_US])
@pytest.mark.parametrize("given", ["[1]", "[]"])
def test_nothing_can_be_prepended_before_2010(cql: CqlSession, timestamp: int, given: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        cql.execute(f"UPDATE t USING TIMESTAMP {timestamp} SET l = {given} + l {ROW}")
    assert str(raised.value) == "List prepend custom timestamp must be greater than Jan 1 2010 00:00:00"
    cql.execute(f"UPDATE t USING TIMESTAMP {timestamp} SET l = null + l {ROW}")
    assert cql.rows("SELECT * FROM t") == []


def test_a_time_before_every_timeuuid_is_an_error(cql: CqlSession) -> None:
    cql.execute(f"UPDATE t USING TIMESTAMP -12219292800000000 SET l = l + [1] {ROW}")
    assert ticks(positions(cql)[0]) == -EPOCH_TICKS
    with pytest.raises(ServerError, match="timeuuid time must fit in 60 bits"):
        cql.execute(f"UPDATE t USING TIMESTAMP -12219292800000001 SET l = l + [1] {ROW}")


def test_a_statement_holds_2_to_the_17_elements(cql: CqlSession) -> None:
    most = 1 << 17
    where = "WHERE pk = ? AND ck = ?"
    cql.execute(f"UPDATE t USING TIMESTAMP 5 SET l = l + ? {where}", list(range(most)), 0, 0)
    assert shown(cql) == list(range(most))
    assert ticks(positions(cql)[-1]) == 57
    for change, count in (("l + ?", most + 1), ("? + l", most)):
        with pytest.raises(InvalidRequest) as raised:
            cql.execute(f"UPDATE t SET l = {change} {where}", [1] * count, 0, 0, default_timestamp=START_US)
        assert str(raised.value) == "Too many list values per single CQL statement or batch"
