"""Nodes that know an older schema than others: their pages lack values, and their word on a table is none."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.cqltypes import FrozenType, Int32Type, ListType, UTF8Type
from cassandra.cqltypes import UserType as DriverType
from cassandra.policies import RoundRobinPolicy

from connector.changes import Change, Column, DroppedColumn, TableDescription, changes_of
from connector.errors import FatalSourceError, SourceError, TableMissing
from connector.source import describe_base, describe_table, describing
from connector.source.added_again import ask_all
from connector.source.base_rows import base_query, read_keys, ring_tokens, token_ranges
from connector.source.chunks import Question, read_chunk, read_partitions
from connector.source.connection import Connection
from connector.source.descriptions import DescribedTable
from connector.source.lagging import OlderSchema, OtherSchema, lacking, older
from connector.source.log_reader import LogTable
from connector.source.pages import RawPage
from connector.source.phantom_rows import SecondLooks, scan
from connector.source.read_changes import ChangeReader
from connector.source.routing import HoldersFirst
from connector.source.settings import ChunkSize
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.values import UserType, native
from tests.servers.double import Double
from tests.servers.patience import until
from tests.source.conftest import FAST, reader
from tests.source.test_source_tables import LOG, TABLE, page
from tests.source.test_source_watch import Watched


class Node:
    """A host, as the driver has them."""

    def __init__(self, number: int) -> None:
        self.endpoint = f"10.0.0.{number}:9042"


FRESH, DEAF = Node(1), Node(2)
FIRST, SECOND = (str(uuid.UUID(f"0000000{number}-0000-11f0-8000-000000000000")) for number in (1, 2))
RANDOM = "00000000-0000-4000-8000-000000000000"


def pair(fields: int) -> UserType:
    return UserType("ks", "pair", tuple((f"f{number}", native("int")) for number in range(fields)), frozen=True)


def described(
    *columns: str, fields: int = 0, dropped: dict[str, int] | None = None, made: str = FIRST
) -> DescribedTable:
    known = (Column("pk", native("int"), "partition_key", 0), *(Column(name, native("text")) for name in columns))
    types: tuple[UserType, ...] = ()
    if fields:
        types = (pair(fields),)
        known += (Column("p", types[0]),)
    ended = tuple(DroppedColumn(name, native("text"), us) for name, us in (dropped or {}).items())
    logged = [*LOG, *(name for column in known[1:] for name in (column.name, f"cdc$deleted_{column.name}"))]
    description = TableDescription("ks", "t", made, known, user_types=types, dropped=ended)
    return DescribedTable(description, True, LogTable("ks", "t_scylla_cdc_log"), tuple((name, "") for name in logged))


def given(node: Any, *columns: str) -> RawPage:
    names = [name for column in columns for name in (column, f"cdc$deleted_{column}")]
    return replace(page(*names), node=node)


OLD, NEW, NEWER = described("v"), described("v", "w"), described("v", "w", "x")


# -- what is older ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "known", "why"),
    [
        (NEW, OLD, None),
        (OLD, NEW, "no column w"),
        (described("v", dropped={"w": 7}), NEW, None),
        (NEW, described("v", dropped={"w": 7}), "column w from before it was dropped"),
        # Added again: whoever has heard of its first end only is behind.
        (described("v", dropped={"w": 7}), described("v", "w", dropped={"w": 7}), "no column w"),
        (described("v", "w", dropped={"w": 7}), described("v", dropped={"w": 7}), None),
        (described("v", dropped={"w": 9}), described("v", "w", dropped={"w": 7}), None),
        (described("v", fields=1), described("v", fields=2), "1 of the 2 fields of type pair"),
        (described("v", fields=2), described("v", fields=1), None),
        (OLD, described("x", made=SECOND), "a table of that name that was dropped"),
        (described("x", made=SECOND), OLD, None),
        (described("x", made="unheard of"), OLD, None),
        (OLD, described("x", made="unheard of"), None),
        # Of ids that tell no time none is of before.
        (described("x", made=RANDOM), described("v", made=SECOND), None),
    ],
)
def test_what_one_node_says_may_be_older_than_what_another_said(
    found: DescribedTable, known: DescribedTable, why: str | None
) -> None:
    assert older(found.description, known.description) == why


def test_a_column_of_the_key_goes_by_getting_another_name() -> None:
    renamed = replace(
        OLD.description, columns=(Column("id", native("int"), "partition_key", 0), *OLD.description.columns[1:])
    )
    assert older(renamed, OLD.description) is None
    assert older(OLD.description, renamed) is None, "of a table without a log nobody knows"
    logged = replace(renamed, keys_lost_us=7)
    assert older(logged, OLD.description) is None
    assert older(OLD.description, logged) == "the key from before a column of it was renamed"


def test_what_a_page_lacks() -> None:
    assert lacking(NEW, given(DEAF, "v", "w")) is None
    assert lacking(OLD, given(FRESH, "v", "w")) is None
    assert lacking(NEW, given(DEAF, "v")) == "no column w"
    flags = replace(given(DEAF, "v", "w"), columns=given(DEAF, "v", "w").columns[:-1])
    assert lacking(NEW, flags) == "no column cdc$deleted_w"


class Shows:
    """Rows of a table as nodes show them: the first one until it is avoided, then the others."""

    scanner = None

    def __init__(self, *types: Any) -> None:
        self.page = RawPage(("pk", "v", "p"), types, [(b"\0\0\0\1", b"\0\0\0\7", None)], node=DEAF)
        self.clock = SimpleNamespace(now_ms=lambda: 0)
        self.refusal: SourceError | None = None
        self.others: RawPage | None = None
        self.avoided: set[Any] = set()
        self.vouched: dict[object, float] = {}
        self.given: list[Any] = []

    def hosts(self) -> list[Any]:
        return [DEAF] if self.others is None else [DEAF, FRESH]

    def avoid(self, node: Any, seconds: float) -> None:
        self.avoided.add(node)

    def statement(self, query: str, values: Sequence[Any]) -> SimpleNamespace:
        return SimpleNamespace()

    raw_statement = statement

    def page_async(
        self, _: Any, done: Callable[..., None], failed: Callable[..., None], paging_state: bytes | None
    ) -> None:
        self.given.append(FRESH if self.avoided and self.others is not None else DEAF)
        if self.avoided and self.others is not None:
            done(self.others, None)
        elif self.refusal is not None:
            failed(self.refusal)
        else:
            done(self.page, None)


def fields(count: int) -> Any:
    return DriverType.make_udt_class("ks", "pair", tuple(f"f{at}" for at in range(count)), (Int32Type,) * count)


@pytest.mark.parametrize(
    ("types", "why"),
    [
        ((Int32Type, UTF8Type, fields(2)), None),
        ((Int32Type, Int32Type, fields(2)), "column v of type int"),
        ((Int32Type, UTF8Type, fields(1)), "1 of the 2 fields of type pair"),
    ],
)
@pytest.mark.parametrize("dated", [False, True])
def test_rows_of_a_snapshot_are_shown_by_the_schema_by_which_they_are_read(
    types: tuple[Any, ...], why: str | None, dated: bool
) -> None:
    connection, key = Shows(*types), (b"\0\0\0\1",)
    if dated:
        connection.page = replace(connection.page, rows=[(*row, *[None] * 4) for row in connection.page.rows])
    question = Question(described("v", fields=2).description, dated=dated)
    query = base_query(question.description, ["v", "p"])
    reads: tuple[Callable[[], Any], ...] = (
        lambda: read_chunk(connection, question, (-9, 9), None, ChunkSize(10, 1 << 30)).partitions,  # type: ignore[arg-type]
        lambda: read_partitions(connection, question, [key]),  # type: ignore[arg-type]
        # As verify and backfill read them.
        lambda: [row[:1] for each in scan(connection, query, (-9, 9), SecondLooks()) for row in each.rows],  # type: ignore[arg-type]
        lambda: [
            row[:1] for each in read_keys(connection, query.by_key(), [[b""]], query.description) for row in each.rows
        ],  # type: ignore[arg-type]
    )
    for read in reads:
        if why is None:
            assert [*read()] == [key]
            continue
        with pytest.raises(
            OtherSchema, match=rf"\[?10.0.0.2\]?:9042 answers by another schema, which has {why} in ks.t"
        ) as error:
            read()
        assert error.value.node is DEAF and connection.avoided == {DEAF}


def test_a_column_that_was_added_again_is_shown_by_nodes_that_know_the_end_of_the_former_one() -> None:
    """Its type is the same, so that nothing in a page tells."""
    connection = Shows(Int32Type, UTF8Type, fields(2))
    connection.others = replace(connection.page, node=FRESH)
    asked: list[Any] = []
    ends = {DEAF: datetime.fromtimestamp(5, UTC), FRESH: datetime.fromtimestamp(7, UTC)}

    def ask(text: str, values: Sequence[Any] = (), consistency: str = "ONE", host: Any = None) -> list[dict[str, Any]]:
        asked.append(host)
        return [{"column_name": "v", "dropped_time": ends[host].replace(tzinfo=None), "type": "text"}]

    connection.query = ask  # type: ignore[attr-defined]
    now = described("v", fields=2, dropped={"v": 7_000_000, "gone": 9_000_000}).description
    query = base_query(now, ["v", "p"])
    for _ in range(2):
        (page,) = scan(connection, query, (-9, 9), SecondLooks())  # type: ignore[arg-type]
        assert page.node is FRESH
    assert asked == [DEAF, FRESH] and connection.avoided == {DEAF}, "each is asked once"
    assert connection.given == [DEAF, FRESH, FRESH, FRESH], "what was given before it was asked is given again"
    del asked[:], connection.given[:]
    connection.vouched = {}
    assert len([*read_keys(connection, query.by_key(), [[b""]] * 2, now)]) == 2  # type: ignore[arg-type]
    assert (asked, connection.given) == ([FRESH], [FRESH] * 4), "so is what was asked for beside that"
    connection.others, connection.vouched = None, {}
    with pytest.raises(OtherSchema, match=r"which has column v from before it was dropped in ks\.t"):
        list(scan(connection, query, (-9, 9), SecondLooks()))  # type: ignore[arg-type]
    del asked[:], connection.given[:]
    connection.others = replace(connection.page, node=FRESH)
    for _ in range(2):
        ask_all(connection, now)  # type: ignore[arg-type]
    assert asked == [DEAF, FRESH, DEAF], "who knows is not asked again"
    (page,) = scan(connection, query, (-9, 9), SecondLooks())  # type: ignore[arg-type]
    assert page.node is FRESH and connection.given == [FRESH], "nothing is given twice"
    del asked[:]
    connection.others = None
    without = base_query(described("v", fields=2, dropped={"gone": 9}).description, ["v", "p"])
    assert [page.node for page in scan(connection, without, (-9, 9), SecondLooks())] == [DEAF]  # type: ignore[arg-type]
    assert not asked


@pytest.mark.parametrize(
    "refusal", [None, FatalSourceError("Unrecognized name v"), TableMissing("unconfigured table t")]
)
def test_other_nodes_are_asked_for_rows_that_one_shows_otherwise_or_not_at_all(refusal: SourceError | None) -> None:
    connection = Shows(Int32Type, Int32Type, fields(2))
    connection.others = replace(connection.page, types=(Int32Type, UTF8Type, fields(2)), node=FRESH)
    connection.refusal = refusal
    if refusal is not None:
        refusal.node = DEAF
    query = base_query(described("v", fields=2).description, ["v", "p"])
    (page,) = scan(connection, query, (-9, 9), SecondLooks())  # type: ignore[arg-type]
    assert page.node is FRESH
    connection.others, connection.given, connection.avoided = None, [], set()
    with pytest.raises(OtherSchema if refusal is None else type(refusal)):
        list(scan(connection, query, (-9, 9), SecondLooks()))  # type: ignore[arg-type]
    assert connection.given == [DEAF], "where all have refused nobody is asked twice"


def test_a_page_by_the_type_that_a_column_had_before_it_was_dropped() -> None:
    text = replace(OLD, log_columns=tuple((name, "text" if name == "v" else "") for name, _ in OLD.log_columns))
    shown = given(DEAF, "v")
    at = shown.columns.index("v")
    for kind, why in (
        (UTF8Type, None),
        (Int32Type, "column v of type int"),
        (ListType.apply_parameters([UTF8Type]), None),
    ):
        page = replace(shown, types=(*shown.types[:at], kind, *shown.types[at + 1 :]))
        assert lacking(text, page) == why
    old = replace(shown, types=(*shown.types[:at], Int32Type, *shown.types[at + 1 :]))
    tables = Tables([text])
    assert tables.layout(TABLE, old) is None, "its node may know more"
    tables.asking(TABLE)
    tables.unchanged(TABLE, DEAF)
    with pytest.raises(OlderSchema, match=r"which has column v of type int in ks\.t$"):
        tables.layout(TABLE, old)


def test_of_a_type_that_is_gone_nobody_hears_that_its_column_was_dropped() -> None:
    dropped = replace(OLD.description, dropped=(DroppedColumn("p", pair(2), 7),))
    assert older(OLD.description, dropped) is None


@pytest.mark.parametrize(("fields", "why"), [(1, "1 of the 2 fields of type pair"), (2, None), (3, None)])
@pytest.mark.parametrize("inside", [(), (ListType,), (FrozenType, ListType)])
def test_a_page_whose_user_type_lacks_a_field(fields: int, why: str | None, inside: Sequence[Any]) -> None:
    names = [f"f{number}" for number in range(fields)]
    kind = DriverType.make_udt_class("ks", "pair", names, [LOG["pk"]] * fields)
    for outer in inside:
        kind = outer.apply_parameters([kind])
    shown = given(DEAF, "v", "p")
    at = shown.columns.index("p")
    assert (
        lacking(described("v", fields=2), replace(shown, types=(*shown.types[:at], kind, *shown.types[at + 1 :])))
        == why
    )


# -- what becomes of pages -------------------------------------------------------------------------------------


def test_a_page_that_lacks_a_column_is_not_taken() -> None:
    tables = Tables([NEW])
    assert tables.layout(TABLE, given(DEAF, "v")) is None, "the column may have been dropped"
    assert tables.stopped(TABLE)
    assert tables.asking(TABLE) is DEAF
    tables.unchanged(TABLE, DEAF)
    for _ in range(2):
        with pytest.raises(
            OlderSchema, match=r"^10\.0\.0\.2:9042 answers by an older schema, which has no column w in ks\.t$"
        ):
            tables.layout(TABLE, given(DEAF, "v"))
        assert tables.asking(TABLE) is DEAF, "it may be dropped by now"
        assert not tables.stopped(TABLE)
        assert tables.layout(TABLE, given(FRESH, "v", "w")) is not None, "others go on"


def test_a_page_without_a_column_that_was_dropped_is_taken() -> None:
    tables = Tables([NEW])
    assert tables.layout(TABLE, given(FRESH, "v")) is None
    tables.asking(TABLE)
    tables.found(described("v", dropped={"w": 7}), FRESH)
    tables.put_in_force()
    assert tables.layout(TABLE, given(FRESH, "v")) is not None


def test_a_page_is_measured_by_what_waits_for_its_schema_record() -> None:
    tables = Tables([OLD])
    assert tables.layout(TABLE, given(DEAF, "v")) is not None
    tables.found(NEW, FRESH)
    assert tables.layout(TABLE, given(DEAF, "v")) is None
    tables.unchanged(TABLE, DEAF)
    assert tables.stopped(TABLE), "the record is not committed"
    tables.put_in_force()
    with pytest.raises(OlderSchema):
        tables.layout(TABLE, given(DEAF, "v"))


def test_what_only_a_page_knows_is_asked_of_its_node() -> None:
    tables = Tables([OLD])
    assert tables.layout(TABLE, given(DEAF, "v")) is not None
    for whom in (DEAF, FRESH):
        assert tables.layout(TABLE, given(FRESH, "v", "w")) is None
        assert tables.asking(TABLE) is FRESH
        tables.unchanged(TABLE, whom)
    layout = tables.layout(TABLE, given(FRESH, "v", "w"))
    assert layout is not None and layout.unknown == ("w",), "it knows no more itself"


def test_who_has_answered_an_earlier_question_has_not_answered_this_one() -> None:
    tables = Tables([OLD])
    assert tables.layout(TABLE, given(DEAF, "v")) is not None
    assert tables.layout(TABLE, given(FRESH, "v", "w")) is None
    tables.unchanged(TABLE, FRESH)
    assert tables.layout(TABLE, given(DEAF, "v", "x")) is None
    tables.unchanged(TABLE, DEAF)
    assert tables.layout(TABLE, given(DEAF, "v", "x")) is not None
    assert tables.layout(TABLE, given(FRESH, "v", "x")) is None, "it may have heard of the column by now"
    assert tables.asking(TABLE) is FRESH
    tables.unchanged(TABLE, FRESH)
    for node in (FRESH, DEAF):
        assert tables.layout(TABLE, given(node, "v", "x")) is not None, "nobody knows more"


def test_what_is_older_is_not_learnt_by_the_way() -> None:
    tables = Tables([NEW])
    tables.seen(OLD)
    assert not tables.changed
    tables.seen(NEWER)
    assert tables.changed


def test_rows_wait_until_somebody_has_looked_for_their_columns() -> None:
    tables = Tables([OLD])
    assert tables.knows(TABLE, 1 << 60), "nobody looks"
    tables.vouch(TABLE, 1_000)
    assert tables.knows(TABLE, 1_000)
    assert not tables.knows(TABLE, 1_001)


def test_who_is_avoided_is_asked_last() -> None:
    policy = HoldersFirst(RoundRobinPolicy())
    policy.populate(SimpleNamespace(metadata=None), [Node(number) for number in range(3)])
    first = next(policy.make_query_plan())
    policy.avoid(first, 60)
    assert {[*policy.make_query_plan()][-1] for _ in range(6)} == {first}
    policy.avoid(first, -1)
    assert len({[*policy.make_query_plan()][-1] for _ in range(6)}) == 3


# -- on servers ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nodes() -> Iterator[Double]:
    with Double(nodes=3, ring_delay=0) as scylla:
        yield scylla


@pytest.fixture
def wide(nodes: Double, unique: Callable[[str], str]) -> Iterator[str]:
    """A table with many streams and a user type; its writes are all made by a node that hears."""
    cluster = nodes.cluster()
    session: Session = cluster.connect()
    keyspace = unique("ks").replace("-", "_")
    session.execute(nodes.keyspace_ddl(keyspace, tablets=True, initial=8))
    session.execute(f"CREATE TYPE {keyspace}.pair (a int)")
    session.execute(
        f"CREATE TABLE {keyspace}.t (pk int, ck int, v int, p frozen<pair>, PRIMARY KEY (pk, ck)) "
        "WITH cdc = {'enabled': true}"
    )
    yield f"{keyspace}.t"
    nodes.admin.make_fresh(2)
    cluster.shutdown()


class Told(threading.Thread):
    """A reader that follows, and notes the columns of each change by its place."""

    def __init__(self, source: ChangeReader) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.columns: dict[int, dict[str, Any]] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        with self.source:
            for batch in self.source.batches(self.ended.is_set):
                for change in changes_of(batch):
                    assert isinstance(change, Change)
                    self.columns[change.key["ck"]] = dict(change.columns)


CHANGES = {
    "a column": ("ALTER TABLE {} ADD w int", "w", "7", 7),
    "a field of a type": ("ALTER TYPE {}.pair ADD b int", "p", "{{a: 1, b: 7}}", (1, 7)),
}


@pytest.mark.scylla
@pytest.mark.only_double("a node that hears of no change of the schema")
@pytest.mark.parametrize("what", CHANGES)
def test_no_value_is_lost_by_a_node_that_does_not_hear_of_it(
    nodes: Double, wide: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The window is shorter than a slow machine may take to look.
    monkeypatch.setattr(describing, "LEAST_HELD_MS", 0)
    ddl, column, value, read = CHANGES[what]
    keyspace = wide.partition(".")[0]
    told = Told(reader(nodes, wide, settings=replace(FAST, retry_max_ms=200), follow=True))
    told.start()
    try:
        for ck in range(20):
            nodes.admin.cql(f"INSERT INTO {wide} (pk, ck, v) VALUES ({ck}, {ck}, 1)")
        until(lambda: len(told.columns) == 20, 90, "the first changes")
        nodes.admin.make_deaf(2)
        nodes.admin.cql(ddl.format(wide if column == "w" else keyspace))
        # From then on as much as it takes to come by that node, of each stream.
        for ck in range(100, 220):
            nodes.admin.cql(f"INSERT INTO {wide} (pk, ck, {column}) VALUES ({ck}, {ck}, {value.format()})")
        until(lambda: len(told.columns) == 140, 90, lambda: f"{len(told.columns)} of 140 changes")
        assert {str(told.columns[ck][column]) for ck in range(100, 220)} == {str(read)}
        until(lambda: any(each.kind == "schema" for each in told.source.failing()), 90, "word of the node that lags")
        (failing,) = [each for each in told.source.failing() if each.kind == "schema"]
        assert failing.about == f"127.0.0.3:{nodes.port}"
        assert failing.partial and not failing.holds
        assert wide in failing.error
    finally:
        told.ended.set()
        until(lambda: not told.is_alive(), 90, "the end of the reader")


@pytest.mark.scylla
@pytest.mark.only_double("a node that hears of no change of the schema")
def test_a_description_is_that_of_the_node_that_knows_most(nodes: Double, wide: str) -> None:
    nodes.admin.make_deaf(2)
    nodes.admin.cql(f"ALTER TABLE {wide} ADD w int")
    table = TableName(*wide.split("."))
    connection = Connection(nodes.settings())
    connection.open()
    try:
        for _ in range(6):
            assert "w" in describe_table(connection, table).description.by_name
            assert "w" in describe_base(connection, *table)[0].by_name
        # Rows are read by it from the others: that node refuses the query, be it prepared or executed there.
        for pk in range(20):
            nodes.admin.cql(f"INSERT INTO {wide} (pk, ck, w) VALUES ({pk}, 1, 7)")
        query = base_query(describe_base(connection, *table)[0], ["v", "w"])
        spans = token_ranges(ring_tokens(connection), 6)
        pages = [page for span in spans for page in scan(connection, query, span, SecondLooks())]
        assert [row[query.columns.index("w")] for page in pages for row in page.rows] == [b"\0\0\0\7"] * 20
        assert all("127.0.0.3" not in str(page.node) for page in pages)
    finally:
        connection.close()


@pytest.fixture
def watched(nodes: Double, wide: str) -> Iterator[Watched]:
    made = Watched(nodes, wide)
    yield made
    made.close()
    nodes.admin.clear_faults()


@pytest.mark.scylla
@pytest.mark.only_double("a node that hears of no change of the schema")
def test_a_node_that_lags_is_named_until_it_has_heard(nodes: Double, wide: str, watched: Watched) -> None:
    watched.run(35)
    assert watched.background.failing() == []
    nodes.admin.make_deaf(2)
    nodes.admin.cql(f"ALTER TABLE {wide} ADD w int")
    watched.run(120)
    (failing,) = watched.failing("schema")
    assert str(failing).startswith(f"127.0.0.3:{nodes.port}: this node answers by an older schema since ")
    assert f"it has no column w in {wide}; other nodes are asked in its place" in str(failing)
    assert "w" in watched.tables._known[watched.table].newest.description.by_name
    nodes.admin.make_fresh(2)
    watched.run(65)
    assert watched.background.failing() == []


@pytest.mark.scylla
@pytest.mark.only_double("a node that hears of no change of the schema")
def test_where_one_node_has_not_heard_of_a_table_the_next_one_lists_its_streams(nodes: Double, wide: str) -> None:
    keyspace = wide.partition(".")[0]
    nodes.admin.make_deaf(0)
    made = None
    try:
        nodes.admin.cql(f"CREATE TABLE {keyspace}.n (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': true}}")
        made = Watched(nodes, f"{keyspace}.n")
        made.watch._settings = replace(FAST, confidence_ms=20_000)
        made.run(0.35)
        plan = made.planner.tables[made.table]
        assert plan.newest is not None, made.background.failing()
        assert not [each for each in made.background.failing() if each.kind == "stream sets"]
    finally:
        nodes.admin.make_fresh(0)
        if made is not None:
            made.close()


@pytest.mark.scylla
@pytest.mark.only_double("nodes that do not answer")
def test_by_the_word_of_nobody_nothing_is_read(
    nodes: Double, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once they answer again, not by that of the first: it may be one that lags."""
    monkeypatch.setattr(describing, "OVERDUE_SECONDS", 0.1)

    def vouched() -> int | None:
        return watched.tables._known[watched.table].vouched_ms

    watched.run(2)
    before = vouched()
    silent = [nodes.admin.add_fault("silence", node=node, pattern="schema_version") for node in range(3)]
    watched.run(4, step=0.5)
    assert vouched() == before
    (failing,) = watched.failing("description")
    assert failing.holds
    assert str(failing).startswith("changes of the schema are not seen since 20")
    assert "asking 127.0.0.3" in failing.error
    for fault in silent[1:]:
        nodes.admin.remove_fault(fault)
    monkeypatch.setattr(describing, "VERSION_SECONDS", 4)
    monkeypatch.setattr(describing, "OVERDUE_SECONDS", 4)
    watched.run(1, step=1)
    assert vouched() == before
    (failing,) = watched.failing("description")
    assert failing.error == "nodes that do not answer yet: 1"
    watched.run(describing.BACK_SECONDS + 1, step=4)
    assert vouched() != before, "it may be away for good"
    assert watched.background.failing() == []


@pytest.mark.scylla
@pytest.mark.only_double("a node that hears of no change of the schema")
def test_what_all_nodes_say_is_so(watched: Watched) -> None:
    """A table that is restored under its former id, say."""
    known = watched.tables[watched.table]
    more = (*known.description.columns, Column("undone", native("int")))
    watched.tables.found(replace(known, description=replace(known.description, columns=more)))
    watched.tables.put_in_force()
    watched.run(10)
    watched.tables.put_in_force()
    assert "undone" not in watched.tables[watched.table].description.by_name
