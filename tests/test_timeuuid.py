"""Time UUIDs: ScyllaDB's order, milliseconds, exact bounds."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.timeuuid import lowest_uuid, micros_of, millis_of, time_key, uuid_bytes, uuid_text

MILLIS = st.integers(min_value=0, max_value=4_102_444_800_000)


def made(ms: int, tick: int, low: int) -> bytes:
    """A time UUID from its parts, by the standard library."""
    ticks = ms * 10_000 + 0x01B21DD213814000 + tick
    return uuid.UUID(
        fields=(
            ticks & 0xFFFFFFFF,
            (ticks >> 32) & 0xFFFF,
            0x1000 | (ticks >> 48) & 0x0FFF,
            low >> 56,
            (low >> 48) & 0xFF,
            low & ((1 << 48) - 1),
        )
    ).bytes


def by_the_book(raw: bytes) -> tuple[int, list[int]]:
    """Time first, then the low bytes as signed ones."""
    return uuid.UUID(bytes=raw).time, [byte - 256 if byte > 127 else byte for byte in raw[8:]]


@given(
    MILLIS, st.integers(0, 9_999), st.integers(0, 2**64 - 1), MILLIS, st.integers(0, 9_999), st.integers(0, 2**64 - 1)
)
def test_order_is_time_then_signed_bytes(ms: int, tick: int, low: int, ms2: int, tick2: int, low2: int) -> None:
    one, other = made(ms, tick, low), made(ms2, tick2, low2)
    assert (time_key(one) < time_key(other)) == (by_the_book(one) < by_the_book(other))
    same_time = made(ms, tick, low2)
    assert (time_key(one) < time_key(same_time)) == (by_the_book(one) < by_the_book(same_time))


@given(MILLIS, st.integers(0, 9_999), st.integers(0, 2**64 - 1))
def test_bounds_divide_exactly_at_the_millisecond(ms: int, tick: int, low: int) -> None:
    raw = made(ms, tick, low)
    assert millis_of(raw) == ms
    assert micros_of(raw) == ms * 1000 + tick // 10
    assert time_key(lowest_uuid(ms)) <= time_key(raw) < time_key(lowest_uuid(ms + 1))


def test_the_last_row_of_a_tick_lies_behind_what_drivers_take_for_the_highest_uuid() -> None:
    driver = uuid.UUID(int=(int.from_bytes(lowest_uuid(1000)[:8], "big") << 64) | 0xBF7F7F7F7F7F7F7F).bytes
    row = made(1000, 0, 0x1F65000000000000)
    assert time_key(row) > time_key(driver)
    assert time_key(row) < time_key(lowest_uuid(1001))


def test_text_and_back() -> None:
    raw = lowest_uuid(1_763_000_000_000)
    assert uuid_bytes(uuid_text(raw)) == raw
    assert uuid.UUID(bytes=raw).version == 1


@pytest.mark.parametrize("ms", [-12_219_292_800_001, 1 << 60])
def test_what_a_time_uuid_cannot_say_is_refused(ms: int) -> None:
    with pytest.raises(ValueError, match="time UUID"):
        lowest_uuid(ms)
