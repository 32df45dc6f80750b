"""Stream ids, slots, and the checks that a stream set is whole."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import RetriableSourceError
from connector.table_name import TableName
from connector.topology import StreamId, slot_of, tablet_set, token_of, vnode_set
from connector.topology.slots import home_slot
from connector.topology.streams import MAX_TOKEN, MIN_TOKEN
from tests.topology.ring import make_stream

TOKENS = st.integers(min_value=MIN_TOKEN, max_value=MAX_TOKEN)


@pytest.mark.parametrize(
    ("text", "token", "index"),
    [
        ("ffffffffffffffff1af242b1c0000001", -1, 0),
        ("ced00000000000009663c8dc500005a1", -3544332906740580352, 90),
        ("7fb9f781956cea08c651295720000001", 9203659449438104072, 0),
    ],
)
def test_ids_of_real_servers(text: str, token: int, index: int) -> None:
    parsed = StreamId.parse(bytes.fromhex(text))
    assert (parsed.token, parsed.index, parsed.version) == (token, index, 1)
    assert token_of(bytes.fromhex(text)) == token


def test_ids_from_before_versions_have_no_index() -> None:
    parsed = StreamId.parse(bytes.fromhex("0521d5ce4a4a8ca552f83d88a1ae55d2"))
    assert (parsed.index, parsed.version) == (None, None)
    with pytest.raises(ValueError, match="16 bytes"):
        StreamId.parse(b"short")
    with pytest.raises(ValueError, match="16 bytes"):
        token_of(b"")


@given(TOKENS, st.integers(0, 2**38 - 1), st.integers(0, 2**22 - 1))
def test_parts_and_back(token: int, bits: int, index: int) -> None:
    assert StreamId.parse(make_stream(token, bits, index)) == StreamId(token, index, 1)


@given(TOKENS, st.integers(1, 200), st.text(min_size=1, max_size=8))
def test_slots_are_in_range_and_follow_the_ring(token: int, slots: int, name: str) -> None:
    table = TableName("ks", name)
    assert 0 <= slot_of(table, token, slots) < slots
    assert slot_of(table, MIN_TOKEN, slots) == home_slot(table, slots)
    # The first slot's worth of the ring from the bottom is the home slot, the last one the slot before it.
    assert slot_of(table, MAX_TOKEN, slots) == (home_slot(table, slots) + slots - 1) % slots


def test_slots_are_what_the_offsets_topic_was_written_with() -> None:
    table = TableName("ks", "t")
    assert home_slot(table, 25) == crc32(b"ks.t") % 25
    places = [slot_of(table, MIN_TOKEN + (i << 59), 25) for i in range(32)]
    assert places == [((i * 25 >> 5) + home_slot(table, 25)) % 25 for i in range(32)]


def test_a_right_child_stays_where_its_parent_was() -> None:
    table = TableName("ks", "t")
    parent = 1 << 61
    assert slot_of(table, parent, 25) == slot_of(table, token_of(make_stream(parent, 99)), 25)


def test_tablets_without_the_rings_end_are_incomplete() -> None:
    whole = [make_stream(token, 1) for token in (-(1 << 62), 0, 1 << 62, MAX_TOKEN)]
    assert [group.range_end for group in tablet_set(5, reversed(whole)).groups] == [-(1 << 62), 0, 1 << 62, MAX_TOKEN]
    with pytest.raises(RetriableSourceError, match="incomplete"):
        tablet_set(5, whole[:-1])
    with pytest.raises(RetriableSourceError, match="empty"):
        tablet_set(5, [])
    with pytest.raises(RetriableSourceError, match="two streams"):
        tablet_set(5, [*whole, make_stream(0, 2)])


def test_generations_with_missing_rows_are_incomplete() -> None:
    rows = {token: [make_stream(token, 1, index)] for index, token in enumerate((-50, 0, 50, 90))}
    assert len(vnode_set(5, rows).groups) == 4
    for missing in (-50, 0, 50):
        with pytest.raises(RetriableSourceError, match="lacks the streams of vnode"):
            vnode_set(5, {token: streams for token, streams in rows.items() if token != missing})
    with pytest.raises(RetriableSourceError, match="without streams"):
        vnode_set(5, {})
    with pytest.raises(RetriableSourceError, match="no streams for the range"):
        vnode_set(5, {**rows, 0: []})


def test_generations_of_old_servers_cannot_be_checked_by_index() -> None:
    old = bytes.fromhex("0521d5ce4a4a8ca552f83d88a1ae55d2")
    assert len(vnode_set(5, {7: [old], 90: [make_stream(90, 1, 8)]}).groups) == 2


def test_segments_cover_the_ring_and_wrap_around() -> None:
    rows = {-50: [make_stream(-50, 1, 0)], 50: [make_stream(50, 1, 1)]}
    generation = vnode_set(5, rows)
    assert [(end - (1 << 63) - 1, group.range_end) for end, group in generation.segments()] == [
        (-50, -50),
        (50, 50),
        (MAX_TOKEN, -50),
    ]
    assert len(tablet_set(5, [make_stream(MAX_TOKEN, 1)]).segments()) == 1
