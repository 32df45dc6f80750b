"""Tenure: which consumer group runs a connector. Under two groups every change would be delivered twice.

In: the tenure records of slot 0 in the topic's order, and who is a member of which group. Out: what to look at or write
next, step by step, until the group may go on or another one is in its way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connector.offsets_entry import OffsetsEntry

#: All tenure records are in this slot, whoever has it: one partition gives them one order.
TENURE_SLOT = 0
_MEMBERS = ("group", "term", "id")


@dataclass(frozen=True, slots=True)
class Tenure:
    """One attempt of a process to begin a term for its group. ``id`` is never used again: a compacted topic would put
    a record that is written twice behind those that came in between."""

    group: str
    term: int
    id: str
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class InTheWay:
    """The answer "no": ``group`` runs the connector already, through ``members``."""

    group: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """Answered by all tenures that are not withdrawn, in the topic's order, as of after the question."""


@dataclass(frozen=True, slots=True)
class Write:
    """``entry`` is to be acknowledged by the topic before the next step."""

    tenure: Tenure
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Members:
    """Answered by the present members of ``group``."""

    group: str


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Answered by a group that runs the connector without a record, as versions did that knew none; or None."""


Step = Look | Write | Members | Unrecorded
Steps = Generator[Step, Any, InTheWay | None]


def holder(tenures: Iterable[Tenure]) -> Tenure | None:
    """Of the highest term, the confirmed one, else the first: who was second finds that out when it looks again."""
    found: Tenure | None = None
    for each in tenures:
        if found is None or (each.term, each.confirmed) > (found.term, found.confirmed):
            found = each
    return found


def take(group: str, new_id: str) -> Steps:
    """The steps of a process that has become a member of ``group``, before it uses anything of a slot.

    Whoever writes looks for members of the other group afterwards, and whoever is a member of a group has joined it
    before it looks for records: of two groups at least one sees the other. A member that loses its place later
    commits nothing any more, and takes these steps again when it has a new one.
    """
    tenures: Sequence[Tenure] = yield Look()
    held = holder(tenures)
    if held is not None and held.group == group and held.confirmed:
        return None
    if held is not None and held.group != group:
        members: Sequence[str] = yield Members(held.group)
        if members:
            return InTheWay(held.group, tuple(members))
    mine = Tenure(group, 1 if held is None else held.term + 1, new_id)
    yield Write(mine)
    tenures = yield Look()
    if mine not in tenures:
        # Whoever came later has ended our term already, and removed its record: from the beginning.
        return (yield from take(group, f"{new_id}+"))
    way = yield from _in_the_way(mine, tenures)
    if way is not None:
        yield Write(mine, withdrawn=True)
        return way
    yield Write(Tenure(mine.group, mine.term, mine.id, confirmed=True))
    for each in tenures:
        if each.term < mine.term:
            yield Write(each, withdrawn=True)
    return None


def _in_the_way(mine: Tenure, tenures: Sequence[Tenure]) -> Generator[Step, Any, InTheWay | None]:
    # Colleagues may yet withdraw what they wrote: our own record has to stand against the others by itself.
    held = holder(each for each in tenures if each == mine or each.group != mine.group)
    assert held is not None
    if held.group != mine.group:
        return InTheWay(held.group, tuple((yield Members(held.group))))
    # Those of our own term have lost to us, and find that out. Older ones may have gone on long ago.
    for group in sorted({each.group for each in tenures if each.term < mine.term} - {mine.group}):
        members: Sequence[str] = yield Members(group)
        if members:
            return InTheWay(group, tuple(members))
    if not any(each.confirmed for each in tenures):
        old: InTheWay | None = yield Unrecorded()
        return old
    return None


# -- records ---------------------------------------------------------------------------------------------------


def tenure_entry(tenure: Tenure, by: str, at_ms: int) -> OffsetsEntry:
    """``by`` and ``at_ms`` are for people."""
    key = {"group": tenure.group, "term": tenure.term, "id": tenure.id}
    return OffsetsEntry(TENURE_SLOT, key, {"confirmed": tenure.confirmed, "by": by, "at": at_ms})


def parse_tenure(key: Mapping[str, Any], value: Mapping[str, Any]) -> Tenure | None:
    """None for whatever is no tenure record that we wrote."""
    if tuple(key) != _MEMBERS:
        return None
    group, term, own = (key[member] for member in _MEMBERS)
    if not (isinstance(group, str) and group and type(term) is int and term >= 1 and isinstance(own, str)):
        return None
    return Tenure(group, term, own, value.get("confirmed") is True)
