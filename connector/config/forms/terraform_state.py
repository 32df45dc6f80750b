"""Connectors in what `terraform show -json` tells of a state or a plan.

In: its answer. Out: the configurations in it, with the values that Terraform made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connector.config.forms.wrapped import Wrapped

#: What the resources of connectors call their map of properties: MSK Connect's, Google's, then the others'.
PROPERTY_MAPS = ("connector_configuration", "configs", "config", "config_nonsensitive", "config_sensitive")
#: And what their names, where a map has none.
NAMES = ("name", "connector_id", "connector_name")


def terraform_values(document: Mapping[str, Any]) -> Iterator[Wrapped]:
    """Of all modules; nothing of a document that is something else."""
    state = document.get("values") or document.get("planned_values")
    modules = [state.get("root_module")] if isinstance(state, Mapping) else []
    while modules:
        module = modules.pop(0)
        if not isinstance(module, Mapping):
            continue
        modules += module.get("child_modules") or []
        for resource in module.get("resources") or []:
            values = resource.get("values") if isinstance(resource, Mapping) else None
            if not isinstance(values, Mapping) or "connector" not in str(resource.get("type")):
                continue
            config = {key: text for name in PROPERTY_MAPS for key, text in dict(values.get(name) or {}).items()}
            if "connector.class" in config:
                named = next((values[name] for name in NAMES if values.get(name)), config.get("name"))
                yield Wrapped({"name": named, "config": config}, str(resource["name"]))
