"""`load_connector`: what a connector's file says about ScyllaDB, for commands that need no Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.config import load, load_connector
from connector.errors import ConfigurationError
from tests.config.files import CONNECTOR, WORKER

VAULT = {"config.providers": "vault", "config.providers.vault.class": "org.example.FileConfigProvider"}


@pytest.fixture
def password(tmp_path: Path) -> dict[str, str]:
    """A login whose password only a provider that the worker's file declares can tell."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=hidden\n")
    return {"scylla.user": "reader", "scylla.password": f"${{vault:{secrets}:password}}"}


def test_a_file_that_run_takes_is_taken_without_the_workers(tmp_path: Path) -> None:
    only_kafka = {"producer.override.sasl.jaas.config": "${vault:/nowhere:jaas}", "offsets.storage.topic": "o"}
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"name": "orders", "config": {**CONNECTOR, **only_kafka}}))
    environ = {"CONNECT_SSL_TRUSTSTORE_LOCATION": "/not/on/this/machine", "CONNECT_SECURITY_PROTOCOL": "SSL"}
    with pytest.raises(ConfigurationError):
        load(file, WORKER, environ)
    found = load_connector(file, environ=environ)
    assert found == load_connector(file)
    assert [str(table) for table in found.reading.tables] == CONNECTOR["scylla.table.names"].split(",")


def test_providers_of_the_workers_file_are_known(password: dict[str, str]) -> None:
    connector = {**CONNECTOR, **password}
    found = load_connector(connector, {**WORKER, **VAULT}).connection
    assert found == load(connector, {**WORKER, **VAULT}, {}).connector.connection
    assert found.password is not None and found.password.reveal() == "hidden"


def test_providers_of_the_environment_are_known(password: dict[str, str]) -> None:
    """A container's worker has no file."""
    environ = {"CONNECT_" + name.upper().replace(".", "_"): text for name, text in VAULT.items()}
    found = load_connector({**CONNECTOR, **password}, environ=environ).connection.password
    assert found is not None and found.reveal() == "hidden"
    environ["CONNECT_CONFIG_PROVIDERS_VAULT_PARAM_ALLOWED_PATHS"] = "/nowhere"
    with pytest.raises(ConfigurationError, match="may not be read"):
        load_connector({**CONNECTOR, **password}, environ=environ)


def test_a_missing_provider_is_told_with_the_option_that_names_the_workers_file(password: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_connector({**CONNECTOR, **password})
    (problem,) = caught.value.problems
    assert problem.property == "scylla.password"
    assert problem.suggestion is not None and problem.suggestion.startswith("--worker W.json")


def test_what_is_wrong_with_the_source_or_misspelt_is_told() -> None:
    wrong = {**CONNECTOR, "scylla.consistency.level": "MOST", "scylla.tabel.names": "ks.t"}
    with pytest.raises(ConfigurationError) as caught:
        load_connector(wrong)
    assert {problem.property for problem in caught.value.problems} == {"scylla.consistency.level", "scylla.tabel.names"}
