"""What a real Connect worker answered, and what we answer to the same requests."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest

from connector.config import CONNECTOR_CLASS
from connector.errors import Problem
from connector.http import HttpServer
from connector.rest import ConnectorView, Instance, Offset, rest_routes
from tests.config.files import CONNECTOR, WORKER, validate
from tests.rest.cases import HOLDING, LOOKING, PLUGIN, RESTARTING, Answered, Case, ask, recorded, recorded_in_order

RECORDED = recorded()
HELD = recorded_in_order("holding")
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

    def problems(self, config: Mapping[str, str]) -> Sequence[Problem]:
        return validate({**config, "connector.class": OURS}, WORKER, {})


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


def answered_alike(case: Case, theirs: Answered, ours: Answered) -> None:
    assert ours.status == theirs.status, ours.body
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
    same_words = said == ours["message"] or said.startswith(OWN_WORDS)
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
