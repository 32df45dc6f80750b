"""The golden cases: CQL → server → log rows → changes → records, compared byte by byte."""

from __future__ import annotations

import pytest

from connector.changes import BatchAssembler, changes_of
from connector.formats.encoder import Encoder
from connector.formats.record import Record
from tests.formats.conftest import CdcServer
from tests.formats.golden import NOW_NS, Case, Expected, all_cases, recoded, shown
from tests.formats.options import output_options
from tests.native.both_ways import by_kernel

CASES = all_cases()


def test_there_are_all_cases() -> None:
    assert len({case.name[:2] for case in CASES if case.name[0].isdigit()}) == 71


@pytest.mark.scylla
@pytest.mark.parametrize("tablets", [False, True], ids=["vnodes", "tablets"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(cdc_server: CdcServer, case: Case, tablets: bool) -> None:
    cdc_server.fresh_keyspace(tablets)
    cdc_server.run(*case.cql)
    reading = cdc_server.read_log(case.table)

    encoder = Encoder(output_options(**case.config), clock=lambda: NOW_NS)
    assembler = BatchAssembler()
    batches = []
    for layout, rows in reading.pages:
        batches += assembler.feed(layout, [recoded(row, layout.operation, case.log) for row in rows])
    batches += assembler.finish()
    batches.sort(key=lambda batch: batch.timestamp_us)

    found: list[Expected] = []
    for batch in batches:
        made: list[Record] = []
        for change in changes_of(batch):
            records = encoder.encode(change)
            made += records
            found += [shown(change, record) for record in records]
        # The native way makes the same of it, or nothing.
        assert by_kernel(encoder, batch) in (made, None)
    assert found == list(case.records)
