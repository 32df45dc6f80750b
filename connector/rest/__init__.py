"""Kafka Connect's REST API, as its tools speak it: paths, bodies, status codes and errors of Kafka 4.1.

In: a `Cluster`, which knows connectors and their tasks. Out: routes for an HTTP server. What a task is, where it runs
and how its state is found out is not known here.
"""

from __future__ import annotations

from connector.rest.cluster import (
    Cluster,
    ConnectorView,
    ConnectState,
    Instance,
    LoggerLevel,
    Offset,
    StepOption,
    Steps,
)
from connector.rest.routes import API_VERSION, rest_routes

__all__ = [
    "API_VERSION",
    "Cluster",
    "ConnectState",
    "ConnectorView",
    "Instance",
    "LoggerLevel",
    "Offset",
    "StepOption",
    "Steps",
    "rest_routes",
]
