"""CQL identifiers: the one place that quotes them."""

from __future__ import annotations

LOG_SUFFIX = "_scylla_cdc_log"


def quoted(identifier: str) -> str:
    """``identifier`` for use inside a CQL statement, whatever characters it has."""
    return '"' + identifier.replace('"', '""') + '"'


def log_name(table: str) -> str:
    return table + LOG_SUFFIX
