"""A Java worker file with JKS stores and a login, against a broker that demands both."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from embedded.kafka import EmbeddedKafka
from embedded.ports import HOST, free_port
from tests.config.files import STORES, loaded

SECURE = "listener.name.secure"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def worker(port: int, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": f"{HOST}:{port}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{MODULE} required username="ann" password="{password}";',
        "ssl.truststore.location": str(STORES / "trust.jks"),
        "ssl.truststore.password": "trustpass",
        "ssl.keystore.location": str(STORES / "client.jks"),
        "ssl.keystore.password": "storepass",
        "ssl.key.password": "keypass",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.kafka
def test_jks_stores_and_a_login_are_what_the_broker_wants() -> None:
    plain, secure, controller = free_port(), free_port(), free_port()
    properties = {
        "listeners": f"PLAINTEXT://{HOST}:{plain},SECURE://{HOST}:{secure},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{plain},SECURE://{HOST}:{secure}",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
        f"{SECURE}.ssl.keystore.location": str(STORES / "client.jks"),
        f"{SECURE}.ssl.keystore.password": "storepass",
        f"{SECURE}.ssl.key.password": "keypass",
        f"{SECURE}.ssl.truststore.location": str(STORES / "trust.jks"),
        f"{SECURE}.ssl.truststore.password": "trustpass",
        f"{SECURE}.ssl.client.auth": "required",
        f"{SECURE}.sasl.enabled.mechanisms": "PLAIN",
        f"{SECURE}.plain.sasl.jaas.config": f'{MODULE} required user_ann="p;w \\"q";',
    }
    with EmbeddedKafka(port=plain, properties=properties):
        right = loaded(worker=worker(secure, 'p;w \\"q')).kafka
        assert list(AdminClient({**right.admin, "log_level": 0}).list_topics(timeout=90).brokers) == [1]
        for refused in (
            worker(secure, "wrong"),
            {name: text for name, text in worker(secure, 'p;w \\"q').items() if "keystore" not in name},
            {name: text for name, text in worker(secure, 'p;w \\"q').items() if "truststore" not in name},
        ):
            kafka = loaded(worker=refused).kafka
            with pytest.raises(KafkaException):
                AdminClient({**kafka.admin, "log_level": 0}).list_topics(timeout=2)
