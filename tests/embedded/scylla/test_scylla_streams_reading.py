"""Whole histories read back while stream sets change: every write once, in the stream that its time and key demand."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from cassandra.cluster import Cluster, Session

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.streams.ids import shard_of
from embedded.scylla.tokens import MAX_TOKEN, cdc_token, murmur3_token
from tests.servers.scylla import PATIENT

pytestmark = [pytest.mark.scylla, pytest.mark.only_double("stream sets that change partly; clocks that jump")]
UUID_EPOCH = 0x01B21DD213814000
WRITES = 300


@contextmanager
def session_of(server: EmbeddedScylla) -> Iterator[Session]:
    cluster = Cluster([server.host], port=server.port, schema_metadata_enabled=False, protocol_version=4, **PATIENT)
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


def millis(stamp: datetime) -> int:
    return round(stamp.replace(tzinfo=UTC).timestamp() * 1000)


def read(session: Session, table: str, stream: bytes, opened: int, closed: int | None) -> list[tuple[int, int, int]]:
    """(key, value, micros) of a stream over [opened, closed), asked as readers ask."""
    upper = closed if closed is not None else int(time.time() * 1000) + 60_000
    rows = session.execute(
        f'SELECT * FROM {table}_scylla_cdc_log WHERE "cdc$stream_id" = %s AND "cdc$time" >= minTimeuuid(%s) '
        'AND "cdc$time" < minTimeuuid(%s) BYPASS CACHE',
        (stream, opened, upper),
    )
    return [(row.pk, row.v, (row.cdc_time.time - UUID_EPOCH) // 10) for row in rows]


def write_while(session: Session, table: str, change: Any, seed: int) -> list[tuple[int, int]]:
    """Write, now and then changing the streams; gives (key, value) in the order of the writes."""
    source = random.Random(seed)
    insert = session.prepare(f"INSERT INTO {table} (pk, v) VALUES (?, ?)")
    written = []
    for number in range(WRITES):
        key = source.randrange(40)
        session.execute(insert, (key, number))
        written.append((key, number))
        if number % 25 == 24:
            change(source)
    return written


def check(read_rows: list[tuple[int, int, int]], written: list[tuple[int, int]]) -> None:
    assert sorted((key, value) for key, value, _ in read_rows) == sorted(written)
    for key in {key for key, _ in written}:
        in_time = sorted((micros, value) for each, value, micros in read_rows if each == key)
        assert [value for _, value in in_time] == [value for each, value in written if each == key]


def token_of(key: int) -> int:
    return murmur3_token(struct.pack(">i", key))


@pytest.mark.parametrize("seed", range(3))
def test_tablets_under_partial_changes(scylla: EmbeddedScylla, seed: int) -> None:
    keyspace = f"moving_{seed}"
    name = f"{keyspace}.t"
    with session_of(scylla) as session:
        session.execute(
            f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} "
            "AND tablets = {'enabled': true, 'initial': 4}"
        )
        session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': 'true'}}")

        def change(source: random.Random) -> None:
            if source.random() < 0.3:
                session.execute(f"ALTER TABLE {name} WITH tablets = {{'min_tablet_count': {source.choice((2, 4, 8))}}}")
            else:
                scylla.admin.change_streams(name, random=source.getrandbits(32))

        written = write_while(session, name, change, seed)
        where = f"WHERE keyspace_name = '{keyspace}' AND table_name = 't'"
        stamps = [row.timestamp for row in session.execute(f"SELECT timestamp FROM system.cdc_timestamps {where}")]
        assert stamps == sorted(stamps, reverse=True) and len(stamps) > 5
        sets: list[tuple[int, dict[int, list[bytes]]]] = []
        for row in session.execute(f"SELECT timestamp, stream_state, stream_id FROM system.cdc_streams {where}"):
            at = millis(row.timestamp)
            if not sets or sets[-1][0] != at:
                sets.append((at, {0: [], 1: [], 2: []}))
            sets[-1][1][row.stream_state].append(row.stream_id)

    lives: dict[bytes, list[int | None]] = {}
    rows = []
    for at, states in sets:
        for raw in states[1]:
            lives[raw][1] = at
        for raw in states[2]:
            lives[raw] = [at, None]
        assert set(states[0]) == {raw for raw, (_, closed) in lives.items() if closed is None}
        assert cdc_token(states[0][-1]) == MAX_TOKEN
    with session_of(scylla) as session:
        for raw, (opened, closed) in lives.items():
            assert opened is not None
            for key, value, micros in read(session, name, raw, opened, closed):
                rows.append((key, value, micros))
                ends = [sorted(cdc_token(each) for each in states[0]) for at, states in sets if at * 1000 <= micros][-1]
                assert cdc_token(raw) == next(end for end in ends if end >= token_of(key))
    check(rows, written)


def test_vnodes_under_new_generations_and_nodes(own_scylla: EmbeddedScylla) -> None:
    with session_of(own_scylla) as session:
        session.execute(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} "
            "AND tablets = {'enabled': false}"
        )
        session.execute("CREATE TABLE ks.t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': 'true'}")

        def change(source: random.Random) -> None:
            if source.random() < 0.3:
                own_scylla.admin.add_node()
            else:
                own_scylla.admin.request("POST", "/storage_service/cdc_streams_check_and_repair")

        written = write_while(session, "ks.t", change, 1)
        stamps = [
            millis(row.time)
            for row in session.execute(
                "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'"
            )
        ][::-1]
        assert len(stamps) == 1 + WRITES // 25
        rows = []
        for opened, closed in zip(stamps, [*stamps[1:], None]):
            ranges = list(
                session.execute(
                    "SELECT range_end, streams FROM system_distributed.cdc_streams_descriptions_v2 WHERE time = %s",
                    (opened,),
                )
            )
            ends = [row.range_end for row in ranges]
            assert ends == sorted(ends)
            for row in ranges:
                for raw in row.streams:
                    for key, value, micros in read(session, "ks.t", raw, opened, closed):
                        rows.append((key, value, micros))
                        token = token_of(key)
                        assert row.range_end == next((end for end in ends if end >= token), ends[0])
                        assert shard_of(cdc_token(raw), len(row.streams)) == shard_of(token, len(row.streams))
    check(rows, written)


def test_a_future_set_is_seen_before_it_counts(own_scylla: EmbeddedScylla) -> None:
    own_scylla.admin.set_ring_delay(60)
    with session_of(own_scylla) as session:
        session.execute(
            "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1} "
            "AND tablets = {'enabled': true, 'initial': 1}"
        )
        session.execute("CREATE TABLE ks.t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': 'true'}")
        session.execute("INSERT INTO ks.t (pk, v) VALUES (1, 1)")
        session.execute("ALTER TABLE ks.t WITH tablets = {'min_tablet_count': 2}")
        session.execute("INSERT INTO ks.t (pk, v) VALUES (1, 2)")
        stamps = [
            millis(row.timestamp) / 1000 for row in session.execute("SELECT timestamp FROM system.cdc_timestamps")
        ]
        assert 0 < stamps[0] - time.time() < 125.1

        streams = {row.v: row.cdc_stream_id for row in session.execute("SELECT * FROM ks.t_scylla_cdc_log")}
        assert streams[1] == streams[2]
        own_scylla.admin.move_clock(130)
        late = int((time.time() + 130) * 1_000_000)
        session.execute(f"INSERT INTO ks.t (pk, v) VALUES (1, 3) USING TIMESTAMP {late}")
        streams = {row.v: row.cdc_stream_id for row in session.execute("SELECT * FROM ks.t_scylla_cdc_log")}
        assert streams[3] != streams[1]


def test_rows_and_sets_of_the_past_are_forgotten(own_scylla: EmbeddedScylla) -> None:
    with session_of(own_scylla) as session:
        session.execute(
            "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1} "
            "AND tablets = {'enabled': true, 'initial': 2}"
        )
        session.execute("CREATE TABLE ks.t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': 'true', 'ttl': 100}")
        session.execute("INSERT INTO ks.t (pk, v) VALUES (1, 1)")
        own_scylla.admin.move_clock(60)
        own_scylla.admin.change_streams("ks.t", replace=True)
        assert len(list(session.execute("SELECT * FROM ks.t_scylla_cdc_log"))) == 1
        assert len(list(session.execute("SELECT * FROM system.cdc_timestamps"))) == 2

        own_scylla.admin.move_clock(41)
        assert list(session.execute("SELECT * FROM ks.t_scylla_cdc_log")) == []
        assert len(list(session.execute("SELECT * FROM ks.t"))) == 1
        own_scylla.admin.move_clock(60)
        assert len(list(session.execute("SELECT * FROM system.cdc_timestamps"))) == 1
        states = [row.stream_state for row in session.execute("SELECT * FROM system.cdc_streams")]
        assert sorted(states) == [0, 0, 2, 2]
