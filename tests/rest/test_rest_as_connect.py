"""What a real Connect worker answered, and what we answer to the same requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest

from connector.config import CONNECTOR_CLASS
from connector.errors import Problem
from connector.http import HttpServer
from connector.rest import ConnectorView, Instance, LoggerLevel, Offset, rest_routes
from connector.secrets import MASK
from connector.worker.log_levels import levels, set_level
from tests.config.files import CONNECTOR, WORKER, validate
from tests.rest.cases import (
    HOLDING,
    LOGGING,
    LOOKING,
    OFFSETS,
    PLUGIN,
    RESTARTING,
    WRITING,
    Answered,
    Case,
    ask,
    recorded,
    recorded_in_order,
)

RECORDED = recorded()
HELD = recorded_in_order("holding")
MOVED = recorded_in_order("offsets")
LOGGED = recorded_in_order("logging")
WRITTEN = recorded_in_order("writing")
OURS = CONNECTOR_CLASS.rpartition(".")[2].removesuffix("Connector")
#: Jackson's words for what is no JSON, and Java's for what is missing, are its own.
OWN_WORDS = ("Unexpected character", "Cannot deserialize", "Cannot invoke")
#: Members whose names are the users'.
FREE = ("config",)


class Orders:
    """One connector with one task, as it is in the recording."""

    def __init__(self, *states: Any) -> None:
        self.states = states or ("RUNNING", "RUNNING")
        self.restarts: list[tuple[str, bool, list[int]]] = []
        self.altered: list[Sequence[Offset] | None] = []

    writable = False

    def given(self, connector: str) -> Mapping[str, str]:
        return {}

    def with_secrets(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        return dict(config)

    def define(self, connector: str, config: Mapping[str, str] | None) -> None:
        raise AssertionError("a file defines it")

    def cluster_id(self) -> str | None:
        return "sWI6zyUaSiqxehlqNcNV1A"

    def connectors(self) -> Sequence[ConnectorView]:
        instance, *tasks = (Instance(state, "127.0.0.1:8083", "0.1.0") for state in self.states)
        return [ConnectorView("orders", {"name": "orders", "connector.class": OURS}, instance, tuple(tasks), ())]

    def offsets(self, connector: str) -> Sequence[Offset]:
        return ()

    def direct(self, connector: str, target: Any) -> None:
        tasks = {"STOPPED": ()}.get(target, (target,))
        self.states = (target, *tasks)

    def restart(self, connector: str, *, itself: bool, tasks: Collection[int]) -> None:
        self.restarts.append((connector, itself, [*tasks]))

    def forget_topics(self, connector: str) -> None:
        pass

    def levels(self) -> Mapping[str, LoggerLevel]:
        return {name: LoggerLevel(level, since) for name, (level, since) in levels().items()}

    def set_level(self, logger: str, level: int) -> Sequence[str]:
        return set_level(logger, level)

    def set_level_everywhere(self, logger: str, level: int) -> None:
        set_level(logger, level)

    def alter_offsets(self, connector: str, offsets: Sequence[Offset] | None) -> None:
        self.altered.append(offsets)

    def problems(self, config: Mapping[str, str]) -> Sequence[Problem]:
        return validate({**config, "connector.class": OURS}, WORKER, {})


class Anything(Orders):
    """Connectors come and go; none runs."""

    writable = True

    def __init__(self) -> None:
        super().__init__()
        self.configs: dict[str, dict[str, str]] = {}
        self.targets: dict[str, str] = {}

    def given(self, connector: str) -> Mapping[str, str]:
        return self.configs.get(connector, {})

    def with_secrets(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        return {name: self.configs[connector][name] if text == MASK else text for name, text in config.items()}

    def define(self, connector: str, config: Mapping[str, str] | None) -> None:
        self.configs.pop(connector, None)
        if config is not None:
            self.configs[connector] = dict(config)

    def direct(self, connector: str, target: Any) -> None:
        self.targets[connector] = target

    def connectors(self) -> Sequence[ConnectorView]:
        found = []
        for name, config in self.configs.items():
            task = Instance(self.targets.get(name, "RUNNING"), "127.0.0.1:8083", "0.1.0")  # type: ignore[arg-type]
            shown = {each: MASK if each == "scylla.password" else text for each, text in config.items()}
            found.append(ConnectorView(name, shown, task, () if task.state == "STOPPED" else (task,), ()))
        return found


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HttpServer("127.0.0.1", 0, rest_routes(Orders())) as server:
        yield server.url


@pytest.mark.parametrize("case", (*LOOKING, *RESTARTING), ids=str)
def test_we_answer_as_connect_does(url: str, case: Case) -> None:
    answered_alike(case, RECORDED[str(case)], ask(url, for_ours(case)))


def test_a_pause_and_a_stop_are_as_connects() -> None:
    with HttpServer("127.0.0.1", 0, rest_routes(Orders())) as server:
        for case, theirs in zip(HOLDING, HELD, strict=True):
            answered_alike(case, theirs, ask(server.url, case))


def test_levels_are_set_as_connects(url: str) -> None:
    set_level("org.apache.kafka.connect.runtime.Worker", logging.INFO)
    set_level("no.such", logging.INFO)
    for case, theirs in zip(LOGGING, LOGGED, strict=True):
        answered_alike(case, theirs, ask(url, case))


def test_connectors_come_and_go_as_connects() -> None:
    with HttpServer("127.0.0.1", 0, rest_routes(Anything())) as server:
        for case, theirs in zip(WRITING, WRITTEN, strict=True):
            answered_alike(case, theirs, ask(server.url, for_ours(case)))


def answered_alike(case: Case, theirs: Answered, ours: Answered) -> None:
    assert ours.status == theirs.status, ours.body
    if "Location" in theirs.headers:
        assert ours.headers["Location"].partition("/connectors/")[2] == theirs.headers["Location"].partition("ors/")[2]
        assert ours.headers["Location"].startswith("http://127.0.0.1:")
    if "Content-Type" in theirs.headers:
        assert media_type(ours) == media_type(theirs)
    if not theirs.body:
        assert ours.body == ""
    elif case.method == "OPTIONS":
        assert {*ours.headers["Allow"].split(", ")} == {*theirs.headers["Allow"].split(",")}
    else:
        place = "config" if case.path.endswith("orders/config") else ""
        assert (found := difference(json.loads(theirs.body), json.loads(ours.body), place)) is None, found


def test_the_comparison_sees_what_differs() -> None:
    assert difference({"a": 1}, {"a": 1, "b": 2}) and difference({"a": 1}, {"a": "1"}) and difference([1], {})
    assert difference({"error_code": 404, "message": "no"}, {"error_code": 404, "message": "none"})
    assert difference([{"a": 1}], [{"b": 1}]) and difference({"name": "a"}, {"name": None})
    assert difference({"config": {"a": "1"}}, {"config": {"b": "2"}}) is None


def for_ours(case: Case) -> Case:
    body = case.body
    if isinstance(body, dict) and body.get("config"):
        config = {**CONNECTOR, **body["config"], "connector.class": OURS}
        if "name" not in body["config"]:
            del config["name"]
        return Case(case.method, case.path, {**body, "config": config}, case.headers)
    if isinstance(body, dict) and "connector.class" in body:
        body = {**CONNECTOR, **body, "connector.class": OURS}
        if "name" not in case.body:
            del body["name"]
    return Case(case.method, case.path.replace(PLUGIN, OURS), body, case.headers)


def difference(theirs: Any, ours: Any, place: str = "") -> str | None:
    """Where two bodies differ in form, or in the words of an error."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if "error_code" in theirs:
            return None if same_error(theirs, ours) else f"{theirs} and {ours}"
        if place.endswith(FREE):
            return None
        if "last_modified" in theirs.get("root", ()):
            return difference(theirs["root"], ours["root"], ".root")
        if theirs.keys() != ours.keys():
            return f"{place}: {sorted(theirs)} and {sorted(ours)}"
        found = [difference(theirs[name], ours[name], f"{place}.{name}") for name in theirs]
        return next(filter(None, found), None)
    if isinstance(theirs, list) and isinstance(ours, list):
        return difference(theirs[0], ours[0], f"{place}[0]") if theirs and ours else None
    nullable = place.endswith((".default_value", ".value", ".group"))
    if place.endswith(".state"):
        return None if theirs == ours else f"{place}: {theirs} and {ours}"
    same = type(theirs) is type(ours) or (nullable and (theirs is None or ours is None))
    return None if same else f"{place}: {theirs!r} and {ours!r}"


def same_error(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    said = theirs["message"].replace(PLUGIN, OURS)
    head, _, errors = said.partition(" error(s):\n")
    same_words = said == ours["message"] or said.startswith(OWN_WORDS)
    if errors:  # how many there are, and their words, are the connector's
        same_words = ours["message"].startswith(head.rpartition(" ")[0]) and ours["message"].endswith(
            errors.splitlines()[-1]
        )
    return same_words and theirs["error_code"] == ours["error_code"] and theirs.keys() == ours.keys()


def media_type(answer: Answered) -> str:
    return answer.headers.get("Content-Type", "").partition(";")[0]


# -- what is ours alone ------------------------------------------------------------------------------------------


def test_a_definition_says_what_the_documentation_says(url: str) -> None:
    definitions = {
        each["name"]: each for each in body(url, Case("GET", f"/connector-plugins/{CONNECTOR_CLASS}/config"))
    }
    tables = definitions["scylla.table.names"]
    assert (tables["type"], tables["required"], tables["importance"]) == ("LIST", True, "HIGH")
    assert definitions["scylla.password"]["type"] == "PASSWORD"
    assert definitions["tasks.max"]["default_value"] == "1"
    formats = definitions["cdc.output.format"]
    assert (formats["type"], formats["default_value"], formats["group"]) == ("STRING", "legacy", "Records")


def test_validation_names_each_problem_at_its_property_and_shows_no_secret(url: str) -> None:
    given = {**CONNECTOR, "connector.class": OURS, "cdc.output.format": "avanced", "scylla.user": "cdc"}
    given["scylla.password"] = "open sesame"
    found = body(url, Case("PUT", f"/connector-plugins/{OURS}/config/validate", {**given, "scylla.tabel.names": "a.b"}))
    values = {each["value"]["name"]: each["value"] for each in found["configs"]}
    wrong = {name: value["errors"] for name, value in values.items() if value["errors"]}
    assert found["error_count"] == sum(map(len, wrong.values())) == 2
    assert "advanced" in wrong["cdc.output.format"][0] and "scylla.table.names" in wrong["scylla.tabel.names"][0]
    assert values["cdc.output.format"]["recommended_values"] == ["legacy", "advanced"]
    assert values["scylla.password"]["value"] == "[hidden]" and "sesame" not in json.dumps(found)


def test_a_body_that_is_no_json_is_not_repeated(url: str) -> None:
    answered = ask(url, Case("PUT", f"/connector-plugins/{OURS}/config/validate", '{"scylla.password": open sesame}'))
    assert answered.status == 500 and "sesame" not in answered.body and "line 1, column 21" in answered.body


def body(url: str, case: Case) -> Any:
    answered = ask(url, case)
    assert answered.status == 200, answered.body
    return json.loads(answered.body)


@pytest.mark.parametrize(
    ("query", "itself", "tasks"),
    [
        ("", True, []),
        ("?includeTasks=true", True, [0, 1, 2]),
        ("?includeTasks=true&onlyFailed=true", False, [1]),
        ("?onlyFailed=true", False, []),
        ("?onlyFailed=yes", True, []),
    ],
)
def test_a_restart_is_of_what_is_asked_for(query: str, itself: bool, tasks: list[int]) -> None:
    cluster = Orders("RUNNING", "RUNNING", "FAILED", "RUNNING")
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        answered = ask(server.url, Case("POST", f"/connectors/orders/restart{query}"))
    assert cluster.restarts == [("orders", itself, tasks)]
    if answered.status == 202:
        states = [task["state"] == "RESTARTING" for task in json.loads(answered.body)["tasks"]]
        assert [at for at, restarting in enumerate(states) if restarting] == tasks


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "orders"), ("PUT", "orders/config"), ("PATCH", "orders/config"), ("POST", "")],
)
def test_what_a_file_says_is_not_changed(url: str, method: str, path: str) -> None:
    answered = ask(url, Case(method, f"/connectors/{path}", {"name": "other"}))
    assert answered.status == 409 and " restart " in json.loads(answered.body)["message"]


def test_a_password_that_was_not_shown_is_kept() -> None:
    cluster = Anything()
    config = {
        **CONNECTOR,
        "connector.class": OURS,
        "name": "orders",
        "scylla.user": "cdc",
        "scylla.password": "open sesame",
    }
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        made = ask(server.url, Case("POST", "/connectors", {"name": "orders", "config": config}))
        shown = json.loads(made.body)["config"]
        assert made.status == 201 and shown["scylla.password"] == MASK
        changed = ask(server.url, Case("PUT", "/connectors/orders/config", {**shown, "tasks.max": "3"}))
        assert changed.status == 200 and cluster.configs["orders"] == {**config, "tasks.max": "3"}
        patched = ask(server.url, Case("PATCH", "/connectors/orders/config", {"tasks.max": None}))
        assert patched.status == 200 and cluster.configs["orders"] == config
        again = ask(
            server.url,
            Case(
                "POST",
                "/connectors",
                {"name": "shop", "config": {**config, "name": "shop"}, "initial_state": "stopped"},
            ),
        )
        assert again.status == 201 and cluster.targets == {"shop": "STOPPED"}


def test_offsets_are_altered_and_reset_while_it_is_stopped() -> None:
    cluster = Orders("STOPPED")
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        for case, theirs in zip(OFFSETS, MOVED, strict=True):
            answered_alike(case, theirs, ask(server.url, for_ours(case)))
            cluster.states = {"resume": ("RUNNING", "RUNNING"), "stop": ("STOPPED",)}.get(
                case.path[19:], cluster.states
            )
    place = Offset({"filename": "/dev/null"}, {"position": 2})
    assert cluster.altered == [[place], None]
