"""How transforms and predicates are shown by a validation: as a real Connect worker showed the same ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from connector.http import HttpServer
from connector.rest import rest_routes
from tests.config.files import CONNECTOR
from tests.rest.cases import STEPS, STEPS_SHOWN, Case, ask
from tests.rest.clusters import OURS, Orders

RECORDED = json.loads(STEPS_SHOWN.read_text())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HttpServer("127.0.0.1", 0, rest_routes(Orders())) as server:
        yield server.url


def validated(url: str, **more: str) -> dict[str, Any]:
    config = {**CONNECTOR, "connector.class": OURS, "name": "n", **more}
    answered = ask(url, Case("PUT", f"/connector-plugins/{OURS}/config/validate", config))
    assert answered.status == 200, answered.body
    found: dict[str, Any] = json.loads(answered.body)
    return found


@pytest.mark.parametrize(("what", "name"), STEPS)
def test_a_step_is_shown_as_connect_shows_it(url: str, what: str, name: str) -> None:
    found = validated(url, **{what: "one", f"{what}.one.type": name})
    shown = [each["definition"] for each in found["configs"] if each["definition"]]
    ours = {each["name"]: {**each, "documentation": ""} for each in shown if each["group"].endswith(": one")}
    assert ours == RECORDED[f"{what} {name}"]
    assert [*ours] == [*RECORDED[f"{what} {name}"]]
    assert all(each["documentation"] for each in shown if each["name"] in ours)


def test_steps_are_groups_of_their_own_with_values_and_problems(url: str) -> None:
    given = {
        "transforms": "route, none",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "(",
        "transforms.route.predicate": "some",
        "transforms.none.type": "no.such",
        "predicates": "some",
        "predicates.some.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
        "predicates.some.name": "h",
    }
    found = validated(url, **given)
    groups = ["offsets.topic", "Transforms: route", "Transforms: none", "Predicates: some", "Scylla"]
    at = found["groups"].index(groups[0])
    assert found["groups"][at : at + len(groups)] == groups
    values = {each["value"]["name"]: each["value"] for each in found["configs"]}
    assert all(values[name]["value"] == text for name, text in given.items())
    assert values["transforms.route.negate"]["value"] == "false"
    wrong = {name for name, value in values.items() if value["errors"]}
    assert wrong == {"transforms.route.regex", "transforms.route.replacement", "transforms.none.type"}
    assert found["error_count"] == 3
    assert "org.apache.kafka.connect.transforms.Cast$Value" in values["transforms.none.type"]["recommended_values"]
    assert (
        "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"
        in (values["predicates.some.type"]["recommended_values"])
    )
