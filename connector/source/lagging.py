"""Nodes learn of a change of a table one after the other: what one says of it may be older than what another one said.

In: descriptions, pages. Out: what the older one lacks, in a few words; None where it is not older. A coordinator that
lags gives the rows of all replicas by the columns that it knows, and leaves out without a word what it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connector.changes import DELETED, TableDescription, user_types_in
from connector.errors import RetriableSourceError
from connector.source.descriptions import DescribedTable
from connector.source.failures import bracketed
from connector.source.pages import RawPage
from connector.timeuuid import made_ticks
from connector.values import native


class OlderSchema(RetriableSourceError):
    """A node answers by an older schema than another one has shown: its pages lack values."""

    def __init__(self, table: object, lacks: str, node: Any) -> None:
        super().__init__(f"{named(node)} answers by an older schema, which has {lacks} in {table}")
        self.node = node


class OtherSchema(RetriableSourceError):
    """A node shows rows of a table by another schema than the description has: it is behind it, or ahead."""

    def __init__(self, table: object, shows: str, node: Any) -> None:
        super().__init__(f"{named(node)} answers by another schema, which has {shows} in {table}")
        self.node = node


def named(node: Any) -> str:
    """A node, for people."""
    return "a node" if node is None else bracketed(str(node.endpoint))


def lacking(described: DescribedTable, page: RawPage) -> str | None:
    """What a page of the log would have, were its node's schema as new as the description."""
    there = set(page.columns)
    missing = [name for name, _ in described.log_columns if name not in there]
    if missing:
        # Where a column of the table is missing, so are the flags of it.
        return _no_columns([name for name in missing if not name.startswith(DELETED)] or missing)
    return _shown_otherwise(described.description, described.log_columns, page)


def require_shown(description: TableDescription, page: RawPage) -> None:
    """Raises OtherSchema where a page of the table itself is not as the description has it. (Of a column that its node
    does not know there is no page.)"""
    shows = _shown_otherwise(description, [(each.name, each.type.cql()) for each in description.columns], page)
    if shows is not None:
        raise OtherSchema(description.full_name, shows, page.node)


def _shown_otherwise(description: TableDescription, columns: Iterable[tuple[str, str]], page: RawPage) -> str | None:
    known = {used.name: len(used.fields) for used in description.user_types}
    return _fewer_fields(dict(_fields_in(page.types)), known) or _other_types(dict(columns), page)


def older(found: TableDescription, known: TableDescription) -> str | None:
    """What shows that a description is older than one that another node has given, or the same node before. Columns
    that go leave the time of their end behind, and fields of types never go."""
    if found.table_id != known.table_id:
        made, since = made_ticks(found.table_id), made_ticks(known.table_id)
        was_before = made is not None and since is not None and made < since
        return "a table of that name that was dropped" if was_before else None
    # A column of the key goes only by getting another name, and leaves the time of that in the log.
    if found.keys_lost_us < known.keys_lost_us:
        return "the key from before a column of it was renamed"
    ended, ended_before = _ends(found), _ends(known)
    for column in known.columns:
        name = column.name
        if name not in found.by_name and not column.is_key and ended.get(name, -1) <= ended_before.get(name, -1):
            return _no_columns([name])
    for dropped in known.dropped:
        # Of a type that is gone as well nobody hears any more.
        if ended.get(dropped.name, -1) < dropped.dropped_us and not any(user_types_in(dropped.type)):
            return f"column {dropped.name} from before it was dropped"
    fields = {used.name: len(used.fields) for used in found.user_types}
    return _fewer_fields(fields, {used.name: len(used.fields) for used in known.user_types})


def _no_columns(names: Iterable[str]) -> str:
    return f"no column {', '.join(names)}"


def _fewer_fields(found: Mapping[str, int], known: Mapping[str, int]) -> str | None:
    for name, count in known.items():
        if found.get(name, count) < count:
            return f"{found[name]} of the {count} fields of type {name}"
    return None


def _other_types(wanted: Mapping[str, str], page: RawPage) -> str | None:
    """A column that was dropped and added again may have another type: by the former one its values are null, or what
    others take for something else. Judged where both are types without parts, whose spelling leaves no doubt."""
    for name, kind in zip(page.columns, page.types, strict=True):
        new, old = _native(wanted.get(name, "")), _native(kind.cql_parameterized_type())
        if new and old and new != old:
            return f"column {name} of type {old}"
    return None


def _native(spelled: str) -> str | None:
    try:
        return native(spelled).name
    except ValueError:
        return None


def _fields_in(types: Iterable[Any]) -> Iterable[tuple[str, int]]:
    """How many fields the user types have that the driver's types are, or hold."""
    for kind in types:
        if names := getattr(kind, "fieldnames", None):
            yield kind.typename, len(names)
        yield from _fields_in(kind.subtypes)


def _ends(description: TableDescription) -> dict[str, int]:
    return {dropped.name: dropped.dropped_us for dropped in description.dropped}
