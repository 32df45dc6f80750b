"""What a document is expected to have at a place, whatever stands there: nobody has checked it.

In: a value of JSON or YAML. Out: the object, or the objects of a list, that it is; an empty one if it is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def as_text(value: Any) -> str:
    """Of a plain word: `true`, as it was written, not Python's."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def listed(value: Any) -> list[Any]:
    """One thing, or several, or nothing."""
    return value if isinstance(value, list) else [] if value is None else [value]


def mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def name_of(resource: Mapping[str, Any]) -> str:
    """Of a resource of Kubernetes."""
    return str(mapping(resource.get("metadata")).get("name", ""))
