"""Positions are shown and moved beside entries of the offsets topic that something else wrote over."""

from __future__ import annotations

from typing import Any

import pytest

from connector.delivery import RestoredSlot
from connector.errors import CdcError
from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.timeuuid import LAST_MS
from connector.topology import Mark, MarkKey, Position, PositionKey, mark_entry, position_entry
from connector.worker.positions import Positions
from tests.config.files import loaded

ORDERS = TableName("shop", "orders")
NAMES = {"keyspace_name": "shop", "table_name": "orders"}
WHOLE = [
    mark_entry(MarkKey(ORDERS, 0, 1), Mark(5, 0, 5, "w")),
    position_entry(0, PositionKey(ORDERS, b"\x01"), Position(7)),
]
#: Nobody of us writes such keys, or such values.
BROKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({**NAMES, "slot": "x", "slots": 1}, {"read_to": 1}),
    ({**NAMES, "stream_id": "zz"}, {"read_to": 1}),
    ({**NAMES, "stream_id": "02"}, {"read_to": "late"}),
]


@pytest.fixture
def positions(monkeypatch: pytest.MonkeyPatch) -> Positions:
    entries = [*WHOLE, *(OffsetsEntry(0, key, value, "positions", at) for at, (key, value) in enumerate(BROKEN, 2))]
    found = Positions(loaded())
    for way in ("_committed", "_restored"):
        monkeypatch.setattr(found, way, lambda: {0: RestoredSlot(0, 5, entries)})
    monkeypatch.setattr(found, "refuse_while_running", lambda: None)
    monkeypatch.setattr(found, "_partitions", lambda: 1)
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
