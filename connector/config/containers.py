"""What other tools wrap a configuration in: Kubernetes resources, JSON of Connect and MSK, compose files.

In: the documents of a JSON or YAML file. Out: the configurations in them, each as ``{"name", "config"}`` or flat, with
what is to be said about the wrapping. A document that is no wrapping is its own configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from connector.config.compose import Project, compose_worker
from connector.config.helm import helm_values
from connector.config.java_properties import java_properties
from connector.config.kubernetes import Parse, in_kubernetes
from connector.config.terraform_state import terraform_values
from connector.config.wrapped import Wrapped
from connector.errors import Problem


def unwrapped(documents: Iterable[Any], file: Path, environ: Mapping[str, str], parse: Parse) -> list[Wrapped]:
    """Every configuration in the documents of a file; other resources are left out, unless nothing is left.

    ``file`` and ``environ`` matter to compose files; ``parse`` reads files that are inside of others."""
    found: list[Wrapped] = []
    resources: list[Mapping[str, Any]] = []
    for document in documents:
        if isinstance(document, list) and document and all(isinstance(each, Mapping) for each in document):
            found += unwrapped(document, file, environ, parse)
        elif not isinstance(document, Mapping):
            found.append(Wrapped(document))
        elif "apiVersion" in document and "kind" in document:
            resources += _listed(document)
        else:
            found += _plain(document, file, environ)
    found += [wrapped for each in resources for wrapped in _resource(each)]
    found += in_kubernetes(resources, parse)
    if not found and resources:
        kinds = ", ".join(dict.fromkeys(str(each["kind"]) for each in resources))
        problem = f"Holds no connector and no worker: {kinds}"
        hint = (
            "a KafkaConnector, Connector or KafkaConnect, pods with CONNECT_ variables, or a ConfigMap with files of a "
            "connector or worker; or the properties alone, as .properties, JSON or YAML"
        )
        found.append(Wrapped({}, problems=[Problem("kind", problem, None, hint)]))
    return found


def _listed(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A Kubernetes resource, which may be a list of others."""
    items = resource.get("items")
    if resource["kind"] != "List" or not isinstance(items, list):
        yield resource
        return
    for item in items:
        if isinstance(item, Mapping) and "kind" in item:
            yield from _listed(item)


def _plain(document: Mapping[str, Any], file: Path, environ: Mapping[str, str]) -> Iterator[Wrapped]:
    values = document.values()
    if document and all(isinstance(each, Mapping) and isinstance(each.get("info"), Mapping) for each in values):
        # Connect's answer to GET /connectors?expand=info
        for name, each in document.items():
            yield Wrapped(each["info"], str(name))
    elif isinstance(document.get("connectorConfiguration"), Mapping):
        yield _msk(document)
    elif isinstance(document.get("services"), Mapping):
        yield compose_worker(document["services"], Project.of(file, environ))
    elif found := [*terraform_values(document), *helm_values(document)]:
        yield from found
    else:
        yield Wrapped(document)


def _resource(document: Mapping[str, Any]) -> Iterator[Wrapped]:
    """What the operators of Strimzi and Confluent take."""
    kind, spec = document["kind"], document.get("spec")
    metadata = document.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
    if kind in ("KafkaConnector", "Connector"):
        wrapped = Wrapped({}, name)
        if isinstance(spec, Mapping):
            of_strimzi = kind == "KafkaConnector"
            wrapped.content = _connector(
                wrapped, name, spec, *(("tasksMax", "config") if of_strimzi else ("taskMax", "configs"))
            )
        else:
            wrapped.problems.append(Problem("spec", "Must hold the connector's configuration", None, "spec.config"))
        yield wrapped
    elif kind == "Connect":
        wrapped = Wrapped({}, name)
        wrapped.content = _confluent_worker(wrapped, spec if isinstance(spec, Mapping) else {})
        yield wrapped
    elif kind == "KafkaConnect":
        wrapped = Wrapped({}, name)
        wrapped.content = _worker(wrapped, spec if isinstance(spec, Mapping) else {})
        yield wrapped


def _connector(wrapped: Wrapped, name: str, spec: Mapping[str, Any], tasks: str, inner: str) -> dict[str, Any]:
    given = spec.get(inner) if spec.get(inner) is not None else {}
    if not isinstance(given, Mapping):
        wrapped.problems.append(Problem(f"spec.{inner}", "Must be an object of properties"))
        given = {}
    config = dict(given)
    for outer, property_name in (("class", "connector.class"), (tasks, "tasks.max")):
        if spec.get(outer) is None:
            continue
        if config.get(property_name, spec[outer]) != spec[outer]:
            wrapped.notes.append((property_name, f"has no effect in spec.{inner}: spec.{outer} counts"))
        config[property_name] = spec[outer]
    state = spec.get("state") or ("paused" if spec.get("pause") is True else None)
    if state not in (None, "running"):
        wrapped.notes.append((f"spec.{'state' if spec.get('state') else 'pause'}", _paused(str(state))))
    known = {"class", tasks, inner, "state", "pause", "name", "connectClusterRef", "connectRest", "connectorOverride"}
    for other in spec:
        if other not in known:
            wrapped.notes.append((f"spec.{other}", "has no effect here: it is for the operator"))
    return {"name": spec.get("name") or name, "config": config} if name or spec.get("name") else config


def _paused(state: str) -> str:
    return f"is {state}, and `scylla-cdc run` runs what it is given: start it only when the connector is to run"


def _worker(wrapped: Wrapped, spec: Mapping[str, Any]) -> dict[str, Any]:
    config = dict(spec["config"]) if isinstance(spec.get("config"), Mapping) else {}
    for outer, property_name in (
        ("bootstrapServers", "bootstrap.servers"),
        ("groupId", "group.id"),
        ("offsetStorageTopic", "offset.storage.topic"),
        ("statusStorageTopic", "status.storage.topic"),
        ("configStorageTopic", "config.storage.topic"),
    ):
        if spec.get(outer) is not None:
            config[property_name] = spec[outer]
    for outer, hint in (
        ("tls", "security.protocol=SSL and ssl.truststore.location in a worker file"),
        ("authentication", "security.protocol, sasl.mechanism and sasl.jaas.config in a worker file"),
    ):
        if spec.get(outer):
            text = "Is translated by Strimzi's operator from secrets of the cluster, which cannot be read here"
            wrapped.problems.append(Problem(f"spec.{outer}", text, None, f"write {hint}"))
    return config


def _confluent_worker(wrapped: Wrapped, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Of `platform.confluent.io`: what is overridden; the rest is the operator's."""
    overrides, dependencies = spec.get("configOverrides"), spec.get("dependencies")
    lines = overrides.get("server") if isinstance(overrides, Mapping) else None
    config = dict(java_properties("\n".join(map(str, lines)))) if isinstance(lines, list) else {}
    kafka = dependencies.get("kafka") if isinstance(dependencies, Mapping) else None
    if isinstance(kafka, Mapping):
        if kafka.get("bootstrapEndpoint") is not None:
            config.setdefault("bootstrap.servers", str(kafka["bootstrapEndpoint"]))
        if kafka.get("authentication") and "sasl.jaas.config" not in config:
            text = "Is translated by Confluent's operator from secrets of the cluster, which cannot be read here"
            hint = "write security.protocol, sasl.mechanism and sasl.jaas.config in a worker file"
            wrapped.problems.append(Problem("spec.dependencies.kafka.authentication", text, None, hint))
    return config


def _msk(document: Mapping[str, Any]) -> Wrapped:
    wrapped = Wrapped(
        {"name": document.get("connectorName"), "config": document["connectorConfiguration"]},
        str(document.get("connectorName") or ""),
    )
    for name in document:
        if name not in ("connectorName", "connectorConfiguration"):
            wrapped.notes.append((name, "has no effect here: it is for MSK Connect"))
    return wrapped
