"""From log rows to changes: table descriptions, layouts of pages, batches, changes.

In: raw log rows (tuples of cells in the page's column order) and a ``TableDescription``. Out: complete
``Batch``es from ``BatchAssembler`` and their ``Change``s from ``changes_of``. Pure; knows no JSON, Avro or
Kafka.

Who calls what: the source builds ``TableDescription``s; the worker (and the ``read`` command) asks
``layout_of`` for each page's layout, feeds its rows to ``BatchAssembler.feed``, ends a window with
``BatchAssembler.finish``, and turns each batch into changes with ``changes_of``.
"""

from __future__ import annotations

from connector.changes.assembler import BatchAssembler
from connector.changes.batch import Batch, Row
from connector.changes.change import (
    ENDS,
    TRUE,
    UNTOUCHED,
    WRITTEN,
    Change,
    ChangeKind,
    CollectionDelta,
    Untouched,
    bound_places,
    field_name,
    poison,
)
from connector.changes.description import (
    CdcOptions,
    Column,
    ColumnKind,
    ColumnOrder,
    DroppedColumn,
    TableDescription,
    content_hash,
    user_types_in,
)
from connector.changes.layout import DELETED, ColumnPlace, LogLayout, deleted_elements_type, layout_of
from connector.changes.matching import changes_of
from connector.changes.row_fold import Doubtful, FoldedPartition, brought_to
from connector.changes.uncut import Scanner, UncutBatches, UncutRows, newest_of
from connector.changes.uncut_partitions import BYTES_OF_AN_UNCUT_ROW, Left, UncutPartitions
from connector.changes.whole_batches import WholeBatches
from connector.changes.whole_rows import WholeRows, straight_layout, whole_rows
from connector.changes.write_times import WriteTimes

__all__ = [
    "BYTES_OF_AN_UNCUT_ROW",
    "DELETED",
    "ENDS",
    "TRUE",
    "UNTOUCHED",
    "WRITTEN",
    "Batch",
    "BatchAssembler",
    "CdcOptions",
    "Change",
    "ChangeKind",
    "CollectionDelta",
    "Column",
    "ColumnKind",
    "ColumnOrder",
    "ColumnPlace",
    "Doubtful",
    "DroppedColumn",
    "FoldedPartition",
    "Left",
    "LogLayout",
    "Row",
    "Scanner",
    "TableDescription",
    "UncutBatches",
    "UncutPartitions",
    "UncutRows",
    "Untouched",
    "WholeBatches",
    "WholeRows",
    "WriteTimes",
    "bound_places",
    "brought_to",
    "changes_of",
    "content_hash",
    "deleted_elements_type",
    "field_name",
    "layout_of",
    "newest_of",
    "poison",
    "straight_layout",
    "user_types_in",
    "whole_rows",
]
