"""Stream sets of tablets: splits, merges, partial changes, what the virtual tables show, and forgetting."""

from __future__ import annotations

import random
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.scylla.clock import Clock
from embedded.scylla.errors import InvalidRequest, ServerError
from embedded.scylla.streams.tablets import CLOSED, CURRENT, OPENED, TabletStreams, tablet_count, uniform_tokens
from embedded.scylla.tokens import MAX_TOKEN, MIN_TOKEN, cdc_token

SECOND = 1_000_000


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.freeze(1_795_000_000_123_456)
    return clock


def tablets(clock: Clock, *, count: int = 4, ttl: int = 0, delay: float = 0.0) -> TabletStreams:
    made = TabletStreams(clock, ring_delay=delay, seed=7)
    made.create("ks", "t", uuid.UUID(int=1), tablets=count, ttl=ttl)
    return made


def by_state(made: TabletStreams, timestamp: int) -> dict[int, list[bytes]]:
    states: dict[int, list[bytes]] = {CURRENT: [], CLOSED: [], OPENED: []}
    for state, raw in made.streams("ks", "t", timestamp):
        states[state].append(raw)
    return states


def test_tablets_have_uniform_last_tokens() -> None:
    assert [token & 0xFFFFFFFFFFFFFFFF for token in uniform_tokens(4)] == [
        0xBFFFFFFFFFFFFFFF,
        0xFFFFFFFFFFFFFFFF,
        0x3FFFFFFFFFFFFFFF,
        0x7FFFFFFFFFFFFFFF,
    ]
    assert [tablet_count(wanted) for wanted in (1, 2, 3, 4, 5, 9)] == [1, 2, 4, 4, 8, 16]


def test_the_first_set_counts_from_before_the_table_was_made(clock: Clock) -> None:
    made = tablets(clock)
    (stamp,) = made.timestamps("ks", "t")
    states = by_state(made, stamp)

    assert stamp == clock.now_ms() - 5000
    assert states[OPENED] == states[CURRENT] and not states[CLOSED]
    assert [raw[:1].hex() for raw in states[CURRENT]] == ["bf", "ff", "3f", "7f"]
    assert all(raw[-1] == 0x01 for raw in states[CURRENT])


def test_a_key_belongs_to_the_first_stream_at_or_behind_its_token(clock: Clock) -> None:
    made = tablets(clock, count=2)
    low, high = made.tables["ks", "t"].sets[0].streams
    now = clock.now_us()

    assert made.stream_for("ks", "t", MIN_TOKEN + 1, now) == low
    assert made.stream_for("ks", "t", -1, now) == low
    assert made.stream_for("ks", "t", 0, now) == high
    assert made.stream_for("ks", "t", MAX_TOKEN, now) == high


def test_a_split_closes_and_opens_every_stream(clock: Clock) -> None:
    made = tablets(clock, count=2)
    before = made.tables["ks", "t"].sets[0]
    after = made.resize("ks", "t", 4)
    assert after is not None

    states = by_state(made, after.timestamp)
    assert states == {CURRENT: list(after.streams), CLOSED: list(before.streams), OPENED: list(after.streams)}
    assert made.timestamps("ks", "t") == [after.timestamp, before.timestamp]
    assert made.resize("ks", "t", 3) is None


def test_a_new_set_counts_after_twice_the_ring_delay_and_five_seconds(clock: Clock) -> None:
    made = tablets(clock, delay=30.0)

    assert made.replace_all("ks", "t").timestamp == clock.now_ms() + 65_000
    assert made.replace_all("ks", "t").timestamp == clock.now_ms() + 65_001


def test_old_writes_go_to_old_sets_however_old(clock: Clock) -> None:
    made = tablets(clock)
    first = made.tables["ks", "t"].sets[0]
    clock.move(100 * SECOND)
    made.replace_all("ks", "t")
    clock.move(100 * SECOND)

    assert made.stream_for("ks", "t", 5, first.timestamp * 1000) == first.stream_for(5)
    with pytest.raises(ServerError, match="could not find any CDC streams for table 00000000-0000-0000-0000-0000"):
        made.stream_for("ks", "t", 5, first.timestamp * 1000 - 1)
    with pytest.raises(InvalidRequest, match="from the future"):
        made.stream_for("ks", "t", 5, clock.now_us() + 5 * SECOND + 1)


def test_a_partial_change_keeps_the_other_streams(clock: Clock) -> None:
    made = tablets(clock, count=4)
    a, b, c, d = made.tables["ks", "t"].sets[0].streams
    changed = made.change("ks", "t", close=[b], open_tokens=[-5, -1])

    states = by_state(made, changed.timestamp)
    assert states[CLOSED] == [b]
    assert [cdc_token(raw) for raw in states[OPENED]] == [-5, -1]
    assert states[CURRENT] == [a, *states[OPENED], c, d]


def test_an_opening_inside_a_kept_stream_shrinks_it(clock: Clock) -> None:
    made = tablets(clock, count=2)
    low, high = made.tables["ks", "t"].sets[0].streams
    changed = made.change("ks", "t", close=[], open_tokens=[-100])

    assert changed.stream_for(-100) == changed.streams[0]
    assert changed.stream_for(-99) == low
    assert changed.streams[1:] == (low, high)


def test_a_closing_without_an_opening_widens_the_next_stream(clock: Clock) -> None:
    made = tablets(clock, count=2)
    low, high = made.tables["ks", "t"].sets[0].streams
    changed = made.change("ks", "t", close=[low], open_tokens=[])

    assert changed.streams == (high,)
    assert changed.stream_for(MIN_TOKEN + 1) == high


@pytest.mark.parametrize(
    ("close", "opened", "why"),
    [
        ([b"\0" * 16], [], "not in the newest set"),
        ("last", [], "greatest token"),
        ([], [-1], "same token"),
        ([], [MIN_TOKEN], "between"),
        ([], [], "nothing to close"),
    ],
)
def test_an_impossible_change_is_refused(clock: Clock, close: object, opened: list[int], why: str) -> None:
    made = tablets(clock, count=2)
    if close == "last":
        close = [made.tables["ks", "t"].sets[0].streams[-1]]

    with pytest.raises(ValueError, match=why):
        made.change("ks", "t", close=close, open_tokens=opened)  # type: ignore[arg-type]
    assert len(made.timestamps("ks", "t")) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 16))
def test_random_changes_always_cover_the_ring(seed: int, count: int) -> None:
    clock = Clock()
    made = tablets(clock, count=count)
    source = random.Random(seed)
    for step in range(12):
        before = made.tables["ks", "t"].sets[-1]
        after = made.random_change("ks", "t", seed=source.getrandbits(32) + step)
        states = by_state(made, after.timestamp)

        assert after.timestamp > before.timestamp
        assert after.tokens[-1] == MAX_TOKEN and len(set(after.tokens)) == len(after.tokens)
        assert set(after.streams) == set(before.streams) - set(states[CLOSED]) | set(states[OPENED])
        assert set(states[CLOSED]) <= set(before.streams)


def test_sets_whose_rows_have_expired_are_forgotten(clock: Clock) -> None:
    made = tablets(clock, ttl=100)
    for _ in range(2):
        clock.move(60 * SECOND)
        made.replace_all("ks", "t")
    assert len(made.timestamps("ks", "t")) == 3
    second, third = made.tables["ks", "t"].sets[1:]

    clock.move(41 * SECOND)
    assert made.timestamps("ks", "t") == [third.timestamp, second.timestamp]
    states = by_state(made, second.timestamp)
    assert states[OPENED] == list(second.streams) and not states[CLOSED]

    clock.move(3600 * SECOND)
    assert made.timestamps("ks", "t") == [third.timestamp]


def test_without_a_ttl_nothing_is_forgotten(clock: Clock) -> None:
    made = tablets(clock, ttl=0)
    made.replace_all("ks", "t")
    clock.move(10**6 * SECOND)

    assert len(made.timestamps("ks", "t")) == 2


def test_dropping_a_table_removes_its_streams(clock: Clock) -> None:
    made = tablets(clock)
    made.drop("ks", "t")

    assert made.timestamps("ks", "t") == []
    with pytest.raises(ServerError, match="could not find stream metadata"):
        made.stream_for("ks", "t", 0, clock.now_us())
