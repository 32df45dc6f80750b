"""The judge of the soak of snapshots: what it lets pass, and what it names. No servers."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from typing import Any

import pytest

from tests.soak.folded import Topics, Value, breaches
from tests.soak.histories import TIMED, Cells, Partition, SourceTable, Written
from tests.soak.kinds import Kind

ONCE = {"true": (1, 1)}
ROW = (1,)


def table(**kinds: str) -> SourceTable:
    """With one clustering column; partition 0 has the row 1."""
    found = SourceTable(random.Random(0), "ks")
    found.clustering, found.descending, found.statics = ["k0"], False, {}
    found.columns = {name: Kind(text) for name, text in kinds.items()}
    return found


def with_history(start: Cells | None, *states: tuple[int, Cells | None]) -> SourceTable:
    """Of the row's column v."""
    found = table(v="int")
    found.start = {0: state(start)}
    found.history[0] = [Written(at, 0.0, state(cells), "") for at, cells in states]
    return found


def state(cells: Cells | None) -> Partition:
    return Partition({} if cells is None else {ROW: cells})


def record(op: str, us: int, **cells: Any) -> tuple[Value, Value]:
    """Advanced, of the row."""
    value = {"op": op, "before": None, "after": cells or None, "source": {"ts_us": us, "snapshot": "true"}}
    return {"pk": 0, "k0": 1}, value


def legacy(op: str, us: int, **cells: Any) -> tuple[Value, Value]:
    return record(op, us, **{name: {"value": value} for name, value in cells.items()})


def judged(
    source: SourceTable,
    *records: tuple[Value, Value],
    legacy: bool = False,
    deletes: tuple[Value, ...] = (),
    **more: Any,
) -> list[str]:
    topics = Topics(legacy, [*records], [*deletes], **{"through_us": 100, **more})
    return breaches(source, topics, ONCE, Counter())


LIVED = ({"v": 1}, (10, {"v": 2}), (20, {"v": 3}))


def test_what_the_source_had_passes() -> None:
    source = with_history(*LIVED)
    changes = record("u", 10, v=2), record("u", 20, v=3)
    assert judged(source, record("r", 5, v=1), *changes) == []
    assert judged(source, changes[0], record("r", 15, v=2), changes[1]) == []
    assert judged(source, *changes, record("r", 20, v=3)) == []


@pytest.mark.parametrize(
    ("records", "named"),
    [
        ([record("u", 10, v=2), record("r", 5, v=1), record("u", 20, v=3)], "r of 5 behind u of 10"),
        ([record("r", 10, v=2), record("u", 10, v=2), record("u", 20, v=3)], "u of 10 behind r of 10"),
        ([record("u", 10, v=2), record("r", 15, v=1), record("u", 20, v=3)], "r of 15: folded {'v': 1}, the source"),
        ([record("r", 5, v=1), record("u", 10, v=2)], "the end: folded {'v': 2}, the source had {'v': 3}"),
        ([record("u", 10, v=2), record("u", 20, v=3)], "lives throughout, and is shown 0 times"),
        ([record("r", 5, v=1), record("r", 6, v=1), record("u", 10, v=2), record("u", 20, v=3)], "is shown 2 times"),
    ],
    ids=["goes back", "behind its own row", "an old state", "a change is missing", "no row", "two rows"],
)  # fmt: skip
def test_each_breach_is_named(records: list[tuple[Value, Value]], named: str) -> None:
    found = judged(with_history(*LIVED), *records)
    assert any(named in line for line in found), found


def test_a_row_that_is_not_there_any_more_needs_none_and_must_not_come_back() -> None:
    source = with_history({"v": 1}, (10, None))
    assert judged(source, record("d", 10)) == []
    assert "source had {'v': None}" in judged(source, record("d", 10), record("r", 15, v=1))[0]


def test_whether_a_row_without_values_lives_is_compared_where_a_record_told_it() -> None:
    empty = {"v": None}
    source = with_history(None, (10, empty), (20, None))
    insert = legacy("c", 10, v=None)
    assert judged(source, insert, legacy("d", 20), legacy=True) == []
    assert any("in the source it did otherwise" in line for line in judged(source, insert, legacy=True))
    # A row of the snapshot does not tell whether it lives by its values alone.
    source = with_history({"v": 1}, (10, None))
    assert judged(source, legacy("r", 5, v=1), legacy("u", 10, v=None), legacy=True) == []


def test_deltas_of_collections_are_folded_element_by_element() -> None:
    source = table(m="map<text, int>", l="list<int>", u="u")
    before: Cells = {"m": {"a": 1}, "l": [7], "u": {"a": 1, "b": "x"}}
    after: Cells = {"m": {"b": 2}, "l": [6, 7], "u": {"a": None, "b": "x"}}
    source.start = {0: state(before)}
    source.history[0] = [Written(10, 0.0, state(after), "")]
    first, second = (str(uuid.UUID(fields=(number, 0, 0x1000, 0x80, 0, 0))) for number in (1, 2))

    def delta(elements: Any, mode: str = "modify") -> Value:
        return {"mode": mode, "elements": elements}

    def entry(key: Any, value: Any) -> Value:
        return {"key": key, "value": value}

    shown = legacy(
        *("r", 5),
        m=delta([entry("a", 1)], "overwrite"),
        l=delta([entry(second, 7)], "overwrite"),
        u=delta({"a": {"value": 1}, "b": {"value": "x"}}, "overwrite"),
    )
    change = legacy(
        *("u", 10),
        m=delta([entry("a", None), entry("b", 2)]),
        l=delta([entry(first, 6)]),
        u=delta({"a": {"value": None}, "b": None}),
    )
    assert judged(source, shown, change, legacy=True) == []
    emptied = legacy("u", 20, m=None, l=None, u=None)
    source.history[0].append(Written(20, 0.0, state({"m": None, "l": None, "u": None}), ""))
    assert judged(source, shown, change, emptied, legacy=True) == []
    behind = legacy("u", 10, m=delta([entry("a", None), entry("b", 2)]), l=delta([entry(first, 6)]))
    assert "'u': {'a': 1, 'b': 'x'}}, the source had" in judged(source, shown, behind, legacy=True)[0]


@pytest.mark.parametrize("descending", [False, True])
def test_a_delete_of_several_rows_ends_those_between_its_bounds(descending: bool) -> None:
    source = with_history({"v": 1}, (10, None))
    source.descending = descending
    low, high = ({"values": [at], "inclusive": at == 1} for at in (0, 1))
    start, end = (high, low) if descending else (low, high)
    delete = {"kind": "range", "partition": {"pk": 0}, "start": start, "end": end, "source": {"ts_us": 10}}
    shown = record("r", 5, v=1)
    assert judged(source, shown, deletes=(delete,)) == []
    beside = {**delete, "start": {"values": [1], "inclusive": False}, "end": {"values": [1], "inclusive": False}}
    assert "folded {'v': 1}" in judged(source, shown, deletes=(beside,))[0]


def test_a_value_ends_with_its_time_to_live() -> None:
    second = 1_000_000
    source = table(v="int", x="int")
    assert TIMED in source.columns
    source.start = {0: state({"v": 1, "x": 0})}
    source.ends[0] = 50 * second
    source.history[0] = [Written(60 * second, 0.0, state({"v": 2, "x": None}), "")]
    shown, ended = record("r", 10 * second, v=1, x=0), record("u", 60 * second, v=2, x=0)
    assert judged(source, shown, ended, through_us=70 * second) == []
    too_early = record("r", 10 * second, v=1, x=None)
    assert "r of 10000000" in judged(source, too_early, ended, through_us=70 * second)[0]


def test_partitions_with_changes_that_came_too_late_are_not_compared() -> None:
    source = with_history(*LIVED)
    records = record("r", 5, v=1), record("u", 20, v=9)
    assert judged(source, *records) != []
    assert judged(source, *records, unsure={0}) == []
