"""Why a record cannot be landed, as SQL over its parsed row.

In: a ``Layout``; rows with the changelog's columns, and what the parser said: ``broken``, ``unknown``, ``has_row``,
``out_of_range``. Out: an expression of ``DeadReason``.
"""

from __future__ import annotations

from spark_jobs.model import (
    PARTITION,
    ROW,
    DeadReason,
    Layout,
    order_is_stored,
    quoted,
    reason_sql,
    tie_is_stored,
)


def reason_of(layout: Layout) -> str:
    """The first reason that is true of a record, in a row of which nothing is left out; null if it can be landed."""
    no_key = " OR ".join(f"{quoted(key.value)} IS NULL" for key in layout.partition)
    for key in layout.clustering:
        no_key += f" OR (kind = {ROW} AND {quoted(key.value)} IS NULL)"
    if layout.clustering and not any(column.kind == "static" for column, _ in layout.recorded):
        no_key += f" OR (kind = {PARTITION} AND op IN ('c', 'u'))"
    known_op = "op IN ('c', 'u', 'd')"
    if layout.clustering:
        known_op = f"({known_op} OR (op = 'r' AND start_bound IS NOT NULL))"
    whole = reason_sql(
        (f"op IS NULL OR NOT {known_op}", DeadReason.BAD_OP),
        ("ts IS NULL", DeadReason.NO_TS),
        ("NOT has_row", DeadReason.NO_ROW),
        (no_key, DeadReason.NO_KEY),
        (" OR ".join(_malformed(layout)), DeadReason.CORRUPT),
        ("unknown", DeadReason.UNKNOWN_FIELD),
        ("out_of_range", DeadReason.OUT_OF_RANGE),
    )
    return f"coalesce(broken, {whole})"


def _malformed(layout: Layout) -> list[str]:
    """Conditions that find values whose text is none of their type: no key could be made of them, or no bound."""
    found = ["false"]
    for key in layout.keys:
        if key.identity != key.value:
            found.append(f"({quoted(key.value)} IS NOT NULL AND {quoted(key.identity)} IS NULL)")
    written = [stored for _, stored in layout.recorded]
    written += [part for kept in written if kept.role == "fields" for _, part in layout.field_cells(kept)]
    for stored in written:
        if stored.role == "cell" and stored.tie:
            cell = quoted(stored.value)
            found.append(f"({cell}.v IS NOT NULL AND {cell}.x IS NULL)")
        elif stored.role == "elements":
            wrong = ["e.k IS NULL"]
            if order_is_stored(stored.element_key):
                wrong.append("e.b IS NULL")
            if stored.element_value is not None and tie_is_stored(stored.element_value):
                wrong.append("(e.v IS NOT NULL AND e.x IS NULL)")
            found.append(f"coalesce(exists({quoted(stored.elements)}.e, e -> {' OR '.join(wrong)}), false)")
    for bound in ("start_bound", "end_bound") if layout.clustering else ():
        count = len(layout.clustering)
        found.append(
            f"({bound} IS NOT NULL AND NOT coalesce({bound}.l BETWEEN 0 AND {count} AND {bound}.i IS NOT NULL, false))"
        )
        for index, key in enumerate(layout.clustering):
            part = f"{bound}.o.o{index}" + (".v" if key.order_type.startswith("struct") else "")
            found.append(f"coalesce({bound}.l > {index} AND {part} IS NULL, false)")
    return found
