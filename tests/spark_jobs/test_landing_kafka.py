"""From a real broker to the landed view: what lands, what does not, and what a killed job leaves."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from connector.errors import LandingError
from spark_jobs.jobs.rebuilding import rebuild
from spark_jobs.jobs.upkeep import maintain
from spark_jobs.land import land
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.stream import housekeeping, table_stream
from spark_jobs.stream.progress import Progress
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.lease import Lease, LocalFolder
from spark_jobs.tables.registration import open_sink
from spark_jobs.tables.small_plans import uncompiled
from tests.servers.patience import seldom, until
from tests.spark_jobs.landing_feed import cell, change, create_topics, produce, schema_record
from tests.spark_jobs.landing_way import TABLE, Way, is_batch
from tests.spark_jobs.published_rows import read_elsewhere
from tests.spark_jobs.source_tables import ANY_FORMAT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.usefixtures("interpreted"),
    # py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]

ROOT = Path(__file__).resolve().parents[2]


def test_committed_changes_land_once_and_bad_ones_are_kept_with_their_reason(spark: SparkSession, way: Way) -> None:
    produce(
        way.servers,
        [
            (way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("a"), "m": cell(_map("overwrite", a=1, b=2))})),
            (way.data, change("u", 1001, {"pk": 1, "ck": 1, "m": cell(_map("modify", a=None, c=3))})),
            (way.data, change("u", 1002, {"pk": 1, "ck": None, "s": cell("static")})),
            (way.data, change("c", 1000, {"pk": 1, "ck": 2, "v": cell("gone")})),
            (way.data, change("c", 1000, {"pk": 2, "ck": 1, "v": cell("kept")})),
            (way.data, b"not json"),
            (way.data, change("u", 1003, {"pk": 1, "ck": 1, "unheard_of": cell(1)})),
            (way.data, None),
        ],
        way.prefix,
    )
    produce(way.servers, [(way.data, change("c", 2000, {"pk": 9, "ck": 9}))], f"{way.prefix}-aborted", commit=False)
    # Topics of other tables, whose names this one's is a part of.
    others = [f"{way.data}_archive", f"old.{way.data}"]
    create_topics(way.servers, others)
    produce(way.servers, [(other, change("c", 2000, {"pk": 9, "ck": 9})) for other in others])
    progress = way.land(spark)
    assert dict(progress.of("ks.t").dead) == {"CORRUPT": 1, "UNKNOWN_FIELD": 1}
    one = (1, 1, "static", {"b": 2, "c": 3}, "a")
    assert way.rows(spark) == [one, (1, 2, "static", None, "gone"), (2, 1, None, None, "kept")]
    letters = {(row["reason"], bytes(row["raw_value"])[:8]) for row in spark.table("ks.t__dead_letters").collect()}
    assert letters == {("CORRUPT", b"not json"), ("UNKNOWN_FIELD", b'{"source')}

    deleted = {"source": {"ts_us": 1500}, "kind": "range", "partition": {"pk": 1}}
    bounds = {"start": {"values": [2], "inclusive": True}, "end": {"values": [], "inclusive": True}}
    produce(way.servers, [(f"{way.data}.range-deletes", json.dumps({**deleted, **bounds}).encode())])
    shutil.rmtree(way.settings().checkpoint)
    again = way.land(spark, **{"merge.every.rows": 1})
    assert again.of("ks.t").rows == 1
    assert way.rows(spark) == [one, (2, 1, None, None, "kept")]
    positions = list(Path(way.config["warehouse"]).rglob("changelog/segment=-2/*.parquet"))
    assert len(positions) == 2, "each batch has one file for them, however many partitions the topics have"
    before = _commits(way)
    assert way.land(spark).of("ks.t").rows == 0
    assert before and _commits(way) == before, "what finds nothing writes nothing"
    assert way.rows(spark) == [one, (2, 1, None, None, "kept")]


def _commits(way: Way) -> set[Path]:
    return set(Path(way.config["warehouse"]).rglob("_delta_log/*.json"))


@pytest.mark.parametrize("sink", sorted(FORMATS))
def test_upkeep_removes_merged_changes_and_changes_no_row(spark: SparkSession, way: Way, sink: str) -> None:
    way.config["sink"] = sink
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("a")}))])
    way.land(spark, **{"merge.every.rows": 1})
    produce(way.servers, [(way.data, change("u", 1001, {"pk": 1, "ck": 1, "v": cell("b")})), (way.data, b"bad")])
    way.land(spark)
    settings = way.settings(**{"reader.grace.ms": 0})
    planned = maintain(spark, settings, dry_run=True)
    assert [(upkeep.segments, upkeep.changes) for upkeep in planned] == [((1,), 1)]
    assert spark.table("ks.t__changelog").count() == 2
    done = maintain(spark, settings)
    assert done[0].segments == (1,) and done[0].positions > 0
    assert spark.table("ks.t__changelog").count() == 1
    assert spark.table("ks.t__dead_letters").count() == 1
    assert way.rows(spark) == [(1, 1, None, None, "b")]
    assert way.land(spark).of("ks.t").rows == 0


def test_rebuilt_tables_read_their_topics_again(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = ANY_FORMAT
    produce(way.servers, [(way.data, change("c", at * 1000, {"pk": at, "ck": 1})) for at in (1, 2, 3)])
    way.land(spark, **{"merge.every.rows": 1})
    assert len(way.rows(spark)) == 3
    rebuild(spark, way.settings(), way.settings().tables[0], truncated_at_ms=2)
    assert way.land(spark).of("ks.t").rows == 3
    assert way.rows(spark) == [(3, 1, None, None, None)]


def test_batches_of_few_records_are_not_compiled(
    spark: SparkSession, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    way.config["sink"] = ANY_FORMAT
    seen: list[tuple[bool, str]] = []
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"):
        spark.conf.unset(name)

    @contextlib.contextmanager
    def looked_at(session: SparkSession, few: bool) -> Iterator[None]:
        with uncompiled(session, few):
            seen.append((few, str(session.range(3).where("id > 1")._jdf.queryExecution().executedPlan().toString())))
            yield
        assert session.conf.get("spark.sql.codegen.factoryMode") == "FALLBACK"

    monkeypatch.setattr(table_stream, "uncompiled", looked_at)
    for least, most in ((1, 3), (4, 2)):
        monkeypatch.setattr(table_stream, "_FEW", most)
        rows = [change("c", 1000, {"pk": pk, "ck": 1, "v": cell("v")}) for pk in range(least, least + 3)]
        produce(way.servers, [(way.data, value) for value in rows])
        way.land(spark)
    assert [row[0] for row in way.rows(spark)] == [1, 2, 3, 4, 5, 6]
    (few, as_it_is), (many, compiled) = seen
    assert few and not many and "*(1)" in compiled and "*(1)" not in as_it_is


def test_new_and_dropped_columns_follow_the_source(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = ANY_FORMAT
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("old")}))])
    way.land(spark, **{"merge.every.rows": 1})
    added = TABLE.replace("; v regular text", "") + "; n regular int"
    dropped = [{"name": "v", "type": "text", "dropped_us": 1500}]
    way.schema(schema_record("ks", "t", added, version="2", dropped=dropped))
    produce(way.servers, [(way.data, change("u", 2000, {"pk": 1, "ck": 1, "n": cell(5)}))])
    way.land(spark, **{"merge.every.rows": 1})
    assert way.rows(spark) == [(1, 1, None, None, 5)]
    way.schema(schema_record("ks", "t", added + "; v regular int", version="3", dropped=dropped))
    produce(way.servers, [(way.data, change("u", 2500, {"pk": 1, "ck": 1, "v": cell(7)}))])
    way.land(spark)
    assert way.rows(spark) == [(1, 1, None, None, 5, 7)]


def test_what_nothing_comes_after_is_merged_in_its_time_and_so_are_letters(
    spark: SparkSession, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch would have done it: changes that were the last ones of their table waited for ever,
    and so did a letter for its column."""
    monkeypatch.setattr(housekeeping, "_EVERY_S", 0.1)
    # What ends by itself was counted as it landed: to look for it cost a third of a merge.
    monkeypatch.delattr(LandedTable, "_has_ttls")
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("a")}))])
    settings = way.settings(**{"sink": ANY_FORMAT, "merge.every.ms": 3000, "reader.grace.ms": 0})
    progress, stop = Progress(), threading.Event()
    job = threading.Thread(target=lambda: land(settings, False, progress, stop, session=spark))
    job.start()
    try:
        table = progress.of("ks.t")
        until(
            lambda: (table.rows, table.merges, table.unmerged) == (1, 1, 0),
            120,
            "a merge without another change",
            step=seldom,
        )
        produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 2, "n": cell(7)}))])
        until(lambda: table.dead == {"UNKNOWN_FIELD": 1}, 120, "a letter", step=seldom)
        way.schema(schema_record("ks", "t", f"{TABLE}; n regular int", version="2"))
        until(lambda: table.merges == 2, 120, "the letter, landed and merged without another change", step=seldom)
        assert (table.rows, table.dead) == (2, {})
    finally:
        stop.set()
        job.join(120)
    way.config["sink"] = ANY_FORMAT
    assert way.rows(spark) == [(1, 1, None, None, None, "a"), (1, 2, None, None, 7, None)]


def test_frozen_columns_follow_the_rows_of_a_table_that_has_others_by_now(spark: SparkSession, way: Way) -> None:
    """All changes behind an ALTER became dead letters. What they say of new columns is kept for those who thaw it."""
    way.config.update({"sink": ANY_FORMAT, "publish.interval.ms": 60_000})
    frozen = {"schema.evolution": "freeze"}

    def landed(rows: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
        """Nothing is a letter, and the published table has what the view shows."""
        produce(way.servers, [(way.data, change("u", row.pop("at"), {"pk": 1, "ck": 1, **row})) for row in rows])
        assert not way.land(spark, **more).of("ks.t").dead
        published: list[dict[str, Any]] = read_elsewhere(f"{way.config['warehouse']}/ks/t", ANY_FORMAT).to_pylist()
        published.sort(key=lambda row: row["ck"])
        shown = way.rows(spark)
        # A column that a table gets is its last one; the view has them as the source does.
        assert {*published[0]} == {*(names := spark.table("ks.t").columns)}
        assert [tuple(row[name] for name in names) for row in published] == shown
        return published

    row = {"pk": 1, "ck": 1, "s": None, "v": "a", "m": None}
    assert landed([{"at": 1000, "v": cell("a")}], **frozen) == [row]
    way.schema(schema_record("ks", "t", f"{TABLE}; n regular int", version="2"))
    changes: list[dict[str, Any]] = [
        {"at": 2000, "v": cell("b"), "n": cell(7)},
        {"at": 3000, "v": cell("c"), "n": None},
        {"at": 3000, "ck": 2, "n": cell(8)},
        {"at": 3000, "ck": 3, "n": cell(9)},
    ]
    others = [row | {"ck": ck, "v": None} for ck in (2, 3)]
    assert landed(changes, **{"merge.every.rows": 1}, **frozen) == [row | {"v": "c"}, *others]
    gone: list[dict[str, Any]] = [{"at": 4000, "ck": 2, "n": cell(None)}]
    assert landed(gone, **frozen) == [row | {"v": "c"}, others[1]]
    assert landed([]) == [row | {"v": "c", "n": 7}, others[1] | {"n": 9}]


def test_a_letter_of_a_running_job_lands_when_its_column_is_told(
    spark: SparkSession, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    way.land(spark)
    unknown, plain = (change("c", 1000, {"pk": 1, "ck": ck, **more}) for ck, more in ((1, {"n": cell(7)}), (2, {})))
    produce(way.servers, [(way.data, unknown), (way.data, plain)])
    append = LandedTable.append

    def telling(landed: LandedTable, frame: DataFrame) -> None:
        append(landed, frame)
        if is_batch(frame):
            way.schema(schema_record("ks", "t", f"{TABLE}; n regular int", version="2"))

    monkeypatch.setattr(LandedTable, "append", telling)
    told = way.land(spark, **{"max.offsets.per.trigger": 1}).of("ks.t")
    assert (told.rows, told.dead) == (2, {}), "it is a row by now, and no letter any more"
    assert way.rows(spark) == [(1, 1, None, None, 7, None), (1, 2, None, None, None, None)]
    assert spark.table("ks.t__dead_letters").count() == 0


def test_a_letter_lands_also_where_that_failed_at_first(
    spark: SparkSession, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the next version then, or for another process; and to be published, for the next change."""
    way.config.update({"sink": ANY_FORMAT, "retry.backoff.max.ms": 10, "publish.interval.ms": 60_000})
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "n": cell(7)}))])
    assert way.land(spark).of("ks.t").dead == {"UNKNOWN_FIELD": 1}
    way.schema(schema_record("ks", "t", f"{TABLE}; n regular int", version="2"))
    replace_letters, failed = LandedTable.replace_letters, list[bool]()

    def failing(*arguments: Any) -> None:
        if not failed:
            failed.append(True)
            raise LandingError("the disk is full")
        replace_letters(*arguments)

    monkeypatch.setattr(LandedTable, "replace_letters", failing)
    progress = Progress()
    assert land(way.settings(), True, progress, session=spark) == 0 and progress.of("ks.t").failures == 1
    assert way.rows(spark) == [(1, 1, None, None, 7, None)]
    assert read_elsewhere(f"{way.config['warehouse']}/ks/t", ANY_FORMAT).to_pydict()["n"] == [7]


def test_json_with_schemas_lands_the_same(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = ANY_FORMAT
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("a")}, with_schema=True))])
    way.land(spark, **{"value.converter.schemas.enable": True})
    assert way.rows(spark) == [(1, 1, None, None, "a")]


def test_a_killed_job_loses_and_repeats_nothing(spark: SparkSession, way: Way, tmp_path: Path) -> None:
    changes = [change("c", 1000 + at, {"pk": at % 7, "ck": at, "v": cell(f"v{at}")}) for at in range(400)]
    produce(way.servers, [(way.data, value) for value in changes], way.prefix)
    config = tmp_path / "landing.json"
    config.write_text(json.dumps({**way.config, "max.offsets.per.trigger": 60, "merge.every.rows": 100}))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark_jobs.landing_process", str(config)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        assert process.stderr is not None
        landed = 0
        while landed < 100:
            line = process.stderr.readline()
            assert line, "the job ended by itself"
            if line.startswith('{"progress"'):
                landed = json.loads(line)["progress"]["tables"]["ks.t"]["rows"]
        # It stands still, so that something is left to be landed after its end.
        os.killpg(process.pid, signal.SIGSTOP)
        with pytest.raises(LandingError, match="being written by another job"):
            land(way.settings(), True, Progress(), session=spark)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
    left = Path(way.settings().checkpoint)
    assert [*left.rglob("offsets")]
    rest = way.land(spark).of("ks.t").rows
    assert 0 < rest <= 300
    assert not [*left.rglob("offsets")], "what it has left is nobody's any more"
    expected = sorted(((at % 7, at, None, None, f"v{at}") for at in range(400)), key=repr)
    assert way.rows(spark) == expected
    assert spark.table("ks.t__changelog").count() == 400


def test_a_failing_table_is_named_and_ends_no_other(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = ANY_FORMAT
    way.schema(schema_record("ks", "lost", "id partition_key int; v regular text"))
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1}))])
    progress = Progress()
    settings = way.settings(tables=["ks.lost", "ks.t"], **{"retry.backoff.max.ms": 10})
    assert land(settings, True, progress, session=spark) == 1
    assert "there is no topic" in str(progress.of("ks.lost").last_error)
    assert way.rows(spark) == [(1, 1, None, None, None)]
    stop, said = threading.Event(), io.StringIO()
    stop.set()
    assert land(way.settings(), True, Progress(said), stop, spark) == 1, "nobody knows that all has landed"
    assert said.getvalue() == "asked to end before all of these had landed: ks.t\n"
    lost = LandedTable(spark, open_sink(spark, settings.session_config()), "ks", "lost")
    known = lost.known()
    assert known is not None
    lost.append(lost.note_row(replace(known, definitions=(), sequence=known.sequence + 1)))
    failed, done = maintain(spark, settings, dry_run=True)
    assert failed.text().startswith("ks.lost: upkeep failed: a note of the landed table, version 2, cannot be read")
    assert (done.table, done.problem) == ("ks.t", None)


def test_a_lease_is_refused_while_held_and_taken_over_from_the_dead(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    with Lease(folder, "job", 60_000), pytest.raises(LandingError, match="another job: land on"):
        Lease(folder, "job", 60_000).acquire()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    holder = {"host": os.uname().nodename, "pid": ended.pid, "started": "1", "expires_ms": 9e15}
    assert folder.create("job.7", json.dumps(holder))
    lease = Lease(folder, "job", 60_000)
    with lease:
        assert folder.names() == ["job.8"]
        lease.check()
        assert folder.create("job.9", "{}")
        with pytest.raises(LandingError, match="took over"):
            lease.check()


def test_a_table_is_written_by_one_job_whatever_jobs_are_called(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    with Lease(folder, "one", 60_000, tables=["ks.a", "ks.b"]):
        with Lease(folder, "two", 60_000, tables=["ks.c"]):
            assert len(folder.names()) == 2
        with pytest.raises(LandingError, match=r"ks\.b is being written by the job one: land on"):
            Lease(folder, "two", 60_000, tables=["ks.b", "ks.c"]).acquire()
        assert folder.names() == ["one.1"]
    with Lease(folder, "two", 60_000, tables=["ks.b", "ks.c"]):
        assert folder.names() == ["two.1"]


def _map(mode: str, **elements: int | None) -> dict[str, Any]:
    return {"mode": mode, "elements": [{"key": key, "value": value} for key, value in elements.items()]}
