"""What must be true of a service at the end of a simulation, whatever happened to it.

In: the world and the topics. Out: every breach as a line: rows lost, doubled, behind later ones of their key, given up
without being one that came after its stream's end, passed over without a report.
"""

from __future__ import annotations

from collections import Counter

from tests.simulation.service import DEAD_LETTERS, NAME, Service
from tests.simulation.source_world import Row, Table

Identity = tuple[str, str, int]


def breaches(service: Service, lost_ttl: bool = False) -> list[str]:
    found: list[str] = []
    given_up = _dead_letters(service)
    for table in service.cluster.world.tables:
        found += _of_table(service, table, given_up)
    return found


def missing(service: Service) -> list[str]:
    """Rows that are neither delivered nor given up yet."""
    given_up = _dead_letters(service)
    found: list[str] = []
    for table in service.cluster.world.tables:
        seen = _delivered(service, table)
        done = {identity for identity, _ in seen}
        lost = (row for row in table.rows if row.identity not in done and row.identity[:2] not in given_up)
        found += [f"{table.name}: row {row.text} of stream {row.stream.hex()} at {row.ms} lost" for row in lost]
    return found


def _of_table(service: Service, table: Table, given_up: Counter[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    rows = {row.identity: row for row in table.rows}
    delivered = _delivered(service, table)
    counts = Counter(identity for identity, _ in delivered)
    for identity, row in rows.items():
        # A batch of several rows is one dead letter.
        letters = given_up[identity[:2]]
        if counts[identity] + letters > 1:
            found.append(f"{table.name}: row {row.text} delivered {counts[identity]} times, given up {letters} times")
        if letters and row.ended is None:
            found.append(f"{table.name}: row {row.text} given up without need")
    found += [f"{table.name}: {identity} was never written" for identity in counts if identity not in rows]
    found += _order(table, [(rows[identity], partition) for identity, partition in delivered if identity in rows])
    return found


def _order(table: Table, delivered: list[tuple[Row, int]]) -> list[str]:
    found: list[str] = []
    last: dict[tuple[int, int], Row] = {}
    for row, _ in delivered:
        before = last.get(row.key)
        if before is not None and before.order > row.order:
            found.append(f"{table.name}: key {row.key}: row {row.text} behind row {before.text}")
        last[row.key] = row
    return found


def _delivered(service: Service, table: Table) -> list[tuple[Identity, int]]:
    found: list[tuple[Identity, int]] = []
    for partition, _, value in service.values(f"{NAME}.{table.name}"):
        source = value["source"]
        found.append(((source["stream_id"].removeprefix("0x"), source["time"], source["batch_seq_no"]), partition))
    return found


def _dead_letters(service: Service) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for _, record in service.records(DEAD_LETTERS):
        headers = {name: (text or b"").decode() for name, text in record.headers}
        found[(headers["scylla.cdc.stream_id"].removeprefix("0x"), headers["scylla.cdc.time"])] += 1
    return found
