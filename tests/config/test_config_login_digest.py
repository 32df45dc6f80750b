"""Two logins are told apart by all that they are made of, and by nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from connector.config import kafka_digest, login_digest
from tests.config.files import STORES, loaded

REGISTRY = "value.converter.schema.registry"
AVRO = {"value.converter": "AvroConverter", f"{REGISTRY}.url": "https://registry:8081"}


def digest(connector: dict[str, Any] | None = None, worker: dict[str, Any] | None = None) -> str:
    return login_digest(loaded(connector, worker))


@pytest.mark.parametrize(
    "connector",
    [
        {"scylla.user": "cdc", "scylla.password": "{}"},
        {"producer.override.sasl.jaas.config": 'a.PlainLoginModule required username="a" password="{}";'},
        {**AVRO, "value.converter.basic.auth.user.info": "cdc:{}"},
        {
            **AVRO,
            "value.converter.bearer.auth.token": "{}",
            "value.converter.bearer.auth.credentials.source": "STATIC_TOKEN",
        },
    ],
    ids=["ScyllaDB", "Kafka", "registry", "token"],
)
def test_a_password_makes_another_login(connector: dict[str, str]) -> None:
    secure = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    secure["sasl.jaas.config"] = 'a.PlainLoginModule required username="a" password="any";'

    def of(word: str) -> str:
        return digest({name: text.replace("{}", word) for name, text in connector.items()}, secure)

    assert of("first-word") == of("first-word") != of("second-word")
    assert "first" not in of("first-word")


@pytest.mark.parametrize("of_kafka", [True, False], ids=["Kafka", "ScyllaDB"])
def test_a_file_that_is_replaced_in_place_makes_another_login(tmp_path: Path, of_kafka: bool) -> None:
    """Also one of which the configuration knows the name alone."""
    file = tmp_path / "login"
    shutil.copy(STORES / ("client-chain.pem" if of_kafka else "client.p12"), file)
    if of_kafka:
        given: tuple[Any, Any] = ({}, {"security.protocol": "SSL", "ssl.certificate.location": str(file)})
    else:
        store = {"scylla.ssl.keystore.path": str(file), "scylla.ssl.keystore.password": "storepass"}
        given = (store | {"scylla.ssl.enabled": "true"}, {})
    configuration = loaded(*given)
    before = login_digest(configuration), kafka_digest(configuration.kafka)
    file.write_bytes(file.read_bytes() + b"\n")
    assert login_digest(configuration) != before[0]
    assert (kafka_digest(configuration.kafka) != before[1]) is of_kafka
    file.unlink()
    assert login_digest(configuration) != before[0], "who needs it says that it is not there"


def test_what_is_no_login_does_not_count() -> None:
    assert digest({"tasks.max": "1"}) == digest({"tasks.max": "2", "topic.prefix": "other"})
