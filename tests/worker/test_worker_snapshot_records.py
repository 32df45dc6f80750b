"""Rows of snapshots in every form that records have, by way of Kafka, read by consumers who know only that form."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cassandra.cluster import Session

from tests.registry.registry_server import Registry, avro_converters, served
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, until

pytestmark = [pytest.mark.kafka, pytest.mark.scylla]
Make = Callable[..., Service]
Unique = Callable[[str], str]

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
            worker=avro_converters(address) if as_avro else {},
        )
        run = connector.start()
        assert until(lambda: run.poll() is not None, 180, lambda: f"the end of a run: {connector.log[-2000:]}")
        assert run.wait() == 0
        read = registry.read if as_avro else json.loads
        records = connector.delivered(connector.topic(f"{keyspace}.t"), read=read)
    found = [(read(each["key"]), each["value"], dict(each["headers"] or ())) for each in records]
    found.sort(key=lambda each: str(each[0]["ck"]))
    look(found)
