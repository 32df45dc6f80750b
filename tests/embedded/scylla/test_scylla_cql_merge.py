"""The rules of merging: tokens against the driver's own function, ranges against brute force, laws of joining."""

from __future__ import annotations

import copy
import uuid
from typing import Any

from cassandra.cmurmur3 import murmur3
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.values.binary import encode
from connector.values.types import native
from embedded.scylla.merge import merge_mutation, winning_cell, with_range
from embedded.scylla.mutation import (
    Bound,
    Cell,
    CollectionMutation,
    PartitionMutation,
    RangeTombstone,
    end_position,
    start_position,
)
from embedded.scylla.schema import Column, Table, partition_key_bytes, partition_key_values
from embedded.scylla.tokens import MIN_TOKEN, cdc_token, murmur3_token

INT = native("int")
TABLE = Table(
    uuid.uuid4(),
    "ks",
    "t",
    (
        Column("p", INT, "partition_key", 0),
        Column("a", INT, "clustering", 0, "desc"),
        Column("b", INT, "clustering", 1, "asc"),
        Column("v", INT),
    ),
)
ROWS = [(a, b) for a in range(4) for b in range(4)]


@given(st.binary(min_size=1, max_size=70))
def test_tokens_are_the_partitioner_s(key: bytes) -> None:
    assert murmur3_token(key) == murmur3(key)


def test_tokens_of_stream_ids_are_their_first_half() -> None:
    assert cdc_token(bytes.fromhex("80" + "00" * 15)) == MIN_TOKEN
    assert cdc_token(bytes.fromhex("7f" + "ff" * 15)) == 2**63 - 1
    assert cdc_token(b"short") == MIN_TOKEN


@given(st.lists(st.binary(max_size=9), min_size=2, max_size=4))
def test_composite_keys_can_be_taken_apart(values: list[bytes]) -> None:
    columns = tuple(Column(f"p{at}", native("blob"), "partition_key", at) for at in range(len(values)))
    table = Table(uuid.uuid4(), "ks", "t", columns)
    assert partition_key_values(table, partition_key_bytes(tuple(values))) == tuple(values)


def raw(*values: int) -> tuple[bytes, ...]:
    return tuple(encode(INT, value) for value in values)


bounds = st.builds(Bound, st.lists(st.integers(0, 3), max_size=2).map(lambda values: raw(*values)), st.booleans())


@st.composite
def tombstones(draw: Any) -> RangeTombstone:
    """A range that is not empty. An open end is always inclusive."""
    key = TABLE.sort_key
    first, second = (Bound(bound.prefix, bound.inclusive or not bound.prefix) for bound in (draw(bounds), draw(bounds)))
    if not start_position(first, key) < end_position(second, key):
        first, second = Bound((), True), Bound((), True)
    return RangeTombstone(first, second, draw(st.integers(1, 3)))


def covered(tombstone: RangeTombstone, row: tuple[int, int]) -> bool:
    key = TABLE.sort_key
    place = key(raw(*row))
    return not place < start_position(tombstone.start, key) and place < end_position(tombstone.end, key)


@settings(max_examples=300, deadline=None)
@given(st.lists(tombstones(), max_size=6))
def test_range_tombstones_stay_sorted_and_apart_and_cover_the_same_rows(added: list[RangeTombstone]) -> None:
    ranges: list[RangeTombstone] = []
    for tombstone in added:
        ranges = with_range(ranges, tombstone, TABLE.sort_key)
    for row in ROWS:
        expected = max((each.timestamp for each in added if covered(each, row)), default=None)
        found = [each.timestamp for each in ranges if covered(each, row)]
        assert found == ([] if expected is None else [expected])
    starts = [start_position(each.start, TABLE.sort_key) for each in ranges]
    assert starts == sorted(starts)
    for left, right, start in zip(ranges, ranges[1:], starts[1:], strict=False):
        assert left.timestamp != right.timestamp or end_position(left.end, TABLE.sort_key) != start


def test_ranges_of_one_time_that_overlap_or_touch_become_one() -> None:
    low, middle, high = Bound(raw(3), True), Bound(raw(2), True), Bound(raw(1), True)
    overlapping = with_range([RangeTombstone(low, middle, 5)], RangeTombstone(middle, high, 5), TABLE.sort_key)
    assert overlapping == [RangeTombstone(low, high, 5)]
    touching = RangeTombstone(Bound(raw(2), False), high, 5)
    assert with_range([RangeTombstone(low, middle, 5)], touching, TABLE.sort_key) == [RangeTombstone(low, high, 5)]
    apart = RangeTombstone(Bound(raw(2, 0), False), high, 5)
    before = Bound(raw(2, 0), False)
    assert len(with_range([RangeTombstone(low, before, 5)], apart, TABLE.sort_key)) == 2
    other_time = RangeTombstone(Bound(raw(2), False), high, 6)
    assert len(with_range([RangeTombstone(low, middle, 5)], other_time, TABLE.sort_key)) == 2


cells = st.one_of(
    st.builds(lambda timestamp, value: Cell(timestamp, value), st.integers(1, 3), st.none() | st.binary(max_size=1)),
    st.builds(
        lambda timestamp, value, ttl: Cell(timestamp, value, ttl, 100 + ttl),
        st.integers(1, 3),
        st.binary(max_size=1),
        st.integers(1, 2),
    ),
)


@given(cells, cells, cells)
def test_the_winner_of_cells_does_not_depend_on_order(one: Cell, two: Cell, three: Cell) -> None:
    assert winning_cell(one, one) == one
    assert winning_cell(one, two) == winning_cell(two, one)
    assert winning_cell(winning_cell(one, two), three) == winning_cell(one, winning_cell(two, three))


collections = st.builds(
    CollectionMutation, st.none() | st.integers(1, 3), st.dictionaries(st.sampled_from([b"a", b"b"]), cells)
)


@st.composite
def mutations(draw: Any) -> PartitionMutation:
    mutation = PartitionMutation(TABLE, b"k")
    for key in draw(st.sets(st.sampled_from(ROWS), max_size=2)):
        row = mutation.row(raw(*key))
        row.deletion = draw(st.none() | st.integers(1, 3))
        row.cells.update(draw(st.dictionaries(st.just("v"), cells)))
        collection = draw(collections)
        tombstone = collection.tombstone
        if tombstone is not None:
            collection.cells = {key: cell for key, cell in collection.cells.items() if cell.timestamp > tombstone}
        row.cells["m"] = collection
    mutation.deletion = draw(st.none() | st.integers(1, 3))
    return mutation


def copied(mutation: PartitionMutation) -> PartitionMutation:
    rows = copy.deepcopy(mutation.rows)
    return PartitionMutation(mutation.table, mutation.key, rows=rows, deletion=mutation.deletion)


def joined(*parts: PartitionMutation) -> PartitionMutation:
    whole = copied(parts[0])
    for part in parts[1:]:
        merge_mutation(whole, copied(part))
    return whole


@settings(max_examples=150, deadline=None)
@given(mutations(), mutations(), mutations())
def test_joining_mutations_is_commutative_associative_and_idempotent(
    one: PartitionMutation, two: PartitionMutation, three: PartitionMutation
) -> None:
    assert joined(one, two) == joined(two, one)
    assert joined(joined(one, two), three) == joined(one, joined(two, three))
    assert joined(one, one) == joined(one)
