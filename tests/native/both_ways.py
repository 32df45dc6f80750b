"""Rows of a log as the kernel takes them, for tests that have them as tuples.

In: rows. Out: batches that nobody has cut; the kernel's records of one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from connector.changes import Batch, LogLayout, Row, UncutBatches
from connector.formats.encoder import Encoder
from connector.formats.record import Record
from connector.native import BlockEncoder, Kernel, NoKernel
from connector.native.samples import page_of
from tests.formats.golden import NOW_NS

PLENTY = 1 << 30


@lru_cache(maxsize=1)
def kernel_if_built() -> Kernel | None:
    try:
        return Kernel()
    except NoKernel:
        return None


def uncut(kernel: Kernel, layout: LogLayout, rows: Sequence[Row], before: bytes = b"") -> UncutBatches:
    """The complete batches of a page of these rows, behind ``before`` in its body."""
    found = kernel.scan(before + page_of(rows), len(before), layout.columns, len(rows), lambda: rows)
    assert found is not None
    return UncutBatches(layout, found)


def by_kernel(encoder: Encoder, batch: Batch) -> list[Record] | None:
    """The kernel's records of a batch, as of the golden cases' time; None if it is not there, or refuses it."""
    kernel = kernel_if_built()
    if kernel is None:
        return None
    batches = uncut(kernel, batch.layout, batch.rows)
    if len(batches) != 1:
        return None
    block = BlockEncoder(kernel, encoder, clock=lambda: NOW_NS).encode(batches, PLENTY, PLENTY)
    return None if block is None else list(block)
