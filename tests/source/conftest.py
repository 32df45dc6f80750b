"""Tables on a ScyllaDB of one's own, and readers over them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from cassandra.cluster import Session

from connector.changes import Batch
from connector.source.read_changes import ChangeReader
from connector.source.settings import ReadingSettings
from tests.servers.patience import until
from tests.servers.scylla import Scylla

FAST = ReadingSettings(confidence_ms=300, window_ms=1000)


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


@pytest.fixture
def session(scylla: Scylla) -> Iterator[Session]:
    cluster = scylla.cluster()
    session = cluster.connect()
    # Timestamps of the test's own clock would be too old for a short confidence window when the machine is busy.
    session.use_client_timestamp = False
    yield session
    cluster.shutdown()


@pytest.fixture
def table(scylla: Scylla, session: Session, unique: Callable[[str], str]) -> Callable[..., str]:
    """Makes a table in a keyspace of its own."""

    def make(
        *, tablets: bool, columns: str = "v text", cdc: str = "{'enabled': true}", count: int | None = None
    ) -> str:
        return create_table(scylla, session, unique("ks").replace("-", "_"), tablets, columns, cdc, count)

    return make


def create_table(
    scylla: Scylla,
    session: Session,
    keyspace: str,
    tablets: bool,
    columns: str = "v text",
    cdc: str = "{'enabled': true}",
    count: int | None = None,
) -> str:
    session.execute(scylla.keyspace_ddl(keyspace, tablets=tablets, initial=count))
    session.execute(f"CREATE TABLE {keyspace}.t (pk int, ck int, {columns}, PRIMARY KEY (pk, ck)) WITH cdc = {cdc}")
    return f"{keyspace}.t"


def reader(server: Scylla, *tables: str, settings: ReadingSettings = FAST, **options: Any) -> ChangeReader:
    connection = options.pop("connection", None) or server.settings()
    settings = replace(settings, confidence_ms=server.confidence_ms(settings.confidence_ms))
    return ChangeReader(connection, tables, reading=settings, **options)


def row_of(batch: Batch) -> list[tuple[str, str, int]]:
    """Stream, time and number of each row."""
    at = batch.layout.batch_seq_no
    return [(batch.stream_id.hex(), str(batch.timeuuid), int.from_bytes(row[at] or b"", "big")) for row in batch.rows]


def logged(session: Session, table: str) -> Counter[tuple[str, str, int]]:
    rows = session.execute(
        f'SELECT "cdc$stream_id" AS s, "cdc$time" AS t, "cdc$batch_seq_no" AS n FROM {table}_scylla_cdc_log'
    )
    return Counter((row.s.hex(), str(row.t), row.n) for row in rows)


class Following(threading.Thread):
    """A reader that follows in the background and notes every row."""

    def __init__(self, source: ChangeReader) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.rows: Counter[tuple[str, str, int]] = Counter()
        self.keys: list[tuple[tuple[bytes | None, ...], int]] = []
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._stop_asked = threading.Event()
        self.opened = threading.Event()

    def run(self) -> None:
        try:
            with self.source:
                self.opened.set()
                for batch in self.source.batches(self._stop_asked.is_set):
                    with self._lock:
                        self.rows.update(row_of(batch))
                    for row in batch.rows:
                        self.keys.append((batch.layout.key_of(row)[:1], batch.timestamp_us))
        except BaseException as error:
            self.error = error
        finally:
            self.opened.set()

    def until(self, expected: Callable[[], Counter[tuple[str, str, int]]], seconds: float = 180) -> None:
        """Wait until exactly the expected rows were seen."""

        def alike() -> bool:
            if self.error is not None:
                raise self.error
            return self._seen() == expected()

        def differing() -> str:
            seen, wanted = self._seen(), expected()
            return f"{sum((wanted - seen).values())} rows missing, {sum((seen - wanted).values())} too many"

        until(alike, seconds, differing)

    def _seen(self) -> Counter[tuple[str, str, int]]:
        with self._lock:
            return Counter(self.rows)

    def finish(self) -> None:
        self._stop_asked.set()
        until(lambda: not self.is_alive(), 90, "the end of the reader")
        if self.error is not None:
            raise self.error

    def in_order(self) -> None:
        """Per partition key, write times never go back."""
        last: dict[tuple[bytes | None, ...], int] = {}
        for key, at in self.keys:
            assert at >= last.get(key, 0), key
            last[key] = at
