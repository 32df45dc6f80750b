"""Key columns that are stored in another way since the source has changed their types: which, and whether that can be.

In: the layout of before and the new one. Out: pairs of keys. Their landed values, and the bounds of ranges, must be had
as the new type has them; ``stream`` moves them.
"""

from __future__ import annotations

from connector.values import NativeType
from spark_jobs.model.landed_types import adapted
from spark_jobs.model.layout import Key, Layout

WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
TEXTS = ("ascii", "text")


def moved(before: Layout, after: Layout) -> list[tuple[Key, Key]]:
    """The key columns that are not found any more where they were."""
    pairs = zip(before.keys, after.keys)
    return [(old, new) for old, new in pairs if old.place not in [place.place for place in (new, *new.follows)]]


def immovable(before: Layout, after: Layout) -> tuple[Key, Key] | None:
    """A key column whose landed values cannot be had as the new type has them; None if all can."""
    for old, new in moved(before, after):
        blob = isinstance(new.type, NativeType) and new.type.name == "blob"
        known = isinstance(old.type, NativeType) if blob else adapted(old.type, new.type, "x") is not None
        if not known or (old.clustering and not _bounds_move(old, new)):
            return old, new
    return None


def same_order(old: Key, new: Key) -> bool:
    """Whether a range's bound is what it was."""
    return (old.identity_kind, old.order_type) == (new.identity_kind, new.order_type)


def _bounds_move(old: Key, new: Key) -> bool:
    if same_order(old, new):
        return True
    if not (isinstance(old.type, NativeType) and isinstance(new.type, NativeType)):
        return False
    was, became = old.type.name, new.type.name
    return (was in WHOLE_NUMBERS and became in (*WHOLE_NUMBERS, "varint")) or (was in TEXTS and became == "blob")
