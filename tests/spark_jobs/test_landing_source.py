"""How landing reaches the source: the connector's properties, errors in one line, wrong use of the commands."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from connector.cli.main import run
from connector.errors import ConfigurationError, LandingError
from connector.source import connection_settings
from connector.table_name import TableName
from embedded.scylla.process import EmbeddedScylla
from spark_jobs.config.settings import load_settings
from spark_jobs.config.source_settings import source_connection
from spark_jobs.source.access import SourceAccess, _warn, described, source_access

GOOD: dict[str, Any] = {
    "name": "job",
    "bootstrap.servers": "k:9092",
    "topic.prefix": "p",
    "tables": ["ks.t"],
    "warehouse": "lake",
    "spark.jars": "none",
}
LOGIN = {"scylla.user": "reader", "scylla.password": "hunter2"}


def test_the_source_is_reached_as_the_connector_reaches_it() -> None:
    assert source_connection(load_settings(GOOD).values) is None
    connection = source_connection(
        load_settings({**GOOD, **LOGIN, "scylla.cluster.ip.addresses": ["a:1", "b"], "scylla.local.dc": "dc1"}).values
    )
    assert connection is not None
    access = source_access(connection)
    settings = connection_settings(access.connection, access.tls)
    assert settings.contact_points == (("a", 1), ("b", 9042))
    assert (settings.user, settings.local_dc, settings.password) == ("reader", "dc1", "hunter2")
    assert "hunter2" not in repr(access)
    sent = pickle.loads(pickle.dumps(access))
    assert sent == access and sent.connection.password.reveal() == "hunter2", "executors connect by themselves"


def test_contradictions_of_the_connection_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCYLLA_PASSWORD", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(
            {**GOOD, "scylla.user": "reader", "scylla.ssl.enabled": True, "scylla.ssl.truststore.path": "/none"}
        )
    assert {problem.property for problem in caught.value.problems} == {"scylla.password", "scylla.ssl.truststore.path"}
    monkeypatch.setenv("SCYLLA_PASSWORD", "hunter2")
    load_settings({**GOOD, "scylla.user": "reader"})


@pytest.mark.parametrize("command", ["verify", "backfill"])
def test_wrong_use_is_told_before_spark_starts(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCYLLA_PASSWORD", raising=False)
    file = tmp_path / "landing.json"
    file.write_text(json.dumps(GOOD))
    assert run([command, str(file)]) == 2
    assert (
        "scylla.cluster.ip.addresses: Is required to read the source (or --scylla HOST:PORT" in capsys.readouterr().err
    )
    assert run([command, str(file), "--scylla", "a b"]) == 2
    assert "--scylla = 'a b'" in capsys.readouterr().err
    assert run([command, str(file), "--scylla", "a:1", "--tables", "ks.tt"]) == 2
    assert "--tables = 'ks.tt': is not one of the configured tables (did you mean ks.t?)" in capsys.readouterr().err
    assert run([command, str(tmp_path / "none.json")]) == 2


def test_lists_only_go_with_a_rebuild(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "landing.json"
    file.write_text(json.dumps(GOOD))
    assert run(["land", str(file), "--lists=skip"]) == 2
    assert "--lists: only goes with --rebuild" in capsys.readouterr().err


def access(address: str, **login: str) -> SourceAccess:
    given = {"scylla.user": "reader", "scylla.password": login["password"]} if login else {}
    connection = source_connection(load_settings({**GOOD, **given, "scylla.cluster.ip.addresses": address}).values)
    assert connection is not None
    return source_access(connection)


@pytest.mark.scylla
@pytest.mark.only_double("datacenters")
def test_local_reads_of_no_datacenter_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedScylla(ring_delay=0, nodes=2, datacenters=["east", "west"]) as scylla:
        replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
        scylla.admin.cql(f"CREATE KEYSPACE ks WITH replication = {replication}")
        scylla.admin.cql("CREATE TABLE ks.t (pk int PRIMARY KEY)")
        loose = {**GOOD, "scylla.cluster.ip.addresses": scylla.address, "scylla.consistency.level": "local_one"}
        for given, expected in (({}, 1), ({"scylla.local.dc": "east"}, 0), ({"scylla.consistency.level": "quorum"}, 0)):
            _warn.cache_clear()
            caplog.clear()
            connection = source_connection(load_settings({**loose, **given}).values)
            assert connection is not None
            for _ in range(2):
                described(source_access(connection), TableName("ks", "t"))
            said = [text for text in caplog.messages if "scylla.local.dc is not set" in text]
            assert len(said) == expected
            assert all("(east, west): rows that have not arrived there yet are not seen. Set" in text for text in said)
        scylla.admin.cql("CREATE TABLE ks.again (pk int PRIMARY KEY, v int)")
        scylla.admin.cql("ALTER TABLE ks.again DROP v")
        scylla.admin.cql("ALTER TABLE ks.again ADD v int")
        everybody = source_access(connection)
        for _ in range(2):
            described(everybody, TableName("ks", "again"))
        assert len(everybody.vouched) == 2, "nodes are asked for what they know of a column before anything is read"
        task = pickle.loads(pickle.dumps(everybody.for_tasks()))
        with task.connected() as connected:
            assert set(connected.vouched) == everybody.vouched, "and no task asks them once more"


@pytest.mark.scylla
@pytest.mark.only_double("a server of its own with a password and faults")
def test_what_the_source_refuses_is_one_line_with_a_remedy() -> None:
    nowhere = access("127.0.0.1:1")
    with pytest.raises(LandingError, match=r"^the source does not answer: .*; check scylla.cluster.ip.addresses"):
        described(nowhere, TableName("ks", "t"))
    with EmbeddedScylla(ring_delay=0, user="reader", password="hunter2") as scylla:
        with pytest.raises(LandingError, match=r"login refused: .*; check scylla.user and scylla.password$") as caught:
            described(access(scylla.address, password="wrong"), TableName("ks", "t"))
        assert "\n" not in str(caught.value) and "wrong" not in str(caught.value)
        right = access(scylla.address, password="hunter2")
        busy = scylla.admin.add_fault("overloaded", pattern="FROM system.local", count=2)
        with pytest.raises(LandingError, match=r"^table ks.t does not exist: there is no keyspace ks in the source$"):
            described(right, TableName("ks", "t"))
        assert scylla.admin.fault(busy)["fired"] == 2, "it was asked again"
        with pytest.raises(LandingError, match=r"^table system.nothing does not exist in the source$"):
            described(right, TableName("system", "nothing"))
