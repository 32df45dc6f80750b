"""Reading logs: what silence costs, and how fast rows come, without Kafka."""

from __future__ import annotations

import time
from dataclasses import replace

from connector.source import ChangeReader, ConnectionSettings, ReadingSettings
from embedded.scylla.process import EmbeddedScylla

NODES, VNODES = 4, 256
ROWS = 200_000
DAY_SECONDS = 86_000
ROWS_OF_ONE_GROUP, PAGE_ROWS = 30_000, 100
DELAYS_MS = (5, 20)
FAST = ReadingSettings(confidence_ms=500, window_ms=1000, max_queries_per_second=2_000)


def main() -> dict[str, str]:
    figures: dict[str, str] = {}
    with EmbeddedScylla(nodes=NODES, vnodes=VNODES, ring_delay=0) as scylla:
        _create(scylla, "silent")
        scylla.preload("silent.t", 1, span_seconds=DAY_SECONDS)
        seconds, queries, rows = _read(scylla, "silent.t")
        groups = NODES * VNODES
        figures[f"a day of silence over {groups} groups"] = f"{queries} queries, {seconds:.1f} s, {rows} row"
    with EmbeddedScylla(ring_delay=0) as scylla:
        _create(scylla, "busy")
        scylla.preload("busy.t", ROWS)
        cpu = time.process_time()
        seconds, queries, rows = _read(scylla, "busy.t")
        cpu = time.process_time() - cpu
        figures["rows to complete batches"] = f"{rows / cpu:,.0f} rows per CPU-second, {queries} queries"
    with EmbeddedScylla(ring_delay=0) as scylla:
        _create(scylla, "hot", vnodes=False)
        scylla.preload("hot.t", ROWS_OF_ONE_GROUP, span_seconds=300)
        for delay_ms in DELAYS_MS:
            figures[f"one hot group, answers after {delay_ms} ms, read ahead against in turn"] = _hot(scylla, delay_ms)
    return figures


def _hot(scylla: EmbeddedScylla, delay_ms: int) -> str:
    """Small pages: what counts is the wait for each."""
    fault = scylla.admin.add_fault("delay", pattern="_scylla_cdc_log", delay_ms=delay_ms)
    took = []
    for windows_ahead in (FAST.windows_ahead, 0):
        began = time.monotonic()
        _, _, rows = _read(scylla, "hot.t", replace(FAST, windows_ahead=windows_ahead), fetch_size=PAGE_ROWS)
        took.append(time.monotonic() - began)
        assert rows == ROWS_OF_ONE_GROUP, f"{rows} of {ROWS_OF_ONE_GROUP} rows"
    scylla.admin.remove_fault(fault)
    return f"{took[1] / took[0]:.1f} times as fast"


def _create(scylla: EmbeddedScylla, keyspace: str, *, vnodes: bool = True) -> None:
    scylla.admin.cql(
        f"CREATE KEYSPACE {keyspace} WITH replication = "
        "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1} AND tablets = "
        + ("{'enabled': false}" if vnodes else "{'enabled': true, 'initial': 1}")
    )
    scylla.admin.cql(f"CREATE TABLE {keyspace}.t (id bigint PRIMARY KEY, v text) WITH cdc = {{'enabled': true}}")


def _read(
    scylla: EmbeddedScylla, table: str, settings: ReadingSettings = FAST, fetch_size: int = 5_000
) -> tuple[float, int, int]:
    host, _, port = scylla.address.rpartition(":")
    began, rows = time.monotonic(), 0
    connection = ConnectionSettings(((host, int(port)),), fetch_size=fetch_size)
    with ChangeReader(connection, [table], reading=settings) as reader:
        for batch in reader:
            rows += len(batch.rows)
        return time.monotonic() - began, reader.queries, rows


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
