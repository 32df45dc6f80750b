"""Avro schemas as the AvroConverter writes them, as Connect schemas: enough to recognise envelopes and cells.

In: a parsed Avro schema. Out: a ``Schema`` dict. Pure; decoding is done by whoever holds the bytes.
"""

from __future__ import annotations

from typing import Any

from smt.connect.structs import DATE, DECIMAL, TIME, TIMESTAMP
from smt.record import Schema

_PRIMITIVES = {
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "enum": "string",
    "fixed": "bytes",
}
#: Connect's names of what Avro names by itself, which AvroConverter takes from schemas of other writers.
_LOGICAL = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("bytes", "decimal"): DECIMAL,
    ("fixed", "decimal"): DECIMAL,
}


def connect_schema(avro: Any) -> Schema:
    """The Connect schema that an Avro schema was made from."""
    try:
        return _convert(avro, {}, "")
    except RecursionError:
        raise ValueError("the schema is nested too deeply") from None


def _convert(avro: Any, known: dict[str, Schema | None], space: str) -> Schema:
    """``known``: the named types so far, None for those that are being converted."""
    if isinstance(avro, list):
        members = [member for member in avro if member != "null"]
        if len(members) != 1:
            raise ValueError("a union of several types is none that the AvroConverter writes")
        return {**_convert(members[0], known, space), "optional": True}
    if isinstance(avro, str):
        if avro in _PRIMITIVES:
            return {"type": _PRIMITIVES[avro], "optional": False}
        name = avro if avro in known else f"{space}.{avro}"
        found = known[name]
        if found is None:
            raise ValueError(f"the type {name} holds itself, which no type of a table does")
        return found
    kind = avro["type"]
    if isinstance(kind, dict | list):
        return _convert(kind, known, space)
    space = avro.get("namespace", space)
    if "name" in avro:
        full = avro["name"] if "." in avro["name"] or not space else f"{space}.{avro['name']}"
        known[full] = None
    if kind == "record":
        fields = [{**_convert(field["type"], known, space), "field": field["name"]} for field in avro.get("fields", ())]
        schema: Schema = {"type": "struct", "fields": fields, "optional": False}
        schema["name"] = avro.get("connect.name", full)
        known[full] = schema
        return schema
    if kind == "array":
        schema = {"type": "array", "items": _convert(avro["items"], known, space), "optional": False}
    elif kind == "map":
        key = {"type": "string", "optional": False}
        schema = {"type": "map", "keys": key, "values": _convert(avro["values"], known, space), "optional": False}
    else:
        schema = {"type": avro.get("connect.type", _PRIMITIVES.get(kind, kind)), "optional": False}
    logical = _LOGICAL.get((kind, avro.get("logicalType")))
    if (name := avro.get("connect.name", logical)) is not None:
        schema["name"] = name
    if "connect.version" in avro:
        schema["version"] = avro["connect.version"]
    if "connect.parameters" in avro:
        schema["parameters"] = avro["connect.parameters"]
    elif logical == DECIMAL:
        schema["parameters"] = {"scale": str(avro.get("scale", 0))}
    if "name" in avro:
        known[full] = schema
    return schema
