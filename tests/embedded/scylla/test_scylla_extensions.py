"""ScyllaDB's extensions of the protocol, byte by byte: each for those who asked for it in STARTUP, and nobody else."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from cassandra.cqltypes import lookup_casstype

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import Reader
from embedded.scylla.tokens import murmur3_token
from tests.embedded.scylla.raw_client import RawClient, Response, parse_rows
from tests.embedded.scylla.test_scylla_handshake import multimap

Connect = Callable[..., RawClient]
METADATA_ID = "SCYLLA_USE_METADATA_ID"
GLOBAL_SPEC, NO_METADATA, CHANGED, LWT = 0x01, 0x04, 0x08, -0x80000000
ONE, TWO = struct.pack(">i", 1), struct.pack(">i", 2)


def started(connect: Connect, server: EmbeddedScylla, *extensions: str, **options: object) -> RawClient:
    client = connect(server, start=False, **options)
    assert client.startup(**dict.fromkeys(extensions, "")).opcode == frame.READY
    return client


@pytest.fixture
def table(scylla: EmbeddedScylla, keyspace: str) -> str:
    scylla.admin.cql(f"CREATE TYPE {keyspace}.pair (a int)")
    scylla.admin.cql(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v int, s text, p frozen<pair>)")
    scylla.admin.cql(f"INSERT INTO {keyspace}.t (k, v, p) VALUES (1, 2, {{a: 3}})")
    return f"{keyspace}.t"


@pytest.mark.parametrize("skip", [True, False])
def test_a_result_known_by_its_id_may_come_without_metadata(
    scylla: EmbeddedScylla, connect: Connect, table: str, skip: bool
) -> None:
    client = started(connect, scylla, METADATA_ID)
    prepared = client.prepare(f"SELECT * FROM {table} WHERE k = ?")
    assert prepared.metadata_id is not None
    assert len(prepared.metadata_id) == 16
    answer = parse_rows(client.execute(prepared, [ONE], skip_metadata=skip).body, prepared)
    assert answer.metadata_flags == (GLOBAL_SPEC | NO_METADATA if skip else GLOBAL_SPEC)
    assert answer.dicts() == [{"k": ONE, "p": struct.pack(">ii", 4, 3), "s": None, "v": TWO}]
    other = client.prepare(f"SELECT k FROM {table} WHERE k = ?")
    assert other.metadata_id not in (None, prepared.metadata_id)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("known", [b"", b"\0" * 16, b"another"])
def test_whoever_knows_other_columns_is_told_the_true_ones(
    scylla: EmbeddedScylla, connect: Connect, table: str, known: bytes, skip: bool
) -> None:
    client = started(connect, scylla, METADATA_ID)
    prepared = client.prepare(f"SELECT * FROM {table} WHERE k = ?")
    stale = replace(prepared, metadata_id=known, columns=[])
    answer = parse_rows(client.execute(stale, [ONE], skip_metadata=skip).body)
    assert answer.metadata_flags == GLOBAL_SPEC | CHANGED
    assert (answer.metadata_id, answer.columns) == (prepared.metadata_id, ["k", "p", "s", "v"])


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE {table} ADD w int", "ALTER TABLE {table} DROP v", "ALTER TYPE {keyspace}.pair ADD b text"],
)
def test_every_change_of_names_types_and_fields_is_another_id(
    scylla: EmbeddedScylla, connect: Connect, table: str, keyspace: str, change: str
) -> None:
    client, neighbour = (started(connect, scylla, METADATA_ID) for _ in range(2))
    query = f"SELECT * FROM {table} WHERE k = ?"
    before = client.prepare(query)
    scylla.admin.cql(change.format(table=table, keyspace=keyspace))
    assert client.execute(before, [ONE]).error[0] == 0x2500
    # A neighbour prepares it again, which makes it known to the server, under the same id: that is the case for which
    # metadata ids exist.
    after = neighbour.prepare(query)
    assert after.id == before.id
    assert after.metadata_id != before.metadata_id
    answer = parse_rows(client.execute(before, [ONE], skip_metadata=True).body)
    assert answer.metadata_flags & (CHANGED | NO_METADATA) == CHANGED
    assert (answer.metadata_id, answer.columns, answer.types) == (after.metadata_id, after.columns, after.types)


def test_pages_carry_state_and_id_side_by_side(scylla: EmbeddedScylla, connect: Connect, table: str) -> None:
    scylla.admin.cql(f"INSERT INTO {table} (k, v) VALUES (5, 6)")
    client = started(connect, scylla, METADATA_ID)
    prepared = client.prepare(f"SELECT k, v FROM {table}")
    stale = replace(prepared, metadata_id=b"")
    first = parse_rows(client.execute(stale, page_size=1, skip_metadata=True).body)
    assert (first.metadata_id, len(first.rows)) == (prepared.metadata_id, 1)
    second = parse_rows(
        client.execute(prepared, page_size=1, skip_metadata=True, paging_state=first.paging_state).body, prepared
    )
    assert second.metadata_flags & NO_METADATA
    assert len(second.rows) == 1


@pytest.mark.parametrize("without", [(), (METADATA_ID,)])
def test_without_the_extension_nothing_of_it_is_seen(connect: Connect, without: tuple[str, ...]) -> None:
    """Neither for a client that did not ask, nor on a server that does not offer it, whoever asks."""
    with EmbeddedScylla(without=without) as server:
        client = connect(server, start=False)
        client.startup(**({METADATA_ID: ""} if without else {}))
        client.metadata_ids = False
        prepared = client.prepare("SELECT key, cluster_name FROM system.local WHERE key = ?")
        answer = parse_rows(client.execute(prepared, [b"local"]).body)
        assert (answer.metadata_flags, answer.columns) == (GLOBAL_SPEC, ["key", "cluster_name"])
        skipped = parse_rows(client.execute(prepared, [b"local"], skip_metadata=True).body, prepared)
        assert skipped.metadata_flags == GLOBAL_SPEC | NO_METADATA


def test_statements_without_rows_have_an_id_as_well(scylla: EmbeddedScylla, connect: Connect, table: str) -> None:
    client = started(connect, scylla, METADATA_ID)
    prepared = client.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
    assert prepared.metadata_id == bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb924"), "of no column at all"
    assert client.execute(prepared, [ONE, ONE], skip_metadata=True).opcode == frame.RESULT
    conditional = client.prepare(f"UPDATE {table} SET v = ? WHERE k = ? IF v = ?")
    answer = parse_rows(client.execute(conditional, [TWO, ONE, ONE], skip_metadata=True).body, conditional)
    assert answer.metadata_flags & (NO_METADATA | CHANGED) == NO_METADATA
    assert answer.dicts() == [{"[applied]": b"\x01", "v": ONE}]


@pytest.mark.parametrize("asked", [True, False])
def test_conditional_statements_are_marked(scylla: EmbeddedScylla, connect: Connect, table: str, asked: bool) -> None:
    client = started(connect, scylla, *(["SCYLLA_LWT_ADD_METADATA_MARK"] if asked else []))
    for text, conditional in {
        f"UPDATE {table} SET v = 1 WHERE k = ? IF v = 2": True,
        f"INSERT INTO {table} (k) VALUES (?) IF NOT EXISTS": True,
        f"BEGIN BATCH UPDATE {table} SET v = 1 WHERE k = 1 IF EXISTS; APPLY BATCH": True,
        f"UPDATE {table} SET v = 1 WHERE k = ?": False,
        f"INSERT INTO {table} (k, p) VALUES (?, {{a: 1}})": False,
        f"SELECT * FROM {table} WHERE k = ?": False,
        f"INSERT INTO {table} (k, s) VALUES (?, 'what if')": False,
    }.items():
        assert bool(client.prepare(text).flags & LWT) is (asked and conditional), text


@pytest.mark.parametrize("asked", [True, False])
def test_rate_limits_are_a_configuration_error_for_those_who_do_not_know_them(
    scylla: EmbeddedScylla, connect: Connect, table: str, asked: bool
) -> None:
    client = started(connect, scylla, *(["SCYLLA_RATE_LIMIT_ERROR"] if asked else []))
    scylla.admin.add_fault("rate_limit", table=table, count=1)
    code, text = client.query(f"SELECT * FROM {table}").error
    assert (code, text) == (0xF000 if asked else 0x2300, "Per-partition rate limit reached")


def test_key_positions_of_batches_are_those_of_the_last_statement(
    scylla: EmbeddedScylla, connect: Connect, table: str, keyspace: str
) -> None:
    scylla.admin.cql(f"CREATE TABLE {keyspace}.other (k int, c int, PRIMARY KEY ((k, c)))")
    client = started(connect, scylla)

    def batch(*statements: str) -> list[int]:
        return client.prepare(f"BEGIN UNLOGGED BATCH {'; '.join(statements)}; APPLY BATCH").key_indexes

    insert = f"INSERT INTO {table} (v, k) VALUES (?, ?)"
    assert batch(insert) == [1]
    assert batch(insert, insert, f"DELETE FROM {table} WHERE k = ?") == [4]
    assert batch(insert, f"UPDATE {table} SET v = ? WHERE k = 5") == [1], "the last that binds it"
    assert batch(insert, f"INSERT INTO {keyspace}.other (c, k) VALUES (?, ?)") == []
    assert batch(f"INSERT INTO {keyspace}.other (c, k) VALUES (?, 1)") == []
    other = f"INSERT INTO {keyspace}.other (c, k) VALUES (?, ?)"
    assert batch(other, other) == [3, 2]
    assert batch(insert, other, insert) == [], "the bind markers are not all of one table"
    assert client.prepare(f"SELECT * FROM {keyspace}.other WHERE c = ? AND k = ?").key_indexes == [1, 0]


def test_elements_of_a_list_in_parentheses_have_names_of_their_own(
    scylla: EmbeddedScylla, connect: Connect, table: str
) -> None:
    client = started(connect, scylla)
    prepared = client.prepare(f"SELECT * FROM {table} WHERE k IN (?, ?, :mine)")
    assert (prepared.binds, prepared.key_indexes) == (["value(in(k))", "value(in(k))", "mine"], [])
    assert len(parse_rows(client.execute(prepared, [ONE, TWO, TWO]).body).rows) == 1


def test_the_port_on_which_clients_choose_their_shard(connect: Connect) -> None:
    with EmbeddedScylla(shards=2, nodes=2) as server:
        nodes = server.admin.nodes()
        for node in nodes:
            supported = multimap(connect(server, host=node["address"]).ask(frame.OPTIONS))
            port = int(supported["SCYLLA_SHARD_AWARE_PORT"][0])
            with RawClient(node["address"], port) as client:
                source = client._socket.getsockname()[1]
                assert multimap(client.ask(frame.OPTIONS))["SCYLLA_SHARD"] == [str(source % 2)]
        server.admin.stop_node(1)
        server.admin.start_node(1, without=["SCYLLA_SHARD_AWARE_PORT"])
        assert "SCYLLA_SHARD_AWARE_PORT" not in multimap(connect(server, host=nodes[1]["address"]).ask(frame.OPTIONS))


ROUTING = "TABLETS_ROUTING_V1"


def hint(answer: Response) -> tuple[int, int, list[tuple[str, int]]] | None:
    """Tokens and replicas of the tablet that a response tells of."""
    if not answer.flags & frame.FLAG_CUSTOM_PAYLOAD:
        return None
    reader = Reader(answer.body)
    payload = reader.bytes_map()
    assert list(payload) == ["tablets-routing-v1"]
    raw = payload["tablets-routing-v1"]
    assert raw is not None
    kind = lookup_casstype("TupleType(LongType, LongType, ListType(TupleType(UUIDType, Int32Type)))")
    first, last, replicas = kind.from_binary(raw, 4)
    return first, last, [(str(host), shard) for host, shard in replicas]


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[EmbeddedScylla]:
    with EmbeddedScylla(nodes=3, shards=2, ring_delay=0) as server:
        for copies in (1, 2):
            replication = f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}"
            server.admin.cql(f"CREATE KEYSPACE ks{copies} WITH replication = {replication}")
            server.admin.cql(
                f"CREATE TABLE ks{copies}.t (k int PRIMARY KEY, v int) WITH cdc = {{'enabled': true}}"
                " AND tablets = {'min_tablet_count': 8}"
            )
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        server.admin.cql(f"CREATE KEYSPACE ring WITH replication = {replication} AND tablets = {{'enabled': false}}")
        server.admin.cql("CREATE TABLE ring.t (k int PRIMARY KEY, v int)")
        yield server


def places(server: EmbeddedScylla) -> dict[tuple[str, int], tuple[str, int]]:
    """Host id and shard → address, and a source port that leads there."""
    return {(node["host_id"], shard): (node["address"], shard) for node in server.admin.nodes() for shard in (0, 1)}


def at_shard(connect: Connect, server: EmbeddedScylla, address: str, shard: int) -> RawClient:
    """The server spreads connections over its shards: as many as it takes."""
    while True:
        client = started(connect, server, ROUTING, host=address)
        if multimap(client.ask(frame.OPTIONS))["SCYLLA_SHARD"] == [str(shard)]:
            return client


@pytest.mark.parametrize("copies", [1, 2])
def test_clients_learn_where_a_tablet_is_when_they_ask_elsewhere(
    three_nodes: EmbeddedScylla, connect: Connect, copies: int
) -> None:
    everywhere = {place: at_shard(connect, three_nodes, *where) for place, where in sorted(places(three_nodes).items())}
    known: dict[int, tuple[int, int, list[tuple[str, int]]]] = {}
    for key in range(40):
        raw = struct.pack(">i", key)
        told = {
            place: hint(client.execute(client.prepare(f"SELECT v FROM ks{copies}.t WHERE k = ?"), [raw]))
            for place, client in everywhere.items()
        }
        hints = {str(each) for each in told.values() if each is not None}
        assert len(hints) == 1, "all who are told are told the same"
        tablet = next(each for each in told.values() if each is not None)
        first, last, replicas = tablet
        assert first < murmur3_token(raw) <= last
        assert len({host for host, _ in replicas}) == copies
        assert {place for place, each in told.items() if each is None} == set(replicas)
        known[last] = tablet
    ordered = [known[last] for last in sorted(known)]
    assert len(ordered) == 8
    assert (ordered[0][0], ordered[-1][1]) == (-(2**63), 2**63 - 1)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ordered))
    assert len({replica for _, _, replicas in ordered for replica in replicas}) == 6, "spread over all shards"


def test_a_log_lives_where_its_base_table_does(three_nodes: EmbeddedScylla, connect: Connect) -> None:
    (_, (address, shard)), *_ = sorted(places(three_nodes).items())
    client = at_shard(connect, three_nodes, address, shard)
    base, log = (
        {hint(client.execute(client.prepare(query), [key])) is None for key in keys}
        for query, keys in (
            ("SELECT v FROM ks1.t WHERE k = ?", [struct.pack(">i", key) for key in range(40)]),
            (
                'SELECT * FROM ks1.t_scylla_cdc_log WHERE "cdc$stream_id" = ?',
                [
                    bytes.fromhex(each["stream_id"])
                    for each in three_nodes.admin.streams()["tables"]["ks1.t"][-1]["streams"]
                ],
            ),
        )
    )
    assert base == log == {True, False}


def test_who_is_told(three_nodes: EmbeddedScylla, connect: Connect) -> None:
    key = struct.pack(">i", 7)
    everywhere = places(three_nodes).values()

    def told(query: str, values: list[bytes], *extensions: str) -> bool:
        """Whether anybody tells a client of the tablet."""
        found = []
        for address, _ in everywhere:
            client = started(connect, three_nodes, *extensions, host=address)
            found += [hint(client.execute(client.prepare(query), values)), hint(client.query(query, values))]
        return any(found)

    assert told("SELECT * FROM ks1.t WHERE k = ?", [key], ROUTING)
    assert told("UPDATE ks1.t SET v = 1 WHERE k = ?", [key], ROUTING)
    assert told("UPDATE ks1.t SET v = 1 WHERE k = ? IF v = 2", [key], ROUTING)
    assert not told("SELECT * FROM ks1.t WHERE k = ?", [key]), "did not ask"
    assert not told("SELECT * FROM ring.t WHERE k = ?", [key], ROUTING), "has vnodes"
    assert not told("SELECT * FROM ks1.t WHERE k = 7", [], ROUTING), "binds no key"
    assert not told("SELECT * FROM ks1.t WHERE k IN ?", [struct.pack(">ii", 1, 4) + key], ROUTING)
    assert not told("BEGIN BATCH UPDATE ks1.t SET v = 1 WHERE k = ?; APPLY BATCH", [key], ROUTING)


def test_hints_are_told_on_compressed_connections(three_nodes: EmbeddedScylla, connect: Connect) -> None:
    told = 0
    for address, _ in places(three_nodes).values():
        client = connect(three_nodes, start=False, host=address)
        client.startup(COMPRESSION="lz4", **{ROUTING: ""})
        answer = client.query("SELECT v FROM ks1.t WHERE k = ?", [struct.pack(">i", 7)])
        told += hint(answer) is not None
    assert told > 0
