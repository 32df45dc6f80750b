"""Workers in what describes single containers: a task definition of ECS, and what `docker inspect` says.

In: a document. Out: a worker for each container with variables of Connect's images; a value that stands in a store of
secrets is the reference to the variable of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connector.config.environment import OF_A_WORKER
from connector.config.forms.shapes import mapping, mappings
from connector.config.forms.worker import worker_with_references
from connector.config.forms.wrapped import Wrapped
from connector.config.substitution import reference


def defined_containers(document: Mapping[str, Any]) -> Iterator[Wrapped]:
    """Nothing, if the document is neither, or none of its containers is a worker."""
    # `aws ecs describe-task-definition` has the definition within.
    definition = mapping(document.get("taskDefinition")) or document
    for container in mappings(definition.get("containerDefinitions")):
        variables = {
            str(each.get("name")): str(each.get("value", "")) for each in mappings(container.get("environment"))
        }
        elsewhere = {
            str(each.get("name")): f"stands elsewhere ({each.get('valueFrom')})"
            for each in mappings(container.get("secrets"))
        }
        variables |= {name: reference(name) for name in elsewhere}
        yield from _worker(str(container.get("name", "")), str(container.get("image", "")), variables, elsewhere)
    config = mapping(document.get("Config"))
    if isinstance(config.get("Env"), list):
        pairs = (str(each).partition("=") for each in config["Env"])
        name = str(document.get("Name", "")).lstrip("/")
        yield from _worker(name, str(config.get("Image", "")), {name: text for name, _, text in pairs}, {})


def _worker(name: str, image: str, variables: Mapping[str, str], elsewhere: Mapping[str, str]) -> Iterator[Wrapped]:
    content, notes = worker_with_references(variables, image, elsewhere)
    if content.keys() & OF_A_WORKER:
        yield Wrapped(content, name, notes)
