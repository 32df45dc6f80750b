"""Landed tables by name in a session: what ``open_session`` adds to a bare one.

In: a session and a configuration with ``warehouse`` and ``tables``. Out: views ``ks.t``, ``ks.t__changelog``,
``ks.t__state`` and ``ks.t__dead_letters`` for every table that has been landed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.config import folder
from spark_jobs.sinks import Publisher, Sink, table_format
from spark_jobs.tables.landed_table import LandedTable


def open_sink(session: SparkSession, config: Mapping[str, Any]) -> Sink:
    """The sink of the configured warehouse."""
    return table_format(config).open(session, folder(str(config["warehouse"])))


def open_publisher(
    session: SparkSession, config: Mapping[str, Any], retention_ms: int | None = None
) -> Publisher | None:
    """What publishes the warehouse's tables; None where their format has nothing for it."""
    made = table_format(config).publisher
    if made is None:
        return None
    publisher = made(session, folder(str(config["warehouse"])))
    publisher.retention_ms = retention_ms
    return publisher


def register_landed(session: SparkSession, config: Mapping[str, Any]) -> list[str]:
    """Registers the configured tables that exist, and returns their names."""
    if "warehouse" not in config:
        return []
    names = config.get("tables") or ()
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    sink = open_sink(session, config)
    registered: list[str] = []
    for name in map(str, names):
        keyspace, _, table = name.partition(".")
        landed = LandedTable(session, sink, keyspace, table)
        known = landed.known()
        if known is not None:
            landed.register(known.layout())
            registered.append(name)
    return registered
