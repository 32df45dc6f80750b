"""All transforms by their Java class names, full or short.

In: a type's name and options as text. Out: the function, with what it loses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from smt.connect.cast import CAST
from smt.connect.declared import Declared
from smt.connect.fields import EXTRACT_FIELD, HOIST_FIELD, SET_SCHEMA_METADATA, VALUE_TO_KEY
from smt.connect.flatten_nested import FLATTEN_NESTED
from smt.connect.headers import DROP_HEADERS, HEADER_FROM, INSERT_HEADER
from smt.connect.insert_field import INSERT_FIELD
from smt.connect.logical_router import LOGICAL_ROUTER
from smt.connect.mask_field import MASK_FIELD
from smt.connect.options import Option, parse
from smt.connect.predicates import FILTER
from smt.connect.replace_field import REPLACE_FIELD
from smt.connect.routers import REGEX_ROUTER, TIMESTAMP_ROUTER
from smt.connect.sides import SIDES, VALUE, Apply
from smt.connect.timestamp_converter import TIMESTAMP_CONVERTER
from smt.errors import SmtOptionError

ALL: Final[tuple[Declared, ...]] = (
    CAST,
    DROP_HEADERS,
    EXTRACT_FIELD,
    FILTER,
    FLATTEN_NESTED,
    HEADER_FROM,
    HOIST_FIELD,
    INSERT_FIELD,
    INSERT_HEADER,
    MASK_FIELD,
    REGEX_ROUTER,
    REPLACE_FIELD,
    SET_SCHEMA_METADATA,
    TIMESTAMP_CONVERTER,
    TIMESTAMP_ROUTER,
    VALUE_TO_KEY,
    LOGICAL_ROUTER,
)
_BY_SHORT: Final[dict[str, Declared]] = {
    short: declared for declared in ALL for short in set(declared.spellings.values())
}
#: Every accepted spelling, and the short name that it means.
CONNECT_TYPES: Final[dict[str, str]] = {
    spelling: short for declared in ALL for spelling, short in declared.spellings.items()
}


@dataclass(frozen=True, slots=True)
class Built:
    """``routes``: it changes the topic and nothing else. ``ignored``: options, and what is to be said of them."""

    apply: Apply
    ignored: tuple[tuple[str, str], ...]
    routes: bool


def connect_options(short: str) -> tuple[Option, ...]:
    """All that the transform of that short name may be told."""
    return _BY_SHORT[short].options


def build_connect(short: str, options: Mapping[str, str]) -> Built:
    """The transform of that short name; raises ``SmtOptionError`` with all that is wrong with its options."""
    declared = _BY_SHORT[short]
    parsed = parse(declared.options, options)
    problems = parsed.problems or declared.check(parsed.values)
    if problems:
        raise SmtOptionError(problems)
    side = SIDES.get(short.partition("$")[2], VALUE)
    return Built(declared.build(parsed.values, side), parsed.ignored, declared.routes)
