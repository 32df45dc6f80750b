"""The offsets topic of a running connector is deleted: nothing is delivered twice, and it says what is to be done.
Of one that does not run: it says so when it is started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from cassandra.cluster import Session
from confluent_kafka.admin import AdminClient, NewTopic

from connector.config import load
from connector.worker.lost_positions import lost_positions
from connector.worker.positions import Positions
from embedded.kafka import EmbeddedKafka
from tests.servers.patience import seldom, until
from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]


def insert(session: Session, table: str, rows: range) -> None:
    for number in rows:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number % 10}, {number}, 'v')")


def delivered(connector: Service, table: str) -> Counter[int]:
    """How often each row was delivered, by its ck."""
    return Counter(record["value"]["after"]["ck"] for record in connector.delivered(connector.topic(table)))


@pytest.mark.parametrize("at_once", [True, False], ids=["made anew at once", "missing for a while"])
def test_without_its_positions_a_connector_delivers_nothing_until_it_is_told_where_to_begin(
    service: Callable[..., Service],
    session: Session,
    make_table: Callable[..., str],
    kafka: EmbeddedKafka,
    at_once: bool,
) -> None:
    table = make_table(tablets=True)
    connector = service([table])
    insert(session, table, range(20))
    run = connector.start("--http-port", "0")
    assert exactly_once(connector, session, table) == 20
    until(lambda: connector.get("/health")[0] == 200, 90, "good health")

    admin, topic = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}), f"{connector.name}-offsets"

    def told(what: str) -> None:
        words = f"topic {topic} {what}: the positions that were in it are gone"

        def is_told() -> bool:
            status, said = connector.get("/health")
            return status == 503 and words in said

        until(is_told, 180, lambda: f"{words} in {connector.log[-4000:]}", step=seldom)

    admin.delete_topics([topic])[topic].result(60)
    if not at_once:
        insert(session, table, range(20, 25))
        told("does not exist any more")
        assert topic not in admin.list_topics(timeout=60).topics, "nobody makes an empty one"
    until(lambda: topic not in admin.list_topics(timeout=60).topics, what="the end of the topic")
    admin.create_topics([NewTopic(topic, 6, 1, config={"cleanup.policy": "compact"})])[topic].result(60)
    told("was deleted and created again")

    connector.stopped(run)
    # Which of the rows that came meanwhile are among them is not told: what was decided before the broker let go of
    # the topic's last partition may become visible long after the topic is missed.
    assert max(delivered(connector, table).values()) == 1
    assert connector.command("offsets", "reset", "--to", "now").returncode == 0
    insert(session, table, range(30, 40))
    connector.start("--http-port", "0")
    until(lambda: set(range(30, 40)) <= set(delivered(connector, table)), 180, "what came since then", step=seldom)
    assert max(delivered(connector, table).values()) == 1


def test_positions_that_went_while_nobody_ran_are_missed_and_those_that_were_deleted_on_purpose_are_not(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str], kafka: EmbeddedKafka
) -> None:
    table = make_table(tablets=True)
    connector = service([table])
    insert(session, table, range(20))
    words, topic = "but it seems to have run before", f"{connector.name}-offsets"

    def ran(times: int) -> tuple[str, ...]:
        """What the status warns of while it delivers everything once more, if it is of lost positions."""
        run = connector.start()
        everything = dict.fromkeys(range(20), times)
        until(lambda: delivered(connector, table) == everything, 180, f"{times} of each", step=seldom)
        until(lambda: connector.report()["workers"], 60, "a worker in the status topic", step=seldom)
        warnings = tuple(each for each in connector.report()["warnings"] if words in each)
        connector.stopped(run)
        return warnings

    assert not ran(1) and words not in connector.log, "it is new"

    configuration = load(connector.config_file, connector.worker_file, {})
    Positions(configuration).alter(dict.fromkeys(configuration.connector.reading.tables))
    assert lost_positions(configuration) is None
    assert not ran(2) and words not in connector.log, "they were deleted on purpose"

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(60)
    until(lambda: topic not in admin.list_topics(timeout=60).topics, what="the end of the topic")
    (warning,) = ran(3)
    assert words in warning and f"topic {connector.topic(table)} had " in warning
    assert f"schemas describes {table}" in warning and "offsets reset --to" in warning
    assert warning in connector.log
    assert lost_positions(configuration) is None, "it has positions again"
