"""The way of a changed column through `Tables`: noticed, asked for, found, its schema record committed, in force."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.cqltypes import BooleanType, BytesType, ByteType, Int32Type, TimeUUIDType, UTF8Type

from connector.changes import Column, TableDescription
from connector.source.descriptions import DescribedTable
from connector.source.log_reader import LogTable
from connector.source.pages import RawPage
from connector.source.tables import Tables
from connector.source.watch import Watch
from connector.table_name import TableName
from connector.values import parse_type

TABLE = TableName("ks", "t")
LOG = {
    "cdc$stream_id": BytesType,
    "cdc$time": TimeUUIDType,
    "cdc$batch_seq_no": Int32Type,
    "cdc$operation": ByteType,
    "cdc$end_of_batch": BooleanType,
    "pk": Int32Type,
}


def described(*columns: str, table_id: str = "first") -> DescribedTable:
    key = Column("pk", parse_type("int"), "partition_key", 0)
    regular = [Column(name, parse_type("text")) for name in columns]
    description = TableDescription("ks", "t", table_id, (key, *regular))
    return DescribedTable(description, True, LogTable("ks", "t_scylla_cdc_log"), ())


def page(*columns: str) -> RawPage:
    types = {**LOG, **dict.fromkeys(columns, UTF8Type)}
    return RawPage(tuple(types), tuple(types.values()), ())


OLD, NEW, NEWER = described("v"), described("v", "w"), described("v", "w", "x")

OTHER = DescribedTable(
    TableDescription("ks", "other", "id", OLD.description.columns), True, LogTable("ks", "other_scylla_cdc_log"), ()
)
GONE = TableName("ks", "gone")


def made() -> Tables:
    """A table whose schema record is committed."""
    tables = Tables([OLD])
    assert tables.unrecorded() == [OLD]
    assert tables.record(OLD, "1")
    tables.recorded()
    assert tables.layout(TABLE, page("v")) is not None
    return tables


def test_a_changed_column_goes_its_one_way() -> None:
    tables = made()
    assert tables.layout(TABLE, page("v", "w")) is None, "noticed: a row is not read without its column"
    assert tables.stopped(TABLE)
    assert tables.asked == [TABLE]
    tables.asking(TABLE)
    assert tables.asked == []
    tables.found(NEW)
    assert (tables[TABLE], tables.changed) == (OLD, True)
    assert tables.stopped(TABLE), "its schema record comes first"
    assert tables.layout(TABLE, page("v", "w")) is None
    tables.asking(TABLE)
    tables.found(NEW)
    assert tables.unrecorded() == [NEW]
    assert tables.record(NEW, "2")
    assert tables.unrecorded() == []
    tables.recorded()
    tables.put_in_force()
    assert (tables[TABLE], tables.changed, tables.stopped(TABLE)) == (NEW, False, False)
    layout = tables.layout(TABLE, page("v", "w"))
    assert layout is not None
    assert (layout.description, layout.unknown) == (NEW.description, ())


def test_a_change_that_no_page_has_shown_stops_nothing() -> None:
    tables = made()
    tables.found(NEW)
    assert not tables.stopped(TABLE)
    assert tables.layout(TABLE, page("v")) is not None
    tables.put_in_force()
    assert tables[TABLE] is NEW


def test_two_changes_before_the_first_is_committed() -> None:
    tables = made()
    tables.found(NEW)
    assert tables.record(NEW, "2")
    tables.found(NEWER)
    assert tables.unrecorded() == [NEWER]
    assert tables.record(NEWER, "3"), "in the same transaction"
    tables.recorded()
    tables.put_in_force()
    assert tables[TABLE] is NEWER
    assert not tables.record(NEWER, "3")


def test_a_change_that_is_taken_back_needs_no_record() -> None:
    tables = made()
    tables.found(NEW)
    tables.found(OLD)
    assert not tables.record(OLD, "1")
    tables.put_in_force()
    assert tables[TABLE] == OLD


def test_a_change_that_is_taken_back_behind_its_record_gets_another() -> None:
    tables = made()
    tables.found(NEW)
    assert tables.record(NEW, "2")
    tables.found(OLD)
    assert tables.record(OLD, "1"), "the last record of a table says what it is"
    tables.recorded()
    assert not tables.record(OLD, "1")


def test_a_record_of_an_aborted_transaction_is_written_again() -> None:
    tables = made()
    tables.found(NEW)
    assert tables.record(NEW, "2")
    tables.not_recorded()
    assert tables.unrecorded() == [NEW]
    assert tables.record(NEW, "2")
    tables.recorded()
    tables.not_recorded()
    assert tables.unrecorded() == []


def test_a_record_stays_written_behind_transactions_without_one() -> None:
    tables = made()
    tables.recorded()
    assert not tables.record(OLD, "1")


def test_what_others_have_written_is_not_written_again() -> None:
    tables = made()
    tables.found(NEW)
    tables.recorded_versions({"ks.t": "2", "ks.other": "9"})
    assert tables.unrecorded() == [NEW]
    assert not tables.record(NEW, "2")
    tables.recorded_versions({})
    assert tables.unrecorded() == [NEW]
    assert tables.record(NEW, "2"), "the topic was emptied"


def test_a_record_that_stands_nowhere_any_more_is_written_again() -> None:
    tables = Tables([OLD, OTHER])
    for each in tables.unrecorded():
        tables.record(each, "1")
    tables.recorded()
    assert tables.describe_again({"ks.t": "7", "ks.other": "1"}) == [] and not tables.changed
    assert tables.describe_again({"ks.other": "1"}) == [TABLE]
    assert tables.changed and tables.unrecorded() == [OLD] and tables.record(OLD, "1")
    tables.not_recorded()
    assert tables.changed and tables.unrecorded() == [OLD] and tables.record(OLD, "1"), "its transaction was aborted"
    tables.recorded()
    tables.put_in_force()
    assert not tables.changed and tables.unrecorded() == [] and tables[TABLE] is OLD


def test_what_was_never_written_is_not_missed() -> None:
    """Where there is no schemas topic, or before the first claim."""
    assert Tables([OLD]).describe_again({}) == []


def test_a_table_that_was_dropped_and_created_again() -> None:
    tables = made()
    again = described("v", "w", table_id="second")
    assert tables.layout(TABLE, page("v", "w")) is None
    tables.asking(TABLE)
    # Missing for a moment: nobody finds anything, and reads wait.
    assert tables.stopped(TABLE)
    assert tables[TABLE] is OLD
    tables.found(again)
    tables.put_in_force()
    assert tables[TABLE] is again
    layout = tables.layout(TABLE, page("v", "w"))
    assert layout is not None
    assert layout.description.table_id == "second"


def test_a_description_that_fails_leaves_reads_waiting_until_one_is_read() -> None:
    tables = made()
    assert tables.layout(TABLE, page("v", "w")) is None
    tables.asking(TABLE)
    tables.put_in_force()
    assert tables.stopped(TABLE), "there was no answer"
    tables.asking(TABLE)
    tables.found(OLD)
    assert not tables.stopped(TABLE), "the server knows no other"
    layout = tables.layout(TABLE, page("v", "w"))
    assert layout is not None, "so what it lacks is taken as it comes"
    assert layout.unknown == ("w",)


def test_what_was_read_without_being_asked_is_no_answer() -> None:
    tables = made()
    assert tables.layout(TABLE, page("v", "w")) is None
    tables.seen(OLD)
    assert tables.stopped(TABLE), "it may be older than the page"
    tables.seen(NEW)
    tables.put_in_force()
    assert tables.stopped(TABLE)
    tables.found(NEW)
    assert not tables.stopped(TABLE)


def test_an_answer_that_changes_nothing_frees_no_reads_while_a_change_waits() -> None:
    tables = made()
    assert tables.layout(TABLE, page("v", "w")) is None
    tables.found(NEW)
    tables.found(NEW)
    assert tables.stopped(TABLE), "they would be read by the old one"
    tables.put_in_force()
    assert not tables.stopped(TABLE)


def test_a_question_that_comes_late_is_asked_again() -> None:
    """The answer that is under way may be older than what was asked about."""
    tables = made()
    tables.ask(TABLE)
    tables.asking(TABLE)
    assert tables.layout(TABLE, page("v", "w")) is None
    assert tables.asked == [TABLE]


def test_two_tables_do_not_wait_for_each_other() -> None:
    tables = Tables([OLD, OTHER], {GONE: "it does not exist"})
    assert tables.layout(TABLE, page("v")) is not None
    assert tables.layout(TABLE, page("v", "w")) is None
    assert not tables.stopped(OTHER.table)
    assert tables.layout(OTHER.table, page("v")) is not None
    assert list(tables) == [TABLE, OTHER.table], "what is missing is not read"


def test_of_a_table_that_is_let_go_nothing_is_left() -> None:
    tables = Tables([OLD, OTHER], {GONE: "it does not exist"})
    assert tables.layout(TABLE, page("v")) is not None
    assert tables.layout(TABLE, page("v", "w")) is None
    tables.drop(TABLE)
    assert (list(tables), tables.asked) == ([OTHER.table], []), "who asks for it would find no plan of it"
    # What was on its way is of nobody any more.
    tables.ask(TABLE)
    tables.vouch(TABLE, 1)
    tables.seen(NEW)
    assert (list(tables), tables.asked) == ([OTHER.table], [])
    tables.ask(OTHER.table)
    assert tables.asked == [OTHER.table]
    tables.drop(GONE)
    assert tables.missing == {}
    tables = Tables([], {TABLE: "it does not exist"})
    tables.take(OLD, None)
    assert (list(tables), tables.missing) == ([TABLE], {})


@pytest.mark.parametrize("log", ["former", "another"])
def test_who_lists_the_streams_of_another_log_stops_what_is_read_of_the_table(log: str) -> None:
    """Where the two have the same columns, no page tells."""
    watch: Any = SimpleNamespace(_tables=made(), _planner=SimpleNamespace(identify=lambda *_: True))
    watch._planner.tables = {TABLE: SimpleNamespace(anew=False, log="former")}
    sets = SimpleNamespace(serves=lambda table: True, log_id=log)
    poll: Any = SimpleNamespace(tables=[TABLE], sets=sets, listed=(1,))
    assert Watch._served(watch, poll) == [TABLE]
    assert watch._tables.stopped(TABLE) == (log == "another")
