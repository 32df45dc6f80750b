"""Whole histories with stream changes under way: every row once, each key in order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from cassandra.cluster import Session

from tests.servers.double import Double
from tests.servers.patience import until
from tests.servers.scylla import Scylla, stream_set
from tests.source.conftest import Following, create_table, logged, reader

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla, pytest.mark.timeout(900)]
partial = pytest.mark.only_double(
    "stream sets that change partly: ScyllaDB's tables can hold them, ScyllaDB makes none"
)
faults = pytest.mark.only_double("the server answers with errors at its tester's wish")
Table = Callable[..., str]


def write(session: Session, table: str, random_: random.Random, rows: int) -> None:
    for _ in range(rows):
        pk, ck = random_.randrange(40), random_.randrange(3)
        if random_.random() < 0.7:
            session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, {ck}, 'x')")
        elif random_.random() < 0.5:
            session.execute(f"DELETE FROM {table} WHERE pk = {pk} AND ck = {ck}")
        else:
            session.execute(
                f"BEGIN BATCH INSERT INTO {table} (pk, ck, v) VALUES ({pk}, 0, 'a'); "
                f"DELETE FROM {table} WHERE pk = {pk} AND ck = 1; APPLY BATCH"
            )


def write_past(scylla: Scylla, session: Session, table: str, random_: random.Random, ms: int) -> None:
    """Write until the server's time is past this: what counts from then on is in use."""

    def passed() -> bool:
        write(session, table, random_, 5)
        return scylla.now_ms() > ms + 200

    until(passed, 60, f"the server's time {ms}")
    write(session, table, random_, 60)


@partial
@pytest.mark.parametrize("seed", range(3))
def test_tablets_that_change_in_every_way(scylla: Scylla, session: Session, table: Table, seed: int) -> None:
    """Splits, merges and partial changes: some streams close, some open, the rest go on."""
    name = table(tablets=True, count=4)
    draw = random.Random(seed)
    following = Following(reader(scylla, name, follow=True))
    following.start()
    following.opened.wait(90)
    for _ in range(6):
        write(session, name, draw, 60)
        scylla.admin.change_streams(name, random=draw.randrange(1 << 30))
    write(session, name, draw, 60)
    following.until(lambda: logged(session, name))
    following.finish()
    following.in_order()


def test_tablets_that_split(scylla: Scylla, session: Session, table: Table) -> None:
    """Splits as users ask for them, each of which may come in several steps."""
    name = table(tablets=True, count=2)
    draw = random.Random(11)
    following = Following(reader(scylla, name, follow=True))
    following.start()
    following.opened.wait(90)
    for _ in range(2):
        write(session, name, draw, 60)
        scylla.split_tablets(session, name)
        write_past(scylla, session, name, draw, stream_set(session, name)[0])
    following.until(lambda: logged(session, name))
    following.finish()
    following.in_order()


def test_generations_of_vnodes(scylla: Scylla, session: Session, table: Table) -> None:
    name = table(tablets=False)
    draw = random.Random(7)
    following = Following(reader(scylla, name, follow=True))
    following.start()
    following.opened.wait(90)
    # On a real server each of them counts from more than a minute later.
    for _ in range(4 if isinstance(scylla, Double) else 1):
        write(session, name, draw, 60)
        write_past(scylla, session, name, draw, scylla.new_generation())
    following.until(lambda: logged(session, name))
    following.finish()
    following.in_order()


def test_several_tables_share_one_reader(scylla: Scylla, session: Session, table: Table) -> None:
    names = [table(tablets=True), table(tablets=False), table(tablets=False)]
    following = Following(reader(scylla, *names, follow=True))
    following.start()
    for name in names:
        write(session, name, random.Random(1), 50)
    following.until(lambda: sum((logged(session, name) for name in names), start=Counter()))
    following.finish()


@pytest.mark.only_double("nodes that show old stream sets, stop and start")
def test_nodes_that_lag_and_nodes_that_go_away() -> None:
    """A stale node never hides a set that another one has shown; a lost node costs nothing."""
    with Double(nodes=3, ring_delay=0) as scylla:
        cluster = scylla.cluster()
        session = cluster.connect()
        # A write that is on its way to a node that goes away comes seconds later, to another one.
        session.use_client_timestamp = False
        name = create_table(scylla, session, "ks", True, count=4)
        draw = random.Random(3)
        following = Following(reader(scylla, name, follow=True))
        following.start()
        following.opened.wait(90)
        write(session, name, draw, 40)
        scylla.admin.make_stale(2, behind_ms=60_000)
        scylla.admin.change_streams(name, tablets=8)
        write(session, name, draw, 40)
        scylla.admin.stop_node(1)
        scylla.admin.change_streams(name, tablets=2)
        write(session, name, draw, 40)
        scylla.admin.make_fresh(2)
        scylla.admin.start_node(1)
        write(session, name, draw, 40)
        following.until(lambda: logged(session, name))
        following.finish()
        following.in_order()
        cluster.shutdown()


@faults
@pytest.mark.parametrize(
    "action",
    [
        "read_timeout",
        "overloaded",
        "unavailable",
        "read_failure",
        "server_error",
        "unprepared",
        "drop",
        "drop_mid_page",
    ],
)
def test_every_passing_fault_is_ridden_out(scylla: Scylla, session: Session, table: Table, action: str) -> None:
    name = table(tablets=False)
    write(session, name, random.Random(5), 120)
    fault = scylla.admin.add_fault(action, pattern=r'WHERE "cdc.stream_id', probability=0.5, count=12, seed=1)
    try:
        following = Following(reader(scylla, name, follow=True))
        following.start()
        following.until(lambda: logged(session, name))
        assert scylla.admin.fault(fault)["fired"] > 0
        following.finish()
    finally:
        scylla.admin.remove_fault(fault)


@partial
def test_a_split_of_one_tablet_leaves_the_others_alone(scylla: Scylla, session: Session, table: Table) -> None:
    """Four streams, one is split: the other three keep their positions, their reads and their pace; only the two new
    streams wait, and only for the one they came from."""
    name = table(tablets=True, count=4)
    write(session, name, random.Random(2), 40)
    source = reader(scylla, name, follow=True)
    following = Following(source)
    following.start()
    following.until(lambda: logged(session, name))
    plan = next(iter(source._planner.tables.values()))
    before = {state.group.streams[0]: state for state in plan.lineage.groups(0)}
    assert len(before) == 4
    ordered = sorted(before, key=lambda stream: before[stream].group.range_end)
    middle = (before[ordered[0]].group.range_end + before[ordered[1]].group.range_end) // 2
    scylla.admin.change_streams(name, close=[ordered[1]], open_tokens=[middle, before[ordered[1]].group.range_end])
    write(session, name, random.Random(4), 60)
    following.until(lambda: logged(session, name))
    after = {state.group.streams[0]: state for state in plan.lineage.groups(0)}
    kept = [stream for stream in ordered if stream != ordered[1]]
    assert all(after[stream] is before[stream] for stream in kept)
    assert not any(before[stream].gates for stream in kept)
    assert len([stream for stream in after if stream not in before]) == 2
    following.finish()
    following.in_order()
