"""Rows that transforms leave of envelopes, a column of many at a time.

In: changes that are no deletes, and an ``Unwrapping``. Out: the bytes of their keys and rows, equal byte for byte to
what the transform makes of each envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from connector.changes import Change, ColumnPlace, LogLayout, Row
from connector.config import OutputConfig
from connector.formats.columns import Columns, names_of
from connector.formats.json_columns import JsonColumns
from connector.formats.output_formats import record_format
from connector.formats.plan import source_of, source_times
from connector.formats.record_format import Columnwise
from connector.formats.schemas import SNAPSHOT, source_schema
from smt import FieldReference, Unwrapping

#: From a change and the time now in nanoseconds to what a field of its envelope has.
Copied = Callable[[Change, int], Any]
_TIMES = ("ts_ms", "ts_us", "ts_ns")


def unwrapped(
    layout: LogLayout, options: OutputConfig, keys: Columns, values: Columns, unwrapping: Unwrapping
) -> Columnwise | None:
    """The callable for a table, or None where copied is what few copy, or added are headers."""
    copies = [copied(layout, options, reference) for reference in unwrapping.added]
    if None in copies or unwrapping.headers:
        return None
    bare, omits = unwrapping.cells["after"], unwrapping.omits
    # In cells it can be seen who was written.
    after = record_format(options.format).rows(layout, options, values, frozenset() if omits else bare)
    row_of, columns = after.row, after.columns
    key_columns = [keys.column(place, in_cell=False) for place in after.key_places]
    key_join = keys.join(names_of(after.key_places), optional=False)
    schemas = {field["field"]: field for field in unwrapping.schema["fields"]}
    more: list[tuple[str, Copied]] = []
    if (marked := unwrapping.marked) is not None:
        more.append((marked, lambda change, now: "false"))
    more += [(reference.name, copy) for reference, copy in zip(unwrapping.added, copies, strict=True) if copy]
    added = [(values.written(schemas[name]), copy) for name, copy in more]
    names = [*names_of(after.places), *(name for name, _ in more)]
    if not omits:
        join = values.join(names, unwrapping.schema["optional"])
    elif isinstance(values, JsonColumns):
        join = values.join_written(names, frozenset((*names_of(after.key_places), *names[len(after.places) :])), bare)
    else:
        return None
    of_key = _key_alone(layout, after.key_places)

    def records(changes: Sequence[Change], now: int) -> list[tuple[bytes, bytes]]:
        rows = [change.row for change in changes]
        # Of a change without an image there is the key.
        shown = [of_key(row) if (image := row_of(it)) is None else image for it, row in zip(changes, rows, strict=True)]
        # Nobody sees what was before. It is read all the same: a change with a cell that cannot be is no record.
        unseen = [row for row in map(after.before, changes) if row is not None]
        for column in after.before_columns if unseen else ():
            column(unseen)
        fields = [column(shown) for column in columns]
        fields += [write([copy(change, now) for change in changes]) for write, copy in added]
        made = key_join([column(rows) for column in key_columns], len(rows))
        return list(zip(keys.framed(made), values.framed(join(fields, len(rows))), strict=True))

    return records


def copied(layout: LogLayout, options: OutputConfig, reference: FieldReference) -> Copied | None:
    """What makes the copy of a field of the envelope; None of those that nobody is told to copy."""
    field = reference.field
    if reference.struct == "source" and any(it["field"] == field for it in source_schema(options.metadata)["fields"]):
        if field in _TIMES:
            at = _TIMES.index(field)
            return lambda change, now: source_times(change)[at]
        source = source_of(layout, options)
        if field == "snapshot":
            # A default that stands where nobody has set anything is not copied.
            return lambda change, now: None if change.snapshot == SNAPSHOT["default"] else change.snapshot
        return lambda change, now: source(change)[field]
    if reference.struct in (None, "source") and field == "op":
        return lambda change, now: change.kind
    if reference.struct in (None, "source") and field == "ts_ms":
        return lambda change, now: now // 1_000_000
    return None


def _key_alone(layout: LogLayout, places: Sequence[ColumnPlace]) -> Callable[[Row], Row]:
    keys = frozenset(place.value for place in places)
    return lambda row: tuple(cell if at in keys else None for at, cell in enumerate(row))
