"""CQL names: the one place that quotes them, and how a table's change log is called.

In: names of keyspaces, tables, columns and fields, of any characters. Out: their spelling inside a CQL text.
"""

from __future__ import annotations

import re
from typing import Final

LOG_SUFFIX: Final = "_scylla_cdc_log"

# fmt: off
# Cassandra's and ScyllaDB's reserved words: they may not stand unquoted as a name.
_RESERVED: Final = frozenset((
    "add", "allow", "alter", "and", "apply", "asc", "authorize", "batch", "begin", "by",
    "columnfamily", "create", "default", "delete", "desc", "describe", "drop", "entries", "execute",
    "from", "full", "grant", "if", "in", "index", "infinity", "insert", "into", "is", "keyspace",
    "limit", "materialized", "mbean", "mbeans", "modify", "nan", "norecursive", "not", "null", "of",
    "on", "or", "order", "primary", "rename", "replace", "revoke", "schema", "select", "set",
    "table", "to", "token", "truncate", "unlogged", "unset", "update", "use", "using", "view",
    "where", "with",
))
# fmt: on
_PLAIN_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def quote_identifier(name: str) -> str:
    """``name`` as CQL must spell it: bare where that means the same, else in double quotes.

    >>> quote_identifier("v"), quote_identifier("Order"), quote_identifier("from")
    ('v', '"Order"', '"from"')
    """
    if _PLAIN_NAME.match(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def qualified(keyspace: str, name: str) -> str:
    """A table or type with its keyspace, both as CQL must spell them."""
    return f"{quote_identifier(keyspace)}.{quote_identifier(name)}"


def log_name(table: str) -> str:
    return table + LOG_SUFFIX
