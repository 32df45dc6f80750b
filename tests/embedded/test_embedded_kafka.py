"""The broker as tests and the demo use it: mistreated, restarted, and never left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connector.errors import EmbeddedError
from embedded import ports
from embedded.kafka import EmbeddedKafka
from tests.embedded.processes import is_gone
from tests.house import ROOT
from tests.servers.patience import until

pytestmark = pytest.mark.kafka


def client(broker: EmbeddedKafka, **more: object) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0} | {
        name.replace("_", "."): value for name, value in more.items()
    }


def create_topic(broker: EmbeddedKafka, topic: str) -> None:
    admin = AdminClient(client(broker))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=90)


def write(producer: Producer, topic: str, *values: str) -> None:
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(90) == 0


def read(broker: EmbeddedKafka, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
    consumer = Consumer(client(broker, group_id=topic, isolation_level=isolation))
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return [message.value().decode() for message in consumer.consume(count, timeout=90)]
    finally:
        consumer.close()


def answers(broker: EmbeddedKafka) -> bool:
    try:
        return bool(AdminClient(client(broker)).list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def test_aborted_transactions_stay_hidden(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    topic = unique("transactions")
    create_topic(kafka, topic)
    producer = Producer(client(kafka, transactional_id=topic))
    producer.init_transactions(90)
    for value, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        write(producer, topic, value)
        end(90)
    assert read(kafka, topic, 1) == ["committed"]
    assert read(kafka, topic, 2, "read_uncommitted") == ["aborted", "committed"]


def test_a_topic_is_not_created_by_mistake(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    topic = unique("mistyped")
    assert AdminClient(client(kafka)).list_topics(topic, timeout=90).topics[topic].error is not None


def test_restarts_keep_data_and_port(own_kafka: EmbeddedKafka) -> None:
    create_topic(own_kafka, "kept")
    producer = Producer(client(own_kafka))
    write(producer, "kept", "one")
    address, first = own_kafka.bootstrap_servers, own_kafka.pid

    own_kafka.restart()
    assert own_kafka.bootstrap_servers == address
    assert is_gone(first)
    write(producer, "kept", "two")

    own_kafka.kill()
    assert not own_kafka.running and not answers(own_kafka)
    own_kafka.start()
    write(producer, "kept", "three")
    assert read(own_kafka, "kept", 3) == ["one", "two", "three"]

    own_kafka.pause()
    assert own_kafka.running and not answers(own_kafka)
    own_kafka.resume()
    until(lambda: answers(own_kafka))

    data = own_kafka.data
    own_kafka.close()
    assert not data.exists()
    own_kafka.close()


def test_a_given_folder_is_kept_whatever_language_is_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "Ünïcode 😀" / "da ta"
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Duser.language=tr")
    with EmbeddedKafka(data=folder, properties={"num.partitions": "3"}) as broker:
        create_topic(broker, "kept")
        assert "num.partitions=3" in (broker.data / "server.properties").read_text()
    monkeypatch.delenv("JDK_JAVA_OPTIONS")
    with EmbeddedKafka(data=folder) as broker:
        assert "kept" in AdminClient(client(broker)).list_topics(timeout=90).topics


def test_a_taken_port_is_named() -> None:
    port = ports.free_port()
    with socket.create_server((ports.HOST, port)), pytest.raises(EmbeddedError, match=rf"port {port} .*taken"):
        EmbeddedKafka(port=port).start()


def test_a_controller_never_gets_its_brokers_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is not bound yet when that of the controller is chosen."""
    chosen = ports.free_port()
    another = ports.free_port(beside=chosen)
    monkeypatch.setattr(ports, "_range", (chosen, another))
    assert {ports.free_port(beside=chosen) for _ in range(20)} == {another}


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"(?s)ended at its start.*num\.io\.threads"):
        EmbeddedKafka(data=tmp_path, properties={"num.io.threads": "none"}).start()


def test_before_the_start_there_is_no_address() -> None:
    with pytest.raises(EmbeddedError, match="not started"):
        EmbeddedKafka().bootstrap_servers  # noqa: B018


def test_kill_9_of_the_program_leaves_nothing(tmp_path: Path) -> None:
    program = "\n".join(
        [
            "import signal",
            "from embedded.kafka import EmbeddedKafka",
            "broker = EmbeddedKafka().start()",
            "print(broker.pid, broker.data, flush=True)",
            "signal.pause()",
        ]
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, data = process.stdout.readline().split()
        assert Path(data).is_dir()
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: is_gone(int(pid)) and not Path(data).exists())
