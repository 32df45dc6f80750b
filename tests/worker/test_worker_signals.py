"""Signals of snapshots: what is none is passed over with a word, and none keeps its worker busy for ever."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from connector.delivery import SmallTopic
from connector.source import Background
from connector.table_name import TableName
from connector.topology import Event, Wish
from connector.worker.settings import kafka_clients, signals_spec
from connector.worker.signals import Signal, Signals, parse_signal
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.servers.patience import until


def parsed(*expressions: str) -> Signal:
    signal = {"id": "s", "type": "execute-snapshot", "data": {"data-collections": list(expressions)}}
    return parse_signal(json.dumps(signal).encode())


@pytest.mark.parametrize("expression", ["(" * 5_000, "a{99999999999999999999}", "(?a)(?u)x", "[", "[[a]]", "[a--b]"])
def test_what_is_no_expression_is_told_and_ends_nothing(expression: str) -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        parsed("shop.orders", expression)


@pytest.mark.parametrize("expression", ["(a*)*b", "(x|x)+y", "a?" * 9, "(a|a)" * 9, "(a){30}", ".*" * 5])
def test_what_might_never_be_done_is_not_begun(expression: str) -> None:
    with pytest.raises(ValueError, match="might never be done"):
        parsed(expression)


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        (r"shop\.orders", {"shop.orders"}),
        ("shop.orders", {"shop.orders"}),
        (r"SHOP\..*", {"shop.orders", "shop.items"}),
        (r"(shop|eu)\.(orders|items)", {"shop.orders", "shop.items", "eu.items"}),
        (r"[a-z*+({]+\.i.+?s", {"shop.items", "eu.items"}),
    ],
)
def test_usual_expressions_mean_what_they_say(expression: str, meant: set[str]) -> None:
    signal = parsed(expression)
    tables = [TableName("shop", "orders"), TableName("shop", "items"), TableName("eu", "items")]
    assert {str(table) for table in tables if signal.wish(1, table)} == meant


def test_the_longest_names_are_compared_at_once() -> None:
    before = time.process_time()
    assert parsed(".*.*.*.*x").wish(1, TableName("k" * 48, "y" * 192)) is None
    assert time.process_time() - before < 10


def conditions(**data: object) -> tuple[tuple[str, str], ...]:
    signal = {"id": "s", "type": "execute-snapshot", "data": {"data-collections": ["ks.t", "ks.u"], **data}}
    return parse_signal(json.dumps(signal).encode()).filters


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (" v = 'a' ", "v = 'a'"),
        ("v = 'a' ALLOW FILTERING;", "v = 'a'"),
        ("v = 'a' allow  filtering", "v = 'a'"),
        ("selected = 1", "selected = 1"),
        ("v = 'no filtering", "v = 'no filtering"),
        ("v = 'no LIMIT' AND \"limit\" = $$ 'group by $$", "v = 'no LIMIT' AND \"limit\" = $$ 'group by $$"),
    ],
)
def test_a_filter_is_a_condition(text: str, meant: str) -> None:
    assert conditions(**{"additional-conditions": [{"data-collection": "ks.u", "filter": text}]}) == (("ks.u", meant),)
    assert conditions(**{"additional-condition": text}) == (("ks.t", meant), ("ks.u", meant))


@pytest.mark.parametrize("text", ["", "  ", ";", " ALLOW FILTERING "])
def test_a_filter_that_says_nothing_is_none(text: str) -> None:
    assert conditions(**{"additional-conditions": [{"data-collection": "ks.u", "filter": text}]}) == ()


@pytest.mark.parametrize("kind", ["incremental", "INCREMENTAL", "blocking", "BLOCKING"])
def test_a_blocking_snapshot_is_as_any_other(kind: str) -> None:
    assert conditions(type=kind) == conditions()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"type": "initial"}, "'initial' is none of incremental and blocking"),
        ({"data-collections": "ks.t"}, "no list"),
        ({"additional-condition": "SELECT * FROM ks.t WHERE v = 1"}, "no statement"),
        ({"additional-condition": "v = 1 LIMIT 10"}, "LIMIT would leave out rows"),
        ({"additional-condition": "v = 'a''b' per partition limit 1 ALLOW FILTERING"}, "LIMIT would leave out rows"),
        ({"additional-condition": "v = 1 group  by id"}, "GROUP  BY would"),
        ({"additional-conditions": [{"filter": "v = 1"}]}, "not a signal: KeyError"),
    ],
)
def test_what_would_be_misunderstood_is_refused(data: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        conditions(**data)


class _Wishes:
    """A planner that notes what is wanted."""

    def __init__(self) -> None:
        self.wanted: list[tuple[str, int]] = []
        self.topics: list[str] = []

    def hear_from(self, number: int, topic: str | None = None) -> None:
        if topic is not None:
            self.topics.append(topic)

    def wish(self, table: TableName, wish: Wish) -> None:
        self.wanted.append((table.name, wish.number))

    def snapshot_events(self) -> list[Event]:
        return []


def test_tables_that_come_later_hear_what_was_said_before() -> None:
    """A table that was not there yet when the worker started, and one that came back: nothing is said twice to those
    that have heard it."""
    configuration = loaded(connector={"signal.enabled.channels": "kafka", "signal.kafka.topic": "signals"})
    signals, planner = Signals(configuration, kafka_clients(configuration), Background()), _Wishes()
    signals._topic.end = 2
    one, other = TableName("shop", "one"), TableName("shop", "other")
    signals._hear(0, b"shop", Signal("a", "start", ("shop.one",)).record())
    signals._hear(1, b"shop", Signal("b", "pause").record())
    signals.take(planner, [])
    assert planner.wanted == []
    signals.take(planner, [one])
    assert planner.wanted == [("one", 0), ("one", 1)]
    signals.take(planner, [one, other])
    assert planner.wanted[2:] == [("other", 1)]
    signals._hear(2, b"shop", Signal("c", "resume").record())
    signals.take(planner, [one])
    assert planner.wanted[3:] == [("one", 2)]
    signals.take(planner, [one, other])
    assert planner.wanted[4:] == [("other", 1), ("other", 2)]


def test_a_topic_that_is_read_once_more_says_nothing_new(caplog: pytest.LogCaptureFixture) -> None:
    """As it is where its broker was away for a moment."""
    configuration = loaded(connector={"signal.enabled.channels": "kafka", "signal.kafka.topic": "signals"})
    signals, planner = Signals(configuration, kafka_clients(configuration), Background()), _Wishes()
    signals._topic.end = 0
    for _ in range(2):
        signals._hear(0, b"shop", Signal("a", "start", ("shop.one",)).record())
        signals._hear(1, b"shop", b"nonsense")
        signals._hear(2, b"shop", Signal("b", "pause").record())
    signals.take(planner, [TableName("shop", "one")])
    assert planner.wanted == [("one", 0), ("one", 2)]
    assert len(caplog.messages) == 1


@pytest.mark.kafka
def test_signals_of_a_topic_that_was_deleted_and_created_again_are_heard(
    kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    """Their numbers are those of signals that were heard before."""
    name, table = unique("signals"), TableName("shop", "one")
    told = {"signal.enabled.channels": "kafka", "signal.kafka.topic": name}
    configuration = loaded(connector=told, worker={"bootstrap.servers": kafka.bootstrap_servers})
    clients = kafka_clients(configuration)
    signals, planner = Signals(configuration, clients, Background()), _Wishes()

    def say(id_: str) -> None:
        topic = SmallTopic(clients, signals_spec(configuration), configuration.group)
        topic.write(b"shop", Signal(id_, "start", (r"shop\.one",)).record())

    def heard(*wanted: int) -> bool:
        signals.take(planner, [table])
        return [number for _, number in planner.wanted] == [*wanted]

    signals.start()
    try:
        for id_ in "ab":
            say(id_)
        until(lambda: heard(0, 1), what="the first signals")
        admin = clients.admin()
        admin.delete_topics([name])[name].result(60)
        until(lambda: name not in admin.list_topics(timeout=60).topics, what="the end of the topic")
        say("c")
        until(lambda: heard(0, 1, 0), 120, lambda: f"what was said behind it, not {planner.wanted}")
        say("d")
        until(lambda: heard(0, 1, 0, 1), what="the next one")
    finally:
        signals.stop()
    assert len(planner.topics) == len(set(planner.topics)) == 2
    assert {topic.partition("/")[0] for topic in planner.topics} == {name}
