"""Predicates and ``Filter``: which records a transform is for, and dropping them.

In: parsed options. Out: a function that says whether a record is chosen; `smt/predicate.py` builds one by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from connector.java_regex import java_pattern
from smt.connect.declared import APACHE, Declared
from smt.connect.java_replacement import check_regex
from smt.connect.options import Option, Values, not_empty
from smt.connect.sides import Apply, Side
from smt.record import Record

Predicate = Callable[[Record], bool]


def _check_pattern(text: str) -> None:
    not_empty(text)
    check_regex(text)


def _topic_matches(values: Values) -> Predicate:
    pattern = java_pattern(values["pattern"])
    return lambda record: pattern.fullmatch(record.topic) is not None


def _has_header(values: Values) -> Predicate:
    name = values["name"]
    return lambda record: any(header[0] == name for header in record.headers)


def _is_tombstone(values: Values) -> Predicate:
    return lambda record: record.value is None


@dataclass(frozen=True, slots=True)
class DeclaredPredicate:
    name: str
    doc: str
    options: tuple[Option, ...]
    build: Callable[[Values], Predicate]


_ALL: Final = (
    DeclaredPredicate(
        "TopicNameMatches",
        "Records whose topic an expression matches as a whole.",
        (Option("pattern", "text", "Java's regular expression.", check=_check_pattern),),
        _topic_matches,
    ),
    DeclaredPredicate(
        "HasHeaderKey",
        "Records with a header of that name.",
        (Option("name", "text", "Name of the header.", check=not_empty),),
        _has_header,
    ),
    DeclaredPredicate("RecordIsTombstone", "Records without a value.", (), _is_tombstone),
)
PREDICATES_PACKAGE: Final = f"{APACHE}predicates"
#: Every accepted spelling of a predicate's class.
PREDICATES: Final[dict[str, DeclaredPredicate]] = {
    prefix + one.name: one for one in _ALL for prefix in (f"{PREDICATES_PACKAGE}.", "")
}


def chosen(apply: Apply, chooses: Predicate, negate: bool) -> Apply:
    """The transform for the records that the predicate chooses; others pass as they are."""
    return lambda record: apply(record) if chooses(record) != negate else record


def _drop(values: Values, side: Side) -> Apply:
    return lambda record: None


FILTER = Declared("Filter", "Drops every record: use it with a predicate.", (), _drop)
