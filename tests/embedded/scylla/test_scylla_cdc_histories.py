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
from tests.embedded.scylla.cdc_played import as_modelled, play
from tests.embedded.scylla.cdc_statements import History, create_table, histories
from tests.servers.double import Double
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
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


def logged(session: Session, table: str) -> list[dict[str, Any]]:
    pages = session.execute(f"SELECT * FROM {table}_scylla_cdc_log")._current_rows
    return [
        {name: value for name, value in row.items() if value is not None} for page in pages for row in page.decoded()
    ]


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
        expected = play(session.execute, table, history, base)

        assert as_modelled(logged(session, table), base) == expected
        if not isinstance(scylla, Double):
            session.execute(f"DROP TABLE {table}")

    compare()
