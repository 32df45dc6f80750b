"""Whether bytes that were written by one Avro schema are what another one says.

In: two schemas as texts, and those that the second refers to. Out: the first difference in words, or None.
Documentation, defaults, names of records and properties of Connect are in no bytes, and may differ. What numbers are
counted in is in none either, and has to be the same where both say it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

Named = dict[str, Any]

#: What is written as the first can be read as the second.
_WIDER: Final = frozenset((("int", "long"), ("string", "bytes")))


def difference(written: str, named: str, referred: Sequence[str] = ()) -> str | None:
    """``written``: the schema that bytes are written by; ``named``: the one that readers are told."""
    try:
        known: Named = {}
        for text in referred:
            _learn(json.loads(text), "", known)
        ours, theirs = _Part(json.loads(written), "", {}), _Part(json.loads(named), "", known)
        return next(_differences(ours, theirs, "a record"), None)
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it is no Avro schema that can be understood"


class _Part:
    """A type within a schema; ``space`` is the namespace around it, ``known`` are the types that have names."""

    def __init__(self, avro: Any, space: str, known: Named) -> None:
        while isinstance(avro, dict) and isinstance(avro["type"], dict | list):
            avro = avro["type"]
        if isinstance(avro, str) and (avro in known or f"{space}.{avro}" in known):
            avro, space = known.get(avro) or known[f"{space}.{avro}"]
        if isinstance(avro, dict) and "name" in avro:
            _learn(avro, space, known)
            space = _full_name(avro, space).rpartition(".")[0]
        self.avro, self.space, self.known = avro, space, known
        self.kind = "union" if isinstance(avro, list) else avro["type"] if isinstance(avro, dict) else avro

    def part(self, avro: Any) -> _Part:
        return _Part(avro, self.space, self.known)


def _full_name(avro: Any, space: str) -> str:
    name, space = avro["name"], avro.get("namespace", space)
    return name if "." in name or not space else f"{space}.{name}"


def _learn(avro: Any, space: str, known: Named) -> None:
    known.setdefault(_full_name(avro, space), (avro, space))


def _meaning(part: _Part) -> str | None:
    """What readers take numbers and bytes for."""
    if not isinstance(part.avro, dict) or not isinstance(part.avro.get("logicalType"), str):
        return None
    meaning: str = part.avro["logicalType"]
    return f"{meaning} of the scale {part.avro.get('scale', 0)}" if meaning == "decimal" else meaning


def _differences(ours: _Part, theirs: _Part, where: str) -> Iterator[str]:
    meant, told = _meaning(ours), _meaning(theirs)
    if meant and told and meant != told:
        yield f"{where} is a {meant} in records, and a {told} there"
    if ours.kind != theirs.kind:
        if (ours.kind, theirs.kind) not in _WIDER:
            yield f"{where} is of the type {ours.kind} in records, and {theirs.kind} there"
    elif ours.kind == "union":
        if len(ours.avro) != len(theirs.avro):
            yield f"{where} is one of {len(ours.avro)} types in records, and of {len(theirs.avro)} there"
        for one, other in zip(ours.avro, theirs.avro, strict=False):
            yield from _differences(ours.part(one), theirs.part(other), where)
    elif ours.kind == "record":
        yield from _differences_of_fields(ours, theirs, where)
    elif ours.kind in ("array", "map"):
        inside = "items" if ours.kind == "array" else "values"
        yield from _differences(ours.part(ours.avro[inside]), theirs.part(theirs.avro[inside]), f"what {where} holds")


def _differences_of_fields(ours: _Part, theirs: _Part, where: str) -> Iterator[str]:
    names, others = ([field["name"] for field in part.avro["fields"]] for part in (ours, theirs))
    for name in names:
        if name not in others:
            yield f"{where} has no field {name} there"
    for name in others:
        if name not in names:
            yield f"{where} has no field {name} in records"
    if names != others:
        yield f"the fields of {where} are in another order there: {', '.join(others)}"
        return
    for one, other in zip(ours.avro["fields"], theirs.avro["fields"], strict=True):
        yield from _differences(ours.part(one["type"]), theirs.part(other["type"]), f"the field {one['name']}")
