"""What other tools wrap a configuration in: Kubernetes resources, JSON of Connect and MSK, compose files.

In: the documents of a JSON or YAML file. Out: the configurations in them, each as ``{"name", "config"}`` or flat, with
what is to be said about the wrapping. A document that is no wrapping is its own configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from connector.config.environment import PREFIX, is_debezium_image, is_of_debezium, worker_properties
from connector.errors import Problem

Form = Literal["plain", "strimzi connector", "strimzi worker", "confluent connector", "rest", "msk", "compose"]


@dataclass(slots=True)
class Wrapped:
    """One configuration of a file. ``notes`` are (property, text); ``problems`` are without their file."""

    content: Any
    form: Form = "plain"
    label: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def unwrapped(documents: Iterable[Any]) -> list[Wrapped]:
    """Every configuration in the documents of a file; other resources are left out, unless nothing is left."""
    found: list[Wrapped] = []
    others: list[str] = []
    for document in documents:
        if not isinstance(document, Mapping):
            found.append(Wrapped(document))
        elif "apiVersion" in document and "kind" in document:
            some = list(_resource(document))
            found += some
            others += [] if some else [str(document["kind"])]
        else:
            found += _plain(document)
    if not found and others:
        problem = f"Holds no connector: {', '.join(dict.fromkeys(others))}"
        hint = "a KafkaConnector, Connector or KafkaConnect; or the properties alone, as .properties, JSON or YAML"
        found.append(Wrapped({}, problems=[Problem("kind", problem, None, hint)]))
    return found


def _plain(document: Mapping[str, Any]) -> Iterator[Wrapped]:
    values = document.values()
    if document and all(isinstance(each, Mapping) and isinstance(each.get("info"), Mapping) for each in values):
        # Connect's answer to GET /connectors?expand=info
        for name, each in document.items():
            yield Wrapped(each["info"], "rest", str(name))
    elif isinstance(document.get("connectorConfiguration"), Mapping):
        yield _msk(document)
    elif isinstance(document.get("services"), Mapping):
        yield _compose(document["services"])
    else:
        yield Wrapped(document)


def _resource(document: Mapping[str, Any]) -> Iterator[Wrapped]:
    """A Kubernetes resource, which may be a list of others."""
    kind, spec = document["kind"], document.get("spec")
    if kind == "List" and isinstance(document.get("items"), list):
        yield from (wrapped for item in document["items"] if isinstance(item, Mapping) for wrapped in unwrapped([item]))
        return
    metadata = document.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
    forms: dict[Any, Form] = {"KafkaConnector": "strimzi connector", "Connector": "confluent connector"}
    if kind in forms:
        wrapped = Wrapped({}, forms[kind], name)
        if isinstance(spec, Mapping):
            of_strimzi = kind == "KafkaConnector"
            wrapped.content = _connector(
                wrapped, name, spec, *(("tasksMax", "config") if of_strimzi else ("taskMax", "configs"))
            )
        else:
            wrapped.problems.append(Problem("spec", "Must hold the connector's configuration", None, "spec.config"))
        yield wrapped
    elif kind == "KafkaConnect":
        wrapped = Wrapped({}, "strimzi worker", name)
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


def _msk(document: Mapping[str, Any]) -> Wrapped:
    wrapped = Wrapped(
        {"name": document.get("connectorName"), "config": document["connectorConfiguration"]},
        "msk",
        str(document.get("connectorName") or ""),
    )
    for name in document:
        if name not in ("connectorName", "connectorConfiguration"):
            wrapped.notes.append((name, "has no effect here: it is for MSK Connect"))
    return wrapped


def _compose(services: Mapping[str, Any]) -> Wrapped:
    """The worker of a compose file: the one service that has ``CONNECT_…`` variables, or those of Debezium's image."""
    found, perhaps = {}, {}
    for name, service in services.items():
        if not isinstance(service, Mapping):
            continue
        environment = service.get("environment")
        if isinstance(environment, list):
            environment = dict(str(item).partition("=")[::2] for item in environment)
        if isinstance(environment, Mapping):
            variables = {str(each): _variable(value) for each, value in environment.items() if value is not None}
            image = str(service.get("image") or "")
            if any(each.startswith(PREFIX) for each in variables) or (variables and is_debezium_image(image)):
                found[str(name)] = variables, image
            elif is_of_debezium(variables) and any(each.endswith("_STORAGE_TOPIC") for each in variables):
                perhaps[str(name)] = variables, image
    found = found or perhaps
    wrapped = Wrapped({}, "compose")
    if len(found) != 1:
        which = ", ".join(found) or "none"
        problem = f"Must have one service with CONNECT_ variables, and has {len(found)}: {which}"
        wrapped.problems.append(Problem("services", problem))
        return wrapped
    ((wrapped.label, (variables, image)),) = found.items()
    wrapped.content, wrapped.notes = worker_properties(variables, image)
    return wrapped


def _variable(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
