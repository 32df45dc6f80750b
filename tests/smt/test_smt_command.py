"""`scylla-cdc transform` as a user meets it: lines in, lines out, exit statuses."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from connector.cli.main import run
from tests.smt.records import DELETE, INSERT, JAVA, KEY, KEY_SCHEMA, LEGACY, TOPIC, envelope


def transform(monkeypatch: Any, capsys: Any, lines: list[Any], *arguments: str) -> tuple[int, list[Any], str]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    status = run(["transform", *arguments])
    out, err = capsys.readouterr()
    return status, [json.loads(line) for line in out.splitlines()], err


def line(value: Any) -> dict[str, Any]:
    return {"topic": TOPIC, "key": KEY, "value": value, "headers": {}}


def test_lines(monkeypatch: Any, capsys: Any) -> None:
    given = [line(envelope(*INSERT)), "", line(envelope(*DELETE)), line(None), line({"ts_ms": 1})]
    status, out, err = transform(monkeypatch, capsys, given, "--type", "extract-new-state")
    assert (status, err) == (0, "")
    assert [one["value"] for one in out] == [{"ck": 2, "pk": 1, "v": "3"}, None, {"ts_ms": 1}]
    status, out, err = transform(monkeypatch, capsys, given, "--type", JAVA)
    assert [one["value"] for one in out] == [{"ck": 2, "pk": 1, "v": "3", "w": None}, {"ts_ms": 1}]
    assert err.count("note: ") == 2


def test_schemas_come_back(monkeypatch: Any, capsys: Any) -> None:
    key = {"schema": KEY_SCHEMA, "payload": KEY}
    given = [
        {"topic": TOPIC, "key": key, "value": {"schema": LEGACY, "payload": envelope(*one)}} for one in (INSERT, DELETE)
    ]
    arguments = ["--type", JAVA, "--option", "delete.tombstone.handling.mode=tombstone"]
    _, out, _ = transform(monkeypatch, capsys, given, *arguments)
    assert out[0]["key"] == key
    assert out[0]["value"]["payload"] == {"ck": 2, "pk": 1, "v": "3", "w": None}
    assert out[0]["value"]["schema"]["name"] == f"{TOPIC}.After"
    assert out[1]["value"] is None
    _, out, _ = transform(monkeypatch, capsys, given, *arguments, "--option", "compatibility=strict")
    assert out[1]["value"]["payload"] is None and out[1]["value"]["schema"]["name"] == f"{TOPIC}.After"


def test_numbers_keep_their_digits(monkeypatch: Any, capsys: Any) -> None:
    huge = 2**80
    value = {**envelope(*INSERT), "after": {"pk": 1, "v": {"value": huge}}}
    _, out, _ = transform(monkeypatch, capsys, [line(value)], "--type", "extract-new-state")
    assert out[0]["value"]["v"] == huge


def test_what_json_has_no_numbers_for_is_written_as_java_does(monkeypatch: Any, capsys: Any) -> None:
    given = [line({"a": "0.1", "b": "NaN", "c": ["x"], "d": {"e": "-Infinity"}})]
    arguments = ["--type", "Cast$Value", "--option"]
    _, out, _ = transform(monkeypatch, capsys, given, *arguments, "spec=a:float32,b:float64")
    assert out[0]["value"] == {"a": 0.1, "b": "NaN", "c": ["x"], "d": {"e": "-Infinity"}}
    amount = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1, "field": "amount"}
    amount |= {"parameters": {"scale": "2"}, "optional": True}
    schema = {"type": "struct", "optional": False, "fields": [amount]}
    given = [line({"schema": schema, "payload": {"amount": "AY/J"}})]
    status, out, err = transform(monkeypatch, capsys, given, "--type", "MaskField$Value", "--option", "fields=amount")
    assert (status, err) == (0, "") and out[0]["value"] == {"schema": schema, "payload": {"amount": "AA=="}}


def test_omit_meets_a_schema(monkeypatch: Any, capsys: Any) -> None:
    given = [line(envelope(*INSERT)), line({"schema": LEGACY, "payload": envelope(*INSERT)})]
    status, out, err = transform(monkeypatch, capsys, given, "--type", "extract-new-state")
    assert status == 2 and len(out) == 1
    assert "line 2 of stdin" in err and "untouched.fields" in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--type", "extract-new-sate"], ["extract-new-state"]),
        (["--type", "extract-new-state", "--option", "x"], ["name=value"]),
        (
            ["--type", JAVA, "--option", "drop.tombstone=1", "--option", "add.fields=a.b"],
            ["drop.tombstones", "add.fields"],
        ),
        (["--type", JAVA, "--option", "add.fields=op", "--option", "add.fields=op"], ["given twice"]),
        ([], ["--type"]),
    ],
)
def test_wrong_use_is_told_before_stdin_is_read(
    monkeypatch: Any, capsys: Any, arguments: list[str], named: list[str]
) -> None:
    status, out, err = transform(monkeypatch, capsys, ["not JSON"], *arguments)
    assert (status, out) == (2, [])
    assert all(text in err for text in named)


@pytest.mark.parametrize("wrong", ["{", "[]", '{"topic": 5}', '{"headers": []}', '{"values": 1}'])
def test_lines_that_are_no_records(monkeypatch: Any, capsys: Any, wrong: str) -> None:
    status, out, err = transform(monkeypatch, capsys, [line(None), wrong], "--type", "ScyllaFlattenColumns")
    assert status == (0 if wrong == '{"headers": []}' else 1)
    assert len(out) == (2 if status == 0 else 1)
    assert status == 0 or "line 2 of stdin" in err


def test_a_record_without_key_and_images(monkeypatch: Any, capsys: Any) -> None:
    given = [{"topic": "t", "key": None, "value": envelope("u", None, None)}]
    status, _, err = transform(monkeypatch, capsys, given, "--type", "extract-new-state")
    assert status == 1 and "line 1 of stdin" in err and "key.converter" in err
