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
        compose_override_yaml="services: {connect: {environment: [}}\n",
    )
    (problem,) = validate(CONNECTOR, file, {})
    assert problem.property == "compose.override.yaml"
    assert problem.problem == "Cannot be read, and compose reads it over compose.yaml"
    assert "docker compose config" in str(problem.suggestion)


BASE = """
services:
  connect:
    env_file: of.env
    environment: {CONNECT_BOOTSTRAP_SERVERS: "k:1", CONNECT_GROUP_ID: g, CONNECT_CLIENT_RACK: r}
"""


@pytest.mark.parametrize(
    ("over", "wanted"),
    [
        ("{environment: {CONNECT_CLIENT_RACK: !reset null}, ports: !reset []}", ("g", None, "positions")),
        ("{extends: !reset null, image: !reset null}", ("g", "r", "positions")),
        ("{environment: !override {CONNECT_BOOTSTRAP_SERVERS: 'k:1'}}", ("of file", None, "positions")),
        ("{environment: !override ['CONNECT_BOOTSTRAP_SERVERS=k:1'], env_file: !reset null}", (None, None, None)),
        ("{environment: {CONNECT_GROUP_ID: other}, env_file: !override [other.env]}", ("other", "r", "others")),
        ("!override {environment: {CONNECT_BOOTSTRAP_SERVERS: 'k:1', CONNECT_GROUP_ID: NO}}", ("NO", None, None)),
        ("{environment: {CONNECT_GROUP_ID: off, CONNECT_CLIENT_RACK: 1e3}}", ("off", "1000", "positions")),
    ],
)
def test_what_a_file_writes_over_is_gone(tmp_path: Path, over: str, wanted: tuple[str | None, ...]) -> None:
    file = put(
        tmp_path,
        compose_yaml=BASE,
        compose_override_yaml=f"services:\n  connect: {over}\n",
        of_env="CONNECT_GROUP_ID=of file\nCONNECT_OFFSET_STORAGE_TOPIC=positions\n",
        other_env="CONNECT_OFFSET_STORAGE_TOPIC=others\n",
    )
    (document,) = read_documents(file, "file", {})
    assert not document.problems and document.texts["bootstrap.servers"] == "k:1"
    assert tuple(document.texts.get(name) for name in ("group.id", "client.rack", "offset.storage.topic")) == wanted


def test_a_service_may_be_taken_out(tmp_path: Path) -> None:
    second = BASE + BASE.partition("services:")[2].replace("connect:", "second:").replace("k:1", "k:2")
    over = "services: {second: !reset null}\n"
    file = put(tmp_path, compose_yaml=second, compose_override_yaml=over, of_env="CONNECT_CLIENT_ID=c\n")
    assert load(CONNECTOR, file, {}).worker.bootstrap_servers == "k:1"
    file.with_name("compose.override.yaml").unlink()
    assert "has 2: connect, second" in validate(CONNECTOR, file, {})[0].problem
