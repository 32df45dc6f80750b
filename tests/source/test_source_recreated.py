"""Tables that are dropped and created again while they are read: no row of the new one is missed, whatever was known of
the old one's streams."""

from __future__ import annotations

from collections import Counter

import pytest
from cassandra.cluster import Session

from tests.servers.double import Double
from tests.servers.patience import until
from tests.source.conftest import Following, create_table, logged, reader

pytestmark = [pytest.mark.scylla, pytest.mark.only_double("stream sets come as early as the test wants")]

Rows = Counter[tuple[str, str, int]]


def insert(session: Session, rows: range) -> Rows:
    """Their rows in the log."""
    for number in rows:
        session.execute(f"INSERT INTO ks.t (pk, ck, v) VALUES ({number}, {number}, 'v')")
    return logged(session, "ks.t")


def newest(following: Following) -> int:
    [plan] = following.source._planner.tables.values()
    return 0 if plan.newest is None else plan.newest.timestamp


def split(session: Session, tablets: int) -> None:
    session.execute(f"ALTER TABLE ks.t WITH tablets = {{'min_tablet_count': {tablets}}}")


def last_set(session: Session) -> int:
    rows = session.execute("SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name='ks' AND table_name='t'")
    return max(round(each.timestamp.timestamp() * 1000) for each in rows)


@pytest.mark.parametrize("again", [False, True], ids=["once", "and the new one is split as well"])
def test_a_set_that_was_still_to_come_is_of_the_old_table_alone(again: bool) -> None:
    """It counts from two minutes on; the new table's first one counts at once."""
    with Double(nodes=1, vnodes=2, ring_delay=60) as scylla:
        session = scylla.cluster().connect()
        session.use_client_timestamp = False
        create_table(scylla, session, "ks", True, count=2)
        following = Following(reader(scylla, "ks.t", follow=True))
        following.start()
        old = insert(session, range(9))
        following.until(lambda: old)
        split(session, 4)
        until(lambda: newest(following) == last_set(session), what="the set that is still to come")
        session.execute("DROP TABLE ks.t")
        session.execute("CREATE TABLE ks.t (pk int, ck int, v text, PRIMARY KEY (pk, ck)) WITH cdc = {'enabled': true}")
        if again:
            split(session, 8)
        new = insert(session, range(9, 60))
        following.until(lambda: old + new)
        until(lambda: newest(following) == last_set(session), what="the new table's newest set")
        more = insert(session, range(60, 80))
        following.until(lambda: old + more)
        following.finish()
        # Who starts from what was noted goes on, and needs no set of the old table.
        rest = insert(session, range(80, 90))
        with reader(scylla, "ks.t", checkpoint=following.source.checkpoint()) as source:
            assert sum(len(batch.rows) for batch in source) == 10 == sum((rest - more).values())
        session.cluster.shutdown()


@pytest.mark.parametrize("tablets", [True, False], ids=["with tablets", "without tablets"])
def test_streams_are_looked_for_where_the_new_table_has_them(tablets: bool) -> None:
    with Double(nodes=1, vnodes=2, ring_delay=0) as scylla:
        session = scylla.cluster().connect()
        session.use_client_timestamp = False
        create_table(scylla, session, "ks", not tablets)
        following = Following(reader(scylla, "ks.t", follow=True))
        following.start()
        old = insert(session, range(9))
        following.until(lambda: old)
        session.execute("DROP KEYSPACE ks")
        create_table(scylla, session, "ks", tablets)
        new = insert(session, range(9, 60))
        following.until(lambda: old + new)
        new = insert(session, range(60, 80))
        following.until(lambda: old + new)
        following.finish()
        with reader(scylla, "ks.t", checkpoint=following.source.checkpoint()) as source:
            assert not list(source)
        session.cluster.shutdown()
