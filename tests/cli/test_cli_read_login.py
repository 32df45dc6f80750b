"""Who `scylla-cdc read` logs in as."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from connector.cli.read import ReadCommand, _settings

FILE = {
    "name": "orders",
    "config": {
        "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
        "scylla.cluster.ip.addresses": "127.0.0.1:9042",
        "scylla.table.names": "shop.orders",
        "topic.prefix": "shop",
    },
}


@pytest.mark.parametrize(
    ("config", "variables", "login"),
    [
        (None, {}, (None, None)),
        (None, {"SCYLLA_PASSWORD": "geheim"}, ("cassandra", "geheim")),
        (None, {"SCYLLA_PASSWORD": "geheim", "SCYLLA_USER": "cdc"}, ("cdc", "geheim")),
        ({}, {"SCYLLA_PASSWORD": "geheim", "SCYLLA_USER": "cdc"}, ("cdc", "geheim")),
        (
            {"scylla.user": "its", "scylla.password": "anders"},
            {"SCYLLA_PASSWORD": "geheim", "SCYLLA_USER": "cdc"},
            ("its", "geheim"),
        ),
    ],
)
def test_a_login_is_the_files_or_the_environments(
    config: dict[str, str] | None,
    variables: dict[str, str],
    login: tuple[str | None, str | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SCYLLA_USER", "SCYLLA_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    given = ["shop.orders"]
    if config is not None:
        file = tmp_path / "orders.json"
        file.write_text(json.dumps({**FILE, "config": {**FILE["config"], **config}}))  # type: ignore[dict-item]
        given += ["--config", str(file)]
    parser = argparse.ArgumentParser()
    ReadCommand().add_arguments(parser)
    connection, _ = _settings(parser.parse_args(given))
    assert (connection.user, connection.password) == login
