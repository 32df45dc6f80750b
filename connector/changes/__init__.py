"""From log rows to changes: table descriptions, layouts of pages, batches, changes.

In: raw log rows (tuples of cells in the page's column order) and a ``TableDescription``. Out: complete
``Batch``es from ``BatchAssembler`` and their ``Change``s from ``changes_of``. Pure; knows no JSON, Avro or
Kafka.

Who calls what: the source builds ``TableDescription``s; the worker (and the ``read`` command) asks
``layout_of`` for each page's layout, feeds its rows to ``BatchAssembler.feed``, ends a window with
``BatchAssembler.finish``, and turns each batch into changes with ``changes_of``.
"""

from connector.changes.assembler import BatchAssembler
from connector.changes.batch import Batch, Row
from connector.changes.change import UNTOUCHED, Change, CollectionDelta, Untouched
from connector.changes.description import CdcOptions, Column, DroppedColumn, TableDescription
from connector.changes.layout import LogLayout, layout_of
from connector.changes.matching import changes_of

__all__ = [
    "UNTOUCHED",
    "Batch",
    "BatchAssembler",
    "CdcOptions",
    "Change",
    "CollectionDelta",
    "Column",
    "DroppedColumn",
    "LogLayout",
    "Row",
    "TableDescription",
    "Untouched",
    "changes_of",
    "layout_of",
]
