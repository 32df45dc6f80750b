"""The watch when servers refuse: how often they are asked, what is said, and what is read meanwhile."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from cassandra.cluster import Session

from connector.errors import RetriableSourceError, SourceError
from connector.source import routing
from connector.source.background import LONGEST_PAUSE, TELL_SECONDS, Background, Failing
from connector.source.chores import Chores
from connector.source.connection import Connection
from connector.source.describing import LOOK_SECONDS, LOOKS_AT_ALL, Describing, without_cdc
from connector.source.descriptions import DescribedTable
from connector.source.routing import LEAST_ANSWERS
from connector.source.schema_versions import describe_table
from connector.source.stream_sets import VnodeGenerations
from connector.source.tables import Tables
from connector.source.watch import Watch
from connector.table_name import TableName
from connector.topology import Planner
from connector.topology.transitions import transition
from tests.servers.double import Double
from tests.servers.patience import patience, until
from tests.source.conftest import FAST, Following, create_table, logged, reader

pytestmark = [pytest.mark.scylla, pytest.mark.only_double("servers that refuse on demand")]
Table = Callable[..., str]

WATCHED = "cdc_timestamps|cdc_generation_timestamps"


class AtOnce(Chores):
    """Runs everything where it is asked for, so that a test's time is all the time there is."""

    def submit(self, call: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
        try:
            result = call()
        except Exception as error:
            then(None, error)
        else:
            then(result, None)


class Counted(Tables):
    """Notes the answers."""

    def __init__(self, described: Iterable[DescribedTable]) -> None:
        super().__init__(described)
        self.answers: list[DescribedTable] = []

    def found(self, described: DescribedTable, node: Any = None) -> bool:
        self.answers.append(described)
        return super().found(described, node)


class Watched:
    """A watch of one table, or of several, by a clock that the test moves."""

    def __init__(
        self,
        server: Double,
        table: str,
        *more: str,
        lacks: Callable[[DescribedTable], str | None] | None = None,
        **settings: Any,
    ) -> None:
        self.now = 0.0
        self.connection = Connection(server.settings(**settings))
        self.connection.open()
        names = [TableName(*each.split(".")) for each in (table, *more)]
        self.table = names[0]
        self.background = Background(lambda: self.now)
        self.planner = Planner(names, slots=1, owner="test", confidence_ms=FAST.confidence_ms)
        self.chores = AtOnce(lambda done: None)
        self.tables = Counted([describe_table(self.connection, each) for each in names])
        self.watch = Watch(
            planner=self.planner,
            connection=self.connection,
            settings=FAST,
            chores=self.chores,
            tables=self.tables,
            background=self.background,
            describing=Describing(
                self.planner,
                self.connection,
                FAST,
                self.chores,
                self.tables,
                self.background,
                monotonic=lambda: self.now,
                lacks=lacks,
            ),
            monotonic=lambda: self.now,
        )
        self.watch.start()

    def run(self, seconds: float, step: float = 0.1) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += step
            self.watch.tick()
            self.background.tick()

    def failing(self, kind: str) -> list[Failing]:
        return [each for each in self.background.failing(lasting=True) if each.kind == kind]

    def close(self) -> None:
        self.chores.close()
        self.connection.close()


@pytest.fixture
def watched(scylla: Double, table: Table) -> Iterator[Watched]:
    made = Watched(scylla, table(tablets=True))
    yield made
    made.close()
    scylla.admin.clear_faults()


def test_a_watch_that_fails_at_every_turn(watched: Watched, scylla: Double, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "connector.source")
    watched.run(5)
    plan = watched.planner.tables[watched.table]
    known = plan.polled_at
    assert known is not None
    assert watched.background.failing() == []
    fault = scylla.admin.add_fault("server_error", pattern=WATCHED)
    watched.run(300)
    assert plan.polled_at is not None
    assert plan.polled_at < known + 5000, "no good look since"
    fired = scylla.admin.fault(fault)["fired"]
    assert 300 / LONGEST_PAUSE - 1 < fired < 300 / LONGEST_PAUSE + 20, "asked again and again, in no hot loop"
    said = [record.getMessage() for record in caplog.records if "new stream sets are not seen since" in record.message]
    assert len(said) == 300 / TELL_SECONDS
    assert f"asking {scylla.address}: ServerError" in said[0]
    assert "changes from shortly before then on wait, in all streams" in said[0]
    [failing] = watched.failing("stream sets")
    assert failing.holds
    assert failing.seconds == pytest.approx(300, abs=1)
    scylla.admin.remove_fault(fault)
    watched.run(LONGEST_PAUSE + 1)
    assert not watched.background.failing()
    assert "works again after 3" in caplog.text


def test_of_a_server_that_cannot_list_streams_it_is_said_until_it_can(watched: Watched, scylla: Double) -> None:
    """It may be about to be upgraded, while a worker begins."""
    scylla.admin.add_fault("invalid", pattern=WATCHED, message="unconfigured table cdc_timestamps")
    watched.run(120)
    (failing,) = watched.failing("stream sets")
    assert failing.holds and "streams ScyllaDB lists from 2025.4 on" in failing.error
    plan = watched.planner.tables[watched.table]
    assert plan.failure is None
    scylla.admin.clear_faults()
    watched.run(LONGEST_PAUSE + 1)
    assert plan.newest is not None and watched.background.failing() == []


@pytest.fixture
def several(scylla: Double, session: Session, table: Table) -> Iterator[Watched]:
    first = table(tablets=True)
    others = [f"{first.partition('.')[0]}.{name}" for name in ("b", "c")]
    for name in others:
        session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': true}}")
    made = Watched(scylla, first, *others)
    yield made
    made.close()
    scylla.admin.clear_faults()


def test_tables_of_a_keyspace_share_a_question_for_their_stream_sets(several: Watched, scylla: Double) -> None:
    shared, alone = (
        scylla.admin.add_fault("delay", delay_ms=0, pattern=f"cdc_timestamps .*{how}")
        for how in ("table_name IN", "table_name =")
    )
    several.run(10)
    polls = 10 / FAST.poll_seconds
    assert polls * 0.8 <= scylla.admin.fault(shared)["fired"] <= polls + 2
    assert scylla.admin.fault(alone)["fired"] == 0
    assert all(plan.polled_at and plan.newest for plan in several.planner.tables.values())


def test_a_server_that_refuses_the_shared_question_is_asked_for_each_table(several: Watched, scylla: Double) -> None:
    scylla.admin.add_fault("invalid", pattern="cdc_timestamps .*table_name IN")
    several.run(10)
    assert several.background.failing() == []
    assert all(plan.polled_at and plan.newest for plan in several.planner.tables.values())


def test_a_shared_question_that_fails_is_told_of_each_table(several: Watched, scylla: Double) -> None:
    several.run(5)
    fault = scylla.admin.add_fault("server_error", pattern=WATCHED)
    several.run(60)
    assert len(several.failing("stream sets")) == 3
    scylla.admin.remove_fault(fault)
    several.run(LONGEST_PAUSE + 1)
    assert several.background.failing() == []


def test_clocks_and_descriptions_that_fail_hold_nothing(watched: Watched, scylla: Double) -> None:
    watched.run(5)
    answers = len(watched.tables.answers)
    for pattern in ("toTimestamp", "system_schema.columns"):
        scylla.admin.add_fault("server_error", pattern=pattern)
    watched.run(300)
    failing = watched.background.failing(lasting=True)
    assert {each.kind: each.holds for each in failing} == {"clock": False, "description": False}
    assert all(300 / LONGEST_PAUSE - 5 < each.attempts < 300 / LONGEST_PAUSE + 20 for each in failing)
    assert len(watched.tables.answers) == answers, "what could not be read is not taken for unchanged"
    scylla.admin.clear_faults()
    watched.run(LONGEST_PAUSE + 1)
    assert not watched.background.failing()


def test_a_description_that_is_waited_for_holds(watched: Watched, scylla: Double) -> None:
    scylla.admin.add_fault("server_error", pattern="system_schema")
    watched.tables.ask(watched.table)
    watched.run(20)
    assert [failing.holds for failing in watched.failing("description")] == [True]
    assert watched.tables.answers == [], "reads go on waiting"
    scylla.admin.clear_faults()
    watched.run(LONGEST_PAUSE + 1)
    assert watched.tables.answers, "and go on when it is there"


def test_nothing_is_read_of_a_table_that_was_created_again_until_it_is_described(
    watched: Watched, scylla: Double, session: Session
) -> None:
    """Its pages look as those of the former one did."""
    watched.run(5)
    former = watched.tables[watched.table].description.table_id
    session.execute(f"DROP TABLE {watched.table}")
    session.execute(
        f"CREATE TABLE {watched.table} (pk int, ck int, v text, PRIMARY KEY (pk, ck)) WITH cdc = {{'enabled': true}}"
    )
    fault = scylla.admin.add_fault("server_error", pattern="system_schema.columns")
    watched.run(5)
    assert watched.tables.stopped(watched.table)
    scylla.admin.remove_fault(fault)
    watched.run(LONGEST_PAUSE + 1)
    watched.tables.put_in_force()
    assert not watched.tables.stopped(watched.table)
    assert watched.tables[watched.table].description.table_id != former


def test_tables_are_described_again_when_the_schema_has_another_version(watched: Watched, scylla: Double) -> None:
    watched.run(95)
    answers = len(watched.tables.answers)
    assert answers == 2, "by two looks at the same version, and no third"
    watched.run(300, step=1)
    assert len(watched.tables.answers) == answers
    scylla.admin.cql(f"ALTER TABLE {watched.table} ADD extra int")
    watched.run(LOOK_SECONDS + 1)
    assert "extra" in {column.name for column in watched.tables.answers[-1].description.columns}
    watched.run(5 * LOOK_SECONDS, step=1)
    assert len(watched.tables.answers) == answers + 2
    watched.run(LOOK_SECONDS * LOOKS_AT_ALL, step=1)
    assert len(watched.tables.answers) == answers + 3, "now and then whatever the version says"


def test_a_version_that_nobody_tells_says_nothing(watched: Watched, scylla: Double) -> None:
    watched.run(95)
    answers = len(watched.tables.answers)
    scylla.admin.add_fault("server_error", pattern="schema_version")
    watched.run(5 * LOOK_SECONDS)
    assert len(watched.tables.answers) == answers + 5
    assert watched.failing("description") == []


@pytest.mark.parametrize("error", [KeyError("now"), ValueError("no stream"), AttributeError("x")])
def test_errors_of_the_drivers_insides_fail_and_end_nothing(
    watched: Watched, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.run(5)

    def broken(*_: Any, **__: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(watched.connection, "rows", broken)
        watched.run(60)
        kinds = {failing.kind: failing.error for failing in watched.background.failing(lasting=True)}
        assert kinds.keys() == {"stream sets", "clock", "description"}
        assert set(kinds.values()) == {f"unexpected {type(error).__name__}: {error}"}
    watched.run(LONGEST_PAUSE + 1)
    assert not watched.background.failing()
    assert watched.planner.tables[watched.table].failure is None, "it says nothing about the table"


def test_one_server_of_three_that_refuses_or_has_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Double(nodes=3, ring_delay=0)
    with server:
        cluster = server.cluster()
        watched = Watched(server, create_table(server, cluster.connect(), "ks", tablets=True))
        try:
            watched.run(5)
            server.admin.add_fault("server_error", node=2, pattern=f"{WATCHED}|toTimestamp")
            watched.run(120)
            assert watched.failing("stream sets") == [], "the others know"
            [clock] = watched.failing("clock")
            assert (clock.partial, clock.holds) == (True, False)
            assert clock.about in clock.error
            server.admin.clear_faults()
            watched.run(60)
            assert watched.background.failing() == []
            clocks, wrong = watched.connection.clock, clock.about
            with monkeypatch.context() as patch:
                told = clocks.sampled
                patch.setattr(clocks, "sampled", lambda host, ms: told(host, ms - 600_000 * (host == wrong)))
                watched.run(120)
                [apart] = watched.failing("wrong clock")
                assert (apart.about, apart.partial, apart.holds) == (wrong, True, False)
                assert apart.error == "it is 600 s behind them; set it right (NTP)"
            watched.run(60)
            assert watched.background.failing() == []
            monkeypatch.setattr(routing, "AVOIDED_SECONDS", 0.0)
            slow = next(host for host in watched.connection.hosts() if str(host.endpoint) == wrong)
            watched.connection._policy.heard(None, [slow])
            watched.run(10)
            [told] = watched.failing("slow node")
            assert (told.about, told.partial, told.holds) == (wrong, True, False)
            assert told.error == "takes queries and does not answer"
            for _ in range(LEAST_ANSWERS):
                watched.connection._policy.heard(slow, [], 0.01)
            watched.run(5)
            assert watched.background.failing() == []
        finally:
            watched.close()
            cluster.shutdown()


@pytest.mark.parametrize("tablets", [True, False])
def test_a_reader_loses_patience(scylla: Double, session: Session, table: Table, tablets: bool) -> None:
    name = table(tablets=tablets)
    following = Following(reader(scylla, name, follow=True, patience=2))
    following.start()
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, 1, 'x')")
    following.until(lambda: logged(session, name))
    fault = scylla.admin.add_fault("read_timeout", pattern=WATCHED)
    try:
        until(lambda: not following.is_alive(), 120, "the end of the reader")
    finally:
        scylla.admin.remove_fault(fault)
    assert isinstance(following.error, RetriableSourceError)
    assert f"{name}: new stream sets are not seen since 20" in str(following.error)


def test_a_reader_with_patience_goes_on(scylla: Double, session: Session, table: Table) -> None:
    name = table(tablets=True)
    following = Following(reader(scylla, name, follow=True, patience=60))
    following.start()
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, 1, 'x')")
    following.until(lambda: logged(session, name))
    fault = scylla.admin.add_fault("overloaded", pattern=WATCHED)
    until(lambda: any(each.kind == "stream sets" for each in following.source.failing()), 60, "a word of the watch")
    scylla.admin.remove_fault(fault)
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, 2, 'x')")
    following.until(lambda: logged(session, name))
    following.finish()
    assert following.source.failing() == []


def test_reads_that_fail_for_ever_end_a_reader(scylla: Double, session: Session, table: Table) -> None:
    name = table(tablets=True)
    fault = scylla.admin.add_fault("rate_limit", table=f"{name}_scylla_cdc_log")
    try:
        with reader(scylla, name, patience=1) as source, pytest.raises(SourceError, match="some streams are not read"):
            list(source)
    finally:
        scylla.admin.remove_fault(fault)


def test_rows_with_new_columns_wait_for_a_description_that_cannot_be_read(
    scylla: Double, session: Session, table: Table
) -> None:
    """Without it they would be delivered without the new column."""
    name = table(tablets=True)
    settings = replace(FAST, retry_base_ms=1, retry_max_ms=20)
    with reader(scylla, name, settings=settings, follow=True) as source:
        session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, 0, 'x')")
        batches = iter(source)
        next(batches)
        fault = scylla.admin.add_fault("server_error", pattern="system_schema", count=4)
        session.execute(f"ALTER TABLE {name} ADD w int")
        session.execute(f"INSERT INTO {name} (pk, ck, w) VALUES (1, 1, 7)")
        try:
            batch = next(batches)
        finally:
            fired = scylla.admin.fault(fault)["fired"]
            scylla.admin.remove_fault(fault)
    assert fired == 4
    assert "w" in batch.layout.description.by_name


def test_read_says_so_and_ends_with_1(scylla: Double, session: Session, table: Table) -> None:
    name = table(tablets=True)
    fault = scylla.admin.add_fault("server_error", pattern=WATCHED)
    command = [sys.executable, "-m", "connector", "read", name, "--scylla", scylla.address]
    try:
        ended = subprocess.run(
            [*command, "--follow", "--confidence", "300", "--patience", "1"],
            capture_output=True,
            text=True,
            timeout=120 * patience(),
            check=False,
        )
    finally:
        scylla.admin.remove_fault(fault)
    assert ended.returncode == 1
    first, *others, last = ended.stderr.splitlines()
    assert "INFO" in first and f"reading {name} from the oldest row until stopped" in first
    (warned,) = [line for line in others if "INFO" not in line]
    assert "WARNING" in warned
    assert "new stream sets are not seen since" in warned
    assert last.startswith("error: gave up after ")
    wrong = subprocess.run(
        [*command, "--patience", "soon"], capture_output=True, text=True, timeout=180 * patience(), check=False
    )
    assert wrong.returncode == 2


def test_generations_that_were_taken_in_stay_nowhere_else(scylla: Double, table: Table) -> None:
    """A large cluster's has a million streams."""
    made = Watched(scylla, table(tablets=False))
    try:
        made.run(5)
        first = made.planner.tables[made.table].newest
        assert first is not None
        scylla.new_generation()
        made.run(30)
        newest = made.planner.tables[made.table].newest
        assert newest is not None and newest.timestamp > first.timestamp
        [poll] = made.watch.polls
        assert isinstance(poll.sets, VnodeGenerations)
        assert not poll.sets._known
        assert not transition.cache_info().currsize
    finally:
        made.close()


def test_a_log_that_nothing_is_added_to_any_more_is_told(watched: Watched, session: Session) -> None:
    watched.run(1)
    for off, seen in (("false", ["log"]), ("true", []), ("false", ["log"])):
        session.execute(f"ALTER TABLE {watched.table} WITH cdc = {{'enabled': {off}}}")
        watched.watch.look_again()
        watched.run(5)
        assert [each.kind for each in watched.background.failing()] == seen
    [failing] = watched.background.failing()
    assert f"{watched.table}: its log lacks what is wanted" in str(failing) and "CDC was disabled" in str(failing)
    assert not failing.holds


def test_what_a_table_never_had_is_no_news(watched: Watched, session: Session) -> None:
    """As CDC that comes with an index, without the table's option."""
    session.execute(f"ALTER TABLE {watched.table} WITH cdc = {{'enabled': false}}")
    watched.tables.found(describe_table(watched.connection, watched.table))
    watched.tables.put_in_force()
    watched.watch.look_again()
    watched.run(5)
    assert watched.background.failing() == []


def test_what_is_wanted_and_was_off_when_it_began_is_told(scylla: Double, table: Table, session: Session) -> None:
    name = table(tablets=True)
    session.execute(f"ALTER TABLE {name} WITH cdc = {{'enabled': false}}")
    made = Watched(scylla, name, lacks=without_cdc)
    try:
        made.run(1)
        [failing] = made.background.failing()
        assert "CDC was disabled" in str(failing) and not failing.holds
        session.execute(f"ALTER TABLE {name} WITH cdc = {{'enabled': true}}")
        made.watch.look_again()
        made.run(5)
        assert made.background.failing() == []
    finally:
        made.close()
