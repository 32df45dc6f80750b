"""Rows brought to a later moment: what was read with the changes since, whenever between them it was read."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import replace
from typing import Any

import pytest

from connector.changes import (
    Batch,
    CdcOptions,
    Column,
    Doubtful,
    DroppedColumn,
    FoldedPartition,
    Row,
    TableDescription,
    brought_to,
    layout_of,
    whole_rows,
)
from connector.timeuuid import time_uuid
from connector.values import UserType, decode, encode, parse_type

ADDRESS = UserType("ks", "address", (("street", parse_type("text")), ("number", parse_type("int"))))
INT = parse_type("int")
ELEMENTS = parse_type("frozen<map<timeuuid, int>>")
TABLE = TableDescription(
    "ks",
    "t",
    "id",
    (
        Column("pk", INT, "partition_key", 0),
        Column("ck", INT, "clustering", 0, "desc"),
        Column("s", INT, "static"),
        Column("v", INT),
        Column("m", parse_type("map<text, int>")),
        Column("e", parse_type("set<int>")),
        Column("l", parse_type("list<int>")),
        Column("a", ADDRESS),
    ),
    user_types=(ADDRESS,),
)
SHAPE = whole_rows(TABLE)
LAYOUT = SHAPE.layout
NAMES = [column.name for column in SHAPE.columns]
NULLS: dict[str, Any] = dict.fromkeys(NAMES)
END = 10_000_000


def number(value: int) -> bytes:
    return encode(INT, value)


def selected(**cells: Any) -> Row:
    given = {"pk": 1, **cells}
    return tuple(
        None if given.get(column.name) is None else encode(column.type, given[column.name]) for column in SHAPE.columns
    )


def change(operation: int, at: int, **cells: bytes) -> Batch:
    """One operation: raw cells by the columns of the log."""
    row: list[bytes | None] = [None] * len(LAYOUT.columns)
    row[LAYOUT.operation] = operation.to_bytes(1, "big", signed=True)
    for name, cell in {"pk": number(1), **cells}.items():
        row[LAYOUT.columns.index(name)] = cell
    return Batch(LAYOUT, b"s" * 16, time_uuid(at * 10, 0), [tuple(row)])


def written(at: int, ck: int = 1, operation: int = 1, **cells: bytes) -> Batch:
    return change(operation, at, ck=number(ck), **cells)


def after(rows: list[Row], *batches: Batch, upto: int = END) -> list[dict[str, Any]]:
    return [decoded(row) for row in brought_to(upto, SHAPE, rows, batches)]


def decoded(row: Row) -> dict[str, Any]:
    return {
        column.name: None if cell is None else decode(column.type, cell) for column, cell in zip(SHAPE.columns, row)
    }


def row(ck: int | None = 1, **cells: Any) -> dict[str, Any]:
    return {**NULLS, "pk": 1, "ck": ck, **cells}


def test_what_no_change_touched_is_as_it_was_read() -> None:
    read = [selected(ck=2, s=7, v=1, m={"x": 1}.items(), l=[1, 2]), selected(ck=1, s=7)]
    shown = after(read, written(5, ck=2, v=number(3)))
    assert shown == [row(2, s=7, v=3, m=[("x", 1)], l=[1, 2]), row(1, s=7)]


def test_rows_that_were_not_there_have_no_row_of_the_snapshot() -> None:
    assert after([selected(ck=1, v=1)], written(5, ck=9, operation=2, v=number(3))) == [row(v=1)]


def test_deletes_end_rows_and_what_is_inserted_behind_them_lives() -> None:
    read = [selected(ck=1, v=1), selected(ck=2, v=2)]
    gone = after(read, written(5, operation=3))
    assert gone == [row(2, v=2)]
    assert after(read, written(5, operation=3), written(6, operation=2)) == [row(1), row(2, v=2)]
    assert after(read, written(5, operation=3), written(5, operation=2, v=number(9))) == [row(2, v=2)]
    element = encode(parse_type("frozen<map<text, int>>"), [("x", 1)])
    assert after(read, written(5, operation=3), written(5, m=element)) == [row(2, v=2)]


def test_a_partition_that_is_deleted_has_nothing_but_what_comes_behind() -> None:
    read = [selected(ck=1, s=4, v=1), selected(ck=2, s=4, v=2)]
    assert after(read, change(4, 5)) == []
    assert after(read, change(4, 5), change(1, 6, s=number(8))) == [row(None, s=8)]


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        ((5, 3), (7, 2), [4, 1]),
        ((6, 3), (8, 1), [4, 3, 1]),
        ((5, None), (7, 3), [2, 1]),
        ((6, 3), (7, None), [4, 3]),
        ((5, None), (7, None), []),
    ],
)
def test_ranges_are_in_the_order_of_storage(
    start: tuple[int, int | None], end: tuple[int, int | None], left: list[int]
) -> None:
    bounds = [change(code, 5, **({} if ck is None else {"ck": number(ck)})) for code, ck in (start, end)]
    batch = Batch(LAYOUT, b"s" * 16, bounds[0].time, [bounds[0].rows[0], bounds[1].rows[0]])
    assert [each["ck"] for each in after([selected(ck=ck, v=1) for ck in (4, 3, 2, 1)], batch)] == left


def test_collections_are_folded_element_by_element() -> None:
    read = [selected(ck=1, m={"x": 1, "y": 2}.items(), e=[1, 2], a=("old", 1))]
    texts = parse_type("frozen<map<text, int>>")
    shown = after(
        read,
        written(5, m=encode(texts, [("z", 3)])),
        written(6, **{"cdc$deleted_elements_m": encode(parse_type("frozen<set<text>>"), ["x"])}),
        written(7, e=encode(parse_type("frozen<set<int>>"), [3]), **{"cdc$deleted_e": b"\x01"}),
        written(8, **{"cdc$deleted_elements_a": encode(parse_type("frozen<set<smallint>>"), [0])}),
    )
    assert shown == [row(m=[("y", 2), ("z", 3)], e=[3], a=(None, 1))]


def test_what_lives_for_a_time_is_gone_after_it() -> None:
    brief = written(5, v=number(3), **{"cdc$ttl": (2).to_bytes(8, "big")})
    assert after([selected(ck=1)], brief, upto=1_999_999) == [row(v=3)]
    assert after([selected(ck=1)], brief, upto=2_000_000) == [row()]


def test_of_two_writes_at_one_time_a_deletion_wins_then_the_greater() -> None:
    assert after([selected(ck=1)], written(5, v=number(3)), written(5, v=number(2))) == [row(v=3)]
    assert after([selected(ck=1)], written(5, **{"cdc$deleted_v": b"\x01"}), written(5, v=number(2))) == [row()]


def test_of_two_writes_at_one_time_one_that_ends_wins_then_the_later_end_then_the_greater_value() -> None:
    """Whichever is delivered first, of values, elements and inserts. What has ended does not give way to the other."""
    texts = parse_type("frozen<map<text, int>>")

    def of(value: int, seconds: int | None) -> Batch:
        ttl = {} if seconds is None else {"cdc$ttl": seconds.to_bytes(8, "big")}
        return written(5, operation=2, v=number(value), m=encode(texts, [("x", value)]), **ttl)

    for winner, loser in ((of(1, 2), of(9, None)), (of(1, 3), of(9, 2)), (of(2, 2), of(1, 2))):
        value = int.from_bytes(winner.rows[0][LAYOUT.columns.index("v")] or b"", "big")
        for both in ((winner, loser), (loser, winner)):
            assert after([selected(ck=1, v=7)], *both, upto=1_000_000) == [row(v=value, m=[("x", value)])]
    for both in ((of(1, 2), of(9, None)), (of(9, None), of(1, 2))):
        assert after([selected(ck=1, v=7)], *both, upto=2_000_000) == []


def test_what_a_column_had_before_it_was_dropped_is_nothing_that_it_has_now() -> None:
    """Nodes that have not heard of that show it in their logs, and what was read before is delivered later."""
    table = replace(TABLE, dropped=(DroppedColumn("v", INT, 5), DroppedColumn("m", parse_type("map<text, int>"), 5)))
    shape, element = whole_rows(table), encode(parse_type("frozen<map<text, int>>"), [("x", 1)])

    def shown(*batches: Batch) -> list[dict[str, Any]]:
        return [decoded(row) for row in brought_to(END, shape, [selected(ck=1, s=7)], batches)]

    for at in (4, 5):
        assert shown(written(at, v=number(3), m=element)) == [row(s=7)]
    assert shown(written(5, v=number(3)), written(6, v=number(4), m=element)) == [row(s=7, v=4, m=[("x", 1)])]
    assert shown(written(5, operation=2, v=number(3)), written(6, **{"cdc$deleted_v": b"\x01"})) == [row(s=7)]


def test_what_no_select_tells_is_in_doubt() -> None:
    elements = encode(parse_type("frozen<map<timeuuid, int>>"), [])
    with pytest.raises(Doubtful, match="lives without its values"):
        after([selected(ck=1, v=1)], written(5, **{"cdc$deleted_v": b"\x01"}))
    with pytest.raises(Doubtful, match="column l"):
        after([selected(ck=1, l=[1])], written(5, l=elements))
    assert after([selected(ck=1, v=1, l=[1])], written(5, l=elements, **{"cdc$deleted_l": b"\x01"})) == [row(v=1)]


def key_of(ticks: int) -> uuid.UUID:
    return uuid.UUID(bytes=time_uuid(ticks, 0))


def test_what_is_written_by_a_change_with_its_keys_alone_is_in_doubt() -> None:
    """As with `'delta': 'keys'`: the row shows what was before, or what is now."""
    read = [selected(ck=1, v=1)]
    with pytest.raises(Doubtful, match="keys alone"):
        after(read, written(5))
    with pytest.raises(Doubtful, match="keys alone"):
        after([selected(ck=1, s=4, v=1)], change(1, 5))
    assert after(read, written(5, ck=2)) == [row(v=1)], "of a row that is not there"
    assert after(read, written(5), written(6, operation=3)) == [] == after(read, written(5), change(4, 5))
    assert after(read, written(5), written(6, operation=3), written(7, v=number(3))) == [row(v=3)]
    keys_only = replace(TABLE, cdc=CdcOptions(delta="keys"))
    layout = replace(LAYOUT, description=keys_only)
    insert = written(5, operation=2)
    assert after(read, insert) == [row(v=1)]
    with pytest.raises(Doubtful, match="keys alone"):
        after(read, Batch(layout, insert.stream_id, insert.time, insert.rows))


def test_a_later_read_learns_what_was_known_of_markers_and_lists() -> None:
    replaced = written(5, l=encode(ELEMENTS, [(key_of(5), 7)]), **{"cdc$deleted_l": b"\x01"})
    gone, more = written(6, **{"cdc$deleted_v": b"\x01"}), written(7, l=encode(ELEMENTS, [(key_of(7), 8)]))
    bare = written(8, ck=2, **{"cdc$deleted_v": b"\x01"})
    first = FoldedPartition(SHAPE, [selected(ck=1, l=[1]), selected(ck=2)])
    second = FoldedPartition(SHAPE, [selected(ck=2, v=1), selected(ck=1, v=3, l=[7]), selected(ck=9, v=9)])
    for batch in (replaced, gone, more, bare):
        first.apply(batch)
    for batch in (gone, more, bare):
        second.apply(batch)
    with pytest.raises(Doubtful):
        second.rows(END)
    second.learn(first)
    assert [decoded(each) for each in second.rows(END)] == [row(2), row(1, l=[7, 8])]


def test_of_a_list_that_a_change_with_its_keys_alone_wrote_a_later_read_learns_nothing() -> None:
    """Not that it was null, nor that its row was deleted before that."""
    layout = replace(LAYOUT, description=replace(TABLE, cdc=CdcOptions(delta="keys")))
    for before, changes in (([], [written(6)]), ([1], [written(5, operation=3), written(6, operation=2)])):
        first = FoldedPartition(SHAPE, [selected(ck=1, v=1, l=before or None)])
        for each in changes:
            first.apply(Batch(layout, each.stream_id, each.time, each.rows))
        second = FoldedPartition(SHAPE, [selected(ck=1, v=1, l=[7])])
        second.learn(first)
        assert [decoded(each) for each in second.rows(END)] == [row(1, v=1, l=[7])]


def test_of_rows_that_have_keys_alone_their_keys_tell_all() -> None:
    columns = tuple(column for column in TABLE.columns if column.name in ("pk", "ck"))
    shape = whole_rows(replace(TABLE, columns=columns, user_types=(), cdc=CdcOptions(delta="keys")))
    insert, key = written(5, operation=2), selected(ck=1)[:2]
    cells = dict(zip(LAYOUT.columns, insert.rows[0], strict=True))
    batch = Batch(shape.layout, insert.stream_id, insert.time, [tuple(cells[name] for name in shape.layout.columns)])
    assert brought_to(END, shape, [key], [batch]) == [key]


def random_changes(rng: random.Random) -> list[Batch]:
    texts = parse_type("frozen<map<text, int>>")
    found = []
    for at in range(1, rng.randint(2, 12)):
        ck, value = rng.randint(1, 3), number(rng.randint(0, 9))
        found.append(
            rng.choice(
                [
                    written(at, ck, v=value),
                    written(at, ck, operation=2, v=value),
                    written(at, ck, operation=3),
                    written(at, ck, m=encode(texts, [(rng.choice("xyz"), 5)])),
                    written(at, ck, m=encode(texts, [(rng.choice("xyz"), 6)]), **{"cdc$deleted_m": b"\x01"}),
                    written(at, ck, **{"cdc$deleted_elements_m": encode(parse_type("frozen<set<text>>"), ["x"])}),
                    change(1, at, s=value),
                    change(4, at),
                ]
            )
        )
    return found


@pytest.mark.parametrize("seed", range(200))
def test_it_does_not_matter_when_the_rows_were_read(seed: int) -> None:
    rng = random.Random(seed)
    first = [selected(ck=ck, s=1, v=ck, m={"x": 1}.items()) for ck in (3, 2, 1)]
    changes = random_changes(rng)
    try:
        last = brought_to(END, SHAPE, first, changes)
    except Doubtful:
        return
    for count in range(len(changes)):
        try:
            read = brought_to(END, SHAPE, first, changes[:count])
        except Doubtful:
            continue
        there = {each[1] for each in read}
        if read:
            again = brought_to(END, SHAPE, read, changes)
            assert [each for each in again if each[1]] == [each for each in last if each[1] in there and each[1]]


def test_a_whole_row_is_of_the_columns_that_the_log_has() -> None:
    rows = list(SHAPE.of_partition([selected(ck=1, s=3, v=1, l=[7])]))
    static, regular = (dict(zip(LAYOUT.columns, each, strict=True)) for each in rows)
    assert (static["ck"], static["s"], static["v"], static["cdc$deleted_v"]) == (None, number(3), None, None)
    assert (regular["s"], regular["cdc$deleted_s"], regular["cdc$deleted_m"]) == (None, None, b"\x01")
    place = next(place for place in LAYOUT.places if place.name == "l")
    keys = decode(place.log_type, regular["l"] or b"")
    assert [value for _, value in keys] == [7]
    # Made just now: only so many layouts are kept.
    table = replace(TABLE, name="t2")
    assert whole_rows(table).layout is layout_of(table, tuple((name, "") for name in LAYOUT.columns))


DATED = whole_rows(TABLE, dated=True)


def dated(ends: dict[str, int], times: dict[str, int], **cells: Any) -> Row:
    """A row, some cells of which end in these seconds, and were written in these microseconds."""
    ends_at, written_at = ({NAMES.index(name): at for name, at in each.items()} for each in (ends, times))
    return (*selected(**cells), *DATED.times(ends_at, written_at))


def ending(ends: dict[str, int], **cells: Any) -> Row:
    return dated(ends, {}, **cells)


def left(rows: list[Row], *batches: Batch, upto: int = END) -> list[dict[str, int]]:
    """What is left of the cells of each row of the snapshot, in seconds from second 4 on."""
    return told(-2, rows, *batches, upto=upto)


def told(header: int, rows: list[Row], *batches: Batch, upto: int = END) -> list[dict[str, int]]:
    folded = brought_to(upto, DATED, rows, batches)
    shown = DATED.of_partition(folded, at_s=4)
    return [json.loads(row[header] or b"{}") for row in shown]


def test_cells_tell_when_they_were_written_last() -> None:
    read = [
        dated({"v": 60}, {"v": 7, "s": 5}, ck=1, v=1, s=2),
        dated({}, {"v": 8, "s": 5}, ck=2, v=1, s=2, m={"x": 1}.items()),
    ]
    assert told(-1, read) == [{"s": 5}, {"v": 7}, {"v": 8}]
    changes = written(6_000_000, v=number(2)), written(7_000_000, ck=2, **{"cdc$deleted_v": b"\x01"})
    assert told(-1, read, *changes) == [{"s": 5}, {"v": 6_000_000}, {}]


def test_cells_tell_what_is_left_of_them() -> None:
    read = [ending({"v": 60, "s": 50}, ck=1, v=1, s=2), ending({}, ck=2, v=1, s=2)]
    assert left(read) == [{"s": 46}, {"v": 56}, {}]


def test_what_has_ended_by_then_is_not_there() -> None:
    assert after_ends([ending({"v": 10}, ck=1, v=1, m={"x": 1}.items())]) == [row(m=[("x", 1)])]
    with pytest.raises(Doubtful):
        after_ends([ending({"v": 10}, ck=1, v=1)])
    assert not DATED.ends_by(ending({"v": 11}, ck=1, v=1), 10) and DATED.ends_by(ending({"v": 10}, ck=1, v=1), 10)


def after_ends(rows: list[Row]) -> list[dict[str, Any]]:
    return [decoded(each) for each in brought_to(END, DATED, rows, ())]


def test_what_is_written_since_has_its_own_end_or_none() -> None:
    read = [ending({"v": 60, "s": 50}, ck=1, v=1, s=2)]
    seconds = (30).to_bytes(4, "big")
    assert left(read, written(6_000_000, v=number(2))) == [{"s": 46}, {}]
    again = written(6_000_000, v=number(2), **{"cdc$ttl": seconds})
    assert left(read, again) == [{"s": 46}, {"v": 32}]


def test_what_is_written_for_a_time_ends_at_a_whole_second() -> None:
    """What is shown has something left: 0 seconds are for ever elsewhere."""
    read, seconds = [ending({}, ck=1, v=1, m={"x": 1}.items())], (4).to_bytes(4, "big")
    some = written(6_900_000, v=number(2), **{"cdc$ttl": seconds})
    assert left(read, some, upto=9_999_999) == [{"v": 6}]
    assert [row(m=[("x", 1)])] == [decoded(each) for each in brought_to(END, DATED, read, [some])]
