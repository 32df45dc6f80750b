"""What is wrong with a file is said once, however much it is."""

from __future__ import annotations

import pytest

from connector.config import load
from connector.config.document import Document
from connector.config.findings import Findings
from connector.errors import ConfigurationError, Problem
from tests.config.files import loaded, problem


def test_problems_are_said_once_and_not_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    equal = Problem.__eq__

    def counted(one: Problem, other: object) -> bool:
        nonlocal compared
        compared += 1
        return bool(equal(one, other))

    document, findings = Document("c.json"), Findings()
    findings.problems.append(Problem("first", "Unknown property", file="c.json"))
    monkeypatch.setattr(Problem, "__eq__", counted)
    for number in range(2_000):
        findings.problem(document, f"name.{number}", "Unknown property")
    assert compared < 2_000
    findings.problem(document, "name.7", "Unknown property")
    findings.problem(document, "first", "Unknown property")
    monkeypatch.undo()
    assert [each.property for each in findings.problems] == ["first", *(f"name.{number}" for number in range(2_000))]


def router(regex: str, replacement: str) -> dict[str, str]:
    return {
        "transforms": "r",
        "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.r.regex": regex,
        "transforms.r.replacement": replacement,
    }


def test_what_a_script_was_to_fill_in_is_told_with_the_reference_that_works() -> None:
    given = {"scylla.user": "cdc", "scylla.password": "${PASSWORD}", "scylla.local.dc": "dc-${DC}"}
    found = loaded({**given, **router("(?<table>.*)", "${table}")})
    told = [notice for notice in found.notices if "is taken as it stands" in notice]
    assert told == [
        f"connector: {name}: {place} is taken as it stands: a variable of the environment is ${{env:{each}}}"
        for name, place, each in (
            ("scylla.password", "its value", "PASSWORD"),
            ("scylla.local.dc", "${DC}", "DC"),
        )
    ]
    assert set(told) <= found.warnings
    secret = loaded({"scylla.user": "cdc", "scylla.password": "hush${hush}hush"})
    assert not [notice for notice in secret.notices if "hush" in notice], "it may be one"
    wrong = problem({"scylla.cluster.ip.addresses": "${HOSTS}"})
    assert wrong.suggestion == "a variable of the environment is ${env:HOSTS}"


def test_what_a_template_was_to_fill_in_is_told() -> None:
    template = {"scylla.user": "cdc", "scylla.password": "{{ cdc_pw }}", "scylla.local.dc": "dc-<%= dc %>"}
    found = loaded({**template, **router("(.*)", "{{table}}")})
    text = "{} is taken as it stands: it is a template: give what is made of it (`helm template`, say)"
    places = {"scylla.password": "its value", "scylla.local.dc": "<%= dc %>"}
    told = [f"connector: {name}: {text.format(place)}" for name, place in places.items()]
    assert [notice for notice in found.notices if "as it stands" in notice] == told and set(told) <= found.warnings
    secret = loaded({"scylla.user": "cdc", "scylla.password": "hush{{hush}}"})
    assert not [notice for notice in secret.notices if "hush" in notice], "it may be one"
    wrong = problem({"scylla.cluster.ip.addresses": "{{ hosts }}"})
    assert str(wrong.suggestion).startswith("it is a template")


def test_other_places_to_be_filled_in_are_told_as_well() -> None:
    given = {"scylla.user": "<your user>", "scylla.password": "$DB_PASSWORD", "scylla.local.dc": "%DC%"}
    found = loaded({**given, **router("(?<table>.*)", "$table")})
    told = [notice.removeprefix("connector: ") for notice in found.notices if "as it stands" in notice]
    assert told == [
        "scylla.user: <your user> is taken as it stands: something of yours is to be put there",
        "scylla.password: its value is taken as it stands: a variable of the environment is ${env:NAME}",
        "scylla.local.dc: %DC% is taken as it stands: a variable of the environment is ${env:DC}",
    ]
    secret = loaded({"scylla.user": "cdc", "scylla.password": "<hush>hush$HUSH"})
    assert not [notice for notice in secret.notices if "as it stands" in notice], "it may be one"
    nobodys = loaded({"made.up": "a<hush>b", "up.made": "$HUSH", "topic.creation.a.include": r"(?<hush>a)\k<hush>"})
    assert not [notice for notice in nobodys.notices if "hush" in notice.lower()], "nobody takes them"
    assert problem({"scylla.cluster.ip.addresses": "<host>"}).suggestion == "something of yours is to be put there"
    pipeline = problem({"topic.heartbeat.prefix": "a-#{stage}#"})
    assert pipeline.suggestion == "it is what a pipeline fills in: give what is made of it"


def test_a_file_of_debezium_server_is_told_to_be_one() -> None:
    given = {"debezium.source.connector.class": "x", "debezium.sink.type": "kafka"}
    with pytest.raises(ConfigurationError) as caught:
        load(given, None, {})
    (told,) = caught.value.problems
    assert told.problem == "This is a file of Debezium Server, not a connector's"
    assert str(told.suggestion).startswith("what stands behind debezium.source. in a connector's file")
