"""The number of slots is what marks say, and one `run` asks for it once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest

from connector.config import Configuration
from connector.delivery import TopicSpec, TransactionalProducer, compact_json, encode_offsets_key, ensure_topics
from connector.errors import ConfigurationError
from connector.table_name import TableName
from connector.topology import Mark, MarkKey, mark_entry
from connector.worker import ended_workers
from connector.worker.order import WorkerOrder
from connector.worker.settings import kafka_clients
from connector.worker.slots import slots_by_marks, slots_in_force
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded
from tests.servers.patience import until

# Tells a number when it was told none, and ends as a wrong configuration does when it was told that one.
WORKER = """
import json, pickle, sys
order = pickle.load(sys.stdin.buffer)
name = order.configuration.connector.name
print(json.dumps({"event": "slots", "connector": name, "slots": 41}), flush=True)
sys.exit(2 if order.noted is not None and order.noted.slots == 41 else 1)
"""


def never() -> bool:
    return False


@pytest.mark.kafka
def test_marks_say_how_many_slots_there_are(kafka: object, unique: Callable[[str], str]) -> None:
    topic = unique("offsets")
    address = {"bootstrap.servers": kafka.bootstrap_servers}  # type: ignore[attr-defined]
    configuration: Configuration = loaded({}, {**address, "offset.storage.topic": topic})
    clients, name = kafka_clients(configuration), configuration.connector.name
    assert slots_by_marks(configuration, never) is None, "there is no topic"
    ensure_topics(clients.admin(), [TopicSpec(topic, 4, 1, compacted=True)])
    assert slots_by_marks(configuration, never) is None, "there is no mark"
    assert slots_in_force(clients, configuration, 4, never).slots == 4
    producer = TransactionalProducer(clients, unique("w"), 15_000)
    producer.start(time.monotonic() + 60)
    producer.begin()
    entry = mark_entry(MarkKey(TableName("ks", "t"), 1, 3), Mark(1, 1, 1, "w"))
    assert entry.value is not None
    producer.produce_to(topic, 1, encode_offsets_key(name, entry.key), compact_json(entry.value))
    producer.flush(time.monotonic() + 60)
    producer.commit()
    producer.close()
    until(lambda: slots_by_marks(configuration, never) is not None, what="the mark, which is committed")
    noted = slots_in_force(clients, configuration, 4, never)
    assert noted.slots == 3, "further partitions are ignored"
    assert noted == slots_by_marks(configuration, never)
    assert (noted.tables, noted.read_to) == ({TableName("ks", "t")}, {0: 0, 1: 2, 2: 0, 3: 0})
    with pytest.raises(ConfigurationError, match="has only 2 partitions"):
        slots_in_force(clients, configuration, 2, never)


def test_workers_are_told_what_one_of_them_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_workers, "RESTART_PAUSE", 0.0)
    supervisor = Supervisor([sys.executable, "-c", WORKER], [WorkerOrder(loaded(), 0)])
    assert supervisor.run(threading.Event()) == 2
    assert [noted.slots for noted in supervisor.noted.values()] == [41] and supervisor.restarts == 2
