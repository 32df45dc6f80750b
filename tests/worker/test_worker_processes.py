"""Several processes of one group: whichever is asked answers for all, and what is asked of one reaches the others."""

from __future__ import annotations

import itertools
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from pydantic import TypeAdapter

from connector.delivery import KafkaClients, ensure_topics
from connector.rest import ConnectorView, ConnectState, Instance
from connector.worker import processes
from connector.worker.log_levels import levels, set_level
from connector.worker.processes import Process, Processes, Task, as_known_here, process_id, tasks_of, together
from connector.worker.reports import status_report
from connector.worker.settings import kafka_clients, status_spec
from connector.worker.signs_of_life import SignsOfLife
from connector.worker.state import State
from embedded import ports
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.rest.cases import Case, ask
from tests.servers.patience import until
from tests.worker.harness import Service, exactly_once


def view(worker: str, *states: ConnectState, name: str = "shop") -> ConnectorView:
    instance, *tasks = (Instance(state, worker, "0.1.0") for state in states)
    return ConnectorView(name, {"name": name}, instance, tuple(tasks), (f"topic of {worker}",))


ONE = Process("one", 1, 5, (view("a:1", "RUNNING", "RUNNING", "FAILED"), view("a:1", "RUNNING", name="more")))
OTHER = Process("other", 2, 5, (view("b:1", "FAILED", "RUNNING"), view("b:1", "RUNNING", name="own")))


def test_all_processes_together_are_the_same_whoever_is_asked() -> None:
    shop, more, own = together([ONE, OTHER])
    assert together([OTHER, ONE]) == [shop, more, own]
    assert (more.name, own.name) == ("more", "own")
    assert [task.worker_id for task in shop.tasks] == ["a:1", "a:1", "b:1"]
    assert (shop.instance.state, shop.instance.worker_id) == ("FAILED", "b:1"), "the worst is what is to be looked at"
    assert shop.topics == ("topic of a:1", "topic of b:1")


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        (("UNASSIGNED", "RUNNING"), "RUNNING"),
        (("RESTARTING", "RUNNING"), "RUNNING"),
        (("UNASSIGNED", "PAUSED"), "PAUSED"),
        (("RUNNING", "STOPPED"), "STOPPED"),
        (("STOPPED", "FAILED"), "FAILED"),
    ],
)
def test_one_that_runs_somewhere_runs_though_another_process_still_waits_for_servers(
    states: tuple[ConnectState, ConnectState], whole: ConnectState
) -> None:
    known = [Process(state, 1, 5, (view(f"{state}:1", state),)) for state in states]
    for each in (known, known[::-1]):
        [shop] = together(each)
        assert (shop.instance.state, shop.instance.worker_id) == (whole, f"{whole}:1")


def test_what_was_asked_of_a_process_is_told_by_it_while_others_have_not_heard() -> None:
    views = together([ONE, OTHER])
    assert [view.name for view in as_known_here(views, (), {"shop"})] == ["more", "own"]
    stopped = replace(view("b:1", "STOPPED"), config={"name": "shop", "new": "1"})
    shop = as_known_here(views, [stopped], ())[0]
    assert (shop.instance.state, shop.tasks, shop.config) == ("STOPPED", (), {"name": "shop", "new": "1"})
    running = view("b:1", "RUNNING", "RUNNING")
    held = together([Process("one", 1, 5, (view("a:1", "STOPPED"),)), Process("other", 2, 5, (running,))])
    resumed = as_known_here(held, [running], ())[0]
    assert (resumed.instance.state, [task.worker_id for task in resumed.tasks]) == ("RUNNING", ["b:1"])
    assert as_known_here(views, [view("b:1", "RUNNING")], ())[0].instance.state == "FAILED", "that is no wish"


def test_machines_of_one_name_are_not_taken_for_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each would pass over what the other says, as its own."""
    started = process_id("127.0.0.1:8083")
    assert process_id("127.0.0.1:8083") == started, "the next one here takes its place"
    (boot := tmp_path / "boot_id").write_text("00000000-731c-446e-88dd-f9379ff53d04\n")
    monkeypatch.setattr(processes, "_BOOT", boot)
    there = process_id("127.0.0.1:8083")
    assert there != started and there.endswith("127.0.0.1:8083 (00000000)")
    boot.unlink()
    assert process_id("127.0.0.1:8083") == f"{socket.gethostname()} 127.0.0.1:8083"


def test_first_processes_of_containers_are_not_taken_for_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a port, and with the host's network and name."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    seen = set[str]()
    for namespace in ("pid:[4026531836]", "pid:[4026532001]"):
        (pids := tmp_path / namespace).symlink_to(namespace)
        monkeypatch.setattr(processes, "_PIDS", pids)
        seen.add(process_id(""))
    assert len(seen) == 2 and all(" pid 1 in pid:[402653" in each for each in seen)
    monkeypatch.setattr(processes, "_PIDS", tmp_path / "none")
    assert f"{socket.gethostname()} pid 1" in process_id("")


def test_a_task_is_found_in_its_process() -> None:
    assert tasks_of([OTHER, ONE], "shop") == [Task("one", 0), Task("one", 1), Task("other", 0)]


@pytest.fixture
def family() -> Iterator[str]:
    yield "a.family.of.loggers"
    set_level("a.family.of.loggers", logging.NOTSET)


def test_a_level_is_that_of_all_below(family: str) -> None:
    child = logging.getLogger(f"{family}.child")
    child.setLevel(logging.CRITICAL)
    assert set_level(family, logging.DEBUG) == [family, child.name]
    assert (child.getEffectiveLevel(), levels()[child.name][0]) == (logging.DEBUG, logging.DEBUG)
    assert levels()[child.name][1] is not None and levels()["root"][0] == logging.getLogger().level
    assert set_level(family, logging.DEBUG) == [], "nothing has changed"


@pytest.mark.kafka
def test_an_end_is_said_when_it_begins(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    """Not when the workers have ended: with a broker that is away both would be waited for, one after the other."""
    given = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": unique("g"), "status.storage.topic": unique("s")}
    worker = loaded(worker={**given, "status.storage.replication.factor": "1"})
    ensure_topics(kafka_clients(worker).admin(), [status_spec(worker)])
    one, other = Processes(worker, "one"), Processes(worker, "other")
    staying, ending = threading.Event(), threading.Event()
    try:
        one.start(lambda: [view("a:1", "RUNNING")], staying)
        other.start(lambda: [view("b:1", "RUNNING")], ending)
        until(lambda: {process.id for process in one.present()} == {"one", "other"}, 60, "each other")
        ending.set()
        until(lambda: {process.id for process in one.present()} == {"one"}, 60, "the other's end")
    finally:
        one.stop()
        other.stop()


class Said:
    """A client that is given words, and says nothing of them."""

    def __init__(self, clients: KafkaClients) -> None:
        self.address, self.words, self.closed = clients.address, 0, False

    def poll(self) -> None: ...

    def is_stuck(self) -> bool:
        return False

    def produce_to(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        self.words += 1

    def close(self) -> None:
        self.closed = True


def test_what_a_process_says_is_said_again_at_once_by_another_login(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Said]()

    def making(clients: KafkaClients) -> Said:
        made.append(Said(clients))
        return made[-1]

    monkeypatch.setattr(processes, "words_producer", making)
    clients = KafkaClients({"bootstrap.servers": "one:1"})
    announcer = processes._Announcer(clients, "status", b"key")
    for _ in range(3):
        announcer.say(ONE)
    assert [(each.address, each.words) for each in made] == [("one:1", 1)]
    clients.renew(KafkaClients({"bootstrap.servers": "other:1"}))
    for _ in range(3):
        announcer.say(ONE)
    assert [(each.address, each.words, each.closed) for each in made] == [("one:1", 1, True), ("other:1", 1, False)]


@pytest.mark.kafka
def test_what_ails_a_connector_is_told_where_no_worker_has_ever_been(
    kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    """Workers make the topic, and a connector that servers object to, or that was to stand still at first, has none."""
    given = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": unique("g"), "status.storage.topic": unique("s")}
    configuration = loaded(
        {"name": "shop", "offset.storage.topic": unique("o")}, {**given, "status.storage.replication.factor": "1"}
    )
    failed = replace(view("a:1", "FAILED"), instance=Instance("FAILED", "a:1", "0.1.0", "table ks.t does not exist"))
    one, other, stop = Processes(configuration, "one"), Processes(configuration, "other"), threading.Event()
    try:
        other.start(lambda: (), stop)
        one.start(lambda: [failed], stop)
        until(lambda: [process.id for process in other.others()] == ["one"], 60, "each other")
        report = status_report(configuration)
        assert (report.state, report.given_up) == (State.FAILED, "table ks.t does not exist")
    finally:
        one.stop()
        other.stop()


@pytest.mark.kafka
def test_what_was_said_once_and_is_read_once_more_is_no_sign_of_life(
    kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    given = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "status.storage.topic": unique("s")}
    worker = loaded(worker={**given, "status.storage.replication.factor": "1", "status.storage.partitions": "1"})
    gone = Processes(worker, "gone")
    now, said = round(time.time() * 1000), list[bytes]()
    for connectors, at in (((view("b:1", "RUNNING"),), now - 2_000), ((view("b:1", "FAILED"),), now - 1_000)):
        word = TypeAdapter(Process).dump_json(Process("gone", 1, at, connectors))
        gone._topic.write(gone._key("gone"), word)
        said.append(word)
    one, heard, stop = Processes(worker, "one"), list[bytes](), threading.Event()
    hear = one._hear

    def noted(key: bytes, value: bytes) -> None:
        hear(key, value)
        if json.loads(key)[1]["process"] == "gone":
            heard.append(value)

    one._hear = noted  # type: ignore[method-assign, assignment]
    try:
        one.start(lambda: (), stop)
        until(lambda: heard, what="its last word")
        assert heard == [said[-1]], "and not what it had replaced"
        known = one._others["gone"]
        one._topic.reading = False
        until(lambda: len(heard) > 1, what="that it is read once more")
        assert one._others["gone"] is known, "it was heard no later for that"
    finally:
        one.stop()


@pytest.mark.kafka
def test_a_process_of_many_connectors_is_heard(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    """A thousand of them are more than brokers and clients let pass, unless they are told otherwise."""
    given = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": unique("g"), "status.storage.topic": unique("s")}
    worker = loaded(worker={**given, "status.storage.replication.factor": "1"})
    ensure_topics(kafka_clients(worker).admin(), [status_spec(worker)])
    many = [replace(view("a:1", "RUNNING", name=f"c{at}"), config={"name": "x" * 2_000}) for at in range(1_000)]
    one, other, stop = Processes(worker, "one"), Processes(worker, "other"), threading.Event()
    try:
        one.start(lambda: many, stop)
        other.start(lambda: (), stop)
        until(lambda: [len(process.connectors) for process in other.others()] == [1_000], 60, "all of them")
    finally:
        one.stop()
        other.stop()


def test_who_says_something_new_is_there_whatever_time_it_is_where_he_is() -> None:
    """An hour behind: what he said first may be old, what he says next is not."""
    worker = loaded(worker={"group.id": "g"})
    one, behind = Processes(worker, "one"), round(time.time() * 1000) - 3_600_000
    key = one._key("other")

    def said(at: int) -> None:
        one._hear(key, TypeAdapter(Process).dump_json(Process("other", 1, at, (view("b:1", "RUNNING"),))))

    for _ in range(2):
        said(behind)
        assert one.others() == [], "a topic that is read once more says so, too"
    said(behind + 3_000)
    assert [process.id for process in one.others()] == ["other"]
    one._hear(key, None)
    assert one.others() == []


def test_who_is_not_heard_while_kafka_is_away_is_not_taken_for_gone() -> None:
    """One that asks meanwhile would be told that the connectors of other processes do not exist."""
    worker, clock = loaded(worker={"group.id": "g"}), itertools.count(step=2)
    now = [0.0]
    one = Processes(worker, "one", lambda: now[0])

    def pass_by(seconds: float, *heard: str) -> list[str]:
        """Who is there after that, if these are heard all the time."""
        for _ in range(round(seconds)):
            now[0] += 1.0
            for name in heard:
                word = Process(name, 1, round(time.time() * 1000) + next(clock), (view("b:1", "RUNNING"),))
                one._hear(one._key(name), TypeAdapter(Process).dump_json(word))
        return [process.id for process in one.others()]

    assert pass_by(5, "gone", "other") == ["gone", "other"], "also before our own word has come back"
    assert pass_by(12, "other", "one") == ["other"], "who is silent while we hear ourselves is gone"
    assert pass_by(600) == ["other"], "nobody is heard"
    assert pass_by(8, "one") == ["other"], "Kafka is there again"
    assert pass_by(8, "one") == [], "and he is not"


def test_one_that_hangs_is_there_as_long_as_its_workers_go_on(caplog: pytest.LogCaptureFixture) -> None:
    """They deliver, whatever is asked of their connector meanwhile: that is obeyed when it hears again."""
    worker, now, reported, looks = loaded(worker={"group.id": "g"}), [0.0], dict[str, float](), list[float]()

    def ages(_: object, names: Collection[str]) -> dict[str, int]:
        looks.append(now[0])
        return {name: round(1000 * (now[0] - at)) for name, at in reported.items() if name in names}

    one = Processes(worker, "one", lambda: now[0])
    one._signs = SignsOfLife(worker, lambda: now[0], ages)

    def other(at: int, *workers: str) -> None:
        word = Process("other", 1, round(time.time() * 1000) + at, (view("b:1", "RUNNING", "RUNNING"),), workers)
        one._hear(one._key("other"), TypeAdapter(Process).dump_json(word))

    def pass_by(seconds: int, *going: str) -> int:
        """For how many of them it was there."""
        there = 0
        for _ in range(seconds):
            now[0] += 1.0
            one._hear_ourselves()
            reported.update(dict.fromkeys(going, now[0]))
            one._look_for_those_that_hang()
            if one._signs._look is not None:
                wait([one._signs._look], 60)
            there += bool(one.others())
        return there

    other(0, "shop-w")
    assert pass_by(60, "shop-w", "shop-of-somebody-else") == 60
    hung = "process other says nothing any more, hears of nothing, and its workers go on"
    assert one.hanging()["shop"].startswith(hung) and caplog.text.count(hung) == 1
    other(1, "shop-w")
    looks.clear()
    assert pass_by(5, "shop-w") == 5 and not one.hanging() and not looks, "it hears again"
    assert pass_by(60, "shop-w") == 60 and one.hanging()
    assert pass_by(60) in (9, 10) and not one.hanging(), "all of it has ended"
    looks.clear()
    assert pass_by(60) == 0 and not looks, "nobody looks for it for ever"
    other(2)
    assert pass_by(60, "shop-w") == 9, "of a version that does not tell its workers"


def states(url: str, name: str) -> list[tuple[str, str]]:
    status = json.loads(ask(url, Case("GET", f"/connectors/{name}/status")).body)
    return [(task["worker_id"], task["state"]) for task in status.get("tasks", ())]


@pytest.mark.kafka
@pytest.mark.scylla
@pytest.mark.any_scylla
def test_each_process_answers_for_all_and_passes_on_what_is_asked(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str]
) -> None:
    table = make_table(tablets=True)
    connector = service([table], connector={"tasks.max": "1"})
    definition = json.loads(connector.config_file.read_text())
    port, other_port = ports.free_port(), ports.free_port()
    one, other = (f"http://127.0.0.1:{each}" for each in (port, other_port))
    path = f"/connectors/{connector.name}"

    def seen(url: str) -> Any:
        return states(url, connector.name)

    connector.start("--http-port", str(port), "--writable")
    run = connector.start("--http-port", str(other_port), files=False)
    until(lambda: connector.log.count("REST API on") == 2, 120, "both ports")
    both = [(f"127.0.0.1:{each}", "RUNNING") for each in (port, other_port)]
    for each in (one, other):
        until(lambda each=each: sorted(seen(each)) == sorted(both), 120, f"both tasks, at {each}")
    until(lambda: seen(one) == seen(other), 60, "the same of both")
    assert len(json.loads(ask(one, Case("GET", f"{path}/tasks")).body)) == 2

    session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES (1, 1, 'v')")
    assert exactly_once(connector, session, table) == 1
    until(lambda: ask(one, Case("GET", f"{path}/topics")).body == ask(other, Case("GET", f"{path}/topics")).body != "")
    until(lambda: connector.topic(table) in ask(one, Case("GET", f"{path}/topics")).body, 60, "the topic")
    assert ask(other, Case("PUT", f"{path}/topics/reset")).status == 202
    until(lambda: connector.topic(table) not in ask(one, Case("GET", f"{path}/topics")).body, 60, "no topic")

    # The second task is another process's, whoever is asked.
    workers = connector.workers(run)
    number = [worker for worker, _ in seen(one)].index(f"127.0.0.1:{other_port}")
    assert ask(one, Case("POST", f"{path}/tasks/{number}/restart")).status == 204
    until(lambda: not set(workers) & set(connector.workers(run)), 120, "another worker in the other process")
    until(lambda: sorted(seen(one)) == sorted(both), 120, "both to run again")

    level = Case("PUT", "/admin/loggers/connector.worker.tried?scope=cluster", {"level": "ERROR"})
    assert ask(one, level).status == 204
    until(lambda: '"ERROR"' in ask(other, Case("GET", "/admin/loggers/connector.worker.tried")).body, 60, "its level")

    # What the file of the first process says was changed by the API, and stays so.
    changed = {**definition["config"], "tasks.max": "2"}
    assert ask(other, Case("PUT", f"{path}/config", changed)).status == 200
    until(lambda: len(seen(one)) == len(seen(other)) == 4, 120, "two tasks in each process")
    connector.stop(run)
    until(lambda: [worker for worker, _ in seen(one)] == [f"127.0.0.1:{port}"] * 2, 30, "the other's tasks to be gone")
    assert ask(one, Case("DELETE", path)).status == 204


@pytest.mark.kafka
@pytest.mark.scylla
@pytest.mark.any_scylla
def test_a_process_without_a_port_is_one_of_them(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str]
) -> None:
    """What it runs, and what it has given up: another process, and `status`, say so for it."""
    table = make_table(tablets=True)
    connector = service([table], connector={"tasks.max": "1"})
    missing = service([f"{table}_that_is_not_there"], connector={"tasks.max": "1"})
    port = ports.free_port()
    url, here = f"http://127.0.0.1:{port}", socket.gethostname()
    path = f"/connectors/{connector.name}"
    first = connector.start("--http-port", str(port))
    until(lambda: "REST API on" in connector.log, 120, "the port")
    files = str(connector.config_file), str(missing.config_file)
    run = connector.start(*files, files=False)
    both = [(f"127.0.0.1:{port}", "RUNNING"), (here, "RUNNING")]
    until(lambda: sorted(states(url, connector.name)) == sorted(both), 120, "both tasks")

    # Both files are beside one worker's file here, and its status topic is where the run says what it is about.
    worker = json.loads(connector.worker_file.read_text())
    missing.worker_file.write_text(json.dumps(worker))
    until(lambda: missing.report()["given_up"], 120, lambda: f"the failure: {missing.report()}")
    report = missing.report()
    assert report["state"] == "FAILED" and f"{table}_that_is_not_there" in report["given_up"]
    until(lambda: connector.report()["state"] == "RUNNING", 120, lambda: f"the other connector: {connector.report()}")

    workers = connector.workers(run)
    number = [worker for worker, _ in states(url, connector.name)].index(here)
    assert ask(url, Case("POST", f"{path}/tasks/{number}/restart")).status == 204
    until(lambda: not set(workers) & set(connector.workers(run)), 120, "another worker in the other process")

    assert ask(url, Case("PUT", f"{path}/pause")).status == 202
    until(lambda: connector.report()["state"] == "STOPPED", 60, lambda: f"a pause: {connector.report()}")
    assert connector.report()["target"] == "PAUSED"
    assert "STOPPED, PAUSED by request" in connector.command("status").stdout
    assert ask(url, Case("PUT", f"{path}/resume")).status == 202
    until(lambda: sorted(states(url, connector.name)) == sorted(both), 120, "both tasks again")
    connector.stop(run)
    until(lambda: [worker for worker, _ in states(url, connector.name)] == [f"127.0.0.1:{port}"], 30, "its end")
    connector.stop(first)


@pytest.mark.kafka
@pytest.mark.scylla
@pytest.mark.any_scylla
def test_a_name_that_was_taken_twice_is_told_by_both(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str], tmp_path: Path
) -> None:
    """The second one knows a table less, and writes elsewhere."""
    table, other = make_table(tablets=True), make_table(tablets=False)
    connector = service([table, other], connector={"tasks.max": "1"})
    definition = json.loads(connector.config_file.read_text())
    definition["config"] |= {"scylla.table.names": table, "topic.prefix": f"{connector.name}.elsewhere"}
    beside = tmp_path / "beside.json"
    beside.write_text(json.dumps(definition))
    connector.start("--http-port", "0")
    until(lambda: json.loads(connector.get("/health")[1])["state"] == "RUNNING", 120, "one alone")
    run = connector.start(str(beside), files=False)

    def health() -> tuple[str, str]:
        said = json.loads(connector.get("/health")[1])
        return said["state"], str(said["waiting_for"])

    until(
        lambda: "by another configuration (scylla.table.names, topic.prefix)" in health()[1], 120, lambda: str(health())
    )
    state, words = health()
    assert state == "WAITING" and f"nobody reads {other} in its slots" in words

    def said() -> int:
        return connector.log.count("by another configuration (scylla.table.names, topic.prefix)")

    until(lambda: said() >= 2, 60, "a word of the other one as well")

    def tables() -> list[str]:
        report = connector.report()["tables"]
        return [report[each]["state"] for each in (table, other)]

    until(lambda: tables() == ["RUNNING", "WAITING"], 60, lambda: str(tables()))
    assert said() == 2, "each says it once"
    connector.stop(run)
    until(lambda: health()[0] == "RUNNING", 60, lambda: str(health()))
