"""A table that is gone when a connector starts, and names that are not ASCII: each on real servers, to the end."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from cassandra.cluster import Session
from confluent_kafka.admin import NewTopic

from connector.source import Connection
from connector.table_name import TableName
from connector.worker.settings import kafka_clients, topic_specs
from connector.worker.table_list import Looking
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.servers.patience import until
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]
Make = Callable[..., Service]
MakeTable = Callable[..., str]


def insert(session: Session, table: str, rows: range) -> None:
    for number in rows:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number % 10}, {number}, 'v{number}')")


def test_what_was_dropped_or_switched_off_while_nothing_ran_keeps_no_other_table_from_its_start(
    service: Make, session: Session, make_table: MakeTable
) -> None:
    tables = table, off, dropped = [make_table(tablets=True) for _ in range(3)]
    connector = service(tables, connector={"tasks.max": "1"})
    for each in tables:
        insert(session, each, range(5))
    run = connector.start()
    for each in tables:
        assert exactly_once(connector, session, each) == 5
    connector.stopped(run)

    session.execute(f"DROP TABLE {dropped}")
    for each in (table, off):
        insert(session, each, range(5, 10))
    session.execute(f"ALTER TABLE {off} WITH cdc = {{'enabled': false}}")
    run = connector.start()
    for each in (table, off):
        assert exactly_once(connector, session, each) == 10

    def states() -> dict[str, str]:
        return {name: told["state"] for name, told in connector.report()["tables"].items()}

    expected = {table: "RUNNING", off: "RUNNING", dropped: "FAILED"}
    until(lambda: states() == expected, what=lambda: f"one that fails: {states()}")
    assert "does not exist" in connector.report()["tables"][dropped]["error"] and run.poll() is None
    lacking = until(lambda: connector.report()["tables"][off]["failing"], what="a word about the table without CDC")
    assert "does not have CDC enabled" in lacking[0]


def test_no_topic_is_made_for_a_table_that_is_not_there(
    kafka: EmbeddedKafka, scylla: Scylla, make_table: MakeTable, unique: Callable[[str], str]
) -> None:
    """Its name may be misspelt. What somebody left open in a topic that is there is looked for all the same."""
    there = TableName(*make_table(tablets=True).split("."))
    gone, unsought, former = (there._replace(name=name) for name in ("gone", "unsought", "former"))
    prefix = unique("missing")
    configuration = loaded(
        {"topic.prefix": prefix, "topic.creation.default.replication.factor": "1"},
        {"bootstrap.servers": kafka.bootstrap_servers},
    ).with_tables([there, gone, unsought, former], "")
    clients, connection = kafka_clients(configuration), Connection(scylla.settings())
    admin = clients.admin()
    stored = {spec.name for spec in topic_specs(configuration) if spec.compacted}
    made = admin.create_topics([NewTopic(name, 1, 1) for name in (f"{prefix}.{former}", f"{prefix}.schemas")])
    assert all(future.result(60) is None for future in made.values())
    connection.open()
    try:
        found = Looking(clients, connection).at(configuration, [there, gone, former], {unsought}, stored, ())
    finally:
        connection.close()
    assert [each.table for each in found.described] == [there] and found.missing.keys() == {gone, former}
    assert found.topics.keys() == {f"{prefix}.{there}", f"{prefix}.{former}"} and not found.unusable
    existing = {name for name in admin.list_topics(timeout=60).topics if name.startswith(prefix)}
    assert existing == {*found.topics, f"{prefix}.schemas"}


@pytest.mark.parametrize("member", [{}, {"group.instance.id": "köln"}])
def test_names_that_are_not_ascii_are_as_good_as_others(
    member: dict[str, str], service: Make, session: Session, make_table: MakeTable
) -> None:
    table = make_table(tablets=True)
    connector = service([table], connector={"tasks.max": "1"}, worker={"group.id": "grün", **member})
    definition = json.loads(connector.config_file.read_text())
    definition["name"] = f"größe-{connector.name}"
    connector.config_file.write_text(json.dumps(definition))
    for rows in (range(5), range(5, 10)):
        insert(session, table, rows)
        run = connector.start()
        assert exactly_once(connector, session, table) == rows.stop
        connector.stopped(run)
