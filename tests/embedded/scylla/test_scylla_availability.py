"""What is refused while a node is missed that holds it."""

from __future__ import annotations

import pytest

from embedded.scylla.cluster import Cluster, Settings
from embedded.scylla.errors import Unavailable
from embedded.scylla.placement import replicas_of
from embedded.scylla.protocol.requests import CONSISTENCY_NAMES
from embedded.scylla.results import RequestContext, Rows
from embedded.scylla.tokens import MAX_TOKEN, MIN_TOKEN, murmur3_token

LEVELS = {name: level for level, name in CONSISTENCY_NAMES.items()}
KEYS = range(60)


def holding(tablets: bool, copies: int, nodes: int = 3, missed: int = 1) -> Cluster:
    cluster = Cluster(Settings(nodes=nodes, vnodes=8, ring_delay=0.0, seed=3))
    options = f"{{'enabled': {str(tablets).lower()}}}"
    run(
        cluster,
        f"CREATE KEYSPACE k WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': {copies}}} "
        f"AND tablets = {options}",
    )
    more = " WITH tablets = {'min_tablet_count': 16}" if tablets else ""
    run(cluster, f"CREATE TABLE k.t (pk int PRIMARY KEY, v int){more}")
    for key in KEYS:
        run(cluster, f"INSERT INTO k.t (pk, v) VALUES ({key}, 1)")
    for number in range(missed):
        cluster.nodes[number].missed = True
    return cluster


def run(cluster: Cluster, statement: str, level: str = "ONE", state: bytes | None = None, size: int = 0) -> Rows:
    context = RequestContext(
        consistency=LEVELS[level], page_size=size, paging_state=state, node=cluster.nodes[len(cluster.nodes) - 1]
    )
    answer = cluster.engine.execute(statement, (), context)
    return answer if isinstance(answer, Rows) else Rows((), [])


def answered(cluster: Cluster, level: str) -> set[int]:
    found = set()
    for key in KEYS:
        try:
            run(cluster, f"SELECT v FROM k.t WHERE pk = {key}", level)
        except Unavailable as error:
            assert f"cl {level}" in str(error) and error.alive < error.required
        else:
            found.add(key)
    return found


@pytest.mark.parametrize("tablets", [True, False])
def test_of_one_copy_what_the_missed_node_held_is_refused_and_a_page_that_goes_over_it(tablets: bool) -> None:
    cluster = holding(tablets, copies=1)
    there = answered(cluster, "ONE")
    assert 20 <= len(there) <= 50 and there == answered(cluster, "LOCAL_QUORUM")
    table = cluster.schema.table("k", "t")
    assert table is not None
    for key in KEYS:
        token = murmur3_token(key.to_bytes(4, "big"))
        (owners,) = replicas_of(cluster, table, token, token)
        assert (key in there) is (not owners[0].missed)
        shown = f"SELECT pk FROM k.t WHERE token(pk) >= {token} AND token(pk) <= {token}"
        if key in there:
            assert len(run(cluster, shown).rows) == 1
    with pytest.raises(Unavailable):
        run(cluster, "SELECT * FROM k.t")


@pytest.mark.parametrize("tablets", [True, False])
def test_each_range_has_its_copies_on_nodes_of_its_own(tablets: bool) -> None:
    cluster = holding(tablets, copies=2)
    table = cluster.schema.table("k", "t")
    assert table is not None
    ranges = list(replicas_of(cluster, table, MIN_TOKEN, MAX_TOKEN))
    assert len(ranges) == (16 if tablets else 25), "one of the ring's ranges lies across its end"
    assert all(len({*nodes}) == 2 for nodes in ranges)
    assert len({node for nodes in ranges for node in nodes}) == 3


def test_copies_that_are_left_suffice_by_the_consistency() -> None:
    cluster = holding(True, copies=3)
    assert answered(cluster, "QUORUM") == {*KEYS}
    assert answered(cluster, "ALL") == set()
    cluster = holding(True, copies=3, missed=2)
    assert answered(cluster, "ONE") == {*KEYS}
    assert answered(cluster, "LOCAL_QUORUM") == answered(cluster, "TWO") == set()
    cluster = holding(True, copies=2)
    assert 10 <= len(answered(cluster, "QUORUM")) <= 40
    assert answered(cluster, "LOCAL_ONE") == {*KEYS}


def test_a_page_that_ends_in_front_of_what_is_refused_is_answered() -> None:
    cluster = holding(True, copies=1)
    shown: list[object] = []
    state = None
    with pytest.raises(Unavailable):
        while True:
            page = run(cluster, "SELECT pk FROM k.t", state=state, size=1)
            shown += page.rows
            state = page.paging_state
    cluster.nodes[0].missed = False
    assert len(shown) < len(run(cluster, "SELECT pk FROM k.t").rows) == len(KEYS)
