"""What may have expired unread, by saved marks and positions: nothing of a table that is only being started."""

from __future__ import annotations

import pytest

from connector.changes import CdcOptions, TableDescription
from connector.offsets_entry import OffsetsEntry
from connector.source import DescribedTable, expired
from connector.source.horizon import START_OF_TTL
from connector.source.log_reader import LogTable
from connector.table_name import TableName
from connector.topology import Mark, MarkKey, Position, PositionKey, mark_entry, position_entry

TABLE = TableName("ks", "t")
TTL_MS = 600_000
NOW = 1_700_000_000_000
HORIZON = NOW - TTL_MS
YEAR_MS = 31_536_000_000
STREAM = bytes(16)


def lost(*entries: OffsetsEntry) -> list[tuple[bytes | None, int, int, str]]:
    description = TableDescription("ks", "t", "id", (), CdcOptions(ttl=TTL_MS // 1000))
    table = DescribedTable(description, False, LogTable("ks", "t_scylla_cdc_log"), ())
    return [(each.stream, each.from_ms, each.to_ms, each.because) for each in expired(entries, {TABLE: table}, NOW)]


def mark(read_to: int, began: int | None = None) -> OffsetsEntry:
    return mark_entry(MarkKey(TABLE, 3, 25), Mark(read_to, NOW - YEAR_MS, NOW - YEAR_MS, "owner", began=began))


def position(read_to: int) -> OffsetsEntry:
    return position_entry(3, PositionKey(TABLE, STREAM), Position(read_to))


def test_what_lies_behind_the_horizon_may_be_gone() -> None:
    assert lost(mark(HORIZON), position(HORIZON)) == []
    assert lost(mark(HORIZON - 1), position(HORIZON - 2)) == [
        (None, HORIZON - 1, HORIZON, "the connector was stopped"),
        (STREAM, HORIZON - 2, HORIZON, "the connector was stopped"),
    ]


@pytest.mark.parametrize("read_to", [NOW - YEAR_MS, HORIZON - 1])
def test_a_table_that_is_being_started_has_lost_nothing_however_old_its_streams_are(read_to: int) -> None:
    soon = NOW - TTL_MS // START_OF_TTL + 1
    assert lost(mark(read_to, began=soon), position(HORIZON - 1)) == []


def test_of_a_table_that_was_started_long_ago_is_lost_what_its_log_had_then() -> None:
    began = NOW - TTL_MS // START_OF_TTL
    assert lost(mark(NOW - YEAR_MS, began=began)) == [(None, began - TTL_MS, HORIZON, "they were not read")]
    assert lost(mark(HORIZON - 5, began=began)) == [(None, HORIZON - 5, HORIZON, "they were not read")]
    assert lost(mark(HORIZON, began=began)) == []
