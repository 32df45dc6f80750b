"""Whom a log read asks: a node that holds the stream while it is up, else any other."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra.metadata import Metadata, Murmur3Token, TokenMap
from cassandra.policies import RoundRobinPolicy
from cassandra.tablets import Tablet

from connector.errors import RetriableSourceError, SourceError
from connector.source import routing, second_asking
from connector.source.connection import Connection
from connector.source.log_reader import ELSEWHERE_SECONDS, LogReader, LogTable, PageRead, ReadEvent, ReadRequest
from connector.source.routing import LEAST_ANSWERS, TRIAL_SECONDS, HoldersFirst, aim
from connector.source.second_asking import AskAnother, take_time
from connector.source.settings import ConnectionSettings
from connector.topology.streams import token_of
from embedded.scylla.admin_client import AdminClient
from tests.servers.double import Double
from tests.source.conftest import FAST, address, create_table
from tests.worker.harness import until


class Counting:
    """How many reads of the log each node is asked for, by its address: rules for faults that let everything pass."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin
        nodes = {node["address"]: node["node"] for node in admin.nodes()}
        self._rules = {
            host: admin.add_fault("delay", table="ks.t_scylla_cdc_log", opcode="EXECUTE", node=node, skip=1 << 30)
            for host, node in nodes.items()
        }

    def seen(self) -> Counter[str]:
        return Counter({host: self._admin.fault(rule)["seen"] for host, rule in self._rules.items()})


def read(connection: Connection, streams: Iterable[bytes]) -> int:
    """Read each stream, again where that fails; how many had to be."""
    events: list[ReadEvent] = []
    reader = LogReader(connection, FAST, events.append)
    waiting, failed = set(streams), 0
    assert waiting

    def submit(stream: bytes) -> None:
        reader.submit(ReadRequest(stream, LogTable("ks", "t_scylla_cdc_log"), (stream,), 0, 1 << 42))

    for stream in waiting:
        submit(stream)

    def done() -> bool:
        nonlocal failed
        reader.pump()
        while events:
            event = events.pop()
            reader.consumed(event)
            if isinstance(event, PageRead):
                waiting.discard(event.request.streams[0])
            else:
                failed += 1
                submit(event.request.streams[0])
        return not waiting

    until(done, 60, "all reads")
    return failed


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[Double]:
    with Double(nodes=3, vnodes=4, ring_delay=0) as scylla:
        cluster = scylla.cluster()
        create_table(scylla, cluster.connect(), "ks", False)
        cluster.shutdown()
        yield scylla


@pytest.fixture
def connection(three_nodes: Double) -> Iterator[Connection]:
    opened = Connection(ConnectionSettings((address(three_nodes.address),)))
    opened.open()
    yield opened
    opened.close()
    three_nodes.admin.clear_faults()


def streams_of(admin: AdminClient) -> list[bytes]:
    ranges = admin.streams()["generations"][-1]["ranges"]
    return [bytes.fromhex(stream) for each in ranges for stream in each["streams"]]


def owned(connection: Connection, streams: Iterable[bytes]) -> dict[str, list[bytes]]:
    """The streams of each node."""
    owners = {
        int(token): str(host.endpoint.address)
        for host in connection.hosts()
        for token in connection.query("SELECT tokens FROM system.local", host=host)[0]["tokens"]
    }
    ring = sorted(owners)
    found: dict[str, list[bytes]] = {}
    for stream in streams:
        found.setdefault(owners[ring[bisect_left(ring, token_of(stream)) % len(ring)]], []).append(stream)
    return found


@pytest.mark.scylla
@pytest.mark.only_double("which node answered is told by the admin interface; nodes stop")
def test_the_owner_of_a_stream_is_asked(three_nodes: Double, connection: Connection) -> None:
    by_owner = owned(connection, streams_of(three_nodes.admin))
    assert len(by_owner) == 3
    counting = Counting(three_nodes.admin)
    for owner, streams in by_owner.items():
        before = counting.seen()
        assert read(connection, streams) == 0
        assert counting.seen() - before == Counter({owner: len(streams)})


@pytest.mark.scylla
@pytest.mark.only_double("which node answered is told by the admin interface; nodes stop")
def test_others_are_asked_while_the_owner_fails_and_when_it_is_gone(
    three_nodes: Double, connection: Connection
) -> None:
    admin = three_nodes.admin
    by_owner = owned(connection, streams_of(admin))
    last = next(node for node in admin.nodes() if node["node"] == 2)
    fault = admin.add_fault("unavailable", table="ks.t_scylla_cdc_log", opcode="EXECUTE", node=2)
    assert read(connection, by_owner[last["address"]]) >= len(by_owner[last["address"]])
    admin.remove_fault(fault)
    admin.stop_node(1)
    for streams in by_owner.values():
        read(connection, streams)
    admin.start_node(1)


@pytest.mark.scylla
@pytest.mark.only_double("a node is replaced")
def test_a_node_in_place_of_another_one_is_asked_for_what_that_had(three_nodes: Double, connection: Connection) -> None:
    admin, streams = three_nodes.admin, streams_of(three_nodes.admin)
    replaced = admin.nodes()[1]
    admin.stop_node(1)
    admin.start_node(1, replaced=True)
    ids = {node["host_id"] for node in admin.nodes()}
    assert len(ids) == 3 and replaced["host_id"] not in ids

    def known() -> bool:
        return {str(host.host_id) for host in connection.known_hosts() if host.is_up} == ids

    until(known, 60, lambda: f"{ids} of {[(host.host_id, host.is_up) for host in connection.known_hosts()]}")
    mine = owned(connection, streams)[replaced["address"]]
    counting = Counting(admin)
    before = counting.seen()
    assert read(connection, mine) == 0
    assert counting.seen() - before == Counter({replaced["address"]: len(mine)})


@pytest.mark.scylla
@pytest.mark.only_double("a node has no tokens")
@pytest.mark.parametrize("first", [False, True], ids=["a peer", "the contact point"])
def test_a_node_without_tokens_is_a_way_to_the_others(three_nodes: Double, first: bool) -> None:
    admin, streams = three_nodes.admin, streams_of(three_nodes.admin)
    added = admin.add_node(tokens=False)
    host, port = address(three_nodes.address)
    opened = Connection(ConnectionSettings(((added["address"] if first else host, port),)))
    try:
        opened.open()
        by_owner = owned(opened, streams)
        assert added["address"] not in by_owner and len(by_owner) == 3
        counting = Counting(admin)
        for owner, mine in by_owner.items():
            before = counting.seen()
            assert read(opened, mine) == 0
            assert counting.seen() - before == Counter({owner: len(mine)})
        opened.raise_blindness()
        opened.sample_clocks()
        opened.require_an_answer()
        assert added["address"] not in {str(each.endpoint.address) for each in opened._policy.make_query_plan()}
    finally:
        opened.close()
        admin.remove_node(added["node"])


class Node(SimpleNamespace):
    """As much of a host as a policy looks at."""

    def __hash__(self) -> int:
        return hash(self.host_id)


def hosts(*names: str) -> list[Any]:
    return [Node(host_id=name, is_up=True, datacenter="dc", endpoint=name) for name in names]


def policy(known: Metadata, nodes: list[Any]) -> HoldersFirst:
    built = HoldersFirst(RoundRobinPolicy())
    built.populate(SimpleNamespace(metadata=known), nodes)
    return built


def test_the_holders_of_a_tablet_are_asked_in_turn_and_then_the_others() -> None:
    a, b, c = nodes = hosts("a", "b", "c")
    known = Metadata()
    ring = [Murmur3Token(token) for token in (-100, 0, 100)]
    known.token_map = TokenMap(Murmur3Token, dict(zip(ring, nodes)), ring, known)
    tried = policy(known, nodes)
    statement = aim(SimpleNamespace(), 50, "ks", "log")
    assert {next(tried.make_query_plan(None, statement)).host_id for _ in range(9)} == {"c"}, "the ring's next"
    known._tablets.add_tablet("ks", "log", Tablet(0, 100, [("a", 0), ("b", 0)]))
    plans = [tuple(host.host_id for host in tried.make_query_plan(None, statement)) for _ in range(9)]
    assert {plan[0] for plan in plans} == {"a", "b"}
    assert {plan[2] for plan in plans} == {"c"}
    tried.on_down(a)
    assert {tuple(tried.make_query_plan(None, statement)) for _ in range(9)} == {(b, c)}
    tried.on_down(b)
    assert {tuple(tried.make_query_plan(None, statement)) for _ in range(9)} == {(c,)}


def test_before_the_ring_is_known_anybody_is_asked() -> None:
    nodes = hosts("a", "b")
    statement = aim(SimpleNamespace(), 50, "ks", "log")
    assert set(policy(Metadata(), nodes).make_query_plan(None, statement)) == set(nodes)
    assert set(policy(Metadata(), nodes).make_query_plan(None, None)) == set(nodes)


def test_streams_that_ended_are_not_remembered_as_those_that_failed() -> None:
    failing = SimpleNamespace(
        statement=lambda *_: SimpleNamespace(),
        page_async=lambda statement, then, fails, state: fails(RetriableSourceError("it timed out")),
    )
    now = 0.0
    reader = LogReader(cast(Connection, failing), FAST, lambda event: None, lambda: now)
    for round_ in range(4):
        for number in range(10):
            stream = bytes([round_, number]) + bytes(14)
            reader.submit(ReadRequest(stream, LogTable("ks", "t_scylla_cdc_log"), (stream,), 0, 1))
        now += ELSEWHERE_SECONDS + 1
        reader.pump()
        reader._running.clear()
    assert len(reader._elsewhere) == 10


@pytest.mark.scylla
@pytest.mark.only_double("a node that takes queries and does not answer them")
def test_a_node_that_says_nothing_holds_up_no_read_and_is_asked_last(
    three_nodes: Double, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "connector.source")
    # On a busy machine a node that is well takes a moment as well, and so do we to hear of it.
    monkeypatch.setattr(second_asking, "SILENT_SECONDS", 2.0)
    # What another one was asked is told at the end, however long the rest takes.
    monkeypatch.setattr(second_asking, "PER_SECOND", 0.0)
    opened = Connection(ConnectionSettings((address(three_nodes.address),), request_timeout=60))
    opened.open()
    streams = streams_of(three_nodes.admin)
    fault = three_nodes.admin.add_fault("silence", table="ks.t_scylla_cdc_log", opcode="EXECUTE", node=1)
    try:
        assert read(opened, streams) == 0
        put_to_it = three_nodes.admin.fault(fault)["fired"]
        assert put_to_it > 0
        assert "takes queries and does not answer: for 30 s it is asked last" in caplog.text
        assert read(opened, streams) == 0
        assert three_nodes.admin.fault(fault)["fired"] == put_to_it
        assert opened.query("SELECT key FROM system.local")
        asking = opened._cluster.profile_manager.default.speculative_execution_policy
        assert asking._left < second_asking.AT_ONCE and asking._held == 0, "questions that are over hold nothing"
    finally:
        opened.close()
        three_nodes.admin.clear_faults()


@pytest.mark.scylla
@pytest.mark.only_double("nodes that take queries and do not answer them")
def test_who_did_not_answer_is_named(three_nodes: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them: none is to blame for what another one did not say."""
    for patience in ("SILENT_SECONDS", "SILENT_SECONDS_OF_ROWS"):
        monkeypatch.setattr(second_asking, patience, 0.8)
    opened = Connection(ConnectionSettings((address(three_nodes.address),), request_timeout=6))
    opened.open()
    silent = next(host for host in opened.hosts() if str(host.endpoint) != three_nodes.address)
    three_nodes.admin.add_fault("silence", table="ks.t_scylla_cdc_log", opcode="EXECUTE")
    told: list[SourceError] = []
    try:
        statement = opened.statement("SELECT * FROM ks.t_scylla_cdc_log", ())
        for host in opened.hosts():
            if host is not silent:
                opened.avoid(host, 60)
        opened.page_async(statement, lambda page, state: None, told.append)
        until(lambda: told, 30, "the query's end")
        others = {str(host.endpoint) for host in opened.hosts()} - {str(silent.endpoint)}
        named = re.fullmatch(r"reading from (\S+), then (\S+), then (\S+): no answer in 6 s", str(told[0]))
        assert named and named[1] == str(silent.endpoint) and set(named.groups()[1:]) == others, str(told[0])
        # It was told of the statement, and has said then that it does not know it.
        assert str(silent.endpoint) in opened.slow_hosts
    finally:
        opened.close()
        three_nodes.admin.clear_faults()


@pytest.mark.scylla
@pytest.mark.only_double("which node was asked is told by the admin interface")
def test_a_statement_is_prepared_where_it_is_asked_and_not_where_nothing_is_said(
    three_nodes: Double, connection: Connection
) -> None:
    for host in connection.hosts()[1:]:
        connection.avoid(host, 60)
    prepared = three_nodes.admin.add_fault("delay", opcode="PREPARE", skip=1 << 30)
    for column in ("pk", "ck", "v"):
        assert connection.statement(f"SELECT {column} FROM ks.t", ())
    assert three_nodes.admin.fault(prepared)["seen"] == 3


@pytest.mark.parametrize("trouble", ["silent", "slow"])
def test_a_node_in_trouble_is_avoided_for_longer_each_time_until_it_answers_in_time_again(
    monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    now = 0.0
    monkeypatch.setattr(routing.time, "monotonic", lambda: now)
    a, b = nodes = hosts("a:1", "b:1")
    tried = policy(Metadata(), nodes)

    def avoided() -> bool:
        return {next(tried.make_query_plan(None, None)).host_id for _ in range(4)} == {"b:1"}

    def answers(host: Any, seconds: float) -> None:
        for _ in range(LEAST_ANSWERS):
            tried.heard(host, [], seconds)

    def meet() -> None:
        if trouble == "silent":
            tried.heard(b, [a])
            tried.heard(b, [a, a])
        else:
            answers(b, 0.01)
            answers(a, 3.0)

    answers(b, 0.01)
    for pause in (30, 60, 120, 240, 300, 300):
        meet()
        answers(a, 0.01)  # what was asked before
        now += pause - 1
        assert avoided()
        now += 1
        assert not avoided() and tried.troubles.keys() == {"a:1"}
        now += TRIAL_SECONDS
        tried.avoid(None, 0)
        assert not tried.troubles
        now -= TRIAL_SECONDS
    answers(a, 0.01)
    assert not tried.troubles
    meet()
    now += 30
    assert not avoided(), "it had answered in time"


@pytest.mark.parametrize("nodes", [1, 2])
def test_of_the_only_node_it_is_not_said_that_others_are_asked(nodes: int, caplog: pytest.LogCaptureFixture) -> None:
    there = hosts("a:1", "b:1")[:nodes]
    tried = policy(Metadata(), there)
    next(tried.make_query_plan(None, None))
    with caplog.at_level("INFO", "connector.source.routing"):
        tried.heard(None, [there[0]])
    (said,) = caplog.messages
    assert ("asked last" in said, "no other node" in said) == (nodes == 2, nodes == 1)


def test_who_is_gone_is_no_measure_for_those_who_have_his_work_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(routing.time, "monotonic", lambda: now)
    a, b, gone = nodes = hosts("a:1", "b:1", "c:1")
    tried = policy(Metadata(), nodes)
    for host in [a, b, gone] * LEAST_ANSWERS:
        tried.heard(host, [], 0.01)
    now += 60
    for host in [a, b] * 40:
        tried.heard(host, [], 2.0)
    assert not tried.troubles


def test_where_all_nodes_are_slow_or_none_is_by_much_none_is_avoided() -> None:
    a, b = nodes = hosts("a:1", "b:1")
    for one, other in ((5.0, 4.0), (0.9, 0.01), (3.0, 0.5)):
        tried = policy(Metadata(), nodes)
        for _ in range(LEAST_ANSWERS):
            tried.heard(a, [], one)
            tried.heard(b, [], other)
        assert {next(tried.make_query_plan(None, None)) for _ in range(4)} == {a, b}


@pytest.mark.scylla
@pytest.mark.only_double("a node that is slow")
def test_reads_of_streams_tell_which_node_is_slow(
    three_nodes: Double, connection: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "connector.source")
    # Of a busy machine all nodes may take a moment.
    monkeypatch.setattr(routing, "SLOW_SECONDS", 1.5)
    monkeypatch.setattr(routing, "SLOW_FACTOR", 2.0)
    monkeypatch.setattr(routing, "LEAST_ANSWERS", 1)
    three_nodes.admin.add_fault("delay", table="ks.t_scylla_cdc_log", opcode="EXECUTE", node=1, delay_ms=3000)
    streams = streams_of(three_nodes.admin)
    read(connection, streams)
    slow = next(node["address"] for node in three_nodes.admin.nodes() if node["node"] == 1)
    port = connection.hosts()[0].endpoint.port
    assert re.search(rf"{slow}:{port} takes [3-9]\.\d s to answer", caplog.text)
    three_nodes.admin.clear_faults()
    counting = Counting(three_nodes.admin)
    read(connection, streams)
    assert counting.seen()[slow] == 0


def test_what_is_asked_twice_has_a_bound() -> None:
    now = 0.0
    asking = AskAnother(clock=lambda: now)

    def others(statement: Any = None, silent: int = 9) -> list[float]:
        plan = asking.new_plan(None, statement)
        return [plan.next_execution(None) for _ in range(silent)][:3]

    assert others() == [second_asking.SILENT_SECONDS] * 2 + [-1]
    assert others(take_time(SimpleNamespace()))[0] == second_asking.SILENT_SECONDS_OF_ROWS
    for _ in range(100):
        others()
    assert others() == [-1, -1, -1]
    now += 100
    assert others(silent=1) == [second_asking.SILENT_SECONDS]
    # All that are under way as answers begin to be late.
    plans = [asking.new_plan(None, None) for _ in range(500)]
    assert all(plan.next_execution(None) > 0 for plan in plans)
    now += second_asking.SILENT_SECONDS
    again = [plan.next_execution(None) for plan in plans]
    assert sum(seconds > 0 for seconds in again) <= second_asking.AT_ONCE
    for plan in plans:
        plan.is_over()
    now += 2
    assert others(silent=1) == [second_asking.SILENT_SECONDS]


@pytest.mark.parametrize(("others", "host", "twice"), [(0, None, 0), (1, None, 1), (5, None, 2), (5, "a node", 0)])
def test_who_is_the_only_one_that_can_be_asked_uses_no_right_to_ask_another(others: int, host: Any, twice: int) -> None:
    asking = AskAnother(lambda: others, clock=lambda: 0.0)
    statement = second_asking.meant_for(SimpleNamespace(), host)
    for _ in range(second_asking.AT_ONCE // 4):
        plan = asking.new_plan(None, statement)
        assert [plan.next_execution(None) > 0 for _ in range(4)] == [each < twice for each in range(4)]
        plan.is_over()
    assert asking._left == second_asking.AT_ONCE - twice * second_asking.AT_ONCE // 4


def test_a_cluster_whose_answers_are_all_late_is_asked_twice_once_a_second() -> None:
    now = 0.0
    asking = AskAnother(clock=lambda: now)
    #: Of each question when another node is asked, when its answer is there; a place for queries is never empty.
    under_way: list[tuple[float, float, Any]] = []
    asked = twice = 0
    for tenth in range(1_200):
        now = tenth / 10
        for question in list(under_way):
            due, end, plan = question
            if end <= now:
                plan.is_over()
                under_way.remove(question)
            elif due <= now:
                twice += 1
                plan.next_execution(None)
                under_way[under_way.index(question)] = (end, end, plan)
        while len(under_way) < 64:
            plan = asking.new_plan(None, None)
            seconds = plan.next_execution(None)
            # Not all at one time.
            end = now + 6.5 + asked % 10 / 10
            under_way.append((now + seconds if seconds > 0 else end, end, plan))
            asked += 1
    assert asked > 1_000
    assert 150 < twice <= second_asking.AT_ONCE + 120 * second_asking.PER_SECOND
