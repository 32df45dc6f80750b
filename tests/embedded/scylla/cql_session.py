"""Runs CQL on an engine of its own, without a server, and shows results as Python values.

In: CQL text and Python values to bind. Out: lists of tuples, or the error. The clock stands still until it is moved.
"""

from __future__ import annotations

from typing import Any

from connector.values.binary import decode, encode
from embedded.scylla.cdc.tables import Cdc
from embedded.scylla.clock import Clock
from embedded.scylla.engine import BatchEntry, Engine, Prepared
from embedded.scylla.results import UNSET, BoundValue, RequestContext, Result, Rows
from embedded.scylla.schema import Schema
from embedded.scylla.streams.service import StreamService

START_US = 1_700_000_000_000_000


class CqlSession:
    """One connection's worth of state: a keyspace and the last page's state."""

    def __init__(self, keyspace: str = "ks") -> None:
        self.clock = Clock()
        self.clock.freeze(START_US)
        schema, streams = Schema(), StreamService(self.clock, vnodes=4, shards=2, seed=1)
        self.engine = Engine(schema, self.clock, Cdc(schema, self.clock, streams, seed=1))
        self.keyspace = keyspace
        self.execute(
            f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )

    def context(self, **given: Any) -> RequestContext:
        return RequestContext(keyspace=self.keyspace, **given)

    def execute(self, statement: str | Prepared, *values: Any, **context: Any) -> Result:
        """With values as Python values; `UNSET` and raw `bytes` for a blob stay what they are."""
        if not values:
            return self.engine.execute(statement, (), self.context(**context))
        prepared = statement if isinstance(statement, Prepared) else self.engine.prepare(statement, self.keyspace)
        bound = [self.encoded(prepared, at, value) for at, value in enumerate(values)]
        return self.engine.execute(prepared, bound, self.context(**context))

    @staticmethod
    def encoded(prepared: Prepared, at: int, value: Any) -> BoundValue:
        return value if value is None or value is UNSET else encode(prepared.variables[at].type, value)

    def rows(self, statement: str | Prepared, *values: Any, **context: Any) -> list[tuple[Any, ...]]:
        """The decoded rows of a SELECT or of a conditional write."""
        return decoded(self.execute(statement, *values, **context))

    def pages(self, statement: str, size: int) -> list[list[tuple[Any, ...]]]:
        """All pages of a SELECT."""
        found, state = [], None
        while True:
            answer = self.execute(statement, page_size=size, paging_state=state)
            assert isinstance(answer, Rows)
            found.append(decoded(answer))
            state = answer.paging_state
            if state is None:
                return found

    def batch(self, *statements: str, kind: str = "logged") -> Result:
        return self.engine.batch(kind, [BatchEntry(text) for text in statements], self.context())


def decoded(answer: Result) -> list[tuple[Any, ...]]:
    assert isinstance(answer, Rows), answer
    types = [column.type for column in answer.columns]
    return [
        tuple(None if raw is None else decode(kind, raw) for kind, raw in zip(types, row, strict=True))
        for row in answer.rows
    ]
