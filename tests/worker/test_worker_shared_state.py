"""What one process is asked, all of the group hear, and the next one remembers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connector.config import Configuration
from connector.delivery import KafkaClients, ReportingProducer, small_topic
from connector.errors import FatalDeliveryError, RetriableDeliveryError
from connector.worker import shared_state
from connector.worker.holding import Target
from connector.worker.settings import kafka_clients
from connector.worker.shared_state import Event, SharedState
from tests.config.files import loaded
from tests.servers.patience import until


class Process:
    """Hears what is wished."""

    def __init__(self, configuration: Configuration, error: Exception | None = None) -> None:
        """``error``: what its reader meets first."""
        self.configuration = configuration
        self.heard: list[tuple[str, Target]] = []
        self.defined: list[tuple[str, dict[str, str] | None]] = []
        self.told: list[tuple[str, Event, Mapping[str, Any]]] = []
        #: Of them all, in order: the name, and what was asked.
        self.asked: list[tuple[str, Any]] = []
        self.state = SharedState(configuration)
        self.over = None if error is None else self._cut_off(error)[0]
        self.state.start(self._directed, self._defined, lambda *what: self.told.append(what))

    def knows(self) -> None:
        """What was asked before. While a broker is slow to answer, whoever waits is told so now and then."""
        until(lambda: self.state.wait(threading.Event()) is None, what="what was asked before")

    def _directed(self, connector: str, target: Target) -> None:
        self.heard.append((connector, target))
        self.asked.append((connector, target))

    def _defined(self, connector: str, config: dict[str, str] | None) -> None:
        self.defined.append((connector, config))
        self.asked.append((connector, config))

    def fail(self) -> threading.Event:
        """Its reader is cut off until the event that is returned is set, and has to begin again."""
        over, failed = self._cut_off(RetriableDeliveryError("the broker is away"))
        until(failed.is_set, what="its reader to fail")
        return over

    def _cut_off(self, error: Exception) -> tuple[threading.Event, threading.Event]:
        topic: Any = self.state._topic
        polled, over, failed = topic._polled, threading.Event(), threading.Event()

        def poll(seconds: float) -> Any:
            if not over.is_set():
                failed.set()
                raise error
            return polled(seconds)

        topic._polled = poll
        return over, failed


@pytest.fixture
def process(kafka: Any, unique: Any) -> Iterator[Any]:
    topic, made = unique("configs"), list[Process]()

    def start(error: Exception | None = None, **worker: str) -> Process:
        given = {"bootstrap.servers": kafka.bootstrap_servers, "config.storage.topic": topic, **worker}
        given |= {"config.storage.replication.factor": "1"}
        made.append(Process(loaded(worker=given), error))
        return made[-1]

    yield start
    for each in made:
        each.state.stop()
    # What still runs would take the simulated clock of a later test for its own.
    until(lambda: all(thread.name != "shared state" for thread in threading.enumerate()), what="the end of its threads")


def test_a_wish_is_heard_by_all_and_remembered(process: Any) -> None:
    one, other = process(), process()
    one.knows()  # a topic that is missing holds nothing
    one.state.wish("shop", Target.PAUSED)
    assert one.heard == [("shop", Target.PAUSED)]
    until(lambda: other.heard == [("shop", Target.PAUSED)], what="the other process to hear it")
    other.state.wish("shop", Target.STOPPED)
    later = process()
    later.knows()
    assert later.state.target("shop") is Target.STOPPED and later.heard[-1] == ("shop", Target.STOPPED)
    assert later.state.target("other") is Target.RUNNING


def test_a_process_that_was_refused_goes_on_by_another_login(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_topic, "CALL_SECONDS", 1.0)
    monkeypatch.setattr(small_topic, "ASK_SECONDS", float("inf"))
    one, other = process(), process()
    for each in (one, other):
        each.knows()
    one.state.define("shop", {"name": "shop"})
    until(lambda: other.defined, what="the other process to hear it")
    one.state.wish("shop", Target.PAUSED)
    until(lambda: other.heard, what="the other process to hear it")
    clients, right = other.state._clients, kafka_clients(other.configuration)
    clients.renew(KafkaClients({"bootstrap.servers": "127.0.0.1:1"}))
    until(lambda: other.state.error is not None, what="it to be cut off")
    one.state.wish("till", Target.STOPPED)
    clients.renew(right)
    until(lambda: other.heard[1:], what="what was asked meanwhile")
    other.state.wish("till", Target.RUNNING)
    shop = ("shop", {"name": "shop"}), ("shop", Target.PAUSED)
    assert other.asked == [*shop, ("till", Target.STOPPED), ("till", Target.RUNNING)], "nothing is obeyed twice"
    until(lambda: one.asked == other.asked, what="the answer")


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
        each.knows()
    for _ in range(2):
        one.state.tell("shop", "restart", {"itself": True})
    assert [(name, event, content["itself"]) for name, event, content in one.told] == [("shop", "restart", True)] * 2
    until(lambda: len(other.told) == 2, what="the other process to hear it twice")
    later = process()
    later.knows()
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
    later.knows()
    assert later.defined[-1:] in ([], [("shop", None)]) and later.state.target("shop") is Target.RUNNING


def test_who_wishes_is_told_when_it_is_done(process: Any) -> None:
    one = process()
    told_before: list[bool] = []
    returned = threading.Event()
    one.state._defined = lambda connector, config: told_before.append(returned.is_set())
    one.state.define("shop", {"name": "shop"})
    returned.set()
    assert told_before == [False]


def test_what_is_read_once_more_is_obeyed_by_nobody(process: Any) -> None:
    one = process()
    one.knows()
    for config in ({"name": "shop", "v": "1"}, {"name": "shop", "v": "2"}):
        one.state.define("shop", config)
    one.state.wish("shop", Target.PAUSED)
    one.state.wish("shop", Target.RUNNING)
    one.state.define("gone", {"name": "gone"})
    one.state.define("gone", None)
    one.state.tell("shop", "restart", {})
    asked, told = list(one.asked), list(one.told)
    one.fail().set()
    one.state.wish("other", Target.STOPPED)
    assert one.asked == [*asked, ("other", Target.STOPPED)] and one.told == told


def test_who_comes_to_it_late_obeys_the_last_word_alone(process: Any) -> None:
    one, other = process(), process()
    one.knows()
    one.state.define("shop", {"name": "shop", "v": "1"})
    over = one.fail()
    for version in "23":
        other.state.define("shop", {"name": "shop", "v": version})
        other.state.define("gone", {"name": "gone", "v": version})
    for target in (Target.STOPPED, Target.RUNNING, Target.PAUSED):
        other.state.wish("shop", target)
    other.state.define("gone", None)
    other.state.tell("shop", "restart", {})
    over.set()
    until(lambda: one.told, what="that the broker is back")
    last = [("shop", Target.PAUSED), ("shop", {"name": "shop", "v": "3"})]
    assert [each for each in one.asked[1:] if each[0] == "shop"] == last, "nothing runs that is to be paused"
    assert [each for each in one.asked if each[0] == "gone"] == [("gone", None)]
    later = process()
    later.knows()
    assert [each for each in later.asked if each[0] == "shop"] == last and not later.told


def test_what_nobody_was_allowed_to_read_was_said_long_ago(process: Any) -> None:
    one = process()
    one.state.tell("shop", "restart", {})
    one.state.wish("shop", Target.PAUSED)
    later = process(FatalDeliveryError("no rights"))
    until(lambda: later.state.wait(threading.Event(), 0.0) is None, what="its start without")
    later.over.set()
    until(lambda: later.heard == [("shop", Target.PAUSED)], what="what was asked")
    later.state.wish("other", Target.PAUSED)
    assert not later.told


def test_a_connector_is_deleted_before_what_it_was_to_do_is(process: Any) -> None:
    one = process()
    one.state.define("shop", {"name": "shop"})
    one.state.wish("shop", Target.STOPPED)
    one.state.define("shop", None)
    assert one.asked[1:3] == [("shop", Target.STOPPED), ("shop", None)], "it must not run in between"
    assert one.state.target("shop") is Target.RUNNING


def test_nobody_defines_a_connector_without_a_name(process: Any) -> None:
    one = process()
    one.state.define("", {"name": ""})
    one.state.wish("", Target.PAUSED)
    assert one.asked == [] and one.defined == []


def test_of_two_who_ask_at_once_both_are_heard(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_state, "HEAR_SECONDS", 600.0)
    one = process()
    one.knows()
    one.state.define("shop", {"name": "shop"})
    over, ended = one.fail(), list[str]()
    written, write = list[int](), one.state._topic.write

    def noted(key: bytes, value: bytes | None) -> int:
        written.append(write(key, value))
        return written[-1]

    one.state._topic.write = noted

    def ask(version: str) -> None:
        one.state.define("shop", {"name": "shop", "v": version})
        ended.append(version)

    asking = [threading.Thread(target=ask, args=(version,)) for version in "12"]
    for thread in asking:
        thread.start()
    until(lambda: len(written) == 2, what="both to be written")
    over.set()
    for thread in asking:
        thread.join(90)
    assert sorted(ended) == ["1", "2"] and len(one.defined) == 2


def delete(process: Process) -> None:
    """Its topic, as operators do it by mistake."""
    admin = kafka_clients(process.configuration).admin()
    name = process.configuration.worker.configs.name
    admin.delete_topics([name])[name].result(60)


def has_made_good(process: Process) -> bool:
    return bool(process.state._renewals) and not process.state._lost


def test_what_is_asked_after_the_topic_was_deleted_is_obeyed_and_what_was_asked_before_is_not_lost(
    process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_topic, "ASK_SECONDS", 0.5)
    one, other = process(), process()
    for each in (one, other):
        each.knows()
    for version in "12":
        one.state.define("shop", {"name": "shop", "v": version})
    one.state.wish("shop", Target.PAUSED)
    # What comes together is heard in an order of its own, and only the last word of each kind.
    last = (("shop", {"name": "shop", "v": "2"}), ("shop", Target.PAUSED))
    until(lambda: all(word in other.asked for word in last), what="the other process to hear it")
    before = [list(each.asked) for each in (one, other)]
    delete(one)
    one.state.wish("till", Target.PAUSED)
    assert one.heard[-1] == ("till", Target.PAUSED), "in the process that was asked it is done by then"
    until(lambda: other.heard[-1] == ("till", Target.PAUSED), what="the other process to hear it")
    until(lambda: all(map(has_made_good, (one, other))), what="the rest to be written")
    for each, heard in zip((one, other), before, strict=True):
        assert [word for word in each.asked if word[0] == "shop"] == heard, "of shop nothing was asked since"
    later = process()
    later.knows()
    assert later.defined == [("shop", {"name": "shop", "v": "2"})]
    assert sorted(later.heard) == [("shop", Target.PAUSED), ("till", Target.PAUSED)]


def test_of_a_topic_that_was_deleted_the_next_one_says_the_same(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_topic, "ASK_SECONDS", 0.5)
    one = process()
    one.state.define("shop", {"name": "shop"})
    delete(one)
    until(lambda: has_made_good(one), what="another one, though nobody asks for anything")
    later = process()
    later.knows()
    assert later.defined == [("shop", {"name": "shop"})] and len(one.defined) == 1
