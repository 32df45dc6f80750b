"""Reading logs: what silence costs, and how fast rows come, without Kafka."""

from __future__ import annotations

import time

from connector.source import ChangeReader, ConnectionSettings, ReadingSettings
from embedded.scylla.process import EmbeddedScylla

NODES, VNODES = 4, 256
ROWS = 200_000
DAY_SECONDS = 86_000
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
    return figures


def _create(scylla: EmbeddedScylla, keyspace: str) -> None:
    scylla.admin.cql(
        f"CREATE KEYSPACE {keyspace} WITH replication = "
        "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1} AND tablets = {'enabled': false}"
    )
    scylla.admin.cql(f"CREATE TABLE {keyspace}.t (id bigint PRIMARY KEY, v text) WITH cdc = {{'enabled': true}}")


def _read(scylla: EmbeddedScylla, table: str) -> tuple[float, int, int]:
    host, _, port = scylla.address.rpartition(":")
    began, rows = time.monotonic(), 0
    with ChangeReader(ConnectionSettings(((host, int(port)),)), [table], reading=FAST) as reader:
        for batch in reader:
            rows += len(batch.rows)
        return time.monotonic() - began, reader.queries, rows


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
