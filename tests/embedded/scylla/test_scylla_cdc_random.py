"""Random histories of statements against the model: every log row, in every column, must be what the model says."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from connector.values.binary import decoder
from connector.values.types import CqlType, ListType, UserType
from embedded.scylla.cdc.tables import Cdc
from embedded.scylla.clock import Clock
from embedded.scylla.engine import Engine
from embedded.scylla.logrow import split_row
from embedded.scylla.results import RequestContext, Rows
from embedded.scylla.schema import Schema
from embedded.scylla.streams.service import StreamService
from tests.embedded.scylla.cdc_model import BaseTable, Request
from tests.embedded.scylla.cdc_played import as_modelled, play
from tests.embedded.scylla.cdc_statements import History, create_table, histories


class Server:
    """An engine with CDC, without sockets. Its clock stands still, so that equal TTLs expire together."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.freeze()
        schema = Schema()
        streams = StreamService(self.clock, vnodes=4, shards=2, seed=1)
        self.engine = Engine(schema, self.clock, Cdc(schema, self.clock, streams, seed=1))
        self.run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.run("CREATE TYPE ks.udt (a int, b int)")

    def run(self, statement: str) -> Any:
        return self.engine.execute(statement, (), RequestContext(keyspace="ks"))

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Answered rows, decoded; nulls left out."""
        result = self.run(statement)
        assert isinstance(result, Rows)
        names = [column.name for column in result.columns]
        decode = [decoder(column.type) for column in result.columns]
        if result.body is not None:
            cells = split_row(result.body)
            raw = [cells[at : at + len(names)] for at in range(0, len(cells), len(names))]
        else:
            raw = [list(row) for row in result.rows]
        return [{name: read(cell) for name, read, cell in zip(names, decode, row) if cell is not None} for row in raw]


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(histories())
def test_the_log_is_what_the_model_says(history: History) -> None:
    server = Server()
    server.run(create_table(history.shape, "ks.t", history.options))
    base = server.clock.now_us() + 1000
    expected = play(server.run, "ks.t", history, base)

    assert as_modelled(server.rows("SELECT * FROM ks.t_scylla_cdc_log"), base) == expected


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(histories())
def test_the_base_table_is_what_the_model_says(history: History) -> None:
    server = Server()
    server.run(create_table(history.shape, "ks.t", history.options))
    play(server.run, "ks.t", history, server.clock.now_us() + 1000)
    model = BaseTable(history.shape)
    for statements in history.requests:
        request = Request()
        for statement in statements:
            statement.apply(history.shape, request)
        model.apply(request)

    types: dict[str, CqlType] = {column.name: column.type for column in server.engine.schema.table("ks", "t").columns}  # type: ignore[union-attr]
    got = {}
    for row in server.rows("SELECT * FROM ks.t"):
        key = tuple(row.get(name) for name in history.shape.clustering)
        got[key] = {name: row[name] for name in history.shape.regular if name in row}
    expected = {}
    for key in model.rows:
        live = model.live_row(key)
        if live is not None:
            expected[key] = {name: _shown(types[name], value) for name, value in live.items()}
    got = {key: values for key, values in got.items() if key in expected or None not in key}
    assert got == expected


def _shown(type_: CqlType, value: Any) -> Any:
    if isinstance(type_, UserType):
        return tuple(value.get(index) for index in range(len(type_.fields)))
    if isinstance(type_, ListType):
        return [value[position] for position in sorted(value)]
    if isinstance(value, dict):
        return sorted(value) if "set<" in type_.cql() else sorted(value.items())
    return value
