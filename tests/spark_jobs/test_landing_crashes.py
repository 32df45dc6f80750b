"""A job that ends between any two of its steps goes on as if nothing had been; readers beside it never notice a step.

A step dies by an error in its place: what it leaves in the warehouse is what a killed process leaves, and the next
start knows nothing else. (That a process really dies is tried elsewhere.)
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from typing import Any

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from connector.errors import LandingError
from spark_jobs import land as land_module
from spark_jobs.jobs.rebuilding import rebuild
from spark_jobs.jobs.upkeep import maintain
from spark_jobs.land import land
from spark_jobs.sinks.iceberg import IcebergSink
from spark_jobs.stream.progress import Progress
from spark_jobs.stream.telling import told
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.lease import open_folder
from spark_jobs.tables.state_table import State
from tests.spark_jobs.landing_feed import cell, change, produce, schema_record
from tests.spark_jobs.landing_way import TABLE, Way, is_batch
from tests.spark_jobs.source_tables import ANY_FORMAT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.usefixtures("interpreted", "planned_once"),
    pytest.mark.timeout(1800),
    # py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]
MERGING = {"merge.every.rows": 1, "state.buckets": 1}


class DiedError(Exception):
    """Where the process ended."""


def dies(patch: pytest.MonkeyPatch, owner: type, name: str, after: bool) -> None:
    """The step does its work, or does not begin it, and nothing follows."""
    step = getattr(owner, name)

    def dying(*arguments: Any, **named: Any) -> Any:
        if after:
            step(*arguments, **named)
        raise DiedError(name)

    patch.setattr(owner, name, dying)


class Crashing:
    """A way whose landing dies at a step and is started again."""

    def __init__(self, way: Way, spark: SparkSession) -> None:
        self.way, self.spark = way, spark

    def dies(self, owner: type, name: str, after: bool) -> None:
        with pytest.MonkeyPatch.context() as patch:
            dies(patch, owner, name, after)
            patch.setattr(land_module, "ATTEMPTS_ONCE", 1)
            progress = Progress()
            assert land(self.way.settings(**MERGING), True, progress, session=self.spark) == 1
            assert progress.of("ks.t").last_error

    def land(self) -> Progress:
        return self.way.land(self.spark, **MERGING)

    def rows(self) -> list[tuple[Any, ...]]:
        return self.way.rows(self.spark)


#: Of 1970.
_OLD_ID = "13814000-1dd2-11b2-8080-808080808080"


def test_landing_goes_on_after_every_step_of_a_batch(spark: SparkSession, way: Way) -> None:
    crashing = Crashing(way, spark)
    steps = [
        (LandedTable, "prepare", True),
        (LandedTable, "append", False),
        (LandedTable, "append", True),
        (State, "replace", False),
        (State, "replace", True),
    ]
    for at, (owner, name, after) in enumerate(steps):
        delta = {"mode": "modify", "elements": [{"key": f"k{at}", "value": at}]}
        row = {"pk": 1, "ck": at, "v": cell("x"), "m": cell(delta)}
        produce(way.servers, [(way.data, change("c", 1000 + at, row))])
        crashing.dies(owner, name, after)
    crashing.land()
    assert crashing.rows() == [(1, at, None, {f"k{at}": at}, "x") for at in range(len(steps))]
    assert spark.table("ks.t__changelog").count() == len(steps)


def test_letters_and_recreated_tables_survive_the_end_of_a_job(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = "iceberg"
    crashing = Crashing(way, spark)
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "n": cell(7)})), (way.data, b"bad")])
    assert crashing.land().of("ks.t").dead == {"UNKNOWN_FIELD": 1, "CORRUPT": 1}
    # With an id, older than all records: a table that has none is the one whose id is told later.
    way.schema(schema_record("ks", "t", f"{TABLE}; n regular int", table_id=_OLD_ID, version="2"))
    crashing.dies(LandedTable, "prepare", after=True)
    crashing.dies(LandedTable, "replace_letters", after=True)
    crashing.land()
    assert crashing.rows() == [(1, 1, None, None, 7, None)]
    assert [row["reason"] for row in spark.table("ks.t__dead_letters").collect()] == ["CORRUPT"]

    # Its first record is there before its definition is, which may be in a topic that nobody looks at.
    new, early = str(uuid.uuid1()), change("c", 8, {"pk": 2, "ck": 8, "v": cell("early")})
    made_by = {"scylla.table.id": new, "scylla.schema.version": "new"}
    produce(way.servers, [(way.data, early)], headers=made_by)
    assert crashing.land().of("ks.t").dead == {"NO_DEFINITION": 1}
    assert crashing.rows() == [(1, 1, None, None, 7, None)]
    way.schema(schema_record("ks", "t", TABLE, table_id=new, version="new"))
    produce(way.servers, [(way.data, change("c", 9, {"pk": 2, "ck": 9, "v": cell("new")}))])
    for owner, name in ((IcebergSink, "delete"), (LandedTable, "clear")):
        crashing.dies(owner, name, after=True)
    crashing.dies(LandedTable, "replace_letters", after=False)
    crashing.land()
    assert crashing.rows() == [(2, 8, None, None, "early"), (2, 9, None, None, "new")]
    assert spark.table("ks.t__dead_letters").count() == 0


def test_what_a_paused_job_appends_late_does_no_harm(spark: SparkSession, way: Way) -> None:
    """Its batch holds more than its successor has landed when that ends, and goes where that has merged already."""
    way.config["sink"] = ANY_FORMAT
    produce(way.servers, [(way.data, change("c", 1000 + at, {"pk": 1, "ck": at})) for at in range(6)])
    leases, append = open_folder(spark, f"{way.config['warehouse']}/_leases"), LandedTable.append
    batches: list[int] = []

    def successor(landed: LandedTable, frame: DataFrame) -> None:
        if is_batch(frame):
            batches.append(len(batches))
            if batches[-1] == 2:
                raise DiedError("its third batch")
        append(landed, frame)

    def paused(landed: LandedTable, frame: DataFrame) -> None:
        if is_batch(frame):
            leases.write(f"{way.prefix}.1", json.dumps({"expires_ms": 0}))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(LandedTable, "append", successor)
                patch.setattr(land_module, "ATTEMPTS_ONCE", 1)
                settings = way.settings(**MERGING, **{"max.offsets.per.trigger": 1})
                assert land(settings, True, Progress(), session=spark) == 1
        append(landed, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LandedTable, "append", paused)
        progress = Progress()
        with contextlib.suppress(LandingError):
            land(way.settings(**{"lease.timeout.ms": 600_000}), True, progress, session=spark)
    assert len(batches) == 3, "the successor has merged a part"
    way.land(spark, **MERGING)
    assert way.rows(spark) == [(1, at, None, None, None) for at in range(6)]


def test_upkeep_and_rebuilding_may_end_at_any_step(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = "iceberg"
    records = [change("c", 1000 + at, {"pk": 1, "ck": at}) for at in range(4)]
    produce(way.servers, [(way.data, value) for value in [*records, change("d", 2000, {"pk": 1, "ck": 0})]])
    way.land(spark, **MERGING)
    expected = [(1, at, None, None, None) for at in (1, 2, 3)]
    settings = way.settings(**{"reader.grace.ms": 0})
    for name, after in (("delete", True), ("compact", True)):
        with pytest.MonkeyPatch.context() as patch:
            dies(patch, IcebergSink, name, after)
            assert [upkeep.problem for upkeep in maintain(spark, settings)] == [name]
        assert way.rows(spark) == expected, name
    for owner, name, after in (
        (IcebergSink, "delete", True),
        (LandedTable, "forget", True),
        (LandedTable, "prepare", True),
    ):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(DiedError):
            dies(patch, owner, name, after)
            rebuild(spark, way.settings(), way.settings().tables[0])
        if name != "forget":
            way.land(spark, **MERGING)
            assert way.rows(spark) == expected, name


def test_readers_see_whole_batches_while_landing_merges_and_upkeep_compacts(spark: SparkSession, way: Way) -> None:
    count = 120
    values = []
    for at in range(count):
        values.append(change("c", 1000 + 2 * at, {"pk": at % 5, "ck": at, "v": cell("x"), "s": None}))
        values.append(change("u", 1001 + 2 * at, {"pk": at % 5, "ck": None, "s": cell(f"{at:05}")}))
        if at % 10 == 0:
            values.append(change("d", 500, {"pk": at % 5, "ck": at}))
    produce(way.servers, [(way.data, value) for value in values])
    way.land(spark, **{"max.offsets.per.trigger": 100_000, "merge.every.rows": 10**9, "tables": ["ks.t"]})
    assert len(way.rows(spark)) == count
    more = [change("c", 10_000 + at, {"pk": at % 5, "ck": count + at, "v": cell("y")}) for at in range(count)]
    more += [
        change("u", 20_000 + at, {"pk": pk, "ck": None, "s": cell(f"1{at:05}")}) for at in range(8) for pk in range(5)
    ]
    produce(way.servers, [(way.data, value) for value in more])
    progress, ended = Progress(), threading.Event()
    failures: list[BaseException] = []

    def landing() -> None:
        try:
            settings = way.settings(
                **{"max.offsets.per.trigger": 45, "merge.every.rows": 60, "reader.grace.ms": 600_000}
            )
            assert land(settings, True, progress, session=spark) == 0
            assert [upkeep.problem for upkeep in maintain(spark, settings)] == [None]
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    worker = threading.Thread(target=landing)
    worker.start()
    reads, least, statics = 0, count, dict.fromkeys(range(5), "")
    deadline = time.monotonic() + 1500
    while not ended.is_set() or reads < 3:
        assert time.monotonic() < deadline
        landed = progress.of("ks.t").rows
        seen = spark.sql("SELECT pk, count(*), min(s), max(s), count(DISTINCT ck) FROM ks.t GROUP BY pk").collect()
        total = sum(row[1] for row in seen)
        assert total == sum(row[4] for row in seen) and total >= least, "rows doubled, or gone that were there"
        assert total + 40 >= count + landed, "a committed batch is not whole"
        for row in seen:
            assert row[2] == row[3] >= statics[row[0]], "a partition's static goes back, or differs within one read"
            statics[row[0]] = row[2]
        least, reads = total, reads + 1
    worker.join()
    assert not failures, failures
    assert least == 2 * count and set(statics.values()) == {"100007"}


def test_counts_that_spark_does_not_tell_are_an_error(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Observation()
    frame = spark.range(3).observe(seen, F.count(F.lit(1)).alias("rows"))
    with monkeypatch.context() as patch, pytest.raises(LandingError, match="reported no metrics"):
        patch.setattr("spark_jobs.stream.telling._TOLD_S", 0)
        told(spark, seen)
    frame.write.format("noop").mode("append").save()
    assert told(spark, seen) == {"rows": 3}
