"""How a system table is written down here: columns as text, keys by name, rows as a function.

In: `"key text, time timestamp"`, key column names; or many tables in one text. Out: a `Table` like any other, with an
id derived from its name as ScyllaDB derives those of its own tables.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from connector.values import UserType, parse_type
from embedded.scylla.schema import Column, Order, Table

Row = Mapping[str, Any]


def _user_type(name: str, fields: str) -> UserType:
    pairs = [field.split() for field in fields.split(", ")]
    return UserType("system", name, tuple((field, parse_type(spelling, {})) for field, spelling in pairs))


#: The user types of keyspace `system`.
USER_TYPES: Final = {
    made.name: made
    for made in (
        _user_type("sstableinfo", "generation uuid, origin text, size bigint"),
        _user_type("repair_scheduler_config", "auto_repair_enabled boolean, auto_repair_threshold bigint"),
        _user_type(
            "tablet_task_info",
            "request_type text, tablet_task_id uuid, request_time timestamp, sched_nr bigint, sched_time timestamp,"
            " repair_hosts_filter text, repair_dcs_filter text",
        ),
    )
}
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


def spelled_tables(text: str) -> tuple[Table, ...]:
    """One table a line, which goes on in the lines below that are indented: `keyspace.name: partition key | clustering
    key | static columns | other columns`; `desc` behind a clustering column turns its order round."""
    tables = []
    for line in text.strip().replace("\n  ", " ").splitlines():
        place, _, columns = line.partition(": ")
        parts = [_columns(part) for part in columns.split("|")] + [[], [], []]
        clustering = [(name, spelling.removesuffix(" desc")) for name, spelling in parts[1]]
        every = [*parts[0], *clustering, *parts[2], *parts[3]]
        keyspace, name = place.split(".")
        tables.append(
            system_table(
                keyspace,
                name,
                ", ".join(map(" ".join, every)),
                [name for name, _ in parts[0]],
                [name for name, _ in clustering],
                descending=[name for name, spelling in parts[1] if spelling.endswith(" desc")],
                static=[name for name, _ in parts[2]],
            )
        )
    return tuple(tables)


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
        cql_type = parse_type(spelling, USER_TYPES)
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
