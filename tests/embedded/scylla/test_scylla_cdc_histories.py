"""Random histories through a real driver against the model: every log row, in every column, on any ScyllaDB.

`test_scylla_cdc_random` asks the same of the embedded server's engine, without sockets and many more times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from cassandra.cluster import Session
from hypothesis import HealthCheck, Phase, given, settings

from connector.source.pages import RawProtocolHandler, raw_rows
from tests.embedded.scylla.cdc_model import BaseTable, ModelRow, Request
from tests.embedded.scylla.cdc_model_log import ModelLog
from tests.embedded.scylla.cdc_rows import UUID_EPOCH, list_position
from tests.embedded.scylla.cdc_statements import History, create_table, histories
from tests.servers.double import Double
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
_FIXED = ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", "cdc$ttl", "cdc$end_of_batch")
_ON_THE_DOUBLE, _ON_A_REAL_ONE = 15, 60


@pytest.fixture(scope="module")
def session(scylla: Scylla) -> Iterator[Session]:
    cluster = scylla.cluster(row_factory=raw_rows, schema_metadata_enabled=False)
    try:
        session = cluster.connect()
        session.client_protocol_handler = RawProtocolHandler
        session.default_fetch_size = None
        yield session
    finally:
        cluster.shutdown()


def logged(session: Session, table: str, base: int) -> list[ModelRow]:
    rows = []
    for page in session.execute(f"SELECT * FROM {table}_scylla_cdc_log")._current_rows:
        for row in page.decoded():
            values: dict[str, Any] = {name: value for name, value in row.items() if value is not None}
            if "l" in values:
                values["l"] = [(list_position(key, base), value) for key, value in values["l"].items()]
            rows.append(
                ModelRow(
                    (values["cdc$time"].time - UUID_EPOCH) // 10 - base,
                    values["cdc$batch_seq_no"],
                    values["cdc$operation"],
                    values.get("cdc$ttl"),
                    values.get("cdc$end_of_batch", False),
                    {name: value for name, value in values.items() if name not in _FIXED},
                )
            )
    return sorted(rows, key=lambda row: (row.time, row.number))


def send(session: Session, table: str, history: History, base: int) -> list[ModelRow]:
    """Run the history on the server and on the model; gives the model's log."""
    options = history.options
    model = ModelLog(history.shape, options["preimage"], options["postimage"] == "true", options["delta"])
    rows = BaseTable(history.shape)
    expected: list[ModelRow] = []
    for statements in history.requests:
        request = Request()
        for statement in statements:
            statement.apply(history.shape, request)
        expected += model.rows(rows, request)
        rows.apply(request)
        texts = [statement.cql(history.shape, table, base) for statement in statements]
        session.execute(texts[0] if len(texts) == 1 else f"BEGIN BATCH {'; '.join(texts)}; APPLY BATCH")
    return sorted(expected, key=lambda row: (row.time, row.number))


@pytest.mark.parametrize("kind", ["vnodes", "tablets"])
def test_the_log_is_what_the_model_says(scylla: Scylla, session: Session, kind: str) -> None:
    keyspace, numbers = scylla.named(f"histories_{kind}"), itertools.count(1)
    session.execute(scylla.keyspace_ddl(keyspace, tablets=kind == "tablets", initial=4))
    session.execute(f"CREATE TYPE {keyspace}.udt (a int, b int)")
    session.set_keyspace(keyspace)

    # The same histories at each run, and no shrinking: a real server takes its time for every table.
    @settings(
        max_examples=_ON_THE_DOUBLE if isinstance(scylla, Double) else _ON_A_REAL_ONE,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(histories())
    def compare(history: History) -> None:
        table = f"{keyspace}.t{next(numbers)}"
        session.execute(create_table(history.shape, table, history.options))
        base = scylla.now_us() + 1000
        expected = send(session, table, history, base)

        assert logged(session, table, base) == expected
        if not isinstance(scylla, Double):
            session.execute(f"DROP TABLE {table}")

    compare()
