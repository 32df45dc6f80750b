"""What a real Connect worker answered, and what we answer to the same requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from connector import __version__
from connector.config import CONNECTOR_CLASS
from connector.errors import StillRunning
from connector.http import HttpServer
from connector.rest import ConnectorView, Offset, rest_routes
from connector.secrets import MASK
from connector.worker.log_levels import set_level
from tests.config.files import CONNECTOR
from tests.rest.cases import (
    EDGES,
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
    recorded_at_edges,
    recorded_in_order,
)
from tests.rest.clusters import OURS, Anything, Orders

RECORDED = recorded()
AT_EDGES = recorded_at_edges()
HELD = recorded_in_order("holding")
MOVED = recorded_in_order("offsets")
LOGGED = recorded_in_order("logging")
WRITTEN = recorded_in_order("writing")
#: Jackson's words for what is no JSON, and Java's for what is missing, are its own.
OWN_WORDS = ("Cannot invoke", "Input mismatch")
#: Members whose names are the users'.
FREE = ("config",)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HttpServer("127.0.0.1", 0, rest_routes(Orders())) as server:
        yield server.url


@pytest.fixture(scope="module")
def nothing() -> Iterator[str]:
    """Where connectors may come, and none has."""
    with HttpServer("127.0.0.1", 0, rest_routes(Anything())) as server:
        yield server.url


@pytest.mark.parametrize("case", (*LOOKING, *RESTARTING), ids=str)
def test_we_answer_as_connect_does(url: str, case: Case) -> None:
    answered_alike(case, RECORDED[str(case)], ask(url, for_ours(case)))


@pytest.mark.parametrize("case", EDGES, ids=str)
def test_we_answer_mistakes_as_connect_does(nothing: str, case: Case) -> None:
    answered_alike(case, AT_EDGES[str(case)], ask(nothing, for_ours(case)))


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
    if (theirs.status, theirs.body) == (400, ""):  # its server closes the connection
        return
    of_jetty = theirs.headers.get("Content-Type", "").startswith("text/html") or '"url"' in theirs.body
    assert ours.headers.get("Content-Type") == ("application/json" if of_jetty else theirs.headers.get("Content-Type"))
    if of_jetty:  # it refuses in a page of its own
        assert json.loads(ours.body)["message"].removeprefix("HTTP 400 ") in theirs.body
    elif not theirs.body:
        assert ours.body == ""
    elif case.method == "OPTIONS" and theirs.status == 200:
        assert {*ours.body.split(", ")} == {*theirs.body.split(", ")}
        assert {*ours.headers["Allow"].split(",")} == {*theirs.headers["Allow"].split(",")}
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
    if isinstance(body, dict) and "connector.class" in (body.get("config") or ()):
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
    said = theirs["message"].replace("org.apache.kafka.connect.file.FileStreamSourceConnector", CONNECTOR_CLASS)
    said = said.replace(PLUGIN, OURS).replace("[4.1.1]", f"[{__version__}]")
    head, _, errors = said.partition(" error(s):\n")
    same_words = said == ours["message"] or said.startswith(OWN_WORDS) or "REDACTED" in said
    if errors:  # how many there are, and their words, are the connector's
        same_words = ours["message"].startswith(head.rpartition(" ")[0]) and ours["message"].endswith(
            errors.splitlines()[-1]
        )
    return same_words and theirs["error_code"] == ours["error_code"] and theirs.keys() == ours.keys()


# -- what is ours alone ------------------------------------------------------------------------------------------


def test_a_definition_says_what_the_documentation_says(url: str) -> None:
    definitions = {
        each["name"]: each for each in body(url, Case("GET", f"/connector-plugins/{CONNECTOR_CLASS}/config"))
    }
    tables = definitions["scylla.table.names"]
    assert (tables["type"], tables["required"], tables["importance"]) == ("LIST", True, "HIGH")
    assert definitions["scylla.password"]["type"] == "PASSWORD"
    ours_first = [*definitions]
    assert [ours_first.index(each) for each in ("scylla.cluster.ip.addresses", "name", "connector.class")] == [
        0,
        (at := ours_first.index("name")),
        at + 1,
    ]
    assert definitions["tasks.max"]["default_value"] == "1"
    formats = definitions["cdc.output.format"]
    assert (formats["type"], formats["default_value"], formats["group"]) == ("STRING", "legacy", "Connector")


def test_properties_are_shown_as_connect_and_the_java_connector_show_theirs(url: str) -> None:
    found = body(url, Case("PUT", f"/connector-plugins/{OURS}/config/validate", {**CONNECTOR, "connector.class": OURS}))
    assert found["name"] == OURS
    assert found["groups"][:5] == ["Common", "Transforms", "Predicates", "Error Handling", "Topic Creation"]
    assert "Reading the change log" in found["groups"]  # for what is ours alone
    shown = [each["definition"] for each in found["configs"]]
    assert [each["name"] for each in shown[:4]] == ["name", "connector.class", "connector.plugin.version", "tasks.max"]
    tasks = {**shown[3], "documentation": ""}
    assert tasks == {
        "name": "tasks.max",
        "type": "INT",
        "required": False,
        "default_value": "1",
        "importance": "HIGH",
        "documentation": "",
        "group": "Common",
        "width": "SHORT",
        "display_name": "Tasks max",
        "dependents": [],
        "order": 4,
    }


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (" \n ", "Invalid value  for configuration name: String may not be empty"),
        ("a\nb", "may not contain control sequences but had the following ASCII chars: 10"),
    ],
)
def test_a_name_that_cannot_be_is_refused_in_connects_words(name: str, said: str) -> None:
    with HttpServer("127.0.0.1", 0, rest_routes(Anything())) as server:
        given = {"name": name, "config": {**CONNECTOR, "connector.class": OURS}}
        del given["config"]["name"]
        answered = ask(server.url, Case("POST", "/connectors", given))
    assert answered.status == 400 and f"the following 1 error(s):\n{'' if said[0] == 'I' else 'Invalid'}" in (
        message := json.loads(answered.body)["message"]
    )
    assert said in message


def test_a_class_is_taken_by_its_letters() -> None:
    """Connect looks for it as it is written, blanks included, and hides its own 400 of a validation in a 500."""
    cluster = Anything()
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        for given in (f" {CONNECTOR_CLASS}", f"{CONNECTOR_CLASS[4:]}"):
            config = {**CONNECTOR, "connector.class": given, "name": "shop"}
            for method, path, sent in (
                ("PUT", f"/connector-plugins/{OURS}/config/validate", config),
                ("POST", "/connectors", {"name": "shop", "config": config}),
                ("PUT", "/connectors/shop/config", config),
            ):
                answered = ask(server.url, Case(method, path, sent))
                message = json.loads(answered.body)["message"]
                assert message.startswith("org.apache.") == (method == "PUT")
                assert f"implements Connector and which name matches {given}, available connectors" in message
                assert answered.status == (500 if path.endswith("validate") else 400)
    assert cluster.configs == {}


def test_places_that_name_nothing_are_refused_only_where_they_could_be_moved() -> None:
    cluster = Orders("RUNNING", "RUNNING")
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        for states, status in ((("RUNNING", "RUNNING"), 400), (("STOPPED",), 500)):
            cluster.states = states
            for given in ({}, {"partition": None, "offset": None}, {"offset": {"read_to": 1}}):
                case = Case("PATCH", "/connectors/orders/offsets", {"offsets": [given]})
                assert ask(server.url, case).status == status
    assert cluster.altered == []


def test_a_name_with_a_slash_is_asked_for_by_its_escape_if_it_is_there() -> None:
    cluster = Anything()
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        refused = ask(server.url, Case("GET", "/connectors/a%2Fb"))
        cluster.define("a/b", {**CONNECTOR, "connector.class": OURS, "name": "a/b"})
        assert ask(server.url, Case("GET", "/connectors/a%2Fb")).status == 200
        assert ask(server.url, Case("DELETE", "/connectors/a%2Fb")).status == 204
    assert (refused.status, json.loads(refused.body)["message"]) == (400, "Ambiguous URI path separator")


def test_what_is_asked_while_workers_are_still_ending_is_to_be_asked_again() -> None:
    class Ending(Orders):
        def alter_offsets(self, connector: str, offsets: Sequence[Offset] | None) -> None:
            raise StillRunning("connector orders is being stopped")

    with HttpServer("127.0.0.1", 0, rest_routes(Ending("STOPPED"))) as server:
        assert ask(server.url, Case("DELETE", "/connectors/orders/offsets")).status == 409


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
        assert again.status == 201 and cluster.targets == {"orders": "RUNNING", "shop": "STOPPED"}


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_what_another_run_has_from_a_file_goes_on_and_is_not_called_deleted(method: str) -> None:
    class Beside(Anything):
        hung: str | None = None

        def connectors(self) -> Sequence[ConnectorView]:
            return Orders.connectors(self)

        def unheard(self, connector: str) -> str | None:
            return self.hung

    cluster = Beside()
    path = "/connectors/orders" if method == "DELETE" else "/connectors/orders/config"
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        refused = ask(server.url, Case(method, path, {"tasks.max": "2"} if method == "PATCH" else None))
        assert refused.status == 409 and "defined by a file of another run" in refused.body
        cluster.hung = "process other hears of nothing"
        refused = ask(server.url, Case(method, path, {"tasks.max": "2"} if method == "PATCH" else None))
        assert refused.status == 409 and "Connector orders: process other hears of nothing" in refused.body
        config = {**CONNECTOR, "connector.class": OURS, "name": "orders"}
        refused = ask(server.url, Case("POST", "/connectors", {"name": "orders", "config": config}))
        assert refused.status == 409 and "already exists: process other hears of nothing" in refused.body
        cluster.configs["orders"] = {**CONNECTOR, "connector.class": OURS, "name": "orders"}
        assert ask(server.url, Case("DELETE", "/connectors/orders")).status == 204
    assert not cluster.configs


@pytest.mark.parametrize("way", ["POST", "PUT"])
def test_what_one_that_is_no_more_was_to_do_is_nothing_to_the_next_one_of_its_name(way: str) -> None:
    """Whoever deletes one may be interrupted half-way."""
    cluster = Anything()
    cluster.targets["orders"] = "STOPPED"
    config = {**CONNECTOR, "connector.class": OURS, "name": "orders"}
    creation = {
        "POST": Case("POST", "/connectors", {"name": "orders", "config": config}),
        "PUT": Case("PUT", "/connectors/orders/config", config),
    }
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        assert ask(server.url, creation[way]).status == 201
        assert cluster.targets == {"orders": "RUNNING"}
        cluster.targets["orders"] = "STOPPED"
        assert ask(server.url, Case("PUT", "/connectors/orders/config", config)).status == 200
        assert cluster.targets == {"orders": "STOPPED"}, "a change of what is stopped starts nothing"


@pytest.mark.parametrize("method, sent", [("PUT", {**CONNECTOR, "connector.class": OURS}), ("PATCH", {})])
def test_a_definition_that_is_sent_once_more_begins_a_connector_that_has_failed(
    method: str, sent: dict[str, str]
) -> None:
    """As Connect does it: what it failed of may be mended in what its references name, or in a server."""
    cluster = Anything()
    cluster.configs["orders"] = {**CONNECTOR, "connector.class": OURS, "name": "orders"}
    with HttpServer("127.0.0.1", 0, rest_routes(cluster)) as server:
        for state, restarts in (("RUNNING", []), ("FAILED", [("orders", True, [])])):
            cluster.targets["orders"] = state
            assert ask(server.url, Case(method, "/connectors/orders/config", sent)).status == 200
            assert cluster.restarts == restarts


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


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        (
            "POST",
            "",
            '{"name": "a",\n"config": {"a": "b",}}',
            "a comma with nothing behind it at line 2, column 20 (leave",
        ),
        ("PUT", "/a/config", '{"a": "b"} # hush', "a comment at line 1, column 12 (JSON has none: leave it out)"),
        ("PUT", "/a/config", '{"a": "b"} {"a": "hush"}', "something behind its end at line 1, column 12"),
        ("PUT", "/a/config", "{'name': 'hush'}", "a text in single quotes at line 1, column 2 (JSON has double ones)"),
        ("PUT", "/a/config", {"name": "a", "config": {"a": "b"}}, "the properties alone, without name and config"),
        ("PUT", "/a/config", {"config": {"a": "b"}}, "the properties alone, without name and config"),
    ],
)
def test_a_body_of_the_wrong_form_is_told_what_is_wrong_with_it(
    nothing: str, method: str, path: str, body: object, told: str
) -> None:
    answered = ask(nothing, Case(method, f"/connectors{path}", body))
    assert answered.status == 500 and told in json.loads(answered.body)["message"] and "hush" not in answered.body
