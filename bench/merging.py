"""What a few changes cost in a large table: bytes written and CPU time, to merge them and to publish them.

python -m bench merging [--rows N,…] [--changes N,…] [--alone] [--json]. For comparison, in the same run: a merge that
rewrites its buckets whole, and a plain MERGE of whole rows, with and without deletion vectors. Kafka has no part in
it: rows and changes are made by SQL. Bytes are told for each byte of the records that the changes are in Kafka.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._processor import cpu_seconds
from bench.landing import Figures, changes, definition
from spark_jobs.functions import register_functions
from spark_jobs.java_objects import java_class
from spark_jobs.jvm import resolve
from spark_jobs.model import SAME_TIME, bucket_of, parse_definition
from spark_jobs.session import start_session
from spark_jobs.tables import Known, LandedTable, PublishedTable, Stand, levels, open_publisher, open_sink

ROWS, CHANGES = (1_000_000, 10_000_000), (10, 1_000, 100_000)
STEADY, STEADY_SHARE = 30, 20
WARMED_UP = 4
_FIRST_TS = 1_700_000_000_000_000


def values(number: str) -> dict[str, str]:
    """SQL of a row's cells, made of a number."""
    return {
        "a": f"CAST({number} AS int)",
        "b": f"CAST({number} * 7 AS bigint)",
        "c": f"concat('text ', {number})",
        "d": f"concat('more ', {number} % 97)",
        "e": f"CAST({number} / 3 AS double)",
        "f": "true",
    }


@dataclass(frozen=True)
class Cost:
    bytes: int
    cpu: float


class Large:
    """A landed and published table of so many rows, and plain tables with the same rows."""

    def __init__(self, session: Any, folder: str, rows: int, figures: Figures) -> None:
        self.session, self.rows, self.figures = session, rows, figures
        self.warehouse = f"{folder}/{rows}"
        config = {"warehouse": self.warehouse}
        publisher = open_publisher(session, config)
        assert publisher is not None
        self.landed = LandedTable(session, open_sink(session, config), "ks", "t")
        self.published = PublishedTable(publisher, self.landed)
        # About one bucket per million rows, as the documentation says.
        self.known = Known((parse_definition(definition().decode()),), buckets=max(4, rows // 1_000_000))
        self.layout = self.landed.prepare(self.known)
        register_functions(session, self.layout)
        handle = java_class(session, "java.lang.ProcessHandle")
        self._pid = int(handle.current().pid())
        self.segment = 0
        self.stand: Stand | None = None
        record = next(changes(rows * 3, 1, rows, False))
        self.record_bytes = len(record)

    def load(self, compared: bool) -> None:
        """What landing all rows would have left, without landing them."""
        cells = values("id")
        state = self.landed.state
        kept = ", ".join(f"{value} AS v_{name}, {SAME_TIME} AS t_{name}" for name, value in cells.items())
        made = f"SELECT id AS k_p0, 2 AS kind, {_FIRST_TS} + id AS base, {_FIRST_TS} + id AS marker, {kept}"
        text = f"SELECT *, {bucket_of(self.layout)} AS bucket FROM ({made} FROM range({self.rows})) AS made"
        rows = self.session.sql(text).repartition("bucket")
        state.replace(lambda: state.sorted(self.layout, rows, state.marked(0, None)))
        shown = ", ".join(f"{value} AS {name}" for name, value in cells.items())
        note = {"lineage": 0, "segment": 0, "dropped": [], "positions": {}}
        size = min(max(self.rows // 250, 10_000), 1_000_000)
        publisher = self.published.publisher
        columns = ["id", *cells]
        cloned = publisher.session.sql(f"SELECT id, {shown} FROM range({self.rows})").repartition(8).select(*columns)
        publisher.replace(self.landed.folder, cloned, note, 1, size, 1)
        publisher.tidy(self.landed.folder)
        if not compared:
            return
        plain = self.session.sql(f"SELECT id, {shown} FROM range({self.rows})").repartition(8)
        for kind in ("plain", "vectors"):
            writer = plain.write.format("delta").option("maxRecordsPerFile", str(self.rows // 10))
            writer.save(f"{self.warehouse}/{kind}")
        self.session.sql(
            f"ALTER TABLE delta.`{self.warehouse}/vectors` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )

    def cost(self, work: Callable[[], Any]) -> Cost:
        before, cpu = self._bytes(), cpu_seconds(self._pid) or 0.0
        work()
        return Cost(self._bytes() - before, (cpu_seconds(self._pid) or 0.0) - cpu)

    def _bytes(self) -> int:
        files = Path(self.warehouse).rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".crc")

    def append(self, count: int) -> None:
        """Random updates of half of the columns, as a batch appends them."""
        self.segment += 1
        number = self.rows * self.segment
        cells = values(f"({number} + id)")
        touched = [
            f"CASE WHEN (id + {at}) % 2 = 0 THEN named_struct('v', {value}) END AS v_{name}"
            for at, (name, value) in enumerate(cells.items())
        ]
        key = f"CAST(floor(rand({self.segment}) * {self.rows}) AS bigint)"
        made = f"SELECT {key} AS k_p0, {_FIRST_TS + number} + id AS ts, id AS offset, {', '.join(touched)}"
        self.landed.append(
            self.session.sql(
                f"SELECT *, {self.segment} AS segment, {bucket_of(self.layout)} AS bucket, 2 AS kind, 'u' AS op, "
                f"'bench.ks.t' AS topic, 0 AS partition, current_timestamp() AS landed_at "
                f"FROM ({made} FROM range(0, {count}, 1, 1)) AS made"
            )
        )

    def merge(self) -> None:
        self.landed.merge(self.layout, self.segment, self.segment - 1, {})

    def publish(self) -> None:
        """As a running job does, which knows where the table stands."""
        stand = self.stand or self.published.stand()
        self.stand = self.published.publish(self.known, stand, self.segment, {})

    def plain(self, kind: str, count: int) -> None:
        """What most tutorials do: whole rows, which loses partial updates."""
        shown = ", ".join(f"{value} AS {name}" for name, value in values(f"({self.rows} + n)").items())
        key = f"CAST(floor(rand({count}) * {self.rows}) AS bigint)"
        keys = f"SELECT id, max(n) AS n FROM (SELECT {key} AS id, id AS n FROM range({count})) AS k GROUP BY id"
        self.session.sql(f"SELECT id, {shown} FROM ({keys}) AS keys").localCheckpoint().createOrReplaceTempView(
            "newest"
        )
        self.session.sql(
            f"MERGE INTO delta.`{self.warehouse}/{kind}` AS t USING newest AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def tell(self, count: int, what: str, cost: Cost, table: int) -> None:
        times = cost.bytes / (count * self.record_bytes)
        share = 100 * cost.bytes / table
        self.figures[f"{count:,} changes into {self.rows:,} rows, {what}"] = (
            f"{cost.bytes:,} bytes, {times:.2g} per byte of change, {share:.2g} % of the table, {cost.cpu:.1f} CPU-s"
        )

    def measure(self, counts: list[int], compared: bool) -> None:
        size = sum(self.landed.state.parts().values())
        shown = self.landed.sink.files(self.landed.state.table)[0]
        self.figures[f"state of {self.rows:,} rows"] = f"{size:,} bytes in {shown} files"
        # What is compiled in the beginning is not the cost of a change.
        for at in range(WARMED_UP):
            self.append(10)
            self.merge()
            cost = self.cost(self.publish)
            if not at:
                self.tell(10, "first publication of a process", cost, size)
        for count in counts:
            self.append(count)
            self.tell(count, "merge", self.cost(self.merge), size)
            self.tell(count, "publish", self.cost(self.publish), size)
        view = self.landed.view_text(self.layout)
        for where in (f"id = {self.rows // 3}", f"id BETWEEN {self.rows // 3} AND {self.rows // 3 + 99}"):
            found = self.cost(self.session.sql(f"SELECT * FROM ({view}) AS v WHERE {where}").collect)
            self.figures[f"{self.rows:,} rows, live view, {where}, CPU-s"] = round(found.cpu, 1)
        if not compared:
            return
        for kind in ("plain", "vectors"):
            self.plain(kind, 10)
            for count in counts:
                named = "plain MERGE" + (", deletion vectors" if kind == "vectors" else "")
                self.tell(count, named, self.cost(lambda kind=kind, count=count: self.plain(kind, count)), size)  # type: ignore[misc]
        share, levels.SHARE = levels.SHARE, 0.0
        self.append(10)
        self.tell(10, "merge that rewrites its buckets", self.cost(self.merge), size)
        levels.SHARE = share

    def steady(self) -> None:
        """Many merges of random changes: all that the state writes, for all that is landed of them."""
        written, landed, count = 0, 0, self.rows // STEADY_SHARE
        for _ in range(STEADY):
            landed += self.cost(lambda: self.append(count)).bytes
            written += self.cost(self.merge).bytes
        records = STEADY * count * self.record_bytes
        self.figures[f"{STEADY} merges of {count:,} into {self.rows:,} rows, bytes written by merges"] = (
            f"{written / landed:.1f} per byte of the changelog, {written / records:.2f} per byte of the records"
        )
        self.publish()
        assert self.stand is not None
        wrong = self.published.differences(self.known, self.stand)
        self.figures["rows of the published table that are not as landed"] = wrong


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m bench merging", description=__doc__)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="sizes of tables")
    parser.add_argument("--changes", default=",".join(map(str, CHANGES)), help="numbers of changes")
    parser.add_argument("--alone", action="store_true", help="without the comparisons")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    args = parser.parse_args()
    figures = Figures()
    counts = [int(count) for count in args.changes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        jars = ",".join(map(str, resolve("spark")))
        settings = {"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.jars": jars}
        session = start_session({**settings, "warehouse": folder})
        for at, rows in enumerate(int(rows) for rows in args.rows.split(",")):
            large = Large(session, folder, rows, figures)
            large.load(not args.alone)
            large.measure(counts, not args.alone)
            if at == 0 and not args.alone:
                large.steady()
        session.stop()
    if args.json:
        print(json.dumps(figures))
        return {}
    return figures


if __name__ == "__main__":
    main()
