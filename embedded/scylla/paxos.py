"""The table that lightweight transactions create next to their own if a keyspace uses tablets.

In: the table of a transaction. Out: `<name>$paxos`, in which ScyllaDB keeps the state of its rounds. It comes with the
first transaction and goes with the table, at no wish of the user; here it stays empty. With vnodes there is none: the
state is in `system.paxos`.
"""

from __future__ import annotations

import uuid

from connector.values import native
from embedded.scylla.schema import Column, Table

_SUFFIX = "$paxos"
_COLUMNS = (
    Column("row_key", native("blob"), "partition_key", 0),
    Column("promise", native("timeuuid")),
    Column("most_recent_commit", native("blob")),
    Column("most_recent_commit_at", native("timeuuid")),
    Column("proposal", native("blob")),
    Column("proposal_ballot", native("timeuuid")),
)


def paxos_name(table: str) -> str:
    return table + _SUFFIX


def is_paxos_state(table: str) -> bool:
    """Whether a table of this name is one. Users' names have no `$`."""
    return table.endswith(_SUFFIX)


def paxos_base_name(table: str) -> str | None:
    """The name of the table whose transactions such a table is for; None for all others."""
    return table.removesuffix(_SUFFIX) if is_paxos_state(table) else None


def paxos_state(table: Table) -> Table:
    return Table(
        uuid.uuid1(),
        table.keyspace,
        paxos_name(table.name),
        _COLUMNS,
        options={"gc_grace_seconds": 0},
        comment=f"Paxos state for {table.full_name}",
    )
