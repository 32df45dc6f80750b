"""Tables that the Java connector of the same name has read, by its offsets in the topic of ours, and we have not.

In: what is read of the offsets topic at each start anyway. Out: a problem. Such a table would begin with the oldest
change in its log, as a new one, and all that Java has delivered of it would come again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Final

from connector.config import Configuration
from connector.errors import Problem
from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName

#: What stands in each mark's key behind the name of its table; in texts quotes are escaped.
_SLOT: Final = b',"slot":'
SHOWN: Final = 3


class MarkedTables:
    """Those that have marks, or had: they begin where somebody has put them. Takes keys as `read_committed` notes
    them."""

    def __init__(self) -> None:
        self.tables: set[TableName] = set()
        self._noted: set[bytes] = set()

    def note(self, key: bytes) -> None:
        of_table, found, _ = key.rpartition(_SLOT)
        if not found or of_table in self._noted:
            return
        self._noted.add(of_table)
        with contextlib.suppress(ValueError, LookupError, TypeError):  # it begins as ours do, and is nobody's
            members = json.loads(key)[1]
            self.tables.add(TableName(str(members["keyspace_name"]), str(members["table_name"])))


def not_taken_over(
    configuration: Configuration, entries: Iterable[OffsetsEntry], marked: Iterable[TableName]
) -> list[Problem]:
    """``entries`` of the connector's name, the Java connector's among them."""
    tables, settled = configuration.connector.reading.tables, set(marked)
    read_by_java = {
        TableName(str(entry.key.get("keyspace_name")), str(entry.key.get("table_name")))
        for entry in entries
        if "vnode_id" in entry.key
    }
    missed = [str(table) for table in sorted(tables) if table in read_by_java and table not in settled]
    if not missed:
        return []
    topic, name = configuration.connector.delivery.offset_topic, configuration.connector.name
    shown = ", ".join(missed[:SHOWN]) + (f" and {len(missed) - SHOWN} more" if len(missed) > SHOWN else "")
    each = "" if len(missed) == len(tables) else " --table T"
    return [
        Problem(
            "offset.storage.topic",
            f"it has positions of the Java connector {name} for {shown}, and none of ours: what was delivered "
            "and is still in the log would be delivered again",
            topic,
            f"scylla-cdc offsets import{each} --from-topic {topic} goes on where the Java connector stopped; "
            f"scylla-cdc offsets reset{each} --to oldest begins with the oldest change in the log all the same",
        )
    ]
