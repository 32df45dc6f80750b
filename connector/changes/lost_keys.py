"""Rows of a log that no longer tell whose changes they are: a column of their key has no value.

In: a batch, a row of it with a null in its key. Out: nothing, or ``PoisonRow``. When a column of the key is renamed,
ScyllaDB drops the log's column and adds another one (`create_log_schema` in its cdc/log.cc): rows from before have a
null there, so that different rows would have one key, and a change of a row would look like one of the static row. Not
lost is what was never there: of static rows, whole partitions, open bounds, and some rows of COMPACT STORAGE.
"""

from __future__ import annotations

from typing import Final

from connector.changes.batch import Batch, Row
from connector.changes.change import TRUE, poison
from connector.changes.layout import ColumnPlace

_UPDATE: Final = b"\x01"
_IMAGES: Final = (b"\x00", b"\x09")
#: With one clustering key: inserts, and deletes of one row, by whom ever.
_ROWS: Final = (b"\x02", b"\x03", b"\xfd")
#: Without one: deletes of a whole partition.
_PARTITIONS: Final = (b"\x04", b"\xfc")
_BOUNDS: Final = (b"\x05", b"\x06", b"\x07", b"\x08")
#: Also those that fix nothing: the ends of a partition.
_INCLUSIVE: Final = (b"\x05", b"\x07")
_JUDGED: Final = (_UPDATE, *_IMAGES, *_ROWS, *_PARTITIONS, *_BOUNDS)


def require_key(batch: Batch, row: Row) -> None:
    """Raises ``PoisonRow`` for a row whose key lacks what ScyllaDB would have written."""
    layout = batch.layout
    operation = row[layout.operation]
    # Rows of snapshots are read from the table itself; what is unknown is poison for that reason.
    if operation not in _JUDGED:
        return
    lacks = [place for place in layout.keys if row[place.value or 0] is None]
    if not lacks or (lacks[0].column.kind == "clustering" and _may_lack(batch, row, operation)):
        return
    # Without its partition nobody can tell whether a change ever had a clustering key.
    names = [place.name for place in lacks if place.column.kind == lacks[0].column.kind]
    columns = f"column{'s' if len(names) > 1 else ''} {', '.join(names)}"
    raise poison(
        batch,
        row,
        f"{columns} of the key without a value: ScyllaDB drops those of a key column from the log when the column is "
        "renamed, so that changes which were not read before the RENAME cannot be told apart any more. "
        "Later changes, and the table itself, are not affected. To go on, have them made dead "
        "letters (errors.tolerance=all), then a snapshot of the table for what its rows are now. Before a RENAME, "
        "stop writers for one confidence window, until everything is read",
    )


def _may_lack(batch: Batch, row: Row, operation: bytes | None) -> bool:
    """Whether a row may be without those clustering columns."""
    layout = batch.layout
    description = layout.description
    if operation in _PARTITIONS:
        return True
    cells = [row[place.value or 0] for place in layout.clustering_key]
    fixed = cells.index(None)
    if operation in _ROWS or any(cell is not None for cell in cells[fixed:]):
        return False
    # What is not there may have been dropped from a row of this time.
    is_sure = batch.timestamp_us >= description.keys_lost_us
    if operation in _BOUNDS:
        return is_sure and (fixed > 0 or operation in _INCLUSIVE)
    if fixed:
        return is_sure and description.dense
    if any(_touches(row, place) for place in layout.regular):
        return False
    if operation != _UPDATE or any(_touches(row, place) for place in layout.static):
        return True
    # Of 'delta': 'keys' there is nothing more, nor of a static column that was dropped since.
    return is_sure and bool(layout.static or description.dropped)


def _touches(row: Row, place: ColumnPlace) -> bool:
    """Whether a row says anything of a column."""
    cells = (place.value, place.deleted_elements)
    written = any(at is not None and row[at] is not None for at in cells)
    return written or (place.deleted is not None and row[place.deleted] == TRUE)
