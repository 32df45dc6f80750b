"""Types as statements name them → `CqlType`, and which types are assignable to which.

In: a `RawType` from the parser and the keyspace's user types. Out: a `CqlType`, or ScyllaDB's error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connector.values import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    freeze,
    is_multi_cell,
    native,
)
from embedded.scylla.cql.tree import RawType
from embedded.scylla.errors import InvalidRequest, SyntaxException

_ARITY: Final = {"list": 1, "set": 1, "map": 2, "frozen": 1}


def resolve_type(raw: RawType, keyspace: str, user_types: Mapping[str, UserType], frozen: bool = False) -> CqlType:
    """The type that was named; user types must be of the same keyspace. `frozen`: it stands inside a frozen type,
    and so is frozen itself."""
    name = raw.name
    if not raw.parameters:
        if not raw.quoted and raw.keyspace is None:
            try:
                return native(name)
            except ValueError:
                pass
        if raw.keyspace is not None and raw.keyspace != keyspace:
            raise InvalidRequest(
                f"Statement on keyspace {keyspace} cannot refer to a user type in keyspace {raw.keyspace}; "
                "user types can only be used in the keyspace they are defined in"
            )
        found = user_types.get(name)
        if found is None:
            raise InvalidRequest(f"Unknown type {keyspace}.{name}")
        return UserType(found.keyspace, found.name, found.fields)
    if name in _ARITY and len(raw.parameters) != _ARITY[name]:
        raise SyntaxException(f"{name} takes {_ARITY[name]} type parameters")
    frozen = frozen or name in ("frozen", "tuple", "vector")
    inner = [resolve_type(parameter, keyspace, user_types, frozen) for parameter in raw.parameters]
    if name == "frozen":
        if isinstance(inner[0], NativeType):
            raise InvalidRequest(
                f"frozen<> is only allowed on collections, tuples, and user-defined types (got {inner[0].cql()})"
            )
        return freeze(inner[0])
    if name == "tuple":
        return TupleType(tuple(freeze(element) for element in inner))
    if name == "vector":
        if raw.dimensions < 1:
            raise InvalidRequest(f"vectors must have a dimension greater than 0, got {raw.dimensions}")
        return VectorType(freeze(inner[0]), raw.dimensions)
    if name not in ("list", "set", "map"):
        raise SyntaxException(f"Unknown type {name}")
    if frozen:
        inner = [freeze(element) for element in inner]
    for element in inner:
        if is_multi_cell(element):
            raise InvalidRequest(
                f"Non-frozen user types or collections are not allowed inside collections: {_described(name, inner)}"
            )
        if element == native("counter"):
            raise InvalidRequest(f"Counters are not allowed inside collections: {_described(name, inner)}")
    if name != "list" and element_contains_duration(inner[0]):
        part = "map keys" if name == "map" else "sets"
        raise InvalidRequest(f"Durations are not allowed {'as' if name == 'map' else 'inside'} {part}")
    if name == "list":
        return ListType(inner[0])
    return SetType(inner[0]) if name == "set" else MapType(inner[0], inner[1])


def _described(name: str, inner: list[CqlType]) -> str:
    def shown(element: CqlType) -> str:
        return f"{element.keyspace}.{element.name}" if isinstance(element, UserType) else element.cql()

    return f"{name}<{', '.join(map(shown, inner))}>"


def element_contains_duration(type_: CqlType) -> bool:
    """Whether the type is a duration or holds one: it then has no order and cannot be a key."""
    if isinstance(type_, NativeType):
        return type_.name == "duration"
    if isinstance(type_, ListType | SetType | VectorType):
        return element_contains_duration(type_.element)
    if isinstance(type_, MapType):
        return element_contains_duration(type_.key) or element_contains_duration(type_.value)
    if isinstance(type_, TupleType):
        return any(element_contains_duration(element) for element in type_.elements)
    if isinstance(type_, UserType):
        return any(element_contains_duration(field) for _, field in type_.fields)
    return False


_VALUE_COMPATIBLE: Final = {
    "blob": None,
    "text": {"ascii"},
    "uuid": {"timeuuid"},
    "varint": {"int", "bigint"},
    "bigint": {"timestamp"},
    "timestamp": {"bigint"},
}


def assignable(receiver: CqlType, given: CqlType) -> bool:
    """Whether bytes of one type are bytes of the other too."""
    if receiver == given or freeze(receiver) == freeze(given):
        return True
    if isinstance(receiver, NativeType):
        allowed = _VALUE_COMPATIBLE.get(receiver.name, set())
        return allowed is None or (isinstance(given, NativeType) and given.name in allowed)
    return False


def uses_type(type_: CqlType, user_type: UserType) -> bool:
    """Whether a user type occurs in a type."""
    if isinstance(type_, UserType):
        if (type_.keyspace, type_.name) == (user_type.keyspace, user_type.name):
            return True
        return any(uses_type(field, user_type) for _, field in type_.fields)
    if isinstance(type_, ListType | SetType | VectorType):
        return uses_type(type_.element, user_type)
    if isinstance(type_, MapType):
        return uses_type(type_.key, user_type) or uses_type(type_.value, user_type)
    return isinstance(type_, TupleType) and any(uses_type(element, user_type) for element in type_.elements)


def with_type(type_: CqlType, user_type: UserType) -> CqlType:
    """The type with every occurrence of a user type brought up to date."""
    if isinstance(type_, UserType):
        if (type_.keyspace, type_.name) == (user_type.keyspace, user_type.name):
            fields = user_type.fields
        else:
            fields = tuple((name, with_type(field, user_type)) for name, field in type_.fields)
        renewed = UserType(type_.keyspace, type_.name, fields)
        return freeze(renewed) if type_.frozen else renewed
    if isinstance(type_, ListType):
        return ListType(with_type(type_.element, user_type), type_.frozen)
    if isinstance(type_, SetType):
        return SetType(with_type(type_.element, user_type), type_.frozen)
    if isinstance(type_, MapType):
        return MapType(with_type(type_.key, user_type), with_type(type_.value, user_type), type_.frozen)
    if isinstance(type_, TupleType):
        return TupleType(tuple(with_type(element, user_type) for element in type_.elements))
    if isinstance(type_, VectorType):
        return VectorType(with_type(type_.element, user_type), type_.dimensions)
    return type_
