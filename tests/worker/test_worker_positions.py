"""Positions are shown and moved beside entries of the offsets topic that something else wrote over."""

from __future__ import annotations

from typing import Any

import pytest

from connector.delivery import RestoredSlot
from connector.errors import CdcError
from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.timeuuid import LAST_MS
from connector.topology import (
    MAX_TOKEN,
    MIN_TOKEN,
    Mark,
    MarkKey,
    Position,
    PositionKey,
    Snapshot,
    SnapshotKey,
    mark_entry,
    position_entry,
    snapshot_entry,
)
from connector.worker.positions import Positions
from tests.config.files import loaded

ORDERS = TableName("shop", "orders")
NAMES = {"keyspace_name": "shop", "table_name": "orders"}
WHOLE = [
    mark_entry(MarkKey(ORDERS, 0, 1), Mark(5, 0, 5, "w")),
    position_entry(0, PositionKey(ORDERS, b"\x01"), Position(7)),
]
SNAPSHOTS = [
    snapshot_entry(0, SnapshotKey(ORDERS, "4"), Snapshot("initial", 4, ended=5)),
    snapshot_entry(0, SnapshotKey(ORDERS, "6"), Snapshot("incremental", 6, paused=True)),
    snapshot_entry(0, SnapshotKey(ORDERS, "asked"), Snapshot("asked", 6, 6, number=3)),
    OffsetsEntry(0, {**NAMES, "snapshot": "4", "behind": MIN_TOKEN}, {"upto": MAX_TOKEN}),
    OffsetsEntry(0, {**NAMES, "snapshot": "6", "behind": MIN_TOKEN}, {"upto": 0}),
    OffsetsEntry(0, {**NAMES, "snapshot": "6", "behind": 0}, {"upto": MAX_TOKEN // 2}),
]
#: Nobody of us writes such keys, or such values.
BROKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({**NAMES, "slot": "x", "slots": 1}, {"read_to": 1}),
    ({**NAMES, "stream_id": "zz"}, {"read_to": 1}),
    ({**NAMES, "stream_id": "02"}, {"read_to": "late"}),
]


@pytest.fixture
def positions(monkeypatch: pytest.MonkeyPatch) -> Positions:
    entries = [
        *WHOLE,
        *SNAPSHOTS,
        *(OffsetsEntry(0, key, value, "positions", at) for at, (key, value) in enumerate(BROKEN, 2)),
    ]
    found = Positions(loaded())
    for way in ("_committed", "_restored"):
        monkeypatch.setattr(found, way, lambda: {0: RestoredSlot(0, 5, entries)})
    monkeypatch.setattr(found, "refuse_while_running", lambda: None)
    monkeypatch.setattr(found, "_partitions", lambda: 1)
    monkeypatch.setattr(found, "exist", lambda: True)
    return found


def test_what_cannot_be_read_is_named_and_hides_nothing(positions: Positions, caplog: pytest.LogCaptureFixture) -> None:
    assert [(each.stream, each.read_to) for each in positions.stored()] == [(None, 5), (b"\x01", 7)]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == len(BROKEN)
    assert all(f"topic positions, partition 0, offset {at}" in text for at, text in enumerate(said, 2))


def test_a_reset_mends_what_cannot_be_read(positions: Positions, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[OffsetsEntry] = []
    monkeypatch.setattr(positions, "write", lambda entries, owner: written.extend(entries))
    positions.reset([ORDERS], 3)
    gone = {entry.key["stream_id"] for entry in written if entry.value is None}
    assert gone == {"01", "02"}
    assert [entry.value["read_to"] for entry in written if entry.value is not None] == [3]
    for time in (-1, LAST_MS + 1):
        with pytest.raises(CdcError, match="no time that a log can have"):
            positions.reset([ORDERS], time)


def test_a_table_that_begins_anew_has_no_snapshot_behind_it(
    positions: Positions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is under way would go on beside the one that it begins with. What was granted is not granted again."""
    written: list[OffsetsEntry] = []
    monkeypatch.setattr(positions, "write", lambda entries, owner: written.extend(entries))
    positions.alter({ORDERS: 7})
    assert not [entry for entry in written if "snapshot" in entry.key]
    positions.alter({ORDERS: None})
    gone = [entry.key for entry in written if entry.value is None and "snapshot" in entry.key]
    assert gone == [entry.key for entry in SNAPSHOTS if entry.key["snapshot"] != "asked"]


def test_a_topic_that_was_deleted_is_made_where_there_is_something_to_be_said(
    positions: Positions, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    written: list[OffsetsEntry] = []
    monkeypatch.setattr(positions, "exist", lambda: False)
    monkeypatch.setattr(positions, "_restored", lambda: {0: RestoredSlot(0, 0, [])})
    monkeypatch.setattr(positions, "write", lambda entries, owner: written.extend(entries))
    monkeypatch.setattr(
        "connector.worker.positions.ensure_topics", lambda admin, specs: made.extend(spec.name for spec in specs)
    )
    positions.alter({ORDERS: None})
    assert not made and not written
    positions.alter({ORDERS: 7})
    assert made == [positions.topic]
    assert [entry.value["read_to"] for entry in written if entry.value is not None] == [7]


def test_the_last_snapshot_is_known_without_workers(positions: Positions) -> None:
    _, last = positions.stored_with_snapshots()
    shot, done = last[ORDERS]
    assert (shot.kind, shot.paused, shot.ended) == ("incremental", True, None)
    assert done == pytest.approx(0.75)
