"""What a transform makes of every envelope of one schema, said without a record: for whoever makes them at once.

In: the options of a transform, the schema of an envelope. Out: an ``Unwrapping``; none where what becomes of a record
cannot be told from its schema alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smt.envelope import DELETED
from smt.flatten import flattened
from smt.options import DeleteMode, ExtractOptions, FieldReference, FlattenOptions
from smt.record import Schema
from smt.schemas import is_envelope
from smt.typed import TypedRows


@dataclass(frozen=True, slots=True)
class Unwrapping:
    """``schema`` is that of values. ``cells``: of each image the columns that lose their cell.

    ``rows``: the image alone is left of an envelope, with what is ``added``: names, and what of the envelope they show.
    Then ``deletes`` says what becomes of deletes, whose rows have ``deleted_schema``, and ``marked`` is the name of the
    field that tells them from others. ``omits``: columns that nobody wrote are left out. ``headers`` are added as
    fields are; of tombstones, those that ``of_tombstones`` has: they all say that it is a delete.
    """

    schema: Schema
    cells: dict[str, frozenset[str]]
    rows: bool = False
    deleted_schema: Schema | None = None
    deletes: DeleteMode = "drop"
    keeps_tombstones: bool = True
    marked: str | None = None
    added: tuple[FieldReference, ...] = ()
    omits: bool = False
    headers: tuple[FieldReference, ...] = ()
    of_tombstones: tuple[FieldReference, ...] = ()


Unwraps = Callable[[Schema], Unwrapping | None]


def unwraps_rows(options: ExtractOptions) -> Unwraps | None:
    """Of ``ScyllaExtractNewRecordState`` and its kin."""
    if options.strict or options.route_by_field or options.drop_fields_header:
        return None

    def unwrapping(schema: Schema) -> Unwrapping | None:
        # What values are written without is the configuration's business, which has looked at it.
        plan = TypedRows(options, schemaless_output=True).plan(schema)
        if not plan.envelope or plan.after.taken or plan.before.taken:
            return None
        if plan.after.schema is None or plan.before.schema is None:
            return None
        return Unwrapping(
            schema=plan.after.schema,
            cells={"after": plan.after.cells, "before": plan.before.cells},
            rows=True,
            deleted_schema=plan.before.schema,
            deletes=options.deletes,
            keeps_tombstones=options.tombstones == "keep",
            marked=DELETED if options.deletes == "rewrite" else None,
            added=tuple(reference for reference, _ in plan.added),
            omits=options.omit_untouched,
            headers=tuple(reference for reference, _ in plan.headers),
            of_tombstones=tuple(reference for reference in options.add_headers if reference.field == "op"),
        )

    return unwrapping


def unwraps_cells(options: FlattenOptions) -> Unwraps | None:
    """Of ``ScyllaFlattenColumns``."""
    if options.strict:
        return None

    def unwrapping(schema: Schema) -> Unwrapping | None:
        return Unwrapping(*flattened(schema, strict=False)) if is_envelope(schema) else None

    return unwrapping
