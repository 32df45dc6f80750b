"""`scylla-cdc validate --offline` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connector.cli.main import run
from tests.config.files import CONNECTOR, WORKER


def validate(capsys: Any, tmp_path: Path, connector: Any, worker: Any, *more: str) -> tuple[int, str, str]:
    paths = []
    for name, content in (("c.json", connector), ("w.json", worker)):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        paths.append(str(path))
    status = run(["validate", paths[0], "--worker", paths[1], "--offline", *more])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_valid(capsys: Any, tmp_path: Path) -> None:
    status, out, err = validate(capsys, tmp_path, CONNECTOR, {**WORKER, "plugin.path": "/x"})
    assert status == 0 and out.startswith("valid") and "plugin.path" in err
    status, out, _ = validate(capsys, tmp_path, CONNECTOR, WORKER, "--json")
    assert (status, json.loads(out)) == (0, {"valid": True, "problems": []})


def test_what_else_is_to_be_known_is_told_beside_what_is_wrong(capsys: Any, tmp_path: Path) -> None:
    connector = {**CONNECTOR, "tasks.max": "0", "scylla.ssl.truststore.path": "/x", "made.up": "x"}
    status, out, err = validate(capsys, tmp_path, connector, {**WORKER, "plugin.path": "/x"})
    assert (status, out) == (2, "") and "tasks.max = '0'" in err
    assert err.index("made.up: unknown property, ignored") < err.index("error:") and "plugin.path" in err
    status, out, err = validate(capsys, tmp_path, connector, WORKER, "--json")
    assert status == 2 and "made.up" in err and "made.up" not in out
    # Of several connectors, also of those in which nothing is wrong.
    (tmp_path / "d.json").write_text(json.dumps({**CONNECTOR, "name": "other", "made.up.too": "x"}))
    status = run(["validate", "--offline", "--worker", *(str(tmp_path / f"{name}.json") for name in "wcd")])
    err = capsys.readouterr().err
    assert status == 2 and "made.up: " in err and "made.up.too: " in err


def test_problems_of_both_files_as_json(capsys: Any, tmp_path: Path) -> None:
    connector = {**CONNECTOR, "tasks.max": "0", "scylla.pasword": "hunter2"}
    status, out, _ = validate(capsys, tmp_path, connector, {"group.idd": "x"}, "--json")
    answer = json.loads(out)
    assert status == 2 and answer["valid"] is False
    assert all(list(one) == ["file", "property", "value", "problem", "suggestion"] for one in answer["problems"])
    assert [(Path(one["file"]).name, one["property"], one["value"]) for one in answer["problems"]] == [
        ("c.json", "tasks.max", "0"),
        ("c.json", "scylla.pasword", "********"),
        ("w.json", "group.idd", None),
    ]


def test_broken_json(capsys: Any, tmp_path: Path) -> None:
    status, out, _ = validate(capsys, tmp_path, '{"name": "x"', "{,}", "--json")
    problems = json.loads(out)["problems"]
    assert status == 2 and len(problems) == 2
    assert "line 1, column 13" in problems[0]["problem"] and "line 1, column 2" in problems[1]["problem"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"name": \u201cx\u201d}', 'the quote \u201c at line 1, column 10 (JSON has straight ones, ")'),
        ('{"name": "x",\n \u2018topic.prefix\u2019: "y"}', "the quote \u2018 at line 2, column 2"),
        ('{"name": "x",\n"config": {\n', "it ends too early at line 2, column 12 (a bracket"),
        ('{"name": "x', "a text without its second quote at line 1, column 10"),
        ('{"name": "x"},\n', "a comma behind its end at line 1, column 14 (leave it out)"),
        (
            '{"login": "of user="x" password=\\"y\\";"}',
            'a quote inside of a text at line 1, column 20 (JSON writes it as \\")',
        ),
        ('{"name": ["x"}', "the bracket } at line 1, column 14 (another one is not closed yet)"),
        ('{"tasks.max": 01}', "a number that is none at line 1, column 16"),
        ('{"name": "x"\n"topic.prefix": "y"}', "a comma is missing at line 1, column 13"),
        ('{"name": "x,\n"topic.prefix": "y"}', "a line's end or a tab inside of a text at line 1, column 13"),
    ],
)
def test_what_keeps_a_file_from_being_json_is_told_in_plain_words(
    text: str, told: str, capsys: Any, tmp_path: Path
) -> None:
    status, _, err = validate(capsys, tmp_path, text, WORKER)
    assert status == 2 and f"JSON: Is not JSON: {told}" in err


def test_options_of_transforms(capsys: Any, tmp_path: Path) -> None:
    chain = {"transforms": "flat", "transforms.flat.type": "extract-new-state"}
    plain = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    status, _, err = validate(capsys, tmp_path, {**CONNECTOR, **plain, **chain}, WORKER)
    assert (status, err) == (0, "")
    # The default of the JsonConverter is to write schemas, which name every field.
    status, _, err = validate(capsys, tmp_path, {**CONNECTOR, **chain}, WORKER)
    assert status == 2 and "transforms.flat.untouched.fields" in err
    wrong = {**plain, **chain, "transforms.flat.add.field": "op", "transforms.flat.drop.tombstones": "maybe"}
    status, _, err = validate(capsys, tmp_path, {**CONNECTOR, **wrong}, WORKER)
    assert status == 2 and "transforms.flat.add.field" in err and "transforms.flat.drop.tombstones" in err
    java = {**chain, "transforms.flat.type": "ScyllaExtractNewRecordState"}
    status, _, err = validate(capsys, tmp_path, {**CONNECTOR, **java}, WORKER)
    assert status == 0 and "deletes vanish" in err
    # Whole images have no untouched columns to leave out.
    advanced = {**chain, **plain, "cdc.output.format": "advanced", "cdc.include.after": "full"}
    status, _, err = validate(capsys, tmp_path, {**CONNECTOR, **advanced}, WORKER)
    assert (status, err) == (0, "")
