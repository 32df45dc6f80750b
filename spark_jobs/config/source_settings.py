"""The landing configuration's properties that say how the source is reached: the connector's own, by the same names.

In: parsed values. Out: the connection's part as the connector has it, None where no address is given; what contradicts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connector.config import (
    CONNECTION,
    READING,
    ConnectionConfig,
    Document,
    Findings,
    Property,
    Secret,
    check_connection,
    connection_config,
    environment_login,
)
from connector.errors import Problem

ADDRESSES = "scylla.cluster.ip.addresses"
CONFIDENCE = "scylla.confidence.window.size"


def _properties() -> tuple[Property, ...]:
    names = [declared for declared in CONNECTION.properties if declared.name.startswith("scylla.")]
    found = [replace(declared, required=None) for declared in names if declared.name != "scylla.table.names"]
    return (*found, *(declared for declared in READING.properties if declared.name == CONFIDENCE))


SOURCE_PROPERTIES = _properties()


def source_connection(values: Mapping[str, Any]) -> ConnectionConfig | None:
    """How the source is reached; None if the configuration does not say where it is."""
    if not values[ADDRESSES]:
        return None
    return connection_config(values)


def source_problems(document: Document, values: Mapping[str, Any]) -> list[Problem]:
    """What contradicts, with key stores opened."""
    findings = Findings()
    if values["scylla.user"] and not values["scylla.password"] and (login := environment_login(os.environ)):
        values = {**values, "scylla.password": Secret(login[1])}
    check_connection(document, values, findings)
    return findings.problems
