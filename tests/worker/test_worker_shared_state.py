"""What one process is asked, all of the group hear, and the next one remembers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connector.config import Configuration
from connector.delivery import ReportingProducer
from connector.worker.holding import Target
from connector.worker.settings import kafka_clients
from connector.worker.shared_state import Event, SharedState
from tests.config.files import loaded
from tests.servers.patience import until


class Process:
    """Hears what is wished."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.heard: list[tuple[str, Target]] = []
        self.defined: list[tuple[str, dict[str, str] | None]] = []
        self.told: list[tuple[str, Event, Mapping[str, Any]]] = []
        self.state = SharedState(configuration)
        self.state.start(
            lambda *wish: self.heard.append(wish),
            lambda *definition: self.defined.append(definition),
            lambda *what: self.told.append(what),
        )


@pytest.fixture
def process(kafka: Any, unique: Any) -> Iterator[Any]:
    topic, made = unique("configs"), list[Process]()

    def start(**worker: str) -> Process:
        given = {"bootstrap.servers": kafka.bootstrap_servers, "config.storage.topic": topic, **worker}
        given |= {"config.storage.replication.factor": "1"}
        made.append(Process(loaded(worker=given)))
        return made[-1]

    yield start
    for each in made:
        each.state.stop()


def test_a_wish_is_heard_by_all_and_remembered(process: Any) -> None:
    one, other = process(), process()
    assert one.state.wait(threading.Event()) is None, "a topic that is missing holds nothing"
    one.state.wish("shop", Target.PAUSED)
    assert one.heard == [("shop", Target.PAUSED)]
    until(lambda: other.heard == [("shop", Target.PAUSED)], what="the other process to hear it")
    other.state.wish("shop", Target.STOPPED)
    later = process()
    assert later.state.wait(threading.Event()) is None
    assert later.state.target("shop") is Target.STOPPED and later.heard[-1] == ("shop", Target.STOPPED)
    assert later.state.target("other") is Target.RUNNING


def test_what_others_write_to_the_topic_is_not_ours(process: Any) -> None:
    one = process()
    one.state.wish("shop", Target.PAUSED)
    stranger = process(**{"group.id": "others"})
    stranger.state.wish("shop", Target.STOPPED)
    producer = ReportingProducer(kafka_clients(stranger.configuration))
    for key in (b"connector-shop", b'["shop"]', b"\xff", b'["shop",{"group":"workers","wish":"target"}]'):
        producer.produce_to(stranger.configuration.worker.configs.name, 0, key, b'{"target":"NAPPING"}')
    producer.flush(float("inf"))
    producer.close()
    one.state.wish("other", Target.STOPPED)
    assert one.heard == [("shop", Target.PAUSED), ("other", Target.STOPPED)]


def test_what_is_to_happen_once_is_heard_by_those_who_run(process: Any) -> None:
    one, other = process(), process()
    for each in (one, other):
        assert each.state.wait(threading.Event()) is None
    for _ in range(2):
        one.state.tell("shop", "restart", {"itself": True})
    assert [(name, event, content["itself"]) for name, event, content in one.told] == [("shop", "restart", True)] * 2
    until(lambda: len(other.told) == 2, what="the other process to hear it twice")
    later = process()
    assert later.state.wait(threading.Event()) is None
    later.state.tell("shop", "forget topics", {})
    assert [event for _, event, _ in later.told] == ["forget topics"]


def test_a_definition_goes_with_what_was_asked_of_it(process: Any) -> None:
    one = process()
    one.state.wish("shop", Target.STOPPED)
    one.state.define("shop", {"name": "shop"})
    assert one.defined == [("shop", {"name": "shop"})]
    one.state.define("shop", None)
    assert one.defined[1:] == [("shop", None)] and one.state.target("shop") is Target.RUNNING
    later = process()
    assert later.state.wait(threading.Event()) is None
    assert later.defined[-1:] in ([], [("shop", None)]) and later.state.target("shop") is Target.RUNNING


def test_who_wishes_is_told_when_it_is_done(process: Any) -> None:
    one = process()
    told_before: list[bool] = []
    one.state._defined = lambda connector, config: told_before.append(("shop", "config") in one.state._heard)
    one.state.define("shop", {"name": "shop"})
    assert told_before == [False]
