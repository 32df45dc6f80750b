"""Columns that were dropped and added again with the same type: a page does not tell which of the two it shows.

In: a description, the node that gave a page, and when it was asked for that. Out: whether the page is by the newer
column. A node that has not heard of the end of the former one shows what is left of it, as values of the column that is
there now. All nodes may be asked before anything is read: then no page has to be given twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from connector.changes import TableDescription
from connector.errors import SourceError
from connector.source.connection import Connection
from connector.source.descriptions import dropped_us
from connector.source.lagging import OtherSchema
from connector.source.schema_rows import OneNode
from connector.table_name import TableName

log = logging.getLogger(__name__)


def is_vouched(connection: Connection, described: TableDescription, node: Any, asked: float) -> bool:
    """False where the node said only behind ``asked``, by the monotonic clock, that it knows: what it gave is no better
    for that answer, and is asked for again. Raises OtherSchema where it shows a former column. Of tables without such
    columns nobody is asked."""
    ends = _ends(described)
    if not ends or node is None:
        return True
    since = connection.vouched.get(_word(described, ends, node))
    if since is not None:
        return asked >= since
    _ask(connection, described, ends, node)
    return False


def ask_all(connection: Connection, described: TableDescription) -> None:
    """Who of the nodes knows already, of those that have not said so yet. Another one is asked when it gives a page."""
    ends = _ends(described)
    for node in connection.hosts() if ends else ():
        if _word(described, ends, node) not in connection.vouched:
            try:
                _ask(connection, described, ends, node)
            except SourceError as error:
                log.debug("%s", error)


def _ask(connection: Connection, described: TableDescription, ends: Mapping[str, int], node: Any) -> None:
    known = dropped_us(OneNode(connection, node), TableName(described.keyspace, described.name))
    for name, us in ends.items():
        if known.get(name, -1) < us:
            raise OtherSchema(described.full_name, f"column {name} from before it was dropped", node)
    connection.vouched[_word(described, ends, node)] = time.monotonic()


def _ends(described: TableDescription) -> dict[str, int]:
    return {each.name: each.dropped_us for each in described.dropped if each.name in described.by_name}


def _word(described: TableDescription, ends: Mapping[str, int], node: Any) -> object:
    """What a node has said; can be pickled."""
    return str(node.endpoint), described.table_id, tuple(sorted(ends.items()))
