"""The encoded log store: order, pages, expiry, altered tables, rows written by hand."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pytest

from connector.values.binary import encode
from connector.values.types import native
from embedded.scylla.cdc.log_rows import LogMutation, finish_group, time_uuid
from embedded.scylla.cdc.log_schema import new_log
from embedded.scylla.cdc.options import CdcOptions
from embedded.scylla.cdc.plan import LogPlan, cell
from embedded.scylla.logrow import row_order, split_row, time_order, write_time
from embedded.scylla.logstore import LogStore
from embedded.scylla.mutation import FULL_SLICE, Bound, Cell, PartitionMutation, RowMutation, Slice
from embedded.scylla.rowstore import RowStore
from embedded.scylla.schema import Column, Table
from embedded.scylla.store import PageRequest
from embedded.scylla.tokens import MIN_TOKEN

BASE = Table(
    uuid.UUID(int=1),
    "ks",
    "t",
    (
        Column("pk", native("int"), "partition_key", 0),
        Column("ck", native("int"), "clustering", 0, "asc"),
        Column("v", native("int")),
    ),
)
OPTIONS = CdcOptions(True, ttl=100)
LOG = new_log(BASE, OPTIONS, uuid.UUID(int=2))
COLUMNS = tuple(column.name for column in LOG.ordered_columns)
NOW = 1_795_000_000
LOW, HIGH = bytes.fromhex("80" + "00" * 14 + "01"), bytes.fromhex("70" + "00" * 14 + "01")


def whole(value: int) -> bytes:
    return encode(native("int"), value)


def group(stream: bytes, micros: int, values: Sequence[int], *, low: int = 0, expiry: int = 0) -> LogMutation:
    plan = LogPlan(BASE, LOG, OPTIONS)
    rows = []
    for value in values:
        row = plan.empty_row.copy()
        row[COLUMNS.index("v")] = cell(whole(value))
        row[COLUMNS.index("cdc$operation")] = cell(b"\x02")
        rows.append(row)
    return finish_group(plan, rows, stream, micros, expiry, low)


@pytest.fixture
def store() -> LogStore:
    return LogStore(LOG, RowStore)


def page(store: LogStore, *keys: bytes, **changes: object) -> PageRequest:
    values: dict[str, object] = {
        "keys": keys,
        "columns": COLUMNS,
        "lower": None,
        "lower_inclusive": True,
        "upper": None,
        "upper_inclusive": True,
        "max_rows": 100,
        "position": None,
        "now": NOW,
    }
    return PageRequest(**{**values, **changes})  # type: ignore[arg-type]


def shown(store: LogStore, request: PageRequest) -> list[int]:
    """The values of `v` on a page."""
    answer = store.fast_page(request)
    assert answer is not None
    cells = split_row(answer.body)
    width = len(request.columns)
    assert len(cells) == width * answer.row_count
    at = request.columns.index("v")
    return [int.from_bytes(cells[row * width + at] or b"", "big") for row in range(answer.row_count)]


def test_the_select_star_order_is_by_name_behind_the_key() -> None:
    assert COLUMNS == (
        "cdc$stream_id",
        "cdc$time",
        "cdc$batch_seq_no",
        "cdc$deleted_v",
        "cdc$end_of_batch",
        "cdc$operation",
        "cdc$ttl",
        "ck",
        "pk",
        "v",
    )


def test_rows_lie_in_the_order_of_time_with_the_signed_low_half(store: LogStore) -> None:
    for value, low in ((1, 0x3FFFFFFFFFFFFFFF), (2, 0), (3, 0x3F7F7F7F7F7F7F7F), (4, 0x0080808080808080)):
        store.apply(group(LOW, NOW * 1_000_000, [value], low=low))
    store.apply(group(LOW, NOW * 1_000_000 - 1, [9]))

    # 80 80…, 80 00…, bf 7f…, bf ff…: the bytes of the low half are compared as signed ones.
    assert shown(store, page(store, LOW)) == [9, 4, 2, 1, 3]


def test_every_row_knows_its_time_exactly() -> None:
    for micros in (0, 1, 1_795_000_000_123_457):
        body = group(LOW, micros, [1]).bodies[0]
        assert write_time(body) == micros
        assert row_order(body)[:16] == time_order(body[24:40])


def test_pages_of_any_size_give_every_row_once(store: LogStore) -> None:
    for number in range(10):
        store.apply(group(LOW, number * 10, [number, number + 100]))
        store.apply(group(HIGH, number * 10, [number + 200]))
    everything = shown(store, page(store, HIGH, LOW))
    assert len(everything) == 30

    for size in (1, 3, 10, 20, 29, 30, 31):
        got: list[int] = []
        position: bytes | None = None
        while True:
            request = page(store, HIGH, LOW, max_rows=size, position=position)
            got += shown(store, request)
            answer = store.fast_page(request)
            assert answer is not None
            position = answer.position
            if position is None:
                break
            assert answer.row_count == size
        assert got == everything


def test_a_page_of_large_rows_is_short(store: LogStore) -> None:
    for number in range(40):
        wide = group(LOW, number, [number])
        wide.bodies[0] = wide.bodies[0][:-8] + cell(b"x" * (1 << 16))
        store.apply(wide)
    counts, position = [], None
    while True:
        answer = store.fast_page(page(store, LOW, position=position))
        assert answer is not None and len(answer.body) <= 1 << 20
        counts.append(answer.row_count)
        position = answer.position
        if position is None:
            break

    assert counts == [15, 15, 10]


def test_bounds_on_the_time(store: LogStore) -> None:
    for number in range(5):
        store.apply(group(LOW, number * 1000, [number]))
    at = [time_uuid(number * 1000, 0) for number in range(5)]

    assert shown(store, page(store, LOW, lower=at[1], upper=at[3])) == [1, 2, 3]
    assert shown(store, page(store, LOW, lower=at[1], lower_inclusive=False, upper=at[3], upper_inclusive=False)) == [2]
    assert shown(store, page(store, LOW, upper=at[0], upper_inclusive=False)) == []
    assert store.fast_page(page(store, LOW, lower=b"short")) is None


def test_other_columns_are_picked_from_the_encoded_rows(store: LogStore) -> None:
    store.apply(group(LOW, 5, [7]))

    assert shown(store, page(store, LOW, columns=("v", "cdc$ttl", "cdc$time"))) == [7]
    assert store.fast_page(page(store, LOW, columns=("v", "nothing"))) is None


def test_rows_expire_one_by_one(store: LogStore) -> None:
    store.apply(group(LOW, 1, [1], expiry=NOW + 10))
    store.apply(group(LOW, 2, [2], expiry=NOW + 5))
    store.apply(group(LOW, 3, [3]))

    assert shown(store, page(store, LOW, now=NOW + 4)) == [1, 2, 3]
    assert shown(store, page(store, LOW, now=NOW + 5)) == [1, 3]
    assert shown(store, page(store, LOW, now=NOW + 10)) == [3]
    assert store.row_count(NOW + 10) == 1


def test_a_stream_that_nobody_reads_does_not_keep_expired_rows(store: LogStore) -> None:
    for number in range(20_000):
        second = NOW + number // 10
        store.apply(group(LOW, number, [1], expiry=second + OPTIONS.ttl))

    # 1,000 rows live; what expired is dropped from time to time.
    assert len(store._streams[LOW].bodies) <= 1_000 + 4_096


def test_partitions_come_in_the_order_of_signed_tokens(store: LogStore) -> None:
    odd = b"no stream id"
    for key in (HIGH, LOW):
        store.apply(group(key, 1, [1]))
    by_hand = PartitionMutation(LOG, odd)
    by_hand.rows[time_uuid(1, 0), whole(0)] = RowMutation(cells={"v": Cell(1, whole(5))})
    store.apply(by_hand)

    assert [view.key for view in store.partitions((MIN_TOKEN, b""), NOW)] == [odd, LOW, HIGH]
    assert [view.key for view in store.partitions((MIN_TOKEN, odd + b"\0"), NOW)] == [LOW, HIGH]


def test_cells_have_the_time_of_the_write_and_the_ttl_of_the_log(store: LogStore) -> None:
    store.apply(group(LOW, NOW * 1_000_000, [5], expiry=NOW + 100))
    view = store.partition(LOW, NOW)
    assert view is not None
    (row,) = view.rows([FULL_SLICE])

    assert row.cells["v"] == Cell(NOW * 1_000_000, whole(5), 100, NOW + 100)
    assert set(row.cells) == {"v", "cdc$operation", "cdc$end_of_batch"}


def test_slices_and_reverse(store: LogStore) -> None:
    for number in range(4):
        store.apply(group(LOW, number, [number, number + 10]))
    view = store.partition(LOW, NOW)
    assert view is not None
    at = [time_uuid(number, 0) for number in range(4)]

    def values(*slices: Slice, reverse: bool = False) -> list[int]:
        cells = [row.cells["v"] for row in view.rows(slices, reverse)]  # type: ignore[union-attr]
        return [int.from_bytes(each.value or b"", "big") for each in cells]  # type: ignore[union-attr]

    exact = Bound((at[1], whole(1)), True)
    assert values(Slice(exact, exact)) == [11]
    assert values(Slice(Bound((at[1],), False), Bound((at[3], whole(0)), True))) == [2, 12, 3]
    assert values(Slice(Bound((at[2],), True), Bound((), True)), reverse=True) == [13, 3, 12, 2]


def test_older_rows_take_the_shape_of_the_altered_table(store: LogStore) -> None:
    store.apply(group(LOW, 1, [5]))
    wider = LOG.changed(columns=(*LOG.columns, Column("a", native("int")), Column("z", native("int"))))
    store.alter(wider, ())
    names = tuple(column.name for column in wider.ordered_columns)
    answer = store.fast_page(page(store, LOW, columns=names))

    assert answer is not None and len(split_row(answer.body)) == len(names) == 12
    assert shown(store, page(store, LOW, columns=names)) == [5]


def test_a_dropped_column_does_not_come_back_with_its_name(store: LogStore) -> None:
    store.apply(group(LOW, 1, [5]))
    without = LOG.changed(columns=tuple(column for column in LOG.columns if column.name != "v"))
    store.alter(without, ("v",))
    store.alter(LOG, ())
    answer = store.fast_page(page(store, LOW))

    assert answer is not None
    assert split_row(answer.body)[COLUMNS.index("v")] is None


def test_a_row_written_by_hand_may_be_malformed(store: LogStore) -> None:
    store.apply(group(LOW, 1, [5], expiry=NOW + 50))
    by_hand = PartitionMutation(LOG, LOW)
    by_hand.rows[time_uuid(9, 0), whole(0)] = RowMutation(cells={"cdc$operation": Cell(7, b"\x63")})
    store.apply(by_hand)
    store.apply(group(LOW, 20, [6]))
    view = store.partition(LOW, NOW)

    assert view is not None
    assert [sorted(row.cells) for row in view.rows([FULL_SLICE])] == [
        ["cdc$end_of_batch", "cdc$operation", "v"],
        ["cdc$operation"],
        ["cdc$end_of_batch", "cdc$operation", "v"],
    ]
    assert shown(store, page(store, LOW)) == [5, 0, 6]
    assert shown(store, page(store, LOW, lower=time_uuid(9, 0), lower_inclusive=False)) == [6]
    assert shown(store, page(store, LOW, now=NOW + 50)) == [0, 6]
    later = store.partition(LOW, NOW + 50)
    assert later is not None and len(list(later.rows([FULL_SLICE]))) == 2


def test_a_stream_deleted_by_hand_is_empty_but_takes_new_rows(store: LogStore) -> None:
    store.apply(group(LOW, 1, [5]))
    store.apply(PartitionMutation(LOG, LOW, deletion=10))
    store.apply(group(LOW, 5, [6]))
    store.apply(group(LOW, 11, [7]))
    view = store.partition(LOW, NOW)

    assert view is not None
    assert [row.key[0] for row in view.rows([FULL_SLICE])] == [time_uuid(11, 0)]


def test_truncate_forgets_everything(store: LogStore) -> None:
    store.apply(group(LOW, 1, [5]))
    store.apply(PartitionMutation(LOG, HIGH, deletion=10))
    store.truncate()

    assert list(store.partitions((MIN_TOKEN, b""), NOW)) == []
    store.apply(group(HIGH, 1, [5]))
    assert shown(store, page(store, HIGH)) == [5]
