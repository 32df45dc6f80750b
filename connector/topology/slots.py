"""Slots: which partition of the offsets topic, and so which worker, a group of streams belongs to.

A table's name and a token go in, a slot's number comes out. Nothing here depends on the time or on stream
ids, so every worker computes the same.
"""

from __future__ import annotations

from zlib import crc32

from connector.table_name import TableName


def slot_of(table: TableName, range_end: int, slots: int) -> int:
    """The slot of the streams whose range ends at ``range_end``.

    By range and not by id, so that the right child of a split stays with its parent; shifted by the table's
    name, so that many small tables spread.
    """
    return (((range_end + (1 << 63)) * slots >> 64) + crc32(str(table).encode())) % slots


def home_slot(table: TableName, slots: int) -> int:
    """The one slot whose owner decides where a table starts."""
    return crc32(str(table).encode()) % slots
