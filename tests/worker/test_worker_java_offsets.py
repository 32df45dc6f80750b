"""The Java connector's offsets are taken over, or what they say is not passed over: on real servers.

`test_worker_java_tasks.py` has the cases; here a topic of Kafka Connect's is read, and a connector runs behind it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest
from cassandra.cluster import Session
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connector.config import load
from connector.source import Connection, VnodeGenerations, connection_settings
from connector.timeuuid import lowest_uuid, uuid_text
from connector.topology import StreamId, StreamSet
from embedded.kafka import EmbeddedKafka
from tests.servers.patience import seldom, until
from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]


def generation_of(connector: Service) -> StreamSet:
    """The one that writes go to."""
    configuration = load(connector.config_file, connector.worker_file, {})
    connection = Connection(connection_settings(configuration.connector.connection))
    connection.open()
    try:
        sets = VnodeGenerations(connection)
        at = max(each for each in sets.listed() if each <= connector.scylla.now_ms())
        return sets.fetched([at])[at]
    finally:
        connection.close()


def vnode(stream: bytes) -> int:
    return StreamId.parse(stream).index or 0


def put_java_offsets(
    connector: Service, topic: str, table: str, generation: int, vnodes: Iterable[int], read_to: int, partitions: int
) -> None:
    """As Kafka Connect writes them."""
    admin = AdminClient({"bootstrap.servers": connector.kafka})
    made = admin.create_topics([NewTopic(topic, partitions, 1, config={"cleanup.policy": "compact"})])
    made[topic].result(60)
    keyspace, name = table.split(".")
    value = {"window_start": uuid_text(lowest_uuid(read_to)), "window_end": uuid_text(lowest_uuid(read_to + 999))}
    producer = Producer({"bootstrap.servers": connector.kafka})
    for each in vnodes:
        where = {"keyspace_name": keyspace, "table_name": name}
        where |= {"vnode_id": str(each), "generation_start": str(generation)}
        key = json.dumps([connector.name, where], separators=(",", ":"))
        producer.produce(topic, json.dumps(value), key)
    assert producer.flush(60) == 0


def insert(session: Session, table: str, rows: range) -> None:
    for number in rows:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number}, 0, 'v')")


def written(session: Session, table: str) -> dict[int, set[int]]:
    """The keys in the log, by the vnode of their streams."""
    found: dict[int, set[int]] = {}
    for row in session.execute(f'SELECT "cdc$stream_id" AS stream, pk FROM {table}_scylla_cdc_log'):
        found.setdefault(vnode(row.stream), set()).add(row.pk)
    return found


def delivered(connector: Service, table: str) -> list[int]:
    return sorted(record["value"]["after"]["pk"] for record in connector.delivered(connector.topic(table)))


def test_a_vnode_that_java_had_no_offset_of_is_read_from_its_beginning(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str], unique: Callable[[str], str]
) -> None:
    table, topic = make_table(tablets=False), unique("connect-offsets")
    connector = service([table])
    insert(session, table, range(60))
    of_vnode, generation = written(session, table), generation_of(connector)
    missed, *_ = of_vnode
    vnodes = {vnode(stream) for group in generation.groups for stream in group.streams}
    streams = [stream for group in generation.groups for stream in group.streams]
    without = [stream for stream in streams if vnode(stream) == missed]
    # Behind all that was written by now, where Java has read.
    read_to = connector.scylla.now_ms() + 1
    put_java_offsets(connector, topic, table, generation.timestamp, vnodes - {missed}, read_to, 1)

    said = connector.command("offsets", "import", "--from-topic", topic, "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["tables"] == {
        table: {
            "streams": len(streams) - len(without),
            "read_to": read_to,
            "generation": generation.timestamp,
            "without_offset": len(without),
            "without_offset_from": generation.timestamp,
        }
    }
    said = connector.command("offsets", "import", "--from-topic", topic)
    assert f"{len(without)} streams had no offset: read from the beginning of generation" in said.stdout

    run = connector.start()
    until(lambda: connector.scylla.now_ms() > read_to, what="a time behind what Java has read")
    insert(session, table, range(60, 70))
    wanted = sorted([*of_vnode[missed], *range(60, 70)])
    until(
        lambda: delivered(connector, table) == wanted,
        180,
        lambda: f"{wanted} in {delivered(connector, table)}",
        step=seldom,
    )
    connector.stopped(run)
    assert "expired unread" not in connector.log
    assert delivered(connector, table) == wanted


def test_a_run_over_connects_own_topic_begins_nothing_that_java_has_read_and_holds_up_nobody_else(
    service: Callable[..., Service],
    session: Session,
    make_table: Callable[..., str],
    unique: Callable[[str], str],
    kafka: EmbeddedKafka,
) -> None:
    table, beside, topic = make_table(tablets=False), make_table(tablets=True), unique("connect-offsets")
    connector, other = (service([each], worker={"offset.storage.topic": topic}) for each in (table, beside))
    for each in (table, beside):
        insert(session, each, range(10))
    generation = generation_of(connector)
    put_java_offsets(connector, topic, table, generation.timestamp, [0], connector.scylla.now_ms(), 6)
    words = f"it has positions of the Java connector {connector.name} for {table}, and none of ours"

    validated = connector.command("validate", "--json")
    (problem,) = json.loads(validated.stdout)["problems"]
    assert (validated.returncode, problem["property"], problem["value"]) == (2, "offset.storage.topic", topic)
    assert words in problem["problem"] and problem["file"] == str(connector.worker_file)
    assert f"scylla-cdc offsets import --from-topic {topic}" in problem["suggestion"]
    assert other.command("validate").returncode == 0
    assert connector.ended(connector.start()) == 2
    assert words in connector.log

    files = str(connector.config_file), str(other.config_file)
    run = connector.start(*files, "--http-port", "0", files=False)
    assert exactly_once(other, session, beside) == 10
    connectors = json.loads(connector.get("/status")[1])["connectors"]
    assert words in connectors[connector.name]["given_up"] and connectors[other.name]["given_up"] is None
    connector.stopped(run)
    assert not connector.delivered(connector.topic(table))

    assert connector.command("offsets", "reset", "--to", "oldest").returncode == 0
    assert connector.command("validate").returncode == 0
    connector.start()
    assert exactly_once(connector, session, table) == 10


def test_a_table_that_comes_to_a_running_connector_is_not_begun_either_where_java_has_read_it(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str], unique: Callable[[str], str]
) -> None:
    table, added, topic = make_table(tablets=True), make_table(tablets=False), unique("connect-offsets")
    connector = service([table], worker={"offset.storage.topic": topic}, connector={"tasks.max": "1"})
    insert(session, table, range(10))
    generation = generation_of(connector)
    vnodes = {vnode(stream) for group in generation.groups for stream in group.streams}
    insert(session, added, range(10))
    read_to = connector.scylla.now_ms() + 1
    put_java_offsets(connector, topic, added, generation.timestamp, vnodes, read_to, 6)
    path, alone = f"/connectors/{connector.name}", json.loads(connector.config_file.read_text())["config"]
    both = {**alone, "scylla.table.names": f"{table},{added}"}

    run = connector.start("--http-port", "0", "--writable")
    assert exactly_once(connector, session, table) == 10
    assert connector.post(f"{path}/config", "PUT", both) == 200

    def state() -> dict[str, str]:
        return dict(json.loads(connector.get(f"{path}/status")[1])["connector"])

    until(lambda: state()["state"] == "FAILED", 90, "its refusal")
    assert f"positions of the Java connector {connector.name} for {added}, and none of ours" in state()["trace"]
    assert f"scylla-cdc offsets import --table T --from-topic {topic}" in state()["trace"]
    insert(session, table, range(10, 20))
    assert exactly_once(connector, session, table) == 20, "the others go on"
    assert not connector.delivered(connector.topic(added))
    connector.stopped(run)

    connector.config_file.write_text(json.dumps({"name": connector.name, "config": both}))
    said = connector.command("offsets", "import", "--table", added, "--from-topic", topic)
    assert said.returncode == 0, said.stderr
    until(lambda: connector.scylla.now_ms() > read_to, what="a time behind what Java has read")
    insert(session, added, range(20, 25))
    connector.start("--http-port", "0", "--writable")
    wanted = list(range(20, 25))
    until(lambda: delivered(connector, added) == wanted, 180, lambda: str(delivered(connector, added)), step=seldom)
