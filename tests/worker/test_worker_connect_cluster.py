"""The service in Kafka Connect's words: what a connector and its tasks are, and why they have failed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.config import CONNECTOR_CLASS, Configuration
from connector.errors import CdcError, RetriableDeliveryError
from connector.rest import ConnectorView, Offset
from connector.table_name import TableName
from connector.worker import connect_cluster
from connector.worker.connect_cluster import ConnectCluster, starts_of
from connector.worker.holding import Target
from connector.worker.processes import Process
from connector.worker.shared_state import Event
from connector.worker.status_document import ServiceStatus
from tests.config.files import loaded
from tests.servers.patience import until

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("status.json").read_text())


class Recorded:
    """One connector with two workers, of which only the first has reported."""

    def __init__(self, configuration: Configuration, **changed: Any) -> None:
        self.configuration = configuration
        worker = {**RECORDED["workers"][0], **changed}
        connector = {**RECORDED["connectors"]["shop"], "workers": [0, 1]}
        document = {**RECORDED, "workers": [worker], "connectors": {configuration.connector.name: connector}}
        self.document = ServiceStatus.model_validate(document)

    def status(self) -> ServiceStatus:
        return self.document

    def configurations(self) -> Sequence[Configuration]:
        return [self.configuration]

    def topics(self, connector: str) -> Sequence[str]:
        return ["shop.ks.t"]


class Heard:
    """Remembers what is to be restarted."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def begin_anew(self, group: str) -> None:
        self.heard.append(("begin anew", group))

    def wish(self, connector: str, target: Target) -> None:
        self.heard.append((connector, target))

    def define(self, connector: str, config: dict[str, str] | None) -> None:
        self.heard.append((connector, config))

    def tell(self, connector: str, event: Event, content: Mapping[str, Any]) -> None:
        self.heard.append((connector, (event, content)))

    def forget_topics(self, connector: str) -> None:
        self.heard.append(("forget topics", connector))

    def log_level(self, logger: str, level: int) -> list[str]:
        self.heard.append((logger, level))
        return [logger]

    def renew(self, workers: Iterable[int]) -> None:
        self.heard.append(("renew", {*workers}))

    def try_again(self, workers: Iterable[int]) -> None:
        self.heard.append(("try again", {*workers}))


def view(configuration: Configuration | None = None, **changed: Any) -> ConnectorView:
    cluster = ConnectCluster(
        Recorded(configuration or loaded(), **changed), Heard(), Heard(), lambda config: (), loaded()
    )
    cluster.worker_id = "here:8083"
    return cluster.connectors()[0]


def test_a_failed_table_fails_its_task_with_the_trace_that_names_it() -> None:
    task, other = view().tasks
    assert (task.state, task.worker_id, other.state) == ("FAILED", "here:8083", "UNASSIGNED")
    trace = str(task.trace).splitlines()
    assert trace[0] == "ks.gone is FAILED: table ks.gone does not exist"
    assert trace[1] == "ks.t is FAILED: column v: 3 bytes are no int"
    assert trace[2].startswith("\tslot ") and "streams 0x" in trace[2]


def test_what_waits_is_running_and_what_starts_is_restarting() -> None:
    assert view(state="WAITING").tasks[0].state == "RUNNING"
    assert view(state="WAITING", starting=True).tasks[0].state == "RESTARTING"


def test_positions_of_a_topic_that_was_deleted_are_moved_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it is told to say where it begins, and may have no other way to."""
    altered: list[object] = []
    missing = SimpleNamespace(exist=lambda: False, alter=altered.append)
    monkeypatch.setattr(connect_cluster, "Positions", lambda configuration: missing)
    configuration = loaded()
    recorded = Recorded(configuration)
    stopped = recorded.document.connectors[configuration.connector.name].model_copy(update={"workers_running": 0})
    recorded.document = recorded.document.model_copy(update={"connectors": {configuration.connector.name: stopped}})
    cluster = ConnectCluster(recorded, Heard(), Heard(), lambda config: (), loaded())
    table = configuration.connector.reading.tables[0]
    place = {"keyspace_name": table.keyspace, "table_name": table.name}
    for offset in ({"read_to": 0}, None):
        cluster.alter_offsets(configuration.connector.name, [Offset(place, offset)])
    cluster.alter_offsets(configuration.connector.name, None)
    assert altered == [{table: 0}, {table: None}, dict.fromkeys(configuration.connector.reading.tables)]


def test_converters_are_told_as_they_are_in_force_for_other_processes_to_compare() -> None:
    of_worker = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    told = view(loaded(worker=of_worker)).converters or {}
    assert (told["value.converter"], told["value.converter.schemas.enable"]) == ("json", "False")


def test_a_configuration_is_shown_as_it_is_written_without_secrets() -> None:
    given = {"scylla.user": "${env:WHO}", "scylla.password": "open sesame", "producer.override.sasl.password": "more"}
    shown = view(loaded(given, environ={"WHO": "cdc-reader"})).config
    assert (shown["scylla.user"], shown["scylla.password"]) == ("${env:WHO}", "********")
    assert shown["producer.override.sasl.password"] == "********"
    assert (shown["name"], shown["connector.class"]) == ("orders", CONNECTOR_CLASS)
    assert "tasks.max" not in shown


def test_what_has_failed_is_tried_again_in_place_and_the_rest_restarted() -> None:
    heard = Heard()
    cluster = ConnectCluster(Recorded(loaded()), heard, heard, lambda config: (), loaded())
    cluster.restart("orders", itself=False, tasks=[0])
    assert heard.heard == [("try again", {0}), ("renew", set())]
    heard.heard.clear()
    cluster.restart("orders", itself=True, tasks=[0, 1])
    assert heard.heard == [("begin anew", "workers-orders"), ("try again", {0}), ("renew", {1})]


def test_who_cannot_tell_others_to_restart_says_what_was_done_here() -> None:
    class Dumb(Heard):
        def tell(self, connector: str, event: Event, content: Mapping[str, Any]) -> None:
            raise RetriableDeliveryError("Kafka at kafka:9092 is away")

    heard = Dumb()
    cluster = ConnectCluster(Recorded(loaded()), heard, heard, lambda config: (), loaded())
    views = (cluster.connectors()[0],)
    present = [Process("here", 1, 0, views), Process("there", 2, 0, views)]
    cluster.processes = SimpleNamespace(id="here", present=lambda: present)  # type: ignore[assignment]
    with pytest.raises(CdcError, match=r"is restarted, and others may not have heard .*: Kafka at kafka:9092 is away"):
        cluster.restart("orders", itself=False, tasks=range(4))
    assert heard.heard == [("try again", {0}), ("renew", {1})]
    cluster.restart("orders", itself=False, tasks=[0])  # which nobody else has to hear of


def test_what_all_are_told_is_done_by_each() -> None:
    heard = Heard()
    cluster = ConnectCluster(Recorded(loaded()), heard, heard, lambda config: (), loaded())
    cluster.set_level_everywhere("connector", 10)
    cluster.forget_topics("orders")
    said = [(name, *what) for name, what in heard.heard if isinstance(what, tuple)]
    assert said == [("", "log level", {"logger": "connector", "level": 10}), ("orders", "forget topics", {})]
    heard.heard.clear()
    for name, event, content in said:
        cluster.told(name, event, content)
    assert heard.heard == [("connector", 10), ("forget topics", "orders")]


@pytest.mark.parametrize(
    ("partition", "offset", "said"),
    [
        ({"keyspace_name": "shop", "table_name": "orders", "slot": 1}, None, "no others"),
        ({"keyspace_name": "shop", "table_name": "carts"}, None, "shop.carts is not a table of connector orders"),
        ({"keyspace_name": "shop", "table_name": "orders"}, {"read_to": "yesterday"}, "milliseconds since 1970"),
        ({"keyspace_name": "shop", "table_name": "orders"}, {"read_to": True}, "milliseconds since 1970"),
        ({"keyspace_name": "shop", "table_name": "orders"}, {"read_to": 1_760_000_000}, "write 1760000000000$"),
        ({"keyspace_name": "shop", "table_name": "orders"}, {"read_to": 1_760_000_000_000_000}, "as microseconds"),
        ({"keyspace_name": "shop", "table_name": "orders"}, {"read_to": -1}, "before 1970"),
    ],
)
def test_offsets_that_cannot_be_are_refused(
    partition: dict[str, Any], offset: dict[str, Any] | None, said: str
) -> None:
    with pytest.raises(CdcError, match=said):
        starts_of(loaded(), [Offset(partition, offset)])


def test_offsets_are_moved_for_whole_tables() -> None:
    place = {"keyspace_name": "shop", "table_name": "orders"}
    table = TableName("shop", "orders")
    assert starts_of(loaded(), None) == starts_of(loaded(), [Offset(place, None)]) == {table: None}
    assert starts_of(loaded(), [Offset(place, {"read_to": 0})]) == {table: 0}, "from the oldest on"
    # Numbers of a request know how they were written.
    written = type("Written", (int,), {})(1_760_000_000_000)
    assert starts_of(loaded(), [Offset(place, {"read_to": written})]) == {table: 1_760_000_000_000}


def test_who_asks_for_the_service_waits_for_no_kafka_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes do, and give an answer a second: each would wait for the one before it."""
    answers, asked = threading.Event(), list[object]()

    def which(clients: object) -> str:
        asked.append(clients)
        answers.wait(30)
        return "MkU3OEVBNTcwNTJENDM2Qg"

    monkeypatch.setattr(connect_cluster, "cluster_id", which)
    monkeypatch.setattr(connect_cluster, "CLUSTER_ID_SECONDS", 0.01)
    configuration, heard = loaded(), Heard()
    cluster = ConnectCluster(Recorded(configuration), heard, heard, lambda config: (), configuration)
    assert [cluster.cluster_id() for _ in range(3)] == [None] * 3
    answers.set()
    until(lambda: cluster.cluster_id() is not None, what="its name")
    assert cluster.cluster_id() == "MkU3OEVBNTcwNTJENDM2Qg" and len(asked) == 1


def test_a_kafka_that_was_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, "MkU3OEVBNTcwNTJENDM2Qg"])
    monkeypatch.setattr(connect_cluster, "cluster_id", lambda clients: next(answers))
    configuration, heard = loaded(), Heard()
    cluster = ConnectCluster(Recorded(configuration), heard, heard, lambda config: (), configuration)
    until(lambda: cluster.cluster_id() is not None, what="its name")
