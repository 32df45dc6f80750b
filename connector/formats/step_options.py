"""What transforms and predicates may be told, for tools that draw forms.

In: the name of a class. Out: its options, as Kafka Connect describes options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smt import PREDICATES, REQUIRED, transform_options

_TYPES = {"text": "STRING", "list": "LIST", "boolean": "BOOLEAN", "int": "INT"}


@dataclass(frozen=True, slots=True)
class StepOption:
    """``type``: by Connect's names. ``default``: None if there is none, or it is null."""

    name: str
    type: str
    required: bool
    default: str | None
    doc: str


def step_options(what: Literal["transforms", "predicates"], class_name: str) -> Sequence[StepOption]:
    """Of a class; none, if there is no such class."""
    if what == "transforms":
        declared = transform_options(class_name)
    else:
        predicate = PREDICATES.get(class_name.strip())
        declared = () if predicate is None else predicate.options
    return [
        StepOption(each.name, _TYPES[each.kind], each.default is REQUIRED, _text(each.default), each.doc)
        for each in declared
    ]


def _text(default: Any) -> str | None:
    if default is None or default is REQUIRED:
        return None
    if isinstance(default, bool):
        return str(default).lower()
    return ",".join(default) if isinstance(default, tuple | list) else str(default)
