"""The keyspaces that a run makes on somebody's cluster, and how they go again; no other keyspace is ever named here.

A run's keyspaces begin with `scylla_cdc_check_<run>_`. The first of them, `…_run`, holds a table with the run's begin:
it is made before all others and dropped after them, so what has no such keyspace was not made by a run. Replays of
recordings, which may be run by themselves, have names of their own: `recording_<ten hexadecimal digits>`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

from cassandra.cluster import Session

PREFIX = "scylla_cdc_check_"
_NAME = re.compile(rf"{PREFIX}([0-9a-f]{{8}})_\w+")
_RECORDING = re.compile(r"recording_[0-9a-f]{10}")
_RUN = re.compile(r"[0-9a-f]{8}")


def new_run() -> str:
    return secrets.token_hex(4)


def prefix_of(run: str) -> str:
    """What the names of a run's keyspaces begin with.

    >>> prefix_of("00c0ffee")
    'scylla_cdc_check_00c0ffee_'
    """
    assert _RUN.fullmatch(run), f"{run!r} is not the number of a run: eight hexadecimal digits"
    return f"{PREFIX}{run}_"


def begin(session: Session, run: str) -> None:
    """Mark the run on the cluster, before it makes anything else."""
    keyspace = f"{prefix_of(run)}run"
    session.execute(
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = "
        "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    )
    session.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.run (run text PRIMARY KEY, began timestamp)")
    session.execute(f"INSERT INTO {keyspace}.run (run, began) VALUES ('{run}', toTimestamp(now()))")


def drop(session: Session, run: str) -> list[str]:
    """Drop all that a run made, its mark last; the names."""
    mark = f"{prefix_of(run)}run"
    mine = sorted((name for name in _names(session) if name.startswith(prefix_of(run))), key=lambda name: name == mark)
    for name in mine:
        session.execute(f"DROP KEYSPACE IF EXISTS {name}")
    return mine


def runs(session: Session) -> dict[str, str]:
    """The runs whose keyspaces are still there, and when each began."""
    found: dict[str, str] = {}
    for run in {match[1] for name in _names(session) if (match := _NAME.fullmatch(name))}:
        tables = session.execute(
            f"SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{prefix_of(run)}run'"
        )
        if any(row.table_name == "run" for row in tables):
            for row in session.execute(f"SELECT run, toUnixTimestamp(began) AS ms FROM {prefix_of(run)}run.run"):
                if row.run == run:
                    found[run] = str(row.ms)
    return found


def drop_recordings(session: Session) -> list[str]:
    """Drop what replays and recordings that were killed left behind; the names. One that is under way ends with an
    error."""
    names = list(_all_names(session))
    left = tuple(name for name in names if _RECORDING.fullmatch(name))
    # The keyspaces that a recording's statements make begin with the name of its first one, which goes last.
    mine = sorted((name for name in names if name.startswith(left)), key=len, reverse=True) if left else []
    for name in mine:
        session.execute(f'DROP KEYSPACE IF EXISTS "{name}"')
    return mine


def _names(session: Session) -> Iterator[str]:
    return (name for name in _all_names(session) if name.startswith(PREFIX))


def _all_names(session: Session) -> Iterator[str]:
    # From the cluster, not from what the driver remembers of it.
    for row in session.execute("SELECT keyspace_name FROM system_schema.keyspaces"):
        yield row.keyspace_name
