"""The preload: what it generates is what the server itself would have logged for the same writes."""

from __future__ import annotations

import json
import threading
import uuid
from collections import Counter
from itertools import groupby
from typing import Any

import pytest

from connector.errors import EmbeddedError
from connector.values.types import parse_type
from embedded.scylla.catalog import StoreReader
from embedded.scylla.cdc.changes import INSERT, UPDATE
from embedded.scylla.cdc.tables import Cdc
from embedded.scylla.clock import Clock
from embedded.scylla.logrow import row_order, split_row, write_time
from embedded.scylla.logstore import LogStore
from embedded.scylla.mutation import Cell, CollectionMutation, Marker, PartitionMutation
from embedded.scylla.preload import Preloader, StreamAt
from embedded.scylla.preload_request import ExpectedRows, _elements, _summary
from embedded.scylla.preload_rows import PreloadSpec, RowSource
from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.results import RequestContext
from embedded.scylla.rowstore import RowStore
from embedded.scylla.schema import Column, Keyspace, Schema, Table, partition_key_bytes
from embedded.scylla.store import TableStore
from embedded.scylla.streams.service import StreamService
from tests.servers.patience import until

USER_TYPES = {"u": parse_type("frozen<int>")}
PLAIN = {"v": "int", "w": "text"}
RICH = {
    "a": "bigint",
    "b": "boolean",
    "c": "decimal",
    "d": "map<text, int>",
    "e": "set<uuid>",
    "f": "list<timestamp>",
    "g": "frozen<list<smallint>>",
    "h": "duration",
    "i": "inet",
    "j": "tuple<int, text>",
    "k": "vector<float, 3>",
    "l": "timeuuid",
    "m": "varint",
    "n": "date",
}


class Home:
    """A schema with one CDC table and the stores of it and its log."""

    def __init__(self, columns: dict[str, str], options: dict[str, str], *, clustered: bool = True) -> None:
        self.clock = Clock()
        self.clock.freeze()
        self.streams = StreamService(self.clock, vnodes=4, shards=2, seed=5)
        schema = Schema()
        schema.put_keyspace(Keyspace("ks", {}))
        self.cdc = Cdc(schema, self.clock, self.streams, seed=1)
        made = [Column("pk", parse_type("text"), "partition_key", 0)]
        if clustered:
            made.append(Column("ck", parse_type("int"), "clustering", 0, "desc"))
        made += [Column(name, parse_type(text)) for name, text in columns.items()]
        table = Table(uuid.uuid4(), "ks", "t", tuple(made), cdc={"enabled": "true", **options})
        self.base, self.log = self.cdc.create_table(table)
        for each in (self.base, self.log):
            schema.put_table(each)
        self.stores: dict[uuid.UUID, TableStore] = {self.base.id: RowStore(self.base)}
        self.log_store = self.cdc.open_store(self.log)
        assert isinstance(self.log_store, LogStore)
        self.stores[self.log.id] = self.log_store

    def write(self, mutation: PartitionMutation) -> None:
        """As a client's request."""
        reader = StoreReader(self.stores, self.clock)
        for each in self.cdc.augment([mutation], RequestContext(), reader):
            self.stores[each.table.id].apply(each)

    def logged(self) -> list[tuple[Any, ...]]:
        """All log rows: stream, time, number, cells; without the random half of the time."""
        store = self.log_store
        assert isinstance(store, LogStore)
        rows = []
        for stream in store._streams.values():
            orders = [row_order(body) for body in stream.bodies]
            assert orders == sorted(set(orders))
            rows += [(stream.key, write_time(body), *split_row(body)[2:]) for body in stream.bodies]
        return sorted(rows, key=lambda row: (row[1], row[2]))


def stream_at(home: Home) -> StreamAt:
    generation = home.streams.vnodes.generations[0]
    return lambda token, micros: generation.stream_for(token)


def mutations(source: RowSource) -> list[PartitionMutation]:
    """The same writes as a client would send them: one request for each batch."""
    made = []
    for batch, writes in groupby(source.writes(), key=lambda write: write.batch):
        micros = source.spec.time_of(batch)
        mutation: PartitionMutation | None = None
        for write in writes:
            if mutation is None:
                key = partition_key_bytes(source.partition_key(write.partition))
                mutation = PartitionMutation(source.table, key)
            if write.operation not in (INSERT, UPDATE):
                if source.table.clustering:
                    mutation.row(source.clustering_key(write.row)).deletion = micros
                else:
                    mutation.deletion = micros
                continue
            row = mutation.row(source.clustering_key(write.row))
            if write.operation == INSERT:
                row.marker = Marker(micros)
            for column, raw in zip(source.columns, source.values(write.number)):
                if column.multi_cell:
                    row.cells[column.name] = CollectionMutation(micros - 1, _elements(column, raw, micros))
                else:
                    row.cells[column.name] = Cell(micros, raw)
        assert mutation is not None
        made.append(mutation)
    return made


@pytest.mark.parametrize(
    ("columns", "options", "spec", "clustered"),
    [
        (PLAIN, {}, {}, True),
        (PLAIN, {}, {"nulls": 0.3, "keys": 40, "partitions": 4, "mixed": True}, True),
        (PLAIN, {"delta": "keys", "ttl": "0"}, {"mixed": True, "keys": 30, "partitions": 3}, True),
        (PLAIN, {"preimage": "true"}, {"mixed": True, "keys": 30, "partitions": 3, "batch_rows": 4}, True),
        (PLAIN, {"postimage": "true"}, {"mixed": True, "keys": 30, "partitions": 3, "nulls": 0.2}, True),
        (PLAIN, {"preimage": "full", "postimage": "true"}, {"mixed": True, "keys": 20}, False),
        (RICH, {}, {"batch_rows": 3, "partitions": 7, "mixed": True, "nulls": 0.2}, True),
        (
            RICH,
            {"preimage": "full", "postimage": "true"},
            {"keys": 25, "partitions": 5, "mixed": True, "nulls": 0.1},
            True,
        ),
    ],
)
def test_preloaded_rows_are_those_of_real_writes(
    columns: dict[str, str], options: dict[str, str], spec: dict[str, Any], clustered: bool
) -> None:
    home, twin = Home(columns, options, clustered=clustered), Home(columns, options, clustered=clustered)
    wanted = PreloadSpec(300, home.clock.now_us(), seed=3, **spec)
    for each in (home, twin):
        each.streams.vnodes.backdate(wanted.start_us // 1000)
    logged = home.cdc.logged("ks", "t")
    assert logged is not None and isinstance(home.log_store, LogStore)
    preloader = Preloader(logged, RowSource(home.base, wanted), stream_at(home))
    done = preloader.fill(home.log_store)
    for mutation in mutations(RowSource(twin.base, wanted)):
        twin.write(mutation)

    assert home.logged() == twin.logged()
    assert done.rows == len(home.logged())
    assert sum(done.operations.values()) == done.rows
    assert done.streams == Counter(row[0] for row in home.logged())


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    home = Home(PLAIN, {})
    spec = PreloadSpec(50, 1_795_000_000_000_000, seed=1)
    one, same = RowSource(home.base, spec), RowSource(home.base, spec)
    other = RowSource(home.base, PreloadSpec(50, 1_795_000_000_000_000, seed=2))

    assert [one.values(number) for number in range(50)] == [same.values(number) for number in range(50)]
    assert [one.values(number) for number in range(50)] != [other.values(number) for number in range(50)]


def test_every_change_has_a_row_of_its_own_unless_keys_are_given() -> None:
    for clustered in (True, False):
        source = RowSource(Home(PLAIN, {}, clustered=clustered).base, PreloadSpec(5000, 10**15, partitions=7))
        keys = {(write.partition, write.row) for write in source.writes()}
        assert len(keys) == 5000
        few = RowSource(Home(PLAIN, {}, clustered=clustered).base, PreloadSpec(5000, 10**15, partitions=7, keys=70))
        assert len({(write.partition, write.row) for write in few.writes()}) == 70


def test_what_is_wrong_is_said_at_once() -> None:
    home = Home(PLAIN, {}, clustered=False)
    with pytest.raises(ValueError) as error:
        RowSource(home.base, PreloadSpec(0, 10**15, partitions=0, nulls=2, batch_rows=5))

    assert str(error.value) == (
        "rows must be at least 1; partitions must be at least 1; nulls must lie between 0 and 1; "
        "batch_rows above 1 needs a table with clustering columns"
    )
    with pytest.raises(ValueError, match="every batch needs a microsecond of its own"):
        RowSource(home.base, PreloadSpec(100, 10**15, span_seconds=0.00001))


def test_the_expected_rows_are_told_by_the_summary_alone() -> None:
    home = Home(RICH, {})
    spec = PreloadSpec(200, home.clock.now_us(), seed=9, keys=40, partitions=4, mixed=True, nulls=0.2)
    logged = home.cdc.logged("ks", "t")
    assert logged is not None and isinstance(home.log_store, LogStore)
    home.streams.vnodes.backdate(spec.start_us // 1000)
    preloader = Preloader(logged, RowSource(home.base, spec), stream_at(home))
    done = preloader.fill(home.log_store, keep_state=True)
    expected = ExpectedRows(json.loads(json.dumps(_summary(home.base, spec, done, len(preloader.live)))))
    changes = list(expected.changes())

    assert [change.time_us for change in changes] == [row[1] for row in home.logged()]
    assert Counter(change.operation for change in changes) == done.operations
    assert len(expected.base_rows()) == len(preloader.live)


@pytest.mark.scylla
@pytest.mark.parametrize("tablets", [False, True])
def test_a_preload_through_the_admin_interface(scylla: EmbeddedScylla, tablets: bool) -> None:
    keyspace = f"preload_{'tablets' if tablets else 'vnodes'}"
    scylla.admin.cql(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} "
        f"AND tablets = {{'enabled': {str(tablets).lower()}}}"
    )
    scylla.admin.cql(f"CREATE TYPE {keyspace}.u (a int, b frozen<map<int, text>>)")
    scylla.admin.cql(
        f"CREATE TABLE {keyspace}.t (pk int, ck text, v int, u u, m map<int, text>, PRIMARY KEY (pk, ck)) "
        "WITH cdc = {'enabled': 'true'}"
    )
    expected = scylla.preload(f"{keyspace}.t", 500, partitions=10, keys=100, mixed=True, nulls=0.1, base=True)

    rows = scylla.admin.cql(f'SELECT "cdc$operation", pk, ck, v FROM {keyspace}.t_scylla_cdc_log')["rows"]
    wanted = [
        [change.operation, change.key["pk"], change.key["ck"], change.values.get("v")] for change in expected.changes()
    ]
    assert sorted(rows, key=str) == sorted(wanted, key=str)
    base = scylla.admin.cql(f"SELECT pk, ck, v FROM {keyspace}.t")["rows"]
    assert {(pk, ck): v for pk, ck, v in base} == {key: row["v"] for key, row in expected.base_rows().items()}
    assert expected.summary["base_rows"] == len(base)

    with pytest.raises(Exception, match="unknown option colour"):
        scylla.admin.preload(f"{keyspace}.t", 5, colour="red")
    with pytest.raises(Exception, match="rows cannot be 'many'"):
        scylla.admin.request("POST", "/embedded/preload", {"table": f"{keyspace}.t", "rows": "many"})


def test_others_are_served_while_a_preload_runs(scylla: EmbeddedScylla, keyspace: str) -> None:
    table = f"{keyspace}.t"
    scylla.admin.cql(
        f"CREATE TABLE {table} (pk int, ck int, v text, PRIMARY KEY (pk, ck)) WITH cdc = {{'enabled': true}}"
    )
    answers: list[dict[str, Any] | str] = []

    def preload() -> None:
        try:
            answers.append(scylla.admin.preload(table, 10_000_000))
        except EmbeddedError as error:
            answers.append(str(error))

    thread = threading.Thread(target=preload)
    thread.start()
    log = f"SELECT pk FROM {keyspace}.t_scylla_cdc_log"
    until(lambda: scylla.admin.cql(f"{log} LIMIT 1")["rows"] or not thread.is_alive(), 120, "the first row")
    assert thread.is_alive(), answers
    scylla.admin.cql(f"INSERT INTO {table} (pk, ck) VALUES (-1, 0)")
    # Ten million rows would take a minute or two; a change of the schema ends it.
    scylla.admin.cql(f"ALTER TABLE {table} ADD w int")
    thread.join(120)
    assert len(answers) == 1 and "was altered or dropped while its log was being filled" in str(answers[0])
    assert scylla.admin.cql(f"{log} WHERE pk = -1 ALLOW FILTERING")["rows"] == [[-1]]
    scylla.admin.cql(f"DROP TABLE {table}")
