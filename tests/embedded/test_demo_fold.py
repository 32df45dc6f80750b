"""The demo's consumer of a topic with a snapshot: what it takes for kept, and each way of breaking the promise."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.demo.fold import Event, Folded, fold, recorded_keys
from embedded.demo.schema import Table

TABLE = Table("ks.t", ("pk",), ("ck",), "", statics=("s",))
ROW, STATIC = ("a", 1), ("a", None)


def cells(values: dict[str, Any]) -> dict[str, Any]:
    return {"pk": "a", "ck": 1, **{name: None if value is None else {"value": value} for name, value in values.items()}}


def wrote(at_us: int, op: str, key: tuple[Any, ...] = ROW, **values: Any) -> Event:
    return Event(at_us, key, {"op": op, "after": None if op == "d" else cells(values)})


def deleted(at_us: int, start: list[int], end: list[int]) -> Event:
    bounds = {"start": {"values": start, "inclusive": True}, "end": {"values": end, "inclusive": False}}
    return Event(at_us, ("a",), {"kind": "range", **bounds})


def folded(
    events: list[Event],
    now: dict[tuple[Any, ...], dict[str, Any]],
    before: set[tuple[Any, ...]] | None = None,
    deletes: list[Event] | None = None,
) -> Folded:
    return fold(TABLE, events, deletes or [], {ROW} if before is None else before, now)


def test_an_old_row_is_shown_once_between_its_changes() -> None:
    events = [wrote(1, "u", v="x"), wrote(5, "r", v="x", n=3), wrote(7, "u", n=4)]
    assert folded(events, {ROW: {"v": "x", "n": 4}}) == Folded(1, [])


def test_elements_fields_and_lists_are_folded() -> None:
    late, soon = "ccf49dba-e80f-11f1-8080-3db6fe673e06", "00000000-e80e-11f1-8080-3db6fe673e06"
    first = {"mode": "overwrite", "elements": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]}
    then = {"mode": "modify", "elements": [{"key": "a", "value": None}, {"key": "c", "value": 3}]}
    listed = [{"key": late, "value": "y"}, {"key": soon, "value": "x"}]
    fields = {"mode": "modify", "elements": {"street": None, "city": {"value": "Lyon"}}}
    events = [
        wrote(1, "r", m=first, a={"mode": "overwrite", "elements": {"street": {"value": "1"}, "city": None}}),
        wrote(2, "u", m=then, l={"mode": "modify", "elements": listed}, a=fields),
    ]
    now = {ROW: {"m": {"b": 2, "c": 3}, "l": ["x", "y"], "a": {"street": "1", "city": "Lyon"}}}
    assert folded(events, now).breaches == []


def test_of_two_writes_at_one_time_the_greater_counts() -> None:
    assert folded([wrote(1, "c", v="b"), wrote(1, "u", v="a")], {ROW: {"v": "b"}}, set()).breaches == []


def test_static_values_are_in_each_row_and_are_one_alone() -> None:
    static = wrote(1, "r", STATIC, s="x")
    assert folded([static, wrote(1, "r", v="y")], {ROW: {"v": "y", "s": "x"}}, {ROW, STATIC}).breaches == []
    assert folded([static], {STATIC: {"s": "x"}}, {STATIC}).breaches == []


def test_a_row_that_was_deleted_needs_none() -> None:
    assert folded([wrote(3, "d")], {}).breaches == []
    assert folded([], {}, deletes=[deleted(3, [1], [2])]).breaches == []
    assert folded([], {ROW: {"v": "x"}}, deletes=[deleted(3, [2], [9])]).breaches != []


@pytest.mark.parametrize(
    ("events", "now", "told"),
    [
        ([], {}, "0 rows of the snapshot"),
        ([wrote(1, "r", v="x"), wrote(2, "r", v="x")], {ROW: {"v": "x"}}, "2 rows of the snapshot"),
        ([wrote(2, "u", v="x"), wrote(1, "r", v="x")], {ROW: {"v": "x"}}, "a record of 1 behind one of 2"),
        ([wrote(1, "u", v="new"), wrote(2, "r", v="old")], {ROW: {"v": "old"}}, "and new was told before"),
        ([wrote(1, "r", v="x")], {ROW: {"v": "y"}}, "v is x by the topic, and y"),
        ([wrote(1, "r", v="x")], {}, "only in the topic"),
        ([wrote(1, "d")], {ROW: {"v": "x"}}, "not in the topic"),
    ],
)
def test_what_breaks_the_promise_is_told(events: list[Event], now: dict[tuple[Any, ...], Any], told: str) -> None:
    assert any(told in line for line in folded(events, now).breaches)


def test_rows_and_partitions_with_static_values_have_records() -> None:
    rows = [{"pk": "a", "ck": 1, "s": "x"}, {"pk": "b", "ck": 1, "s": None}, {"pk": "c", "ck": None, "s": "x"}]
    assert recorded_keys(TABLE, rows) == {ROW, STATIC, ("b", 1), ("c", None)}
