"""Changes of batches: images by key, statics, several deltas of a row, deletes of every kind, unknown codes."""

from __future__ import annotations

import struct
import uuid

import pytest

from connector.changes import UNTOUCHED, CollectionDelta, changes_of
from connector.errors import PoisonRow
from connector.values.types import UserType, native
from tests.formats.rows import STREAM, TIME, Log, table

U = UserType("ks", "u", (("a", native("int")), ("b", native("text"))))
CLUSTERED = Log(
    table(
        {
            "pk": "int",
            "ck": "int",
            "s": "text",
            "v": "text",
            "w": "int",
            "m": "map<int, text>",
            "st": "set<int>",
            "l": "list<text>",
            "mt": "map<timeuuid, text>",
            "u": "u",
            "fu": "frozen<u>",
        },
        clustering=("ck",),
        static=("s",),
        types={"u": U},
    )
)
SINGLE = Log(table({"id": "int", "v": "text"}, partition=("id",)))


def test_images_belong_to_the_row_with_their_key_not_to_their_neighbour() -> None:
    changes = CLUSTERED.changes(
        CLUSTERED.row(0, 0, pk=1, ck=1, v="old A"),
        CLUSTERED.row(0, 1, pk=1, ck=2, v="old B"),
        CLUSTERED.row(1, 2, pk=1, ck=1, v="new A"),
        CLUSTERED.row(1, 3, pk=1, ck=2, v="new B"),
        CLUSTERED.row(9, 4, pk=1, ck=1, v="new A"),
        CLUSTERED.row(9, 5, True, pk=1, ck=2, v="new B"),
    )
    seen = [(c.key["ck"], (c.before_values or {})["v"], c.columns["v"], (c.after_values or {})["v"]) for c in changes]
    assert seen == [(1, "old A", "new A", "new A"), (2, "old B", "new B", "new B")]


def test_static_images_belong_to_the_static_row() -> None:
    changes = CLUSTERED.changes(
        CLUSTERED.row(0, 0, pk=1, s="old"),
        CLUSTERED.row(0, 1, pk=1, ck=1, v="old"),
        CLUSTERED.row(1, 2, pk=1, s="new"),
        CLUSTERED.row(1, 3, True, pk=1, ck=1, v="new"),
    )
    assert [change.key for change in changes] == [{"pk": 1, "ck": None}, {"pk": 1, "ck": 1}]
    assert [change.before_values for change in changes] == [
        {"pk": 1, "s": "old"},
        {"pk": 1, "ck": 1, "v": "old"},
    ]


def test_each_delta_of_a_row_is_a_change_with_the_rows_images() -> None:
    insert, update = CLUSTERED.changes(
        CLUSTERED.row(0, 0, pk=1, ck=1, v="old"),
        CLUSTERED.row(2, 1, ttl=5, pk=1, ck=1, v="x"),
        CLUSTERED.row(1, 2, deleted=("w",), pk=1, ck=1),
        CLUSTERED.row(9, 3, True, pk=1, ck=1, v="x"),
    )
    assert (insert.kind, insert.ttl, insert.batch_seq_no) == ("c", 5, 1)
    assert (update.kind, update.ttl, update.batch_seq_no) == ("u", None, 2)
    assert insert.columns["w"] is UNTOUCHED
    assert update.columns["w"] is None
    assert insert.before is update.before
    assert insert.after is update.after is not None


def test_a_row_that_did_not_exist_has_no_images() -> None:
    update, delete = CLUSTERED.changes(
        CLUSTERED.row(1, 0, pk=1, ck=1, v="x"),
        CLUSTERED.row(3, 1, True, pk=1, ck=9),
    )
    assert update.before_values is None
    assert update.after_values is None
    assert (delete.kind, delete.before_values) == ("d", None)


def test_a_delete_shows_no_row_after_it() -> None:
    upsert, delete = CLUSTERED.changes(
        CLUSTERED.row(2, 0, pk=1, ck=1, v="x"),
        CLUSTERED.row(3, 1, pk=1, ck=1),
        CLUSTERED.row(9, 2, True, pk=1, ck=1),
    )
    assert upsert.after is not None
    assert delete.after is None


def test_images_alone_make_no_change() -> None:
    assert CLUSTERED.changes(CLUSTERED.row(0, 0, True, pk=1, ck=1, v="x")) == []


def test_what_a_change_knows() -> None:
    (change,) = CLUSTERED.changes(CLUSTERED.row(2, 7, True, pk=1, ck=2, v="x"))
    assert change.table is CLUSTERED.description
    assert (change.stream_id, change.time) == (STREAM, TIME.bytes)
    assert change.timestamp_us == (TIME.time - 0x01B21DD213814000) // 10
    assert (change.kind, change.code, change.batch_seq_no) == ("c", 2, 7)
    assert change.batch.timeuuid == TIME


@pytest.mark.parametrize(
    ("code", "clustered_kind", "single_kind"),
    [(3, "d", "d"), (-3, "d", "d"), (4, "partition", "d"), (-4, "partition", "d")],
)
def test_deletes(code: int, clustered_kind: str, single_kind: str) -> None:
    (clustered,) = CLUSTERED.changes(CLUSTERED.row(code, 0, True, pk=1, ck=1 if code in (3, -3) else None))
    assert (clustered.kind, clustered.code) == (clustered_kind, code)
    (single,) = SINGLE.changes(SINGLE.row(0, 0, id=1, v="old"), SINGLE.row(code, 1, True, id=1))
    assert (single.kind, single.code) == (single_kind, code)
    assert single.before_values == {"id": 1, "v": "old"}


def test_range_deletes_are_pairs() -> None:
    log = Log(table({"p": "int", "a": "int", "b": "text"}, partition=("p",), clustering=("a", "b")))
    first, second, third = log.changes(
        log.row(5, 0, p=1, a=1),
        log.row(8, 1, p=1, a=5, b="x"),
        log.row(6, 2, p=1, a=7),
        log.row(7, 3, p=1, a=7),
        log.row(5, 4, p=1),
        log.row(7, 5, True, p=1),
    )
    assert [(c.kind, c.code) for c in (first, second, third)] == [("range", 5), ("range", 6), ("range", 5)]
    assert first.end is not None
    assert (first.bound(first.row), first.bound(first.end)) == (([1], True), ([5, "x"], False))
    assert second.end is not None
    assert (second.bound(second.row), second.bound(second.end)) == (([7], False), ([7], True))
    assert third.end is not None
    assert (third.bound(third.row), third.bound(third.end)) == (([], True), ([], True))


@pytest.mark.parametrize("codes", [(5,), (5, 1), (7,), (5, 6, 7), (8, 5)])
def test_half_range_deletes_are_poison(codes: tuple[int, ...]) -> None:
    with pytest.raises(PoisonRow, match="a range delete has"):
        CLUSTERED.changes(*(CLUSTERED.row(code, at, pk=1, ck=1) for at, code in enumerate(codes)))


@pytest.mark.parametrize(
    ("code", "shown"), [(10, "10"), (-1, "-1"), (-5, "-5"), (None, "null"), (b"", ""), (b"\1\2", "0102")]
)
def test_an_unknown_operation_is_poison_that_names_the_code(code: int | bytes | None, shown: str) -> None:
    row = CLUSTERED.row(code, 3, True, pk=1, ck=1)
    with pytest.raises(PoisonRow, match=rf"unknown cdc\$operation {shown}\Z") as error:
        CLUSTERED.changes(row)
    for part in ("ks.t", STREAM.hex(), str(TIME), "batch_seq_no 3"):
        assert part in str(error.value)


FIRST, SECOND = uuid.UUID(int=1 << 100, version=1), uuid.UUID(int=1 << 101, version=1)


@pytest.mark.parametrize(
    ("column", "value", "deleted", "removed", "expected"),
    [
        ("v", None, False, None, UNTOUCHED),
        ("v", "x", False, None, "x"),
        ("v", "", False, None, ""),
        ("v", None, True, None, None),
        ("fu", (1, None), False, None, (1, None)),
        ("m", None, False, None, UNTOUCHED),
        ("m", [(1, "a")], False, None, CollectionDelta(False, ((1, "a"),))),
        ("m", [(1, "a")], True, None, CollectionDelta(True, ((1, "a"),))),
        ("m", None, True, None, CollectionDelta(True)),
        ("m", None, False, [2, 3], CollectionDelta(False, (), (2, 3))),
        ("m", [(1, "a")], False, [2], CollectionDelta(False, ((1, "a"),), (2,))),
        ("st", [1, 2], False, None, CollectionDelta(False, ((1, True), (2, True)))),
        ("st", None, False, [1], CollectionDelta(False, (), (1,))),
        ("l", [(FIRST, "a")], False, [SECOND], CollectionDelta(False, ((FIRST, "a"),), (SECOND,))),
        ("mt", [(FIRST, "a")], False, [SECOND], CollectionDelta(False, ((FIRST, "a"),), (SECOND,))),
        ("u", (1, None), False, None, CollectionDelta(False, (("a", 1),))),
        ("u", (None, None), False, [0, 1], CollectionDelta(False, (), ("a", "b"))),
        ("u", (None, None), True, None, CollectionDelta(True)),
    ],
)
def test_what_a_column_holds(
    column: str, value: object, deleted: bool, removed: list[object] | None, expected: object
) -> None:
    row = CLUSTERED.row(
        1,
        0,
        True,
        deleted=(column,) if deleted else (),
        removed={column: removed} if removed is not None else None,
        pk=1,
        ck=1,
        **{column: value},
    )
    (change,) = CLUSTERED.changes(row)
    assert change.columns[column] == expected
    assert all(held is UNTOUCHED for name, held in change.columns.items() if name != column)


def test_an_image_holds_lists_as_lists_and_nulls_only_where_it_says_so() -> None:
    (change,) = CLUSTERED.changes(
        CLUSTERED.row(0, 0, deleted=("v",), pk=1, ck=1, l=[(FIRST, "a"), (SECOND, "b")]),
        CLUSTERED.row(1, 1, True, pk=1, ck=1, v="x"),
    )
    assert change.before_values == {"pk": 1, "ck": 1, "v": None, "l": ["a", "b"]}


def test_keys_only_deltas_touch_nothing_that_can_be_seen() -> None:
    (change,) = CLUSTERED.changes(CLUSTERED.row(1, 0, True, pk=1, ck=1))
    assert set(change.columns.values()) == {UNTOUCHED}


@pytest.mark.parametrize("cell", ["pk", "v", "m"])
def test_a_cell_that_cannot_be_decoded_names_its_column(cell: str) -> None:
    bad = {"pk": b"\1", "v": b"\xff", "m": b"\0\0"}[cell]
    (change,) = changes_of(CLUSTERED.batch(CLUSTERED.row(1, 4, True, raw={cell: bad}, pk=1, ck=1)))
    with pytest.raises(PoisonRow, match=f"batch_seq_no 4: column {cell}: "):
        _ = change.key, change.columns


def test_a_field_number_that_the_type_lacks_is_poison() -> None:
    gone = struct.pack(">iih", 1, 2, 9)
    (change,) = CLUSTERED.changes(
        CLUSTERED.row(1, 0, True, raw={"cdc$deleted_elements_u": gone}, pk=1, ck=1, u=(None, None))
    )
    with pytest.raises(PoisonRow, match="u has no field number 9"):
        _ = change.columns
