"""Columns that were dropped and added again with the same type: a page does not tell which of the two it shows.

In: a description, the node that gave a page, and when it was asked for that. Out: whether the page is by the newer
column. A node that has not heard of the end of the former one shows what is left of it, as values of the column that is
there now.
"""

from __future__ import annotations

import time
from typing import Any

from connector.changes import TableDescription
from connector.source.connection import Connection
from connector.source.descriptions import dropped_us
from connector.source.lagging import OtherSchema
from connector.source.schema_rows import OneNode
from connector.table_name import TableName


def is_vouched(connection: Connection, described: TableDescription, node: Any, asked: float) -> bool:
    """False where the node said only behind ``asked``, by the monotonic clock, that it knows: what it gave is no better
    for that answer, and is asked for again. Raises OtherSchema where it shows a former column. Of tables without such
    columns nobody is asked."""
    ends = {each.name: each.dropped_us for each in described.dropped if each.name in described.by_name}
    if not ends or node is None:
        return True
    vouched = (node, described.table_id, tuple(sorted(ends.items())))
    since = connection.vouched.get(vouched)
    if since is not None:
        return asked >= since
    known = dropped_us(OneNode(connection, node), TableName(described.keyspace, described.name))
    for name, us in ends.items():
        if known.get(name, -1) < us:
            raise OtherSchema(described.full_name, f"column {name} from before it was dropped", node)
    connection.vouched[vouched] = time.monotonic()
    return False
