"""Raw cells of the source as the values that landed tables store.

In: a ``CqlType``. Out: a callable from a raw cell to the value as changelog and state have it, which is also what a
record of the same cell would be parsed to: structs are tuples, maps are lists of entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from connector.values import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    RenderingRules,
    SetType,
    TupleType,
    UserType,
    VectorType,
    renderer,
)
from spark_jobs.model import fields_of

_RULES = RenderingRules(keep_empty=True)
_FLOATING = ("float", "double")


def stored_value(type_: CqlType) -> Callable[[bytes | None], Any]:
    """Null stays null; a cell of length zero is null where a record has null for it."""
    render, shape = renderer(type_, _RULES), _shape(type_)
    if shape is None:
        return lambda raw: None if raw is None else render(raw)
    return lambda raw: None if raw is None else _optional(shape, render(raw))


def _optional(shape: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else shape(value)


def _shape(type_: CqlType) -> Callable[[Any], Any] | None:
    """From a record's value to the stored one; None where they are the same."""
    if isinstance(type_, NativeType):
        return float if type_.name in _FLOATING else None
    if isinstance(type_, ListType | SetType | VectorType):
        element = _shape(type_.element)
        if element is None:
            return None
        return lambda items: [_optional(element, item) for item in items]
    if isinstance(type_, MapType):
        key, value = _shape(type_.key) or _same, _shape(type_.value) or _same
        return lambda items: [(_optional(key, item["key"]), _optional(value, item["value"])) for item in items]
    if isinstance(type_, TupleType | UserType):
        fields = [(name, _shape(kind) or _same) for name, kind in fields_of(type_)]
        return lambda struct: tuple(_optional(field, struct[name]) for name, field in fields)
    assert_never(type_)


def _same(value: Any) -> Any:
    return value
