"""Changes that expire unread while a worker runs are told, not only those that did while nobody ran."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import pytest
from cassandra.cluster import Session

from connector.changes import CdcOptions, TableDescription
from connector.source import Background, DescribedTable, Expired, Tables, expired
from connector.source.log_reader import LogTable
from connector.source.unread import LOOK_SECONDS, Unread
from connector.table_name import TableName
from connector.worker.restoring import Restoring
from tests.config.files import loaded
from tests.servers.double import Double
from tests.topology.single import CONFIDENCE, TABLE, Single, stream, tablets
from tests.worker.harness import Service, seldom, until
from tests.worker.snapshot_source import old_table, snapshot_ended
from tests.worker.test_worker_snapshot_signals import shown

A, D = stream(64), stream(128)
TTL_MS = 10_000


def described(ttl_ms: int) -> DescribedTable:
    description = TableDescription("ks", "t", "id", (), CdcOptions(ttl=ttl_ms // 1000))
    return DescribedTable(description, True, LogTable("ks", "t_scylla_cdc_log"), ())


class Case:
    """A worker with one slot of a table whose log keeps its rows for ten seconds, or so."""

    def __init__(self, ttl_ms: int = TTL_MS) -> None:
        self.single = Single(tablets(1_000, A, D), now=100_000)
        self.seconds = 0.0
        self.told: list[tuple[int, int]] = []
        self.restoring: set[tuple[TableName, int, bytes | None]] = set()
        self.tables = Tables([described(ttl_ms)])
        self.unread = Unread(self.single.planner, self.tables, self._tell, self.restoring, lambda: self.seconds)

    def alter(self, ttl_ms: int) -> None:
        self.tables.found(described(ttl_ms))
        self.tables.put_in_force()

    def _tell(self, gone: Expired) -> None:
        assert (gone.table, gone.slot, gone.stream) == (TABLE, 0, None)
        self.told.append((gone.from_ms, gone.to_ms))

    def look(self, now: int, *, reads: bool) -> None:
        self.single.to(now)
        if reads:
            self.single.read_all()
        self.seconds += LOOK_SECONDS
        self.unread.tick(lambda: now)


def test_what_expires_while_nothing_is_read_is_told_once_and_again_when_it_is_read_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = Case()
    case.look(100_000, reads=True)
    read_to = 100_000 - CONFIDENCE
    case.look(read_to + TTL_MS, reads=False)
    assert case.told == [], "the log has all of it yet"
    for later in (1_000, 5_000, 20_000):
        case.look(read_to + TTL_MS + later, reads=False)
    assert case.told == [(read_to, read_to + 1_000)]
    with caplog.at_level(logging.WARNING):
        case.look(200_000, reads=True)
    lost = f"up to 20 s of changes (from {read_to} ms on) may have expired unread: they were not read for longer"
    assert lost in caplog.text
    case.look(250_000, reads=False)
    assert case.told[1:] == [(200_000 - CONFIDENCE, 240_000)], "another time is told as well"


def test_one_stream_that_is_not_read_is_enough() -> None:
    case = Case()
    case.look(100_000, reads=True)
    case.single.to(120_000)
    reads = case.single.reads()
    case.single.planner.fail(reads[A], "poison")
    case.single.planner.finish(reads[D])
    case.look(120_000, reads=False)
    assert case.told == [(100_000 - CONFIDENCE, 110_000)]


def test_a_table_that_is_started_begins_with_what_its_log_has() -> None:
    case = Case()
    case.look(100_000, reads=False)
    case.look(100_001, reads=True)
    assert case.told == []


def test_what_somebody_else_reads_he_tells() -> None:
    case = Case()
    case.look(100_000, reads=True)
    case.single.planner.release([0])
    case.look(150_000, reads=False)
    case.single.planner.restore(0, case.single.topic)
    case.single.commit()
    case.look(150_000, reads=False)
    assert case.told == [], "who restores a slot looks at what is committed"


@pytest.mark.parametrize("told", [False, True])
def test_what_expires_between_restoring_and_the_first_look_is_told(told: bool) -> None:
    case = Case()
    case.look(100_000, reads=True)
    case.look(101_000, reads=True)
    case.single.commit(move_marks=True)
    read_to = 101_000 - CONFIDENCE
    case.single.planner.release([0])
    case.look(102_000, reads=False)
    case.restoring |= {(TABLE, 0, None)} if told else set()
    case.single.planner.restore(0, case.single.topic)
    case.single.commit()
    case.look(read_to + TTL_MS + 1, reads=False)
    assert case.told == ([] if told else [(read_to, read_to + 1)])


def test_what_expired_during_another_absence_is_told_and_of_the_same_one_nothing_twice() -> None:
    case = Case()
    case.look(100_000, reads=True)
    case.look(105_000, reads=True)
    case.single.commit(move_marks=True)
    read_to = 105_000 - CONFIDENCE
    nobody = cast(Any, None)
    restoring = Restoring(
        configuration=loaded({}),
        clients=nobody,
        connection=nobody,
        planner=case.single.planner,
        tables=case.tables,
        pipeline=nobody,
        chores=nobody,
        background=Background(),
        one_group=nobody,
        unseen=nobody,
        stood=nobody,
        positions=nobody,
    )

    def told(now: int) -> tuple[int, int]:
        restoring.look_for_expired(case.single.topic, now)
        ((_, gone),) = restoring.expired.items()
        return gone.from_ms, gone.to_ms

    first = (read_to, 110_000)
    assert told(120_000) == first
    assert told(121_000) == first, "the slot is restored once more"
    case.look(130_000, reads=True)
    case.single.commit(move_marks=True)
    assert told(200_000) == (130_000 - CONFIDENCE, 190_000)


@pytest.mark.parametrize("raised", [100 * TTL_MS, 0])
def test_what_was_written_before_an_alter_expires_when_it_was_to(raised: int) -> None:
    case = Case()
    case.look(100_000, reads=True)
    read_to = 100_000 - CONFIDENCE
    case.alter(raised)
    case.look(105_000, reads=False)
    case.look(read_to + TTL_MS + 1_000, reads=False)
    assert case.told == [(read_to, read_to + 1_000)]
    kept = case.single.planner.tables[TABLE].kept
    assert (kept.least(read_to), kept.least(105_000)) == (TTL_MS // 1000, raised // 1000), "as status tells"
    case.look(150_000, reads=True)
    case.look(190_000, reads=False)
    assert case.told[1:] == [], "what was written since is kept for longer"


def test_of_what_was_read_before_another_alter_the_ttl_counts_for_nothing_any_more() -> None:
    case = Case()
    case.look(100_000, reads=True)
    case.alter(10 * TTL_MS)
    case.look(105_000, reads=True)
    case.look(120_000, reads=True)
    case.alter(100 * TTL_MS)
    case.look(125_000, reads=False)
    case.look(150_000, reads=False)
    assert case.told == [], "what is not read was written under the second TTL, or the third"
    case.look(230_000, reads=False)
    assert case.told == [(120_000 - CONFIDENCE, 130_000)]


@pytest.mark.parametrize("raised", [100 * TTL_MS, 0])
def test_of_what_was_written_before_an_alter_marks_tell_how_long_it_is_kept(raised: int) -> None:
    case = Case()
    case.look(100_000, reads=True)
    case.look(105_000, reads=True)
    case.single.commit(move_marks=True)
    read_to = 105_000 - CONFIDENCE
    case.alter(raised)

    def told(now: int) -> list[tuple[int, int, int]]:
        found = expired(case.single.topic, case.tables, now)
        return [(gone.from_ms, gone.to_ms, gone.kept_ms) for gone in found]

    assert told(120_000) == [(read_to, 110_000, TTL_MS)], "as whoever restores the slot tells"
    case.single.planner.release([0])
    case.look(121_000, reads=False)
    case.single.planner.restore(0, case.single.topic)
    case.single.commit()
    case.look(122_000, reads=False)
    case.single.commit(move_marks=True)
    assert told(123_000) == [(read_to, 113_000, TTL_MS)], "so does the mark of whoever has it now"
    case.look(150_000, reads=True)
    case.single.commit(move_marks=True)
    assert told(190_000) == [], "until all of it is read"
    case.alter(TTL_MS)
    assert told(190_000) == [(150_000 - CONFIDENCE, 180_000, TTL_MS)]


@pytest.mark.parametrize("gone", [True, False])
def test_of_a_table_that_is_gone_nothing_expires(gone: bool) -> None:
    case = Case()
    case.look(100_000, reads=True)
    case.single.planner.fail_table(TABLE, "why", gone=gone)
    case.look(150_000, reads=False)
    assert bool(case.told) is not gone


def test_a_log_that_keeps_its_rows_for_ever_loses_none() -> None:
    case = Case(ttl_ms=0)
    case.look(100_000, reads=True)
    case.look(900_000, reads=False)
    assert case.told == []


@pytest.mark.kafka
@pytest.mark.scylla
@pytest.mark.only_double("logs that cannot be read for a while")
def test_rows_are_written_again_when_their_changes_expired_while_the_worker_ran(
    service: Callable[..., Service], scylla: Double, session: Session, unique: Callable[[str], str]
) -> None:
    table = old_table(scylla, session, unique("ks").replace("-", "_"), True, partitions=6)
    session.execute(f"ALTER TABLE {table} WITH cdc = {{'enabled': true, 'ttl': 10}}")
    connector = service([table], connector={"snapshot.mode": "when_needed", "tasks.max": "1"})
    connector.start()
    until(lambda: snapshot_ended(connector), 120, "the end of the first snapshot", step=seldom)
    fault = scylla.admin.add_fault("unavailable", table=f"{table}_scylla_cdc_log")
    session.execute(f"UPDATE {table} SET v = 'unread' WHERE pk = 5 AND ck = 0")
    until(lambda: "may have expired unread" in connector.log, 60, "word of it", step=seldom)
    scylla.admin.remove_fault(fault)
    until(lambda: shown(connector, table)[("true", "unread")], 120, "what was lost", step=seldom)
    # What a worker says there is up to three seconds old.
    until(lambda: connector.report()["tables"][table]["expired"], what="a report of it", step=seldom)
