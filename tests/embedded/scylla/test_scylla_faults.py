"""Injected faults: which requests they hit, and what the client sees."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from connector.errors import EmbeddedError
from embedded.scylla.faults import ERROR_FAULTS, Faults, table_pattern
from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import Reader
from tests.embedded.scylla.raw_client import RawClient

pytestmark = pytest.mark.only_double("the server answers late, wrongly or not at all at its tester's wish")

Connect = Callable[..., RawClient]


@pytest.mark.parametrize(
    ("statement", "hit"),
    [
        ("SELECT * FROM ks.t WHERE k = 1", True),
        ('select * from "ks"."t"', True),
        ("INSERT INTO ks . t (k) VALUES (1)", True),
        ("SELECT * FROM t", True),
        ("SELECT * FROM other.t", False),
        ("SELECT * FROM ks.t_scylla_cdc_log", False),
        ("SELECT * FROM ks.tt", False),
        ("SELECT t.x FROM ks.at", False),
    ],
)
def test_a_table_is_found_in_a_statement(statement: str, hit: bool) -> None:
    assert (table_pattern("ks.t").search(statement) is not None) is hit


def test_rules_fire_by_skip_count_and_seeded_chance() -> None:
    faults = Faults()
    faults.add({"action": "overloaded", "pattern": "^select", "skip": 2, "count": 3})
    fired = [faults.strike(0, "QUERY", ["SELECT 1"]) is not None for _ in range(8)]
    assert fired == [False, False, True, True, True, False, False, False]
    assert faults.strike(0, "QUERY", ["INSERT"]) is None
    faults.clear()
    faults.add({"action": "drop"})
    assert faults.strike(0, "PREPARE", ["SELECT 1"]) is None
    faults.clear()

    def pattern(seed: int) -> list[bool]:
        faults.add({"action": "overloaded", "probability": 0.5, "seed": seed, "node": 1, "opcode": "EXECUTE"})
        made = [faults.strike(1, "EXECUTE", ["x"]) is not None for _ in range(64)]
        assert faults.strike(0, "EXECUTE", ["x"]) is None
        assert faults.strike(1, "QUERY", ["x"]) is None
        faults.clear()
        return made

    assert pattern(1) == pattern(1) != pattern(2)
    assert 16 < sum(pattern(1)) < 48


def test_wrong_rules_are_refused_in_full() -> None:
    with pytest.raises(ValueError, match=r"unknown option 'tabel'.*count cannot be 'x'.*action must be one of"):
        Faults().add({"tabel": "ks.t", "count": "x"})
    with pytest.raises(ValueError, match="pattern is not a regular expression"):
        Faults().add({"action": "drop", "pattern": "("})


@pytest.fixture
def faulty(scylla: EmbeddedScylla, keyspace: str, connect: Connect) -> tuple[EmbeddedScylla, RawClient, str]:
    """A table of its own with three rows, so that faults hit nobody else."""
    client = connect(scylla, start=False)
    client.startup(SCYLLA_RATE_LIMIT_ERROR="")
    table = f"{keyspace}.t"
    client.done(f"CREATE TABLE {table} (k int PRIMARY KEY, v int)")
    for key in range(3):
        client.done(f"INSERT INTO {table} (k, v) VALUES ({key}, {key})")
    return scylla, client, table


CODES = {
    "read_timeout": 0x1200,
    "write_timeout": 0x1100,
    "unavailable": 0x1000,
    "read_failure": 0x1300,
    "write_failure": 0x1500,
    "overloaded": 0x1001,
    "server_error": 0x0000,
    "is_bootstrapping": 0x1002,
    "truncate_error": 0x1003,
    "invalid": 0x2200,
    "unauthorized": 0x2100,
    "rate_limit": 0xF000,
}


@pytest.mark.parametrize("action", sorted(ERROR_FAULTS))
def test_every_error(faulty: tuple[EmbeddedScylla, RawClient, str], action: str) -> None:
    server, client, table = faulty
    fault = server.admin.add_fault(action, table=table, count=1)
    response = client.query(f"SELECT * FROM {table}", consistency=4)
    assert response.error[0] == CODES[action]
    if 0x1100 <= CODES[action] <= 0x1500:
        reader = Reader(response.body)
        reader.int32(), reader.string()
        assert reader.short() == 4
    assert len(client.rows(f"SELECT * FROM {table}").rows) == 3
    assert server.admin.fault(fault)["fired"] == 1
    server.admin.remove_fault(fault)


def test_a_write_that_fails_afterwards_has_happened(faulty: tuple[EmbeddedScylla, RawClient, str]) -> None:
    server, client, table = faulty
    for key, when in ((7, "before"), (8, "after")):
        fault = server.admin.add_fault("write_timeout", table=table, count=1, when=when)
        assert client.query(f"INSERT INTO {table} (k, v) VALUES ({key}, 0)").error[0] == 0x1100
        server.admin.remove_fault(fault)
    keys = {row[0] for row in client.rows(f"SELECT k FROM {table}").rows}
    assert struct.pack(">i", 8) in keys
    assert struct.pack(">i", 7) not in keys


def test_unprepared(faulty: tuple[EmbeddedScylla, RawClient, str]) -> None:
    server, client, table = faulty
    prepared = client.prepare(f"SELECT * FROM {table}")
    fault = server.admin.add_fault("unprepared", table=table, opcode="EXECUTE", count=1)
    response = client.execute(prepared)
    assert response.error[0] == 0x2500
    assert response.body.endswith(prepared.id)
    assert client.execute(prepared).error[0] == 0x2500
    assert client.prepare(f"SELECT * FROM {table}").id == prepared.id
    assert client.execute(prepared).opcode == frame.RESULT
    server.admin.remove_fault(fault)


def test_dropped_connections(faulty: tuple[EmbeddedScylla, RawClient, str], connect: Connect) -> None:
    server, client, table = faulty
    for action in ("drop", "drop_mid_page"):
        fault = server.admin.add_fault(action, table=table, count=1)
        with pytest.raises(OSError):
            connect(server).query(f"SELECT * FROM {table}")
        server.admin.remove_fault(fault)
    assert len(client.rows(f"SELECT * FROM {table}").rows) == 3


def test_delays_let_others_pass_and_silence_lasts(faulty: tuple[EmbeddedScylla, RawClient, str]) -> None:
    server, client, table = faulty
    slow = server.admin.add_fault("delay", table=table, delay_ms=2_000, count=1)
    silent = server.admin.add_fault("silence", table=table, count=1, skip=0)
    body = f"SELECT k FROM {table}"
    first = client.send(frame.QUERY, _query(body))
    client.send(frame.QUERY, _query(body))
    third = client.send(frame.QUERY, _query(body))
    assert client.receive().stream == third
    assert client.receive().stream == first
    server.admin.remove_fault(slow)
    server.admin.remove_fault(silent)


def _query(statement: str) -> bytes:
    return struct.pack(">i", len(statement)) + statement.encode() + struct.pack(">HB", 1, 0)


def test_refused_connections(own_scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(own_scylla)
    own_scylla.admin.add_fault("refuse", count=2)
    for _ in range(2):
        with pytest.raises(OSError):
            connect(own_scylla)
    assert connect(own_scylla).ask(frame.OPTIONS).opcode == frame.SUPPORTED
    assert client.ask(frame.OPTIONS).opcode == frame.SUPPORTED
    assert own_scylla.admin.counters()["refused"] == 2


def test_wrong_rules_are_refused_over_http(scylla: EmbeddedScylla) -> None:
    with pytest.raises(EmbeddedError, match="unknown option 'tabel'"):
        scylla.admin.add_fault("drop", tabel="ks.t")
