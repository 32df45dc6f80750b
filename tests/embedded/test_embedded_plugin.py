"""The pytest plugin: what a program's own tests get after `pip install 'scylla-cdc[embedded]'`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from confluent_kafka import Consumer

import embedded
from connector import __version__
from embedded.connectors import EmbeddedCdc
from tests.house import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.scylla]


def test_a_change_goes_from_table_to_topic(embedded_cdc: EmbeddedCdc) -> None:
    cql = embedded_cdc.scylla.admin.cql
    cql("CREATE KEYSPACE plugged WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}")
    cql("CREATE TABLE plugged.t (id int PRIMARY KEY, v text) WITH cdc = {'enabled': true}")
    connector = embedded_cdc.start("plugged.t")
    cql("INSERT INTO plugged.t (id, v) VALUES (1, 'x')")
    consumer = Consumer(
        {"bootstrap.servers": embedded_cdc.kafka.bootstrap_servers, "group.id": "test", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["cdc.plugged.t"])
    try:
        message = consumer.poll(90)
        assert message is not None and message.error() is None
        assert b'"after":{"id":1,"v":{"value":"x"}}' in (message.value() or b"")
    finally:
        consumer.close()
    assert connector.stop() == 0


def test_the_distribution_is_whole_and_of_the_same_version() -> None:
    project = tomllib.loads((ROOT / "embedded" / "pyproject.toml").read_text())
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "embedded").rglob("*.py")}
    assert project["tool"]["setuptools"]["packages"] == sorted(".".join(Path(folder).parts) for folder in folders)
    assert embedded.__version__ == __version__
