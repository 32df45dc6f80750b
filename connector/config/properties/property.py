"""One property, declared once: what it is called, what it takes, what it does here.

The declarations stand in the ``*_properties`` modules; loading, validation and ``docs/configuration.md`` all read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from connector.config.properties.kind import STRING, Kind


class Effect(Enum):
    """What giving the property does."""

    WORKS = "works"
    NONE = "no effect here"


@dataclass(frozen=True, slots=True)
class Property:
    """``default_text`` tells the documentation what no plain default can (such as "derived from topic.prefix")."""

    name: str
    kind: Kind
    doc: str
    default: Any = None
    default_text: str | None = None
    required: str | None = None
    effect: Effect = Effect.WORKS
    reason: str = ""
    ours: bool = False
    #: Other spellings that mean the same; the first given wins, both given is a problem.
    aliases: tuple[str, ...] = field(default=())

    @property
    def secret(self) -> bool:
        return self.kind.secret


@dataclass(frozen=True, slots=True)
class Family:
    """Properties that share a prefix; the user (or another table) names the rest."""

    prefix: str
    doc: str
    effect: Effect = Effect.WORKS
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the documentation and the properties under it."""

    title: str
    intro: str
    properties: tuple[Property, ...]


def without_effect(reason: str, names: Iterable[str], kind: Kind = STRING) -> tuple[Property, ...]:
    """Properties that are known, accepted (if their value is one) and do nothing, all for one reason."""
    doc = reason[0].upper() + reason[1:] + "."
    return tuple(Property(name, kind, doc, effect=Effect.NONE, reason=reason) for name in names)
