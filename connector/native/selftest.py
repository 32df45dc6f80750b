"""Whether the kernel makes what the plain way makes, byte for byte: asked whenever it is loaded.

In: a kernel, output options, seeds. Out: how much of it the kernel made, or ``Difference`` with the first record that
differs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, groupby

from connector.changes import (
    Batch,
    BatchAssembler,
    UncutBatches,
    UncutPartitions,
    WholeBatches,
    WriteTimes,
    changes_of,
    straight_layout,
    whole_rows,
)
from connector.config import OutputConfig
from connector.errors import PoisonRow
from connector.formats import Encoder, Record
from connector.native.blocks import BlockEncoder
from connector.native.library import Kernel
from connector.native.samples import SELECTED_AT, Samples, page_of

_NOW = 1_765_000_000_123_456_789
_BATCHES = 24
_NO_LIMIT = 1 << 30


class Difference(Exception):
    """Of a record between both ways."""


class _Ids:
    """A registry in memory."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def id_for(self, subject: str, schema_json: str) -> int:
        return self._numbers.setdefault((subject, schema_json), len(self._numbers) + 7)


def compare(kernel: Kernel, options: OutputConfig, seeds: Iterable[int], batches: int = _BATCHES) -> Counter[str]:
    """Both ways on the samples of each seed: numbers of records made by the kernel, of batches and tables refused."""
    avro = "avro" in (options.key_converter.kind, options.value_converter.kind)
    counted: Counter[str] = Counter()
    for seed in seeds:
        ids = _Ids()
        plain = Encoder(options, ids, ids, clock=lambda: _NOW)
        _compare(
            plain,
            BlockEncoder(kernel, plain, lambda: _NOW, logging.DEBUG),
            kernel,
            Samples(seed, avro),
            batches,
            counted,
        )
    return counted


def _compare(
    plain: Encoder, blocks: BlockEncoder, kernel: Kernel, samples: Samples, batches: int, counted: Counter[str]
) -> None:
    layout, rows = samples.layout, samples.page(batches)
    uncut = kernel.scan(page_of(rows), 0, layout.columns, len(rows), lambda: rows)
    if uncut is None:
        raise Difference("a page is not taken for one")
    expected = BatchAssembler().feed(layout, rows)
    found = UncutBatches(layout, uncut)
    if [batch.rows for batch in found] != [batch.rows for batch in expected] or uncut.complete != len(rows):
        raise Difference("batches begin or end elsewhere")
    _compare_batches(plain, blocks, found, expected, counted)
    if blocks.plan(layout) is None:
        counted["tables"] += 1
    _compare_snapshot(plain, blocks, kernel, samples, batches, counted)


def _compare_snapshot(
    plain: Encoder, blocks: BlockEncoder, kernel: Kernel, samples: Samples, partitions: int, counted: Counter[str]
) -> None:
    """Rows of the same table as a snapshot shows them."""
    description, counted_here = samples.layout.description, Counter[str]()
    shape, asked_for = whole_rows(description, plain.options.metadata), len(description.columns) % 2 == 0
    layout = straight_layout(description, asked_for, bool(shape.timed))
    drawn = chain.from_iterable(samples.partition(shape) for _ in range(partitions))
    rows = [list(partition) for _, partition in groupby(drawn, lambda row: row[: shape.width])]
    place = bytes(16), samples.time()
    expected = [
        Batch(shape.layout, *place, list(shape.of_partition(each, asked_for=asked_for, at_s=SELECTED_AT)))
        for each in rows
    ]
    ways = [WholeBatches(layout, shape, place, asked_for, rows, at_s=SELECTED_AT)]
    if shape.flags_of_all is not None:
        pages = [page_of(each) for each in rows]
        count = sum(map(len, rows))
        uncut = kernel.scan_selected(b"".join(pages), 0, len(shape.columns), count, 0)
        if uncut is None:
            raise Difference("rows of a table are not taken for rows")
        kept = UncutPartitions.of(kernel, [uncut], len(shape.columns), shape.width)
        ways.append(WholeBatches.as_selected(layout, shape, place, asked_for, kept.left()))
    for found in ways:
        _compare_whole(plain, blocks, found, expected, counted_here)
    counted["rows of snapshots"] += counted_here["records"]
    counted["refused rows of snapshots"] += counted_here["refused"]


def _compare_whole(
    plain: Encoder, blocks: BlockEncoder, found: WholeBatches, expected: Sequence[Batch], counted: Counter[str]
) -> None:
    if found.counts != [len(batch.rows) for batch in expected]:
        raise Difference("rows of a snapshot are not as many")
    if [batch.rows for batch in found] != [batch.rows for batch in expected]:
        raise Difference("rows of a snapshot are not those that were selected")
    _compare_batches(plain, blocks, found, expected, counted)


def _compare_batches(
    plain: Encoder, blocks: BlockEncoder, found: UncutBatches, expected: Sequence[Batch], counted: Counter[str]
) -> None:
    at = 0
    while at < len(found):
        block = blocks.encode(found[at:], _NO_LIMIT, _NO_LIMIT)
        if block is None:
            # What is refused is the plain way's, whatever it makes of it.
            counted["refused"] += 1
            at += 1
            continue
        begun = 0
        for number, end in enumerate(block.ends):
            batch = expected[at + number]
            made: list[Record] = []
            try:
                for change in changes_of(batch):
                    made += plain.encode(change)
            except PoisonRow as error:
                raise Difference(f"the plain way refuses a batch: {error}") from None
            if block[begun:end] != made or block.times.each[number] != batch.timestamp_us:
                raise Difference(f"{block[begun:end]} instead of {made}")
            counted["records"] += end - begun
            begun = end
        if block.times != WriteTimes.of(block.times.each):
            raise Difference(f"{block.times} do not sum up what they hold")
        at += len(block.ends)
