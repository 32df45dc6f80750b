"""Compose files that are more than one: what is included, and what is read over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.config import load, read_documents
from tests.config.files import CONNECTOR, validate


def put(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return folder / "compose.yaml"


CONNECT = """
services:
  connect:
    env_file: connect.env
    environment: {CONNECT_BOOTSTRAP_SERVERS: "${KAFKA}", CONNECT_CLIENT_ID: "${OWN}"}
"""


@pytest.mark.parametrize(
    ("include", "client_id"),
    [
        ("[connect/part.yaml]", "theirs"),
        ("[{path: [connect/part.yaml, connect/over.yaml]}]", "over"),
        ("[{path: connect/part.yaml, env_file: own.env}]", "of a file"),
        ("[outer.yaml]", "theirs"),
    ],
)
def test_what_is_included_is_part_of_the_project(
    tmp_path: Path, include: str, client_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(
        tmp_path,
        _env="KAFKA=k:1\n",
        own_env="OWN=of a file\n",
        compose_yaml=f"include: {include}\nservices: {{kafka: {{image: kafka}}}}\n",
        outer_yaml="include: [connect/part.yaml]\n",
        connect__part_yaml=CONNECT,
        connect__over_yaml="services: {connect: {environment: {CONNECT_CLIENT_ID: over}}}\n",
        connect__connect_env="CONNECT_GROUP_ID=g\n",
        connect___env="KAFKA=not:1\nOWN=theirs\n",
    )
    (document,) = read_documents(file, "worker", {})
    assert document.texts == {"bootstrap.servers": "k:1", "client.id": client_id, "group.id": "g"}
    monkeypatch.chdir(tmp_path.parent)
    assert read_documents(f"{tmp_path.name}/compose.yaml", "worker", {})[0].texts == document.texts
    file.write_text(f"include: {include}\n")
    assert load(CONNECTOR, file, {}).worker.group_id == "g", "a file of parts alone"


def test_where_the_paths_of_what_is_included_begin(tmp_path: Path) -> None:
    file = put(
        tmp_path,
        compose_yaml="include: [{path: parts/part.yaml, project_directory: .}]\n",
        parts__part_yaml=CONNECT,
        connect_env="CONNECT_GROUP_ID=above\n",
        _env="KAFKA=k:1\nOWN=o\n",
    )
    assert load(CONNECTOR, file, {}).worker.group_id == "above"


def test_what_cannot_be_included_is_told_where_no_worker_is_left(tmp_path: Path) -> None:
    include = 'include: ["oci://registry/part", "a\\0b", gone.yaml, "../{}/compose.yaml"]\n'
    include = include.format(tmp_path.name)
    problems = validate(CONNECTOR, put(tmp_path, compose_yaml=include), {})
    assert [each.problem.partition("gone")[1:] for each in problems if each.property == "include"][-1][0] == "gone"
    assert "has 0: none" in problems[0].problem
    worker = "services: {connect: {environment: {CONNECT_BOOTSTRAP_SERVERS: 'k:1', CONNECT_GROUP_ID: g}}}\n"
    assert load(CONNECTOR, put(tmp_path, compose_yaml=include + worker), {}).worker.group_id == "g"


def test_an_override_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = put(
        tmp_path,
        compose_yaml="services: {connect: {environment: {CONNECT_BOOTSTRAP_SERVERS: 'k:1', CONNECT_GROUP_ID: g}}}\n",
        compose_override_yaml="services: {connect: {environment: !override {CONNECT_GROUP_ID: other}}}\n",
    )
    (problem,) = validate(CONNECTOR, file, {})
    assert problem.property == "compose.override.yaml"
    assert problem.problem == "Cannot be read, and compose reads it over compose.yaml"
    assert "docker compose config" in str(problem.suggestion)
