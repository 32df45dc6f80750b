"""Rows of snapshots in every form that records have, by way of Kafka, read by consumers who know only that form."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import fastavro
import pytest
from cassandra.cluster import Session
from confluent_kafka import Consumer, TopicPartition

from tests.registry.registry_server import Registry, served
from tests.servers.patience import patience
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, until

pytestmark = [pytest.mark.kafka, pytest.mark.scylla]
Make = Callable[..., Service]
Unique = Callable[[str], str]

AVRO = "io.confluent.connect.avro.AvroConverter"
EXTRACT = "com.scylladb.cdc.debezium.connector.transforms.ScyllaExtractNewRecordState"

#: What a consumer has read: keys, values, headers, of the row with values and of the one without.
Found = list[tuple[Any, Any, dict[str, Any]]]


def legacy_with_metadata(found: Found) -> None:
    (key, value, headers), (_, empty, _) = found
    assert key == {"pk": 1, "ck": "a"}
    assert (value["op"], value["before"], value["source"]["snapshot"]) == ("r", None, "true")
    assert value["after"]["v"] == {"value": "x"}
    assert value["after"]["m"]["value"] == {"mode": "overwrite", "elements": [{"key": "k", "value": 7}]}
    assert value["source"]["operation"] == 9 and "scylla.schema.version" in headers
    assert 4_000 < json.loads(headers["scylla.cell.ttls"])["v"] <= 5_000
    written = json.loads(headers["scylla.cell.timestamps"])
    assert written.keys() == {"v"} and 0 < value["source"]["ts_us"] - written["v"] < 600_000_000
    # A row says of each column what it holds, null included.
    assert empty["after"]["v"] == {"value": None}


def advanced_in_all_places(found: Found) -> None:
    (key, value, headers), (_, empty, _) = found
    assert key == value["key"] == {"pk": 1, "ck": "a"}
    assert (value["op"], value["before"], value["source"]["snapshot"]) == ("r", None, "true")
    assert value["after"] == {"pk": 1, "ck": "a", "v": "x", "m": [{"key": "k", "value": 7}]}
    assert empty["after"] == {"pk": 1, "ck": "b", "v": None, "m": None}
    assert (headers["pk.pk"], headers["ck.ck"]) == (b"1", b"a")


def extracted(found: Found) -> None:
    assert [(key, value) for key, value, _ in found] == [
        ({"pk": 1, "ck": "a"}, {"pk": 1, "ck": "a", "v": "x"}),
        ({"pk": 1, "ck": "b"}, {"pk": 1, "ck": "b", "v": None}),
    ]


FORMS: list[tuple[Callable[[Found], None], bool, dict[str, str]]] = [
    (legacy_with_metadata, True, {"cdc.include.metadata": "true", "cdc.include.collections": "delta"}),
    (
        advanced_in_all_places,
        True,
        {
            "cdc.output.format": "advanced",
            "cdc.include.primary-key.placement": "kafka-key,payload-after,payload-key,kafka-headers",
        },
    ),
    (extracted, False, {"transforms": "u", "transforms.u.type": EXTRACT}),
]


@pytest.mark.only_double("a registry that this machine serves")
@pytest.mark.parametrize(("look", "as_avro", "options"), FORMS, ids=[look.__name__ for look, _, _ in FORMS])
def test_rows_come_in_every_form(
    service: Make,
    scylla: Scylla,
    session: Session,
    unique: Unique,
    look: Callable[[Found], None],
    as_avro: bool,
    options: dict[str, str],
) -> None:
    keyspace = unique("ks").replace("-", "_")
    session.execute(scylla.keyspace_ddl(keyspace, tablets=True))
    session.execute(f"CREATE TABLE {keyspace}.t (pk int, ck text, v text, m map<text, int>, PRIMARY KEY (pk, ck))")
    session.execute(f"INSERT INTO {keyspace}.t (pk, ck, v, m) VALUES (1, 'a', 'x', {{'k': 7}})")
    session.execute(f"UPDATE {keyspace}.t USING TTL 5000 SET v = 'x' WHERE pk = 1 AND ck = 'a'")
    session.execute(f"INSERT INTO {keyspace}.t (pk, ck) VALUES (1, 'b')")
    session.execute(f"ALTER TABLE {keyspace}.t WITH cdc = {{'enabled': true}}")
    registry = Registry()
    with served(registry) as address:
        connector = service(
            [f"{keyspace}.t"],
            connector={"snapshot.mode": "initial_only", "tasks.max": "1", **options},
            worker=avro(address) if as_avro else {},
        )
        run = connector.start()
        assert until(lambda: run.poll() is not None, 180, lambda: f"the end of a run: {connector.log[-2000:]}")
        assert run.wait() == 0
        read = partial(of_avro, registry) if as_avro else json.loads
        records = raw(connector, connector.topic(f"{keyspace}.t"))
    found = [(read(key), read(value), headers) for key, value, headers in records]
    found.sort(key=lambda each: str(each[0]["ck"]))
    look(found)


def avro(address: str) -> dict[str, str]:
    options = {"converter": AVRO, "converter.schema.registry.url": address}
    return {f"{part}.{name}": value for part in ("key", "value") for name, value in options.items()}


def of_avro(registry: Registry, data: bytes) -> Any:
    schema = json.loads(registry.schemas[int.from_bytes(data[1:5], "big") - 1])
    return fastavro.schemaless_reader(io.BytesIO(data[5:]), schema, None)


def raw(service: Service, topic: str) -> list[tuple[bytes, bytes, dict[str, Any]]]:
    """All of a topic's records as a consumer gets them."""
    settings = {"bootstrap.servers": service.kafka, "group.id": "check", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    try:
        partitions = consumer.list_topics(topic, 60 * patience()).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found, ended = [], set()
        while len(ended) < len(partitions):
            for message in consumer.consume(1000, 0.1):
                if message.error() is not None:
                    ended.add(message.partition())
                else:
                    found.append((message.key(), message.value(), dict(message.headers() or ())))
        return found
    finally:
        consumer.close()
