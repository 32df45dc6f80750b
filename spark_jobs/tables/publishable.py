"""Whether a table can be published, and with a change data feed, as its names are.

In: a definition of the source, and the format that it is published in. Out: what stands in the way, or None.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.model import TableDefinition, user_types_in
from spark_jobs.sinks import TableFormat


def unpublishable(definition: TableDefinition, form: TableFormat) -> str | None:
    """Why others cannot have the table in this format; None if they can."""
    if taken := sorted(definition.names & form.reserved):
        return f"the {form.name} format keeps the names {', '.join(taken)} for its own columns; another sink takes them"
    if found := _alike(definition.names):
        return f"its columns {found} differ by case only, which the table format does not tell apart"
    for column in definition.columns:
        for user_type in user_types_in(column.type):
            if found := _alike(name for name, _ in user_type.fields):
                return (
                    f"the fields {found} of its column {column.name} differ by case only, which the table format does "
                    "not tell apart"
                )
    return None


def without_feed(definition: TableDefinition, form: TableFormat) -> str | None:
    """Why others cannot be told of changes to the published table; None if they are, or the format tells nobody."""
    held = (user_type for column in definition.columns for user_type in user_types_in(column.type))
    return form.feedless([*definition.names, *(name for user_type in held for name, _ in user_type.fields)])


def _alike(names: Iterable[str]) -> str:
    """The first two names that are the same to who does not tell upper from lower case."""
    lower: dict[str, str] = {}
    for name in sorted(names):
        if (other := lower.setdefault(name.lower(), name)) != name:
            return f"{other} and {name}"
    return ""
