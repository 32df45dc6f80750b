"""JSON that `jq` and HTTPie make in scripts, and what is said of JSON that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.config.forms.scripts import posted_files
from connector.errors import Problem
from tests.config.files import CLASS, CONNECTOR, WORKER, read, validate

JQ = f"""#!/bin/bash
HOSTS=scylla:9042
BODY=$(jq -n \\
  --arg hosts "$HOSTS" --arg pw "$PW" --arg tables 'k.a,k.b' --arg made "$(cat pw)" --arg odd 'a"$b' \\
  --argjson tasks 3 '
{{
  name: $name_of_nobody,
  config: {{
    "connector.class": "{CLASS}",
    "scylla.cluster.ip.addresses": $hosts, "topic.prefix": "\\($hosts)-\\(env.PREFIX)",
    "tasks.max": $tasks, "scylla.user": env.WHO, "scylla.password": $pw, "scylla.table.names": ($tables),
    "w": $ENV.WHO, "x": $made, "y": ($tables | ascii_upcase), "z": "$hosts", "q": $odd
  }}
}}')
curl -d "$BODY" localhost:8083/connectors
"""
HTTPIE = f"""
http POST localhost:8083/connectors Accept:application/json name=a config:='{{
  "connector.class": "{CLASS}", "x": "'$X'" }}'
xh --ignore-stdin PUT :8083/connectors/b/config 'connector.class={CLASS}' tasks.max:=1 x="$X:1" y=='{{' z='$X'
http :8083/connectors name=c 'config[connector.class]={CLASS}' config[x]=$X
"""


def test_what_jq_makes_is_read_with_what_it_is_given(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "create.sh", JQ)
    assert document.texts == {
        "connector.class": CLASS,
        "scylla.cluster.ip.addresses": "scylla:9042",
        "topic.prefix": "scylla:9042-${env:PREFIX}",
        "tasks.max": "3",
        "scylla.user": "${env:WHO}",
        "scylla.password": "${env:PW}",
        "scylla.table.names": "k.a,k.b",
        "w": "${env:WHO}",
        "z": "$hosts",
        "q": 'a"$b',
    }
    assert [each.property for each in document.problems] == ["name", "x", "y"]
    assert {each.problem for each in document.problems} == {"Is an expression, which only running the script tells"}


@pytest.mark.parametrize(
    "program",
    [
        f"""'{{"connector.class": "{CLASS}"}} | .x = $x'""",
        f"""'[{{"connector.class": "{CLASS}"}}] | map(.x = $x)[0]'""",
    ],
)
def test_what_jq_changes_behind_its_object_is_not_passed_over(tmp_path: Path, program: str) -> None:
    (tmp_path / "create.sh").write_text(f'jq -n --arg x "$X" {program} | curl -d @- localhost:8083/connectors\n')
    (problem,) = validate(tmp_path / "create.sh", WORKER, {})
    assert problem.problem == "Holds no connector and no worker that can be read"


def test_what_httpie_sends(tmp_path: Path) -> None:
    found = {each.texts["name"]: each.texts for each in read(tmp_path, "create.sh", HTTPIE)}
    own = {"connector.class": CLASS}
    assert found == {
        "a": {"name": "a", "x": "${env:X}", **own},
        "b": {"name": "b", "tasks.max": "1", "x": "${env:X}:1", "z": "$X", **own},
        "c": {"name": "c", "x": "${env:X}", **own},
    }


def test_files_that_are_handed_to_a_command() -> None:
    script = "http POST :8083/connectors < a.json\nenvsubst <b/c.json | curl -d @- x\ncat d.json | curl -d @- x\n"
    assert posted_files(f"{script}http POST :8083/connectors @e.json\n") == ["a.json", "b/c.json", "d.json", "e.json"]


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        ('{\n  // why\n  "name": "o"}', "a comment at line 2, column 3", "leave it out"),
        ('{"name": "o" # why\n}', "a comment at line 1, column 14", "leave it out"),
        ('{"name": "o",\n/* why */ "x": 1}', "a comment at line 2, column 1", "leave it out"),
        ('{"name": "o",\n\n}', "a comma with nothing behind it at line 1, column 13", "leave it out"),
        ('{"x": ["a",\n"b",\n]}', "a comma with nothing behind it at line 2, column 4", "leave it out"),
        ("{'name': 'o'}", "a text in single quotes at line 1, column 2", "double"),
        ('{"name": "o"}\n{"name": "p"}', "something behind its end at line 2, column 1", "a file for each"),
        (" \n", "it is empty", "None"),
        ('{"name": o}', "Expecting value at line 1, column 10", "None"),
    ],
)
def test_json_that_is_none(tmp_path: Path, content: str, said: str, hint: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(content)
    (problem,) = validate(file, WORKER, {})
    assert problem == Problem("JSON", f"Is not JSON: {said}", None, problem.suggestion, str(file))
    assert hint in str(problem.suggestion) and validate(CONNECTOR, WORKER, {}) == []


def test_a_page_that_says_how_to_post_a_connector_is_read_as_a_script(tmp_path: Path) -> None:
    body = f"""{{"name": "a", "config": {{"connector.class": "{CLASS}", "x": "1"}}}}"""
    (document,) = read(tmp_path, "README.md", f"# Orders\n\nNote: first\n\n```bash\ncurl -d '{body}' c:8083\n```\n")
    assert document.texts == {"name": "a", "connector.class": CLASS, "x": "1"}


def test_a_batch_file_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "c.bat").write_text('@echo off\ncurl -d "{\\"connector.class\\": \\"%X%\\"}" localhost:8083\n')
    (problem,) = validate(tmp_path / "c.bat", WORKER, {})
    assert problem.problem.startswith("Is a program") and "give the JSON" in str(problem.suggestion)


def test_powershell_puts_variables_into_double_quotes(tmp_path: Path) -> None:
    body = f"""{{"name": "NAME", "config": {{"connector.class": "{CLASS}",
  "x": "$env:PW", "y": "${{env:PW}}-$here", "z": "a\\\\b"}}}}"""
    script = f"""$a = @"\n{body}\n"@\n$b = @'\n{body.replace("NAME", "literal")}\n'@\n"""
    ours, literal = read(tmp_path, "create.ps1", script)
    assert ours.texts == {
        "name": "NAME",
        "connector.class": CLASS,
        "x": "${env:PW}",
        "y": "${env:PW}-${env:here}",
        "z": "a\\b",
    }
    assert (literal.texts["x"], literal.texts["y"]) == ("$env:PW", "${env:PW}-$here")
