"""What is noted about a landed table beside its rows: enough to write its view, and to go on, without Kafka.

In: notes of commits, as JSON. Out: what they say; ``LandingError`` where something else wrote them. What is taken can
be used: nobody looks at it a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connector.errors import LandingError
from spark_jobs.model import Layout, TableDefinition, parse_definition, shape

Offsets = dict[tuple[str, int], int]
FORM = 1
"""How identities of keys are made. Since 1, fields of tuples and user types that are null at the end do not count."""


@dataclass(frozen=True)
class Known:
    """What was noted about a table when it was last prepared: enough to write its view without Kafka."""

    definitions: tuple[TableDefinition, ...]
    declared: Mapping[str, str] = field(default_factory=dict)
    buckets: int = 4
    not_before: int | None = None
    sequence: int = 0
    backfilled: tuple[str, ...] | None = None
    """The columns that a backfill left out; None if there never was one."""
    history: bool = False
    incomplete: str | None = None
    """What it lacks of its source; None if nothing is known to be missing."""
    rebuilding: bool = False
    """It was emptied, and what its topics lack is not yet read from the source."""
    form: int = FORM
    filled_to: int | None = None
    """The token up to which an unfinished backfill has read the source."""
    covered: Offsets | None = None
    """The topics' ends when the first backfill began: what they held is in what it has read. None where nobody knew
    them."""
    source: TableDefinition | None = None
    """What the source has by now, where the table keeps the columns of its first landing; one of the definitions."""
    keyed: tuple[str, ...] = ()
    """Versions whose records have no values, as far as it was noted for them that something is missing, where the table
    keeps its columns: those that it cannot show are no definitions of it."""
    lineage: int = 0
    """Counts how often the state began anew: what was published of another lineage says nothing about this one."""
    topic_ids: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of the topics that were landed from: one that is created again has another. Empty for earlier versions."""
    expiring: bool = False
    """Whether anything in it has a TTL. Not noted: the columns of the state say it."""

    @property
    def without_values(self) -> int:
        """How many versions are known whose records have none."""
        return len({*self.keyed, *(each.text for each in self.definitions if each.lacks_values)})

    def layout(self) -> Layout:
        made = shape(self.definitions, self.declared, self.buckets, self.not_before, self.source)
        made = replace(made, history=self.history)
        return made.with_ends() if self.expiring else made

    def note(self) -> str:
        return json.dumps(
            {
                "definitions": [definition.text for definition in self.definitions],
                "declared": dict(self.declared),
                "buckets": self.buckets,
                "not_before": self.not_before,
                "backfilled": self.backfilled,
                "history": self.history,
                "incomplete": self.incomplete,
                "rebuilding": self.rebuilding,
                "filled_to": self.filled_to,
                "covered": None if self.covered is None else noted_offsets(self.covered),
                "form": self.form,
                "source": None if self.source is None else self.source.text,
                "keyed": list(self.keyed),
                "lineage": self.lineage,
                "topic_ids": dict(self.topic_ids),
            }
        )


def together(
    noted: Known | None, versions: Sequence[TableDefinition], current: TableDefinition
) -> tuple[TableDefinition, ...]:
    """All known versions. The warehouse may know some that compaction has removed from the topic. Each stands where it
    was seen first, since the names of columns in the warehouse follow from that, and the current one comes last."""
    first = {version.text: version for version in (*(noted.definitions if noted else ()), *versions)}
    known = tuple(first.values())
    return known if known[-1].text == current.text else (*known, current)


def _is_text(value: Any) -> bool:
    """A lone surrogate can be in JSON, and nowhere else."""
    return isinstance(value, str) and value == value.encode(errors="replace").decode()


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_pairs(value: Any) -> bool:
    return isinstance(value, dict) and _are_texts([*value.keys(), *value.values()])


#: What each member of a note can be.
_MEMBERS: dict[str, Callable[[Any], bool]] = {
    "definitions": lambda value: isinstance(value, list) and bool(value),
    "declared": _are_pairs,
    "buckets": lambda value: _is_number(value) and value > 0,
    "not_before": lambda value: value is None or type(value) is int,
    "backfilled": lambda value: value is None or _are_texts(value),
    "history": lambda value: isinstance(value, bool),
    "incomplete": lambda value: value is None or _is_text(value),
    "rebuilding": lambda value: isinstance(value, bool),
    "filled_to": lambda value: value is None or type(value) is int,
    "covered": lambda value: value is None or offsets_in(value) is not None,
    "form": _is_number,
    "source": lambda value: value is None or _is_text(value),
    "keyed": _are_texts,
    "lineage": _is_number,
    "topic_ids": _are_pairs,
}
_OPTIONAL = ("history", "incomplete", "rebuilding", "filled_to", "form", "lineage", "topic_ids")


def known_in(note: str, sequence: int) -> Known:
    """What a commit's note says; ``LandingError`` where something else wrote it."""
    try:
        parsed = {"form": 0, **json.loads(note)}
        for name, fits in _MEMBERS.items():
            if name in parsed and not fits(parsed[name]):
                raise TypeError(f"{name} is {parsed[name]!r}")
        backfilled, source = parsed.get("backfilled"), parsed.get("source")
        covered = parsed.get("covered")
        return Known(
            definitions=tuple(parse_definition(text) for text in parsed["definitions"]),
            declared=parsed["declared"],
            buckets=parsed["buckets"],
            not_before=parsed["not_before"],
            sequence=sequence,
            backfilled=None if backfilled is None else tuple(backfilled),
            source=None if source is None else parse_definition(source),
            keyed=tuple(parsed.get("keyed", ())),
            covered=None if covered is None else offsets_in(covered),
            **{name: parsed[name] for name in _OPTIONAL if name in parsed},
        )
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise LandingError(
            f"a note of the landed table, version {sequence}, cannot be read ({error!r}): something else wrote it; "
            "`scylla-cdc land --rebuild` lands the table anew"
        ) from error


def noted_offsets(offsets: Offsets) -> list[list[Any]]:
    """Offsets as notes have them."""
    return [[*place, offset] for place, offset in sorted(offsets.items())]


def offsets_in(noted: Any) -> Offsets:
    """What `noted_offsets` made; ``TypeError`` or ``ValueError`` where it did not."""
    found = {(topic, number): offset for topic, number, offset in noted}
    if not all(_is_text(topic) and _is_number(part) and _is_number(at) for (topic, part), at in found.items()):
        raise ValueError("they are not topics, partitions and offsets")
    return found


def positions_in(noted: str) -> Offsets:
    """The positions beside a mark, as `State` writes them."""
    try:
        return offsets_in(json.loads(noted))
    except (RecursionError, TypeError, ValueError) as error:
        raise LandingError(
            f"the positions beside the landed table's mark cannot be read ({error!r}): something else wrote them; "
            "`scylla-cdc land --rebuild` lands the table anew"
        ) from error
