"""Pages whose rows nobody has cut: the same rows and batches as those that are, and nothing of pages that are none."""

from __future__ import annotations

import random
import struct
import uuid

import pytest

from connector.changes import BatchAssembler, Row
from connector.native import Kernel
from connector.native.samples import Samples, page_of
from tests.formats.rows import STREAM, TIME, Log, table
from tests.native.both_ways import uncut

LOG = Log(table({"pk": "int", "v": "text"}))
OTHER = bytes(reversed(STREAM))


def row(number: int, last: bool, stream: bytes = STREAM, time: int = 0) -> Row:
    return LOG.row(2, number, last, uuid.UUID(int=TIME.int + (time << 64)), stream, pk=number, v="x")


@pytest.mark.parametrize("seed", range(30))
def test_rows_and_batches_are_those_of_the_cut_page(kernel: Kernel, seed: int) -> None:
    samples = Samples(seed)
    rows = samples.page(20)
    batches = uncut(kernel, samples.layout, rows, before=b"metadata")
    expected = BatchAssembler().feed(samples.layout, rows)
    assert [batches.rows[at] for at in range(len(rows))] == rows
    assert [(batch.stream_id, batch.time, batch.rows) for batch in batches] == [
        (batch.stream_id, batch.time, batch.rows) for batch in expected
    ]
    for begin, end in ((0, 20), (3, 4), (5, 17), (18, 20)):
        assert batches[begin:end].newest() == {each.stream_id: each.time for each in expected[begin:end]}


PAGES: dict[str, tuple[list[Row], list[int]]] = {
    "one batch": ([row(0, False), row(1, True)], [0, 2]),
    "without its end": ([row(0, True), row(0, False, time=1)], [0, 1]),
    "a later time ends a batch": ([row(0, False), row(0, False, time=1), row(0, True, time=2)], [0, 1, 2, 3]),
    "another stream does not": ([row(0, False), row(0, True, OTHER)], [0]),
    "nor one with another time": ([row(0, False), row(0, True, OTHER, 1)], [0]),
    "streams by turns": ([row(0, True), row(0, True, OTHER), row(0, True, time=1)], [0, 1, 2, 3]),
    "one time twice": ([row(0, True), row(0, True)], [0, 1, 2]),
    "no stream": ([row(0, True), (None, *row(0, True)[1:]), row(0, True)], [0, 1]),
    "a broken time": ([(STREAM, b"123", *row(0, True)[2:])], [0]),
}


@pytest.mark.parametrize("name", PAGES)
def test_what_is_not_clearly_a_batch_is_left(kernel: Kernel, name: str) -> None:
    rows, firsts = PAGES[name]
    found = uncut(kernel, LOG.layout, rows).rows
    assert list(found.firsts)[: found.batches + 1] == firsts
    assert found.complete == firsts[-1]


def test_a_batch_is_sorted_when_it_is_cut(kernel: Kernel) -> None:
    (batch,) = uncut(kernel, LOG.layout, [row(1, False), row(0, True)])
    assert batch.rows == [row(0, True), row(1, False)]


def test_bytes_that_are_no_rows_are_no_page(kernel: Kernel) -> None:
    page = page_of([row(0, True), row(1, True)])
    columns = LOG.layout.columns
    assert kernel.scan(page, 0, columns, 2, list) is not None
    for end in range(len(page)):
        assert kernel.scan(page[:end], 0, columns, 2, list) is None
    assert kernel.scan(page, 0, columns, 3, list) is None
    assert kernel.scan(page, 0, columns, 1 << 30, list) is None
    assert kernel.scan(page, 0, columns, -1, list) is None
    huge = struct.pack(">i", 2**31 - 1) + page[4:]
    assert kernel.scan(huge, 0, columns, 2, list) is None
    assert kernel.scan(page, 0, ("a", "b"), 1, list) is None


def test_pages_of_random_bytes_do_no_harm(kernel: Kernel) -> None:
    pick = random.Random(7)
    page = page_of([row(number, True, time=number) for number in range(20)])
    for _ in range(300):
        wrong = bytearray(page)
        for _ in range(pick.randrange(1, 5)):
            wrong[pick.randrange(len(wrong))] = pick.randrange(256)
        kernel.scan(bytes(wrong[: pick.randrange(len(wrong) + 1)]), 0, LOG.layout.columns, 20, list)
