"""Resources of the operators that run Kafka Connect in Kubernetes, Strimzi's and Confluent's, and of those of services.

In: a resource. Out: the connector or the worker that it is. What it makes of the cluster's secrets is a problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connector.config.forms.shapes import mapping, name_of
from connector.config.forms.wrapped import Wrapped
from connector.config.java_properties import java_properties
from connector.errors import Problem

OF_OPERATORS = frozenset(("KafkaConnector", "Connector", "KafkaConnect", "Connect"))
_TLS = "security.protocol=SSL and ssl.truststore.location"
_LOGIN = "security.protocol, sasl.mechanism and sasl.jaas.config"
#: The map of properties: Strimzi's and Conduktor's, Confluent's and Google's, AWS', Confluent Cloud's, Aiven's.
_MAPS = ("config", "configs", "connectorConfiguration", "configNonsensitive", "userConfig")
#: What stands outside of it, and the property that it is.
_OUTSIDE = {
    "class": "connector.class",
    "connectorClass": "connector.class",
    "tasksMax": "tasks.max",
    "taskMax": "tasks.max",
}


def of_operators(document: Mapping[str, Any]) -> Iterator[Wrapped]:
    """The connector or the worker that a resource is; nothing of a resource of others."""
    kind, spec, name = document["kind"], document.get("spec"), name_of(document)
    if kind in ("KafkaConnector", "Connector"):
        wrapped = Wrapped({}, name)
        if isinstance(spec, Mapping):
            # In Crossplane's, what the operator of a service is told.
            place = "spec.forProvider" if isinstance(spec.get("forProvider"), Mapping) else "spec"
            told = spec["forProvider"] if place != "spec" else spec
            inner = next((each for each in _MAPS if each in told), None)
            if inner is None and not _OUTSIDE.keys() & told.keys():
                return
            wrapped.content = _connector(wrapped, name, told, place, inner or _MAPS[0])
        else:
            wrapped.problems.append(Problem("spec", "Must hold the connector's configuration", None, "spec.config"))
        yield wrapped
    elif kind == "Connect":
        wrapped = Wrapped({}, name)
        wrapped.content = _confluent_worker(wrapped, mapping(spec))
        yield wrapped
    elif kind == "KafkaConnect":
        wrapped = Wrapped({}, name)
        wrapped.content = _strimzi_worker(wrapped, mapping(spec))
        yield wrapped


def _connector(wrapped: Wrapped, name: str, spec: Mapping[str, Any], place: str, inner: str) -> dict[str, Any]:
    given = spec.get(inner) if spec.get(inner) is not None else {}
    if not isinstance(given, Mapping):
        wrapped.problems.append(Problem(f"{place}.{inner}", "Must be an object of properties"))
        given = {}
    config = dict(given)
    for outer, property_name in _OUTSIDE.items():
        if spec.get(outer) is None:
            continue
        if config.get(property_name, spec[outer]) != spec[outer]:
            wrapped.notes.append((property_name, f"has no effect in {place}.{inner}: {place}.{outer} counts"))
        config[property_name] = spec[outer]
    state = spec.get("state") or ("paused" if spec.get("pause") is True else None)
    if state not in (None, "running"):
        wrapped.notes.append((f"{place}.{'state' if spec.get('state') else 'pause'}", _paused(str(state))))
    known = {*_OUTSIDE, inner, "state", "pause", "name", "connectClusterRef", "connectRest", "connectorOverride"}
    for other in spec:
        if other not in known:
            wrapped.notes.append((f"{place}.{other}", "has no effect here: it is for the operator"))
    name = spec.get("name") or name
    return {"name": name, "config": config} if name else config


def _paused(state: str) -> str:
    return f"is {state}, and `scylla-cdc run` runs what it is given: start it only when the connector is to run"


def _strimzi_worker(wrapped: Wrapped, spec: Mapping[str, Any]) -> dict[str, Any]:
    config = dict(mapping(spec.get("config")))
    for outer, property_name in (
        ("bootstrapServers", "bootstrap.servers"),
        ("groupId", "group.id"),
        ("offsetStorageTopic", "offset.storage.topic"),
        ("statusStorageTopic", "status.storage.topic"),
        ("configStorageTopic", "config.storage.topic"),
    ):
        if spec.get(outer) is not None:
            config[property_name] = spec[outer]
    for outer, wanted in (("tls", _TLS), ("authentication", _LOGIN)):
        if spec.get(outer):
            wrapped.problems.append(_of_the_cluster(outer, "Strimzi", wanted))
    return config


def _confluent_worker(wrapped: Wrapped, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Of `platform.confluent.io`: what is overridden; the rest is the operator's."""
    lines = mapping(spec.get("configOverrides")).get("server")
    config = dict(java_properties("\n".join(map(str, lines)))) if isinstance(lines, list) else {}
    kafka = mapping(mapping(spec.get("dependencies")).get("kafka"))
    if kafka.get("bootstrapEndpoint") is not None:
        config.setdefault("bootstrap.servers", str(kafka["bootstrapEndpoint"]))
    if kafka.get("authentication") and "sasl.jaas.config" not in config:
        wrapped.problems.append(_of_the_cluster("dependencies.kafka.authentication", "Confluent", _LOGIN))
    return config


def _of_the_cluster(member: str, whose: str, wanted: str) -> Problem:
    text = f"Is translated by {whose}'s operator from secrets of the cluster, which cannot be read here"
    return Problem(f"spec.{member}", text, None, f"write {wanted} in a worker file")
