"""How a system table is written down here: columns as text, keys by name, rows as a function.

In: `"key text, time timestamp"`, key column names. Out: a `Table` like any other, with an id derived from its name as
ScyllaDB derives those of its own tables.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from connector.values.types import parse_type
from embedded.scylla.schema import Column, Order, Table

Row = Mapping[str, Any]
Scan = Callable[[], Iterable[Row]]


def _columns(text: str) -> list[tuple[str, str]]:
    """Split at the commas outside of angle brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    pairs = [part.strip().split(None, 1) for part in parts if part.strip()]
    return [(name, spelling) for name, spelling in pairs]


def system_table(
    keyspace: str,
    name: str,
    columns: str,
    partition: Sequence[str],
    clustering: Sequence[str] = (),
    *,
    descending: Sequence[str] = (),
    static: Sequence[str] = (),
    comment: str = "",
) -> Table:
    made = []
    for column, spelling in _columns(columns):
        cql_type = parse_type(spelling, {})
        if column in partition:
            made.append(Column(column, cql_type, "partition_key", list(partition).index(column)))
        elif column in clustering:
            order: Order = "desc" if column in descending else "asc"
            made.append(Column(column, cql_type, "clustering", list(clustering).index(column), order))
        else:
            made.append(Column(column, cql_type, "static" if column in static else "regular"))
    digest = hashlib.md5(f"{keyspace}.{name}".encode(), usedforsecurity=False).digest()
    return Table(
        uuid.UUID(bytes=digest, version=3),
        keyspace,
        name,
        tuple(made),
        comment=comment,
        version=uuid.UUID(bytes=digest),
    )
