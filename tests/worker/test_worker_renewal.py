"""Passwords that are changed while a service runs: who starts its workers again has them take the new ones."""

from __future__ import annotations

import argparse
import json
import logging
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connector.cli.configuration import load_to_run
from connector.config import Configuration
from connector.errors import Problem
from connector.secrets import MASK, scrub
from connector.worker.connect_cluster import ConnectCluster
from connector.worker.connectors import Connectors
from connector.worker.holding import Target
from connector.worker.order import WorkerOrder
from connector.worker.renewal import Renewal
from connector.worker.steering import Steering
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded
from tests.servers.patience import until


class Store:
    """A file of passwords that a properties file names."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "secrets.properties"
        self.holds("the first word")

    def holds(self, password: str) -> None:
        self.path.write_text(f"password={password}\n")

    def config(self, name: str) -> dict[str, str]:
        reference = f"${{file:{self.path}:password}}"
        return {"name": name, "tasks.max": "2", "scylla.user": "cdc", "scylla.password": reference}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


class Remembering:
    group_id = "workers"

    def target(self, name: str) -> Target:
        return Target.RUNNING


def password(configuration: Configuration) -> str:
    secret = configuration.connector.connection.password
    return "" if secret is None else secret.reveal()


def passwords(supervisor: Supervisor) -> list[str]:
    return [password(order.configuration) for order in supervisor.orders]


def by_api(checks: Any = lambda *_: ([], None)) -> Connectors:
    """Nothing of it runs: what its workers would be told is looked at."""

    def load(config: Mapping[str, str]) -> Configuration:
        return loaded({"topic.prefix": "any", **config})

    told: Any = Remembering()
    supervisor = Supervisor([], [], lasting=True)
    return Connectors(supervisor, told, load, lambda _: 2, WorkerOrder, checks, lambda *_: [], threading.Event())


def take(connectors: Connectors, config: dict[str, str]) -> None:
    """Its preparation, in a thread of its own, reads what references name as well."""
    connectors.take("shop", config)
    [tenant] = connectors.supervisor.tenants.values()
    until(lambda: (look := tenant.preparation) is not None and look.done.is_set(), what="its preparation")


def asked(connectors: Connectors) -> ConnectCluster:
    supervisor, told = connectors.supervisor, connectors.shared
    renew = connectors.renewal.renew
    return ConnectCluster(
        supervisor, Steering(supervisor), told, lambda c: (), loaded(), defined=connectors, renew=renew
    )


@pytest.mark.parametrize("itself, tasks", [(True, [0, 1]), (False, [1])], ids=["connector", "task"])
def test_a_restart_takes_what_references_name_by_then(store: Store, itself: bool, tasks: list[int]) -> None:
    connectors = by_api()
    take(connectors, store.config("shop"))
    assert passwords(connectors.supervisor) == ["the first word"] * 2
    store.holds("the second word")
    asked(connectors).restart("shop", itself=itself, tasks=tasks)
    assert passwords(connectors.supervisor) == ["the second word"] * 2
    known = [scrub(f"login with {each}") for each in passwords(connectors.supervisor)]
    assert not any("second" in each for each in known)
    assert all("the second word" in order.secrets for order in connectors.supervisor.orders), "workers mask it, too"


def test_a_connector_that_is_resumed_takes_what_references_name_by_then(store: Store) -> None:
    connectors, followed = by_api(), list[tuple[str, Target]]()
    take(connectors, store.config("shop"))
    directed = partial(connectors.renewal.directed, lambda *wish: followed.append(wish))
    store.holds("the second word")
    directed("shop", Target.STOPPED)
    assert passwords(connectors.supervisor) == ["the first word"] * 2
    directed("shop", Target.RUNNING)
    assert passwords(connectors.supervisor) == ["the second word"] * 2
    assert followed == [("shop", Target.STOPPED), ("shop", Target.RUNNING)]


def test_a_connector_that_was_given_up_is_looked_at_with_what_its_references_name_by_then(store: Store) -> None:
    seen = list[str]()

    def refuse_the_first(configuration: Configuration, *_: Any) -> tuple[list[Problem], None]:
        seen.append(password(configuration))
        return [Problem("scylla.user", "the login was refused")] if "first" in seen[-1] else [], None

    connectors = by_api(refuse_the_first)
    connectors.take("shop", store.config("shop"))
    [tenant] = connectors.supervisor.tenants.values()
    until(lambda: not tenant.may_start() and tenant.over is not None, what="its refusal")
    store.holds("the second word")
    tenant.begin_anew()
    preparation = tenant.preparation
    until(lambda: preparation is not None and preparation.done.is_set(), what="another look")
    assert tenant.may_start()
    assert seen == ["the first word", "the second word"]
    assert passwords(connectors.supervisor) == ["the second word"] * 2


def test_a_reference_that_names_nothing_any_more_is_why_a_connector_is_given_up(store: Store) -> None:
    connectors = by_api()
    connectors.take("shop", store.config("shop"))
    [tenant] = connectors.supervisor.tenants.values()
    until(tenant.may_start, what="its start")
    tenant.give_up("5 ends in a row")
    store.path.unlink()
    tenant.begin_anew()
    until(lambda: not tenant.may_start() and tenant.over is not None, what="its failure")
    assert "scylla.password: ${file:" in str(tenant.over) and "cannot be read: There is no such" in str(tenant.over)


def test_workers_that_run_go_on_with_what_is_known_where_references_name_nothing(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    connectors = by_api()
    take(connectors, store.config("shop"))
    store.path.unlink()
    asked(connectors).restart("shop", itself=True, tasks=[0, 1])
    assert passwords(connectors.supervisor) == ["the first word"] * 2
    assert "goes on with what its references named before: connector: scylla.password: ${file:" in caplog.text


def files(folder: Path, store: Store, **worker: str) -> argparse.Namespace:
    """Of a command line: two connectors, a worker."""
    for name in ("shop", "other"):
        config = store.config(name) | {"scylla.cluster.ip.addresses": "db:9042", "scylla.table.names": "ks.t"}
        (folder / f"{name}.json").write_text(json.dumps(config | {"topic.prefix": name}))
    (folder / "worker.json").write_text(json.dumps({"bootstrap.servers": "kafka:9092", "group.id": "g", **worker}))
    return argparse.Namespace(
        config=[folder / "shop.json", folder / "other.json"], worker=folder / "worker.json", log_format="human"
    )


def test_connectors_of_files_take_what_their_references_name_and_nothing_else_of_the_files(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    args = files(tmp_path, store)
    configurations, load_again = load_to_run(args)
    supervisor = Supervisor([], [WorkerOrder(each, index) for index, each in enumerate(configurations)])
    renewal = Renewal(supervisor, load_again, threading.Lock())
    (tmp_path / "other.json").unlink()
    renewal.renew("other")
    renewal.renew("nobody")
    assert supervisor.configurations() == configurations and not caplog.text
    store.holds("the second word")
    renewal.renew("other")
    assert passwords(supervisor) == ["the first word", "the second word"]
    assert configurations[1].connector.written == supervisor.configurations()[1].connector.written
    assert MASK not in caplog.text and "connector other: its references name something else now" in caplog.text
    renewal.renew_all()
    assert passwords(supervisor) == ["the second word"] * 2
    store.holds("the third word")
    files(tmp_path, store, **{"offset.storage.topic": "another"})
    renewal.renew("shop")
    assert passwords(supervisor) == ["the second word"] * 2, "half a process by another worker's file"
    assert "connector shop: its worker's file has changed: start the process anew" in caplog.text
