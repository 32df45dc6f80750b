"""Names that do not resolve, at the start and later: each is said with its cause, and in whatever order they come back,
it goes on by itself; meanwhile it ends within ten seconds."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cassandra.cluster import Session

from embedded.kafka import EmbeddedKafka
from tests.registry.registry_server import Registry, served
from tests.servers.double import Double
from tests.servers.names import Names
from tests.servers.patience import until
from tests.worker.harness import Service, exactly_once
from tests.worker.test_worker_waits import ended_in_time

pytestmark = [
    pytest.mark.names,
    pytest.mark.kafka,
    pytest.mark.scylla,
    pytest.mark.only_double("servers of this machine, by names of the test's own"),
]
DB, BROKER, REGISTRY = "db.test", "broker.test", "registry.test"
ALL = (DB, BROKER, REGISTRY)
AVRO = "io.confluent.connect.avro.AvroConverter"


Make = Callable[[], tuple[Service, Names]]


@pytest.fixture
def named(
    tmp_path: Path, scylla: Double, kafka: EmbeddedKafka, make_table: Callable[..., str], unique: Callable[[str], str]
) -> Iterator[Make]:
    """Makes services that know all servers by names, which do not resolve yet."""
    with ExitStack() as stack:
        registry = urlsplit(stack.enter_context(served(Registry())))
        numbers = count()

        def make() -> tuple[Service, Names]:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            source = {"tasks.max": "1", "scylla.cluster.ip.addresses": f"{DB}:{scylla.address.rpartition(':')[2]}"}
            worker = {
                "bootstrap.servers": f"{BROKER}:{kafka.bootstrap_servers.rpartition(':')[2]}",
                "key.converter": AVRO,
                "key.converter.schema.registry.url": registry._replace(netloc=f"{REGISTRY}:{registry.port}").geturl(),
            }
            table = make_table(tablets=True)
            made = Service(folder, scylla, kafka.bootstrap_servers, unique("c"), [table], source, worker)
            stack.callback(made.close)
            names = Names(folder)
            made.before = names.command
            return made, names

        yield make


def waiting(connector: Service) -> str:
    return json.loads(connector.get("/health")[1])["waiting_for"] or ""


def until_named(connector: Service, missing: set[str]) -> None:
    """All that do not resolve, with that cause, and no others."""

    def said() -> bool:
        told = waiting(connector)
        causes = told.count("the name does not resolve") + told.count("Name or service not known")
        return {name for name in ALL if name in told} == missing and causes >= len(missing)

    until(said, 90, lambda: f"{missing} in: {waiting(connector)}")


def insert(session: Session, connector: Service, pk: int) -> None:
    session.execute(f"INSERT INTO {connector.tables[0]} (pk, ck, v) VALUES ({pk}, 0, 'v')")


def delivered(session: Session, connector: Service) -> int:
    return exactly_once(connector, session, connector.tables[0])


def test_names_that_come_in_any_order_are_waited_for(named: Make, session: Session) -> None:
    orders = ((DB, BROKER, REGISTRY), (BROKER, REGISTRY, DB), (REGISTRY, DB, BROKER))
    made = [(*named(), order) for order in orders]
    for connector, _, _ in made:
        connector.start("--http-port", "0")
    for at in range(len(ALL)):
        for connector, names, order in made:
            until_named(connector, {*order[at:]})
            names.know(order[at])
    for connector, _, _ in made:
        insert(session, connector, 1)
    for connector, _, _ in made:
        assert delivered(session, connector) == 1
        ended_in_time(connector)


def test_names_that_are_lost_while_it_runs_harm_nothing_that_stands(named: Make, session: Session) -> None:
    """Who begins anew meanwhile waits, and says for what."""
    connector, names = named()
    names.know(*ALL)
    run = connector.start("--http-port", "0")
    insert(session, connector, 1)
    assert delivered(session, connector) == 1
    names.forget(*ALL)
    insert(session, connector, 2)
    assert delivered(session, connector) == 2
    [worker] = connector.workers(run)
    os.kill(worker, signal.SIGKILL)
    until_named(connector, {DB})
    insert(session, connector, 3)
    names.know(DB)
    until_named(connector, {BROKER})
    names.know(BROKER, REGISTRY)
    assert delivered(session, connector) == 3

    names.forget(*ALL)
    [worker] = until(lambda: connector.workers(run), 60, "a worker")
    os.kill(worker, signal.SIGKILL)
    until_named(connector, {DB})
    ended_in_time(connector)
