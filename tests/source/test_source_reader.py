"""The reader for Python users and `scylla-cdc read`: checkpoints, limits, errors, login, TLS, what it costs."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.cluster import Session

from connector.errors import AccessDenied, CdcDisabled, CdcError, RetriableSourceError, SourceError, TableMissing
from connector.source import read_changes, unread
from connector.source.read_changes import ChangeReader
from connector.source.settings import ConnectionSettings, ReadingSettings
from connector.timeuuid import micros_of, time_uuid
from tests.servers.double import Double
from tests.servers.foreign import ForeignScylla
from tests.servers.patience import patience, until
from tests.servers.scylla import Login, Scylla
from tests.source.conftest import FAST, Following, address, logged, reader, row_of

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
faults = pytest.mark.only_double("the server answers late or with errors at its tester's wish")
Table = Callable[..., str]


def micros(time: str) -> int:
    return micros_of(uuid.UUID(time).bytes)


def insert(session: Session, table: str, rows: range) -> None:
    for number in rows:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number % 10}, {number}, 'v')")


def test_a_checkpoint_resumes_where_it_was_made(scylla: Scylla, session: Session, table: Table) -> None:
    """Wherever it is made: what was handed out before the newest batch is not seen again, the rest is."""
    name = table(tablets=False)
    insert(session, name, range(60))
    for stop_at in (1, 7, 30, 59):
        seen: Counter[tuple[str, str, int]] = Counter()
        with reader(scylla, name) as source:
            batches = iter(source)
            for _ in range(stop_at):
                seen.update(row_of(next(batches)))
            checkpoint = source.checkpoint()
        with reader(scylla, name, checkpoint=checkpoint) as source:
            resumed = Counter(row for batch in source for row in row_of(batch))
        assert seen + resumed >= logged(session, name), "nothing is lost"
        with reader(scylla, name, checkpoint=source.checkpoint()) as source:
            assert not list(source), "after the end nothing comes again"


def test_from_and_until(scylla: Scylla, session: Session, table: Table) -> None:
    name = table(tablets=True)
    insert(session, name, range(10))
    middle = 1 + max(micros(time) for _, time, _ in logged(session, name)) // 1000
    until(lambda: scylla.now_ms() > middle, 90, "the server's next millisecond")
    insert(session, name, range(10, 30))
    with reader(scylla, name, until_ms=middle) as source:
        assert sum(len(batch.rows) for batch in source) == 10
    with reader(scylla, name, from_ms=middle) as source:
        assert sum(len(batch.rows) for batch in source) == 20


@pytest.mark.only_double("a clock that is moved")
def test_a_reader_that_falls_behind_what_the_log_keeps_tells_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not that what it never was to read is gone."""
    monkeypatch.setattr(unread, "LOOK_SECONDS", 0.0)
    with Double(ring_delay=0) as server:
        server.admin.cql(server.keyspace_ddl("ks", tablets=True, initial=1))
        server.admin.cql("CREATE TABLE ks.t (pk int PRIMARY KEY) WITH cdc = {'enabled': true}")
        with reader(server, "ks.t", from_ms=1, follow=True) as source:
            batches = iter(source)
            server.admin.cql("INSERT INTO ks.t (pk) VALUES (1)")
            next(batches)

            def is_up_to_date() -> bool:
                source._note()
                source._step()
                return (source.read_to or 0) > server.now_ms() - 60_000

            until(is_up_to_date, what=lambda: f"a reader that has come to the end, not to {source.read_to}")
            source._step()
            assert "expired" not in caplog.text
            server.admin.move_clock(2 * 86_400)
            source._connection.sample_clocks()
            server.admin.cql("INSERT INTO ks.t (pk) VALUES (2)")
            next(batches)
    # Where the change has come by the time of the next look, it says that it is read on, too.
    lines = [record.getMessage() for record in caplog.records if "expired" in record.getMessage()]
    [said] = [line for line in lines if not line.endswith("it is read on")]
    assert "ks.t, slot 0" in said and "they were not read for longer than the log's TTL" in said


def test_asyncio(scylla: Scylla, session: Session, table: Table) -> None:
    name = table(tablets=True)
    insert(session, name, range(5))

    async def count() -> int:
        with reader(scylla, name) as source:
            return len([batch async for batch in source])

    async def leave() -> None:
        with reader(scylla, name, follow=True) as source:
            batches = aiter(source)
            for _ in range(5):
                await anext(batches)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(batches), 0.3)

    assert asyncio.run(count()) == 5
    asyncio.run(asyncio.wait_for(leave(), 90 * patience()))  # which waits for its threads


def test_columns_that_change_between_pages(scylla: Scylla, session: Session, table: Table) -> None:
    name = table(tablets=True)
    following = Following(reader(scylla, name, follow=True))
    following.start()
    insert(session, name, range(20))
    following.until(lambda: logged(session, name))
    session.execute(f"ALTER TABLE {name} ADD w list<int>")
    session.execute(f"INSERT INTO {name} (pk, ck, v, w) VALUES (1, 100, 'x', [1, 2])")
    following.until(lambda: logged(session, name))
    session.execute(f"ALTER TABLE {name} DROP v")
    session.execute(f"INSERT INTO {name} (pk, ck, w) VALUES (1, 101, [3])")
    following.until(lambda: logged(session, name))
    following.finish()
    assert next(iter(following.source.tables.values())).description.by_name.keys() == {"pk", "ck", "w"}


@faults
def test_pages_of_other_streams_wait_for_the_new_description(scylla: Scylla, session: Session, table: Table) -> None:
    """All streams are being read when the first page shows a new column: none of it is read without that column."""
    name = table(tablets=True, count=8)
    with reader(scylla, name, follow=True) as source:
        session.execute(f"ALTER TABLE {name} ADD w int")
        for pk in range(40):
            session.execute(f"INSERT INTO {name} (pk, ck, w) VALUES ({pk}, 0, {pk})")
        slow = scylla.admin.add_fault("delay", pattern="system_schema", delay_ms=1000, count=1)
        try:
            batches = iter(source)
            seen = [next(batches) for _ in range(40)]
        finally:
            scylla.admin.remove_fault(slow)
    assert len({batch.stream_id for batch in seen}) == 8
    assert [batch for batch in seen if "w" not in batch.layout.description.by_name] == []


def test_silence_costs_few_queries(scylla: Scylla, session: Session, table: Table) -> None:
    """A day of silence over all groups is one query a group, not one a window."""
    name = table(tablets=False)
    day = 86_400_000
    settings = replace(FAST, window_ms=1000)
    with reader(scylla, name, settings=settings, from_ms=scylla.now_ms() - day) as source:
        assert list(source) == []
        groups = len(next(iter(source._planner.tables.values())).lineage.groups(0))
        # A real server remembers the generations that other tests made, or its users.
        groups *= len(scylla.generations()) if isinstance(scylla, ForeignScylla) else 1
        assert source._connection.queries < 4 * groups + 60


def test_idle_reading_keeps_to_the_budget(scylla: Scylla, session: Session, table: Table) -> None:
    name = table(tablets=False)
    settings = replace(FAST, max_queries_per_second=40)
    following = Following(reader(scylla, name, settings=settings, follow=True))
    following.start()
    following.opened.wait(90)
    connection = following.source._connection
    # What is asked once, at the start, is not what idle reading costs.
    until(lambda: connection.queries >= 150, 90, lambda: f"query {connection.queries} of 150")
    # A pause of this thread between the two, at either end, must not look like more queries in less time.
    began = time.monotonic()
    before = connection.queries
    until(lambda: connection.queries - before >= 160, 90, lambda: f"query {connection.queries - before} of 160")
    made = connection.queries - before
    took = time.monotonic() - began
    following.finish()
    assert made < took * (40 + 15)


def test_what_is_wrong_is_told_apart(scylla: Scylla, session: Session, table: Table) -> None:
    off = table(tablets=True, cdc="{'enabled': false}")
    keyspace = off.partition(".")[0]
    for name, error in ((f"{keyspace}.nothing", TableMissing), ("nowhere.t", TableMissing), (off, CdcDisabled)):
        with pytest.raises(error):
            reader(scylla, name).open()
    with pytest.raises(CdcError, match=r"keyspace\.table"):
        reader(scylla, "justaname")
    with pytest.raises(RetriableSourceError, match=r"127\.0\.0\.1:1"):
        ChangeReader(ConnectionSettings((("127.0.0.1", 1),)), [off]).open()


def test_a_table_of_a_vector_index_is_read_without_the_option(scylla: Scylla, session: Session, table: Table) -> None:
    """ScyllaDB keeps the log for the index."""
    name = table(tablets=True, columns="v vector<float, 2>", cdc="{'preimage': false}")
    session.execute(f"CREATE CUSTOM INDEX ON {name} (v) USING 'vector_index'")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (1, 1, [1, 2])")
    with reader(scylla, name) as source:
        assert all(described.description.cdc.enabled for described in source.tables.values())
        assert [len(batch.rows) for batch in source] == [1]


@faults
def test_what_passes_is_waited_for(scylla: Scylla, session: Session, table: Table) -> None:
    """A rate limit, or rights that come late, say nothing about the table or the server's version."""
    name = table(tablets=False)
    insert(session, name, range(20))
    rules = [
        # More often in a row than anything may fail that waiting does not mend.
        scylla.admin.add_fault("rate_limit", pattern='FROM .*_scylla_cdc_log"? WHERE', count=80),
        scylla.admin.add_fault("unauthorized", pattern="cdc_generation_timestamps", count=4),
    ]
    try:
        with reader(scylla, name, settings=replace(FAST, retry_base_ms=1, retry_max_ms=20)) as source:
            assert sum(len(batch.rows) for batch in source) == 20
        assert [scylla.admin.fault(rule)["fired"] for rule in rules] == [80, 4]
        rules.append(scylla.admin.add_fault("unauthorized", pattern="scylla_keyspaces"))
        with pytest.raises(AccessDenied):
            reader(scylla, name).open()
    finally:
        for rule in rules:
            scylla.admin.remove_fault(rule)


def test_a_table_that_is_dropped_while_it_is_read(scylla: Scylla, session: Session, table: Table) -> None:
    name = table(tablets=True)
    settings = replace(FAST, retry_base_ms=1, retry_max_ms=20)
    following = Following(reader(scylla, name, settings=settings, follow=True))
    following.start()
    insert(session, name, range(5))
    following.until(lambda: logged(session, name))
    session.execute(f"DROP TABLE {name}")
    until(lambda: not following.is_alive(), 120, "the end of the reader")
    assert isinstance(following.error, SourceError)
    assert "does not exist" in str(following.error) or "unconfigured table" in str(following.error)


@pytest.mark.only_double("a server of its own with a password")
def test_login() -> None:
    with Double(user="reader", password="secret") as scylla:
        point = address(scylla.address)
        with pytest.raises(AccessDenied):
            ChangeReader(ConnectionSettings((point,), user="reader", password="wrong"), ["ks.t"]).open()
        with pytest.raises(TableMissing):
            ChangeReader(ConnectionSettings((point,), user="reader", password="secret"), ["ks.t"]).open()
        assert "secret" not in repr(ConnectionSettings((point,), user="reader", password="secret"))


def test_the_command_prints_one_object_a_batch(scylla: Scylla, session: Session, table: Table, tmp_path: Path) -> None:
    name = table(tablets=True)
    insert(session, name, range(3))
    confidence = str(scylla.confidence_ms(300))
    file = tmp_path / "connector.json"
    config = {**scylla.properties(), "scylla.table.names": name, "topic.prefix": "unused"}
    file.write_text(json.dumps({"name": "c", "config": config}))
    # What a command line can say about a server, and what needs a file: a login's password, certificates.
    where = ["--scylla", scylla.address] if scylla.login == Login() else ["--config", str(file)]
    command = [sys.executable, "-m", "connector", "read", name, *where, "--confidence", confidence]
    done = subprocess.run([*command, "--raw"], capture_output=True, text=True, timeout=180 * patience(), check=True)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["changes"][0]["op"] for document in documents] == ["c"] * 3
    assert documents[0]["rows"][0]["cdc$operation"] == 2

    follow = subprocess.Popen([*command, "--follow"], stdout=subprocess.PIPE, text=True)
    assert follow.stdout is not None
    assert [json.loads(follow.stdout.readline())["table_name"] for _ in range(3)] == ["t"] * 3
    follow.send_signal(signal.SIGTERM)
    assert follow.wait(90 * patience()) == 0
    follow.stdout.close()

    missing = subprocess.run(
        [*command[:4], "nowhere.t", *command[5:]], capture_output=True, text=True, timeout=180 * patience()
    )
    assert missing.returncode == 1
    assert "Traceback" not in missing.stderr


def test_small_pages_and_single_streams(scylla: Scylla, session: Session, table: Table) -> None:
    """However it is read, the same rows come."""
    name = table(tablets=False)
    insert(session, name, range(80))
    connection = scylla.settings(fetch_size=3)
    for in_query in (True, False):
        settings = ReadingSettings(confidence_ms=300, window_ms=200, in_query=in_query, max_in_flight=4)
        with reader(scylla, name, settings=settings, connection=connection) as source:
            assert Counter(row for batch in source for row in row_of(batch)) == logged(session, name)


def test_what_looking_at_all_streams_takes_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of a table with very many tablets cost a look at all of them."""
    now, looking = [0.0], [0.0]
    monkeypatch.setattr(read_changes, "time", SimpleNamespace(monotonic=lambda: now[0]))
    reader = ChangeReader(ConnectionSettings((("127.0.0.1", 9042),)), ["ks.t"], follow=True)
    layout = SimpleNamespace(description=SimpleNamespace(keyspace="ks", name="t"))

    def note() -> None:
        now[0] += 0.05
        looking[0] += 0.05
        reader._handed.clear()

    def step() -> None:
        now[0] += 0.001
        batch: Any = SimpleNamespace(layout=layout, stream_id=b"s", time=time_uuid(round(now[0] * 10_000_000), 0))
        reader._ready.append(batch)

    monkeypatch.setattr(reader, "_note", note)
    monkeypatch.setattr(reader, "_raise_failures", lambda: None)
    monkeypatch.setattr(reader, "_step", step)
    for number, _ in enumerate(reader):
        if number == 2_000:
            break
    assert 0.05 < looking[0] < 0.12 * now[0]
    assert len(reader._handed) == 1, "what was handed out meanwhile is in the checkpoint"
    assert len(json.loads(reader.checkpoint())) == 1
