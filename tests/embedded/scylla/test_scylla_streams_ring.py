"""The vnode ring: stream ids, generations, and which stream takes a write."""

from __future__ import annotations

import random

import pytest

from connector.topology import StreamId
from embedded.scylla.clock import Clock
from embedded.scylla.errors import InvalidRequest, ServerError
from embedded.scylla.streams.ids import first_token_of_shard, shard_of, stream_id, stream_order
from embedded.scylla.streams.ring import VnodeStreams
from embedded.scylla.streams.service import StreamService
from embedded.scylla.tokens import MAX_TOKEN, MIN_TOKEN, cdc_token

SECOND = 1_000_000


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.freeze(1_795_000_000_123_456)
    return clock


def ring(clock: Clock, *, vnodes: int = 8, shards: int = 2, nodes: int = 1, delay: float = 0.0) -> VnodeStreams:
    made = VnodeStreams(clock, ring_delay=delay, seed=7)
    for number in range(nodes):
        made.join(number, vnodes=vnodes, shards=shards)
    made.renew()
    return made


def test_a_stream_id_holds_token_random_bits_index_and_version() -> None:
    raw = stream_id(-1, 90, lambda bits: (1 << bits) - 1)

    assert raw.hex() == "ffffffffffffffff" + "fffffffffc0005a1"
    assert (cdc_token(raw), StreamId.parse(raw).index) == (-1, 90)


def test_streams_are_ordered_by_signed_token() -> None:
    ids = [stream_id(token, 0, random.Random(1).getrandbits) for token in (1, -1, MAX_TOKEN, MIN_TOKEN + 1)]

    assert [cdc_token(raw) for raw in sorted(ids, key=stream_order)] == [MIN_TOKEN + 1, -1, 1, MAX_TOKEN]


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_the_first_token_of_a_shard_is_the_first_one_that_belongs_to_it(shards: int) -> None:
    source = random.Random(shards)
    for _ in range(200):
        after = source.randint(MIN_TOKEN, MAX_TOKEN - 1)
        for shard in range(shards):
            found = first_token_of_shard(after, shard, shards)
            if found is not None:
                assert found > after
                assert shard_of(found, shards) == shard
                assert found == after + 1 or shard_of(found - 1, shards) != shard


def test_a_generation_has_a_stream_for_every_range_and_shard(clock: Clock) -> None:
    generation = ring(clock, vnodes=16, shards=3, nodes=2).generations[0]

    assert len(generation.range_ends) == 32
    assert len(set(generation.all_streams())) == 96
    for index, streams in enumerate(generation.streams):
        assert {StreamId.parse(raw).index for raw in streams} == {index}


def test_a_stream_lies_in_the_range_and_on_the_shard_of_the_keys_it_takes(clock: Clock) -> None:
    generation = ring(clock, vnodes=4, shards=3).generations[0]
    source = random.Random(3)
    ends = generation.range_ends
    for _ in range(500):
        token = source.randint(MIN_TOKEN + 1, MAX_TOKEN)
        raw = generation.stream_for(token)
        assert shard_of(cdc_token(raw), 3) == shard_of(token, 3)

        def range_of(place: int) -> int:
            return next((at for at, end in enumerate(ends) if place <= end), 0)

        assert range_of(cdc_token(raw)) == range_of(token) == StreamId.parse(raw).index


def test_the_first_generation_counts_at_once_and_later_ones_after_the_ring_delay(clock: Clock) -> None:
    streams = ring(clock, delay=30.0)
    second = streams.renew()

    assert streams.generations[0].timestamp == clock.now_ms()
    assert second.timestamp == clock.now_ms() + 65_000


def test_without_a_ring_delay_a_generation_counts_from_the_next_millisecond(clock: Clock) -> None:
    streams = ring(clock)
    stamps = [streams.renew().timestamp for _ in range(3)]

    assert stamps == [clock.now_ms() + 1, clock.now_ms() + 2, clock.now_ms() + 3]


def test_each_write_goes_to_the_generation_of_its_timestamp(clock: Clock) -> None:
    streams = ring(clock)
    clock.move(SECOND)
    second = streams.renew()
    boundary = second.timestamp * 1000

    for token in (MIN_TOKEN + 1, 0, MAX_TOKEN):
        assert streams.stream_for(token, boundary - 1) == streams.generations[0].stream_for(token)
        assert streams.stream_for(token, boundary) == second.stream_for(token)


def test_writes_further_ahead_than_the_leeway_are_rejected(clock: Clock) -> None:
    streams = ring(clock)
    streams.stream_for(0, clock.now_us() + 5 * SECOND)

    with pytest.raises(InvalidRequest) as error:
        streams.stream_for(0, clock.now_us() + 5 * SECOND + 1)

    assert str(error.value) == (
        'cdc: attempted to get a stream "from the future" (2026/11/18 11:06:45.123457000; current server time: '
        "2026/11/18 11:06:40.123456000). With CDC you cannot send writes with timestamps arbitrarily into the future, "
        "because we don't know what streams will be used at that time.\n"
        "We *do* allow sending writes into the near future, but our ability to do that is limited. If you really must "
        "use your own timestamps, then make sure your clocks are well-synchronized  with the database's clocks."
    )


def test_the_current_generation_takes_writes_however_old(clock: Clock) -> None:
    streams = ring(clock)
    first = streams.generations[0].timestamp * 1000
    clock.move(3600 * SECOND)

    assert streams.stream_for(0, first) == streams.generations[0].stream_for(0)


def test_a_superseded_generation_takes_writes_for_the_leeway_only(clock: Clock) -> None:
    streams = ring(clock)
    clock.move(60 * SECOND)
    streams.renew()
    clock.move(4 * SECOND)
    now = clock.now_us()
    assert streams.stream_for(0, now - 5 * SECOND + 1) == streams.generations[0].stream_for(0)

    with pytest.raises(InvalidRequest, match='"from the past"'):
        streams.stream_for(0, now - 5 * SECOND)

    clock.move(60 * SECOND)
    with pytest.raises(InvalidRequest, match="too far into the past, because that would break"):
        streams.stream_for(0, now - 5 * SECOND)


def test_a_write_before_the_first_generation_finds_no_stream(clock: Clock) -> None:
    streams = ring(clock)
    clock.move(2 * SECOND)

    with pytest.raises(ServerError, match=r"could not find any CDC stream for timestamp 2026/11/18 11:06:40\.122999"):
        streams.stream_for(0, streams.generations[0].timestamp * 1000 - 1)


def test_a_generation_can_keep_the_streams_of_some_ranges(clock: Clock) -> None:
    streams = ring(clock, vnodes=4)
    first = streams.generations[0]
    kept = first.range_ends[2]
    second = streams.renew(keep=[kept])

    assert second.streams[2] == first.streams[2]
    assert not set(second.streams[0]) & set(first.all_streams())


def test_a_node_that_joins_refines_the_ring_and_makes_a_generation(clock: Clock) -> None:
    service = StreamService(clock, nodes=1, vnodes=4, shards=1, seed=1)
    service.add_node(1)
    first, second = service.vnodes.generations

    assert set(second.range_ends) > set(first.range_ends)
    assert service.node_tokens(1) and set(service.node_tokens(1)).isdisjoint(service.node_tokens(0))

    service.remove_node(1)
    assert service.vnodes.generations[-1].range_ends == first.range_ends
    assert service.node_tokens(1) == ()


def test_the_tables_show_the_newest_generation_first_and_streams_as_sets(clock: Clock) -> None:
    service = StreamService(clock, nodes=1, vnodes=4, shards=3, seed=1)
    clock.move(SECOND)
    newest = service.vnodes.renew()

    assert service.generation_timestamps() == [newest.timestamp, service.vnodes.generations[0].timestamp]
    rows = [row for row in service.generation_streams() if row[0] == newest.timestamp]
    assert [end for _, end, _ in rows] == list(newest.range_ends)
    assert [streams for _, _, streams in rows] == [sorted(streams) for streams in newest.streams]


def test_a_lagging_node_shows_what_it_knew(clock: Clock) -> None:
    service = StreamService(clock, nodes=1, vnodes=2, shards=1, ring_delay=30, seed=1)
    before = clock.now_ms()
    clock.move(SECOND)
    newest = service.vnodes.renew()

    assert service.generation_timestamps(as_of=before) == [service.vnodes.generations[0].timestamp]
    assert not [row for row in service.generation_streams(as_of=before) if row[0] == newest.timestamp]
    assert newest.timestamp > clock.now_ms()
    assert service.generation_timestamps() == [newest.timestamp, service.vnodes.generations[0].timestamp]
