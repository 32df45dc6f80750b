"""Changes that come into streams after their end, through `run`: in the topic once and in order, or a dead letter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from embedded.kafka import EmbeddedKafka
from tests.servers.patience import seldom, until
from tests.servers.stale_node import stale_node
from tests.worker.harness import Service, create_table

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.scylla,
    pytest.mark.only_double("a node has to learn late of a stream set"),
]


def test_late_changes_are_delivered_or_kept_and_told(
    tmp_path: Path, kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    dead = unique("dead")
    with stale_node() as nodes:
        table = create_table(nodes.server, nodes.fresh, "late", tablets=True)
        settings = {
            "tasks.max": "1",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        connector = Service(tmp_path, nodes.server, kafka.bootstrap_servers, unique("c"), [table], connector=settings)
        try:
            run = connector.start("--http-port", "0")
            nodes.write(table, 0, 0)
            until(lambda: len(connector.delivered(connector.topic(table))) == 1, 90, "the first change", step=seldom)
            nodes.change(table, tablets=True)
            for pk in range(6):
                nodes.write(table, pk, 1, late=True)
            nodes.write(table, 5, 2)
            until(
                lambda: len(connector.delivered(connector.topic(table))) >= 2,
                90,
                "the change in its place",
                step=seldom,
            )
            # The worker that reads the old streams goes, before anybody has looked at them again.
            assert connector.stop(run) == 0
            connector.start("--http-port", "0")
            until(lambda: len(connector.delivered(dead)) == 1, 90, "the dead letter", step=seldom)
            until(lambda: len(connector.delivered(connector.topic(table))) == 7, 90, "the late changes", step=seldom)
            (letter,) = connector.delivered(dead)
            headers = {name: value.decode() for name, value in letter["headers"]}
            assert (
                "a later change of its partition was delivered already" in headers["__connect.errors.exception.message"]
            )
            told = {"delivered": 5, "dead_letter": 1}
            until(lambda: json.loads(connector.get("/health")[1])["late_changes"] == {table: told}, what="word of it")
            page = connector.get("/metrics")[1]
            labels = f'connector="{connector.name}",outcome="delivered",table="{table}",worker="0"'
            assert f"scylla_cdc_late_changes_total{{{labels}}} 5.0" in page
            text = "after the end of their streams: 1 dead_letter, 5 delivered"
            until(lambda: connector.report()["tables"][table]["late_changes"] == told, what="a report", step=seldom)
            until(lambda: text in connector.command("status").stdout, what="a status that says so", step=seldom)
            assert "into streams that had ended at" in connector.log
        finally:
            connector.close()


def test_late_changes_are_delivered_where_other_workers_read_what_their_stream_was_split_into(
    tmp_path: Path, kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    with stale_node() as nodes:
        table = create_table(nodes.server, nodes.fresh, "split", tablets=True)
        # One slot of six holds the stream, and four slots what it is split into; each of three workers has two slots.
        settings = {"tasks.max": "3", "scylla.confidence.window.size": "4000"}
        connector = Service(tmp_path, nodes.server, kafka.bootstrap_servers, unique("c"), [table], connector=settings)
        try:
            connector.start("--http-port", "0")
            nodes.write(table, 0, 0)
            until(lambda: len(connector.delivered(connector.topic(table))) == 1, 90, "the first change", step=seldom)
            nodes.change(table, tablets=True, split=4)
            for pk in range(12):
                nodes.write(table, pk, 1, late=True)
            nodes.write(table, 12, 2)
            until(lambda: len(connector.delivered(connector.topic(table))) == 14, 120, "all changes", step=seldom)
            told = {table: {"delivered": 12}}
            until(lambda: json.loads(connector.get("/health")[1])["late_changes"] == told, 90, "word of all of them")
        finally:
            connector.close()
