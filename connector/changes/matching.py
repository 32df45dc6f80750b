"""The changes of a batch: delta rows with the images of their rows.

In: a complete ``Batch``. Out: its ``Change``s in order. Images are matched by primary key, never by
adjacency: ScyllaDB logs all pre-images of a group first, then the deltas, then the post-images. Image rows
make no change of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from connector.changes.batch import Batch, Row
from connector.changes.change import WHOLE_ROW, WHOLE_ROW_ASKED_FOR, Change, ChangeKind, poison
from connector.changes.lost_keys import require_key

PRE_IMAGE: Final = b"\x00"
POST_IMAGE: Final = b"\x09"
_ROW_OPERATIONS: Final[dict[bytes | None, tuple[ChangeKind, int]]] = {
    b"\x01": ("u", 1),
    b"\x02": ("c", 2),
    b"\x03": ("d", 3),
    # What ScyllaDB itself deletes when a row's time to live ends.
    b"\xfd": ("d", -3),
    WHOLE_ROW: ("r", 9),
    WHOLE_ROW_ASKED_FOR: ("r", 9),
}
_PARTITION_DELETES: Final = {b"\x04": 4, b"\xfc": -4}
_RANGE_STARTS: Final = {b"\x05": 5, b"\x06": 6}
_RANGE_ENDS: Final = (b"\x07", b"\x08")


def changes_of(batch: Batch) -> list[Change]:
    """All changes of a batch. ``PoisonRow``: an operation code is not known, or a row does not tell its key."""
    layout = batch.layout
    operation_at = layout.operation
    rows = batch.rows
    if len(rows) == 1:
        row = rows[0]
        found = _ROW_OPERATIONS.get(row[operation_at])
        if found is not None:
            for at in layout.key_at:
                if row[at] is None:
                    require_key(batch, row)
                    break
            return [Change(batch, found[0], found[1], row)]
    changes: list[Change] = []
    before: dict[Any, Row] = {}
    after: dict[Any, Row] = {}
    start: Row | None = None
    key_of = layout.key_of
    for row in rows:
        operation = row[operation_at]
        for at in layout.key_at:
            if row[at] is None:
                require_key(batch, row)
                break
        if start is not None and operation not in _RANGE_ENDS:
            raise poison(batch, start, "a range delete has a start and no end")
        found = _ROW_OPERATIONS.get(operation)
        if found is not None:
            changes.append(Change(batch, found[0], found[1], row))
        elif operation == PRE_IMAGE:
            before[key_of(row)] = row
        elif operation == POST_IMAGE:
            after[key_of(row)] = row
        elif operation in _PARTITION_DELETES:
            # Without clustering columns a partition is one row.
            kind: ChangeKind = "partition" if layout.clustering_key else "d"
            changes.append(Change(batch, kind, _PARTITION_DELETES[operation], row))
        elif operation in _RANGE_STARTS:
            start = row
        elif operation in _RANGE_ENDS and start is not None:
            code = _RANGE_STARTS[start[operation_at]]  # type: ignore[index]
            changes.append(Change(batch, "range", code, start, end=row))
            start = None
        elif operation in _RANGE_ENDS:
            raise poison(batch, row, "a range delete has an end and no start")
        else:
            raise poison(batch, row, f"unknown cdc$operation {_code(operation)}")
    if start is not None:
        raise poison(batch, start, "a range delete has a start and no end")
    if before or after:
        _give_images(changes, before, after, key_of)
    return changes


def _give_images(
    changes: Iterable[Change], before: Mapping[Any, Row], after: Mapping[Any, Row], key_of: Callable[[Row], Any]
) -> None:
    seen: set[Any] = set()
    for change in changes:
        if change.kind not in ("c", "u", "d"):
            continue
        key = key_of(change.row)
        change.follows_another = key in seen
        seen.add(key)
        change.before = before.get(key)
        if change.kind != "d":
            change.after = after.get(key)


def _code(operation: bytes | None) -> str:
    if operation is None:
        return "null"
    return str(struct.unpack(">b", operation)[0]) if len(operation) == 1 else operation.hex()
