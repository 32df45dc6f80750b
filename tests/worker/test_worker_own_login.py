"""The process's own clients log in with what references and key stores are by then, once Kafka has refused them."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from connector.cli.configuration import load_worker
from connector.secrets import scrub
from connector.worker.own_login import OwnLogin
from connector.worker.refused_logins import LONGEST_PAUSE
from tests.config.files import STORES

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "sasl_ssl://kafka:9092/bootstrap: Authentication failed")


class Worker:
    """A worker's file, whose password is in another one and whose key store is replaced in place."""

    def __init__(self, folder: Path) -> None:
        self.file, self._secrets = folder / "worker.json", folder / "secrets.properties"
        self.store, self.trust, self.loads, self.now = folder / "client.jks", folder / "trust.pem", 0, 0.0
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        self.given = {
            "bootstrap.servers": "kafka:9092",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{module} required username="ann" password="${{file:{self._secrets}:password}}";',
            "ssl.keystore.location": str(self.store),
            "ssl.keystore.password": "storepass",
            "ssl.key.password": "keypass",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }
        self.write()
        self.password("the first word")
        shutil.copy(STORES / "client.jks", self.store)
        shutil.copy(STORES / "trusted.pem", self.trust)
        self.login = OwnLogin(load_worker(self.file), self._load, lambda: self.now)

    def write(self, **more: str) -> None:
        self.file.write_text(json.dumps(self.given | more))

    def password(self, text: str | None) -> None:
        self._secrets.write_text("other=1\n" if text is None else f"password={text}\n")

    def _load(self) -> Any:
        self.loads += 1
        return load_worker(self.file)

    def looked(self, seconds: float = LONGEST_PAUSE, refused: bool = True) -> Any:
        """What producers log in with after a look."""
        if refused:
            self.login.clients.health.failed(REFUSED)
        self.now += seconds
        self.login.look()
        return self.login.clients.producer_properties


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


def test_a_password_is_looked_for_when_the_one_before_is_refused(worker: Worker) -> None:
    worker.password("the second word")
    assert worker.looked(refused=False)["sasl.password"] == "the first word" and not worker.loads
    told = list[int]()
    worker.login._renewed = lambda: told.append(worker.login.clients.renewals)
    assert worker.looked()["sasl.password"] == "the second word" and worker.login.clients.renewals == 1
    clients = worker.login.clients
    assert clients.consumer_properties["sasl.password"] == clients.admin_properties["sasl.password"]
    assert "second" not in scrub("login with the second word")
    assert worker.looked()["sasl.password"] == "the second word" and clients.renewals == 1, "it is no other one"
    worker.password("the third word")
    assert worker.looked()["sasl.password"] == "the third word" and told == [1, 2]


def test_a_store_that_is_replaced_in_place_is_read_again(worker: Worker) -> None:
    before = worker.looked()
    assert before["ssl.certificate.pem"] and worker.login.clients.renewals == 0
    shutil.copy(STORES / "trust.jks", worker.store)  # without a key, as in the middle of a change
    shutil.copy(STORES / "client-chain.pem", worker.trust)
    assert worker.looked() == before
    shutil.copy(STORES / "client.jks", worker.store)
    after = worker.looked()
    assert after["ssl.ca.pem"] != before["ssl.ca.pem"] and worker.login.clients.renewals == 1
    assert after["ssl.certificate.pem"] == before["ssl.certificate.pem"]


def test_what_names_nothing_is_told_once_and_looked_for_again(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.password(None)
    for _ in range(3):
        assert worker.looked()["sasl.password"] == "the first word"
    assert caplog.text.count("goes on with what it logged in to Kafka with before") == 1
    assert "sasl.jaas.config: ${file:" in caplog.text
    worker.password("the second word")
    assert worker.looked()["sasl.password"] == "the second word"


def test_half_a_process_does_not_go_by_another_workers_file(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.password("the second word")
    worker.write(**{"config.storage.topic": "another"})
    for _ in range(2):
        assert worker.looked()["sasl.password"] == "the first word"
    assert caplog.text.count("its worker's file has changed: start the process anew") == 1
    worker.write()
    assert worker.looked()["sasl.password"] == "the second word"


def test_stores_of_secrets_are_asked_less_and_less_often_while_brokers_are_away(worker: Worker) -> None:
    for _ in range(600):
        worker.looked(1.0)
    assert 10 <= worker.loads <= 16
    worker.looked(600.0, refused=False)
    before = worker.loads
    for _ in range(6):
        worker.looked(1.0)
    assert worker.loads == before + 2, "it was over, and begins again"


def test_whatever_ails_a_look_the_next_one_is_made(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    worker.file.write_text("{")
    assert worker.looked()["sasl.password"] == "the first word"
    worker.write()
    worker.password("the second word")
    assert worker.looked()["sasl.password"] == "the second word"
    assert "the second word" not in scrub(caplog.text)
