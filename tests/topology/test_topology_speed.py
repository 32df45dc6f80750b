"""Planning must cost milliseconds with tens of thousands of streams: CPU time, with room to spare."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable

import pytest

from connector.table_name import TableName
from connector.timeuuid import lowest_uuid
from connector.topology import Planner, StreamSet, View, vnode_set
from tests.topology.ring import make_stream

GROUPS, SHARDS, TABLES = 1_024, 72, 4


def generation(at: int, tokens: list[int], rng: random.Random) -> StreamSet:
    return vnode_set(
        at,
        {
            token: [make_stream(token, rng.getrandbits(38), index) for _ in range(SHARDS)]
            for index, token in enumerate(sorted(tokens))
        },
    )


def seconds(work: Callable[[], object]) -> float:
    """What the work itself costs: without other threads of this process, and its garbage, which others left too."""
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def sets() -> tuple[StreamSet, StreamSet]:
    rng = random.Random(7)
    tokens = rng.sample(range(-(1 << 63), 1 << 63, 1 << 40), GROUPS)
    more = rng.sample(range(-(1 << 63) + 1, 1 << 63, 1 << 40), GROUPS // 4)
    return generation(1_000, tokens, rng), generation(500_000, [*tokens, *more], rng)


@pytest.fixture
def planner(sets: tuple[StreamSet, StreamSet]) -> Planner:
    names = [TableName("ks", f"t{number}") for number in range(TABLES)]
    made = Planner(names, slots=25, owner="me", confidence_ms=500)
    for plan in made.tables.values():
        plan.observe(View((1_000,), {1_000: sets[0]}), 100_000)
    for slot in range(25):
        made.restore(slot, [])
    for _ in range(2):
        made.commit_entries(100_000)
        made.committed()
    return made


def test_a_tick_costs_only_what_it_plans(planner: Planner) -> None:
    assert seconds(lambda: planner.plan(100_000, 64)) < 0.02
    for read in planner.plan(100_000, 10_000):
        planner.finish(read)
    idle = seconds(lambda: [planner.plan(100_000, 64) for _ in range(100)]) / 100
    assert idle < 0.002
    assert seconds(lambda: [planner.commit_due(100_000) for _ in range(100)]) / 100 < 0.002


def test_reading_everything_once(planner: Planner) -> None:
    def read_all() -> None:
        reads = planner.plan(100_000, 10_000)
        assert len(reads) == GROUPS * TABLES
        for read in reads:
            planner.finish(read)

    assert seconds(read_all) < 0.5
    assert seconds(lambda: planner.commit_entries(100_000, move_marks=True)) < 0.2


def test_progress_and_commits_cost_by_what_moved(planner: Planner) -> None:
    reads = planner.plan(100_000, 10_000)
    time_uuid = lowest_uuid(99_000)

    def deliver() -> None:
        for read in reads[:100]:
            for stream in read.streams:
                planner.advance(read, stream, time_uuid)

    assert seconds(deliver) < 0.5
    assert seconds(lambda: planner.commit_entries(100_000)) < 0.3
    planner.committed()
    assert seconds(lambda: planner.commit_entries(100_000)) < 0.01


def test_a_change_of_all_streams(planner: Planner, sets: tuple[StreamSet, StreamSet]) -> None:
    def change() -> None:
        for plan in planner.tables.values():
            plan.observe(View((1_000, 500_000), {500_000: sets[1]}), 502_000)

    assert seconds(change) < 2.0

    def read_through() -> None:
        while reads := planner.plan(600_000, 500):
            for read in reads:
                planner.finish(read)

    assert seconds(read_through) < 4.0
    planner.commit_entries(502_000, move_marks=True)
    planner.committed()

    def look_through() -> None:
        for plan in planner.tables.values():
            plan.observe(View((1_000, 500_000)), 600_000)
        read_through()
        for look in planner.looks(600_000, 100_000):
            planner.finish_look(look, False, 600_000)

    assert seconds(look_through) < 4.0
    planner.commit_entries(600_000, move_marks=True)
    planner.committed()
    assert len(planner.finished()) == GROUPS * TABLES


def test_nobody_is_looked_at_for_a_sweep_before_one_is_due() -> None:
    planner = Planner([TableName("ks", f"t{number}") for number in range(500)], slots=1, owner="me", confidence_ms=500)
    assert planner.sweeps(100_000, 5_000) == []
    assert seconds(lambda: [planner.sweeps(100_500, 5_000) for _ in range(10_000)]) < 0.1
