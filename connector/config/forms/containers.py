"""What other tools wrap a configuration in: Kubernetes resources, JSON of Connect and MSK, compose files, their own.

In: the documents of a JSON or YAML file. Out: the configurations in them, each as ``{"name", "config"}`` or flat, with
what is to be said about the wrapping. A document that is no wrapping is its own configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from connector.config.forms.compose import compose_worker, text_of_command
from connector.config.forms.compose_files import Project
from connector.config.forms.container_definitions import defined_containers
from connector.config.forms.helm import helm_values
from connector.config.forms.inside import connectors_inside
from connector.config.forms.kubernetes import Parse, in_kubernetes
from connector.config.forms.operators import OF_OPERATORS, of_operators
from connector.config.forms.shapes import mapping, mappings
from connector.config.forms.terraform_state import terraform_values
from connector.config.forms.wrapped import Wrapped
from connector.errors import Problem

_CLASS = "connector.class"
_OF_KUSTOMIZE = frozenset(("configMapGenerator", "secretGenerator"))
_WANTED = (
    "a KafkaConnector or Connector with its properties, a KafkaConnect, pods with CONNECT_ variables, or a ConfigMap "
    "with files of a connector or worker; or the properties alone, as .properties, JSON or YAML"
)
_ALONE = "the JSON that is posted to Kafka Connect, or a file that has it in it; docs/configuration.md lists them"
_RENDER = "give what is made of it: `kubectl kustomize FOLDER > all.yaml`"


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
    found += [wrapped for each in resources for wrapped in of_operators(each)]
    found += in_kubernetes(resources, parse)
    found += [each for resource in resources for each in _in_commands(resource, environ)]
    if not found and resources:
        kinds = ", ".join(dict.fromkeys(str(each["kind"]) for each in resources))
        problem = f"Holds no connector and no worker: {kinds}"
        hint = _RENDER if "Kustomization" in kinds else _WANTED
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
    elif isinstance(document.get("services"), Mapping) or isinstance(document.get("include"), list):
        project = Project.of(file, environ)
        connectors = [*connectors_inside(document, environ, partial(text_of_command, project=project))]
        worker = compose_worker(document, project)
        if worker.label or not connectors:
            yield worker
        yield from connectors
    elif found := [*terraform_values(document), *helm_values(document), *defined_containers(document)]:
        yield from found
    elif _OF_KUSTOMIZE & document.keys() or file.stem == "kustomization":
        yield Wrapped({}, problems=[Problem("kind", "Holds no connector and no worker: Kustomization", None, _RENDER)])
    elif _CLASS in document or _CLASS in mapping(document.get("config")):
        yield Wrapped(document)
    else:
        yield from [*connectors_inside(document, environ)] or [_alone(document)]


def _alone(document: Mapping[str, Any]) -> Wrapped:
    """The properties alone, or what somebody took for them: a tool's file that has none."""
    nested = any(isinstance(value, Mapping) or mappings(value) for value in document.values())
    if nested and "config" not in document and not any("." in str(name) for name in document):
        return Wrapped({}, problems=[Problem("file", "Holds no connector and no worker", None, _ALONE)])
    return Wrapped(document)


def _in_commands(resource: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Wrapped]:
    """Of a job that posts connectors, say; what stands in maps is read as files."""
    if resource["kind"] not in (*OF_OPERATORS, "ConfigMap", "Secret"):
        yield from connectors_inside(resource, environ)


def _msk(document: Mapping[str, Any]) -> Wrapped:
    wrapped = Wrapped(
        {"name": document.get("connectorName"), "config": document["connectorConfiguration"]},
        str(document.get("connectorName") or ""),
    )
    for name in document:
        if name not in ("connectorName", "connectorConfiguration"):
            wrapped.notes.append((name, "has no effect here: it is for MSK Connect"))
    return wrapped
