"""What a property means here that the Java connector takes and never looks at: `snapshot.mode`.

In: a value; or a configuration whose file may have come from there. Out: what is to be said of it before it happens.
"""

from __future__ import annotations

from connector.config.properties import CONNECTOR
from connector.config.worker_config import Configuration

SNAPSHOT_MODE = "snapshot.mode"
#: What it does in the Java connector, whatever it says: that one's mode is a constant, and its snapshot reads nothing.
NO_SNAPSHOT = "no_data"
_AS_R = "as records with op r"
_ROWS = {
    "initial": f"writes the rows that are in the tables already as well, {_AS_R}",
    "always": f"writes the rows that are in the tables at each start, {_AS_R}",
    "initial_only": f"writes the rows that are in the tables already, {_AS_R}, and ends `run`",
    "when_needed": f"writes the rows that are in the tables already as well, {_AS_R}",
}


def rows_written(mode: str) -> str | None:
    """What a mode writes that the Java connector does not; None of those that write nothing."""
    return _ROWS.get(mode)


def unlike_java(configuration: Configuration) -> list[str]:
    """What to tell whoever tries a file of the Java connector's here.

    Such a file names the Java class, and nothing that only this service knows: who has written any of that knows where
    the file is run, and is told nothing.
    """
    given = configuration.connector.given
    of_java = "connector.class" in given and not any(
        name in CONNECTOR and CONNECTOR[name].ours for name in given if name != SNAPSHOT_MODE
    )
    mode = configuration.connector.reading.snapshot_mode
    rows = rows_written(mode)
    if not of_java or rows is None:
        return []
    return [f"{SNAPSHOT_MODE}: {mode} {rows}; the Java connector ignores it: {NO_SNAPSHOT} keeps it so"]
