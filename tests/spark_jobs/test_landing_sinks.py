"""The contract of sinks, tried with every implementation; what differs between them is not a test here."""

from __future__ import annotations

import fcntl
import os
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame, SparkSession

from connector.errors import ConfigurationError, LandingError
from spark_jobs.jvm.jars import jar_set
from spark_jobs.session import require_class, session_settings
from spark_jobs.sinks import delta, iceberg
from spark_jobs.sinks.delta import DeltaSink
from spark_jobs.sinks.delta_files import extent, last_transaction, newest_commits, properties_of
from spark_jobs.sinks.delta_published import DeltaPublisher
from spark_jobs.sinks.formats import FORMATS, table_format
from spark_jobs.sinks.iceberg_published import IcebergPublisher
from spark_jobs.sinks.sink import LostRaceError, Sink, compact_all
from tests.servers.patience import until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COLUMNS = {"bucket": "int", "kind": "int", "mark": "int", "v_$45": "struct<v:string,x:binary>"}
TABLE = "k$53/t/state"


@pytest.fixture(params=sorted(FORMATS))
def sink(request: pytest.FixtureRequest, spark: SparkSession, warehouse: str) -> Sink:
    opened = FORMATS[request.param].open(spark, warehouse)
    assert not opened.exists(TABLE)
    opened.prepare(TABLE, COLUMNS, "bucket")
    assert opened.exists(TABLE)
    return opened


@pytest.fixture
def rows(spark: SparkSession) -> Callable[..., DataFrame]:
    """Rows of (bucket, mark), in so many files at most."""

    def made(*values: tuple[int, int], files: int = 1) -> DataFrame:
        shown = ", ".join(f"({bucket}, {mark})" for bucket, mark in values)
        return spark.sql(f"SELECT * FROM VALUES {shown} AS v(bucket, mark)").repartition(files)

    return made


def content(spark: SparkSession, sink: Sink) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(f"SELECT bucket, mark FROM {sink.relation(TABLE)}").collect())


def test_appends_add_and_buckets_are_replaced_whole(spark: SparkSession, sink: Sink, rows: Any) -> None:
    sink.append(TABLE, rows((1, 1), (2, 1)))
    sink.append(TABLE, rows((1, 2)))
    assert content(spark, sink) == [(1, 1), (1, 2), (2, 1)]
    sink.replace_buckets(TABLE, rows((1, 9), (3, 9)))
    assert content(spark, sink) == [(1, 9), (2, 1), (3, 9)]
    before = spark.sql(f"SELECT bucket, mark + 1 AS mark FROM {sink.relation(TABLE)} WHERE bucket = 2")
    sink.replace_buckets(TABLE, before.unionByName(rows((4, 4))))
    assert content(spark, sink) == [(1, 9), (2, 2), (3, 9), (4, 4)]


def test_deletes_remove_what_meets_the_condition(spark: SparkSession, sink: Sink, rows: Any) -> None:
    sink.append(TABLE, rows((1, 1), (1, 2), (2, 1), (3, 1)))
    sink.delete(TABLE, "bucket IN (2, 3)")
    assert content(spark, sink) == [(1, 1), (1, 2)]
    sink.delete(TABLE, "bucket = 1 AND (mark < 2 OR mark = 7)")
    assert content(spark, sink) == [(1, 2)]
    sink.delete(TABLE, "true")
    assert content(spark, sink) == []


def test_columns_are_added_and_rows_before_them_have_none(spark: SparkSession, sink: Sink, rows: Any) -> None:
    sink.append(TABLE, rows((1, 1)))
    wider = {**COLUMNS, "n$20m": "bigint", "e_x": "array<struct<k:tinyint,t:bigint,v:float>>"}
    sink.prepare(TABLE, wider, "bucket")
    sink.prepare(TABLE, wider, "bucket")
    added = "array(named_struct('k', 3Y, 't', 1L, 'v', float('-0.0')))"
    sink.append(TABLE, spark.sql(f"SELECT 2 AS bucket, 5L AS `n$20m`, {added} AS e_x"))
    found = spark.sql(f"SELECT bucket, mark, `n$20m`, e_x[0].k, string(e_x[0].v) FROM {sink.relation(TABLE)}").collect()
    assert sorted(map(tuple, found)) == [(1, 1, None, None, None), (2, None, 5, 3, "-0.0")]
    assert set(spark.table(sink.relation(TABLE)).columns) == set(wider)


def test_a_view_over_a_table_shows_every_commit(spark: SparkSession, sink: Sink, rows: Any) -> None:
    mark = f"(SELECT max(mark) FROM {sink.relation(TABLE)} WHERE bucket = -1)"
    spark.sql("CREATE DATABASE IF NOT EXISTS contract")
    spark.sql(f"CREATE OR REPLACE VIEW contract.v AS SELECT *, {mark} AS m FROM {sink.relation(TABLE)}")
    for at in (1, 2):
        sink.replace_buckets(TABLE, rows((-1, at), (1, at)))
        assert spark.table("contract.v").select("bucket", "m").orderBy("bucket").collect() == [(-1, at), (1, at)]


def test_readers_never_see_a_mark_that_is_newer_than_the_rows(spark: SparkSession, sink: Sink, rows: Any) -> None:
    """The text of the landed view reads a table twice: its mark, and its rows."""
    sink.replace_buckets(TABLE, rows((-1, 0), (1, 0)))
    relation = sink.relation(TABLE)
    text = (
        f"SELECT mark, (SELECT coalesce(max(mark), 0) FROM {relation} WHERE bucket = -1) AS m "
        f"FROM {relation} WHERE bucket = 1"
    )
    failed: list[BaseException] = []
    ended = threading.Event()

    def write() -> None:
        try:
            for at in range(1, 5):
                sink.replace_buckets(TABLE, rows((-1, at), (1, at)))
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while not ended.is_set():
        seen += spark.sql(text).collect()
    writer.join()
    assert not failed and seen
    assert all(row["mark"] >= row["m"] for row in seen), seen
    assert [tuple(row) for row in spark.sql(text).collect()] == [(4, 4)]


def test_writers_at_the_same_time_lose_nothing(spark: SparkSession, sink: Sink, warehouse: str, rows: Any) -> None:
    """As landing and maintenance are: one appends, the other deletes and compacts."""
    sink.append(TABLE, rows(*[(-5, at) for at in range(4)]))
    other = FORMATS[_name_of(sink)].open(spark, warehouse)
    failed: list[BaseException] = []

    def keep_house() -> None:
        try:
            other.delete(TABLE, "bucket = -5 AND mark < 2")
            other.compact(TABLE)
            other.delete(TABLE, "bucket = -5 AND mark < 3")
        except BaseException as error:
            failed.append(error)

    keeper = threading.Thread(target=keep_house)
    keeper.start()
    for at in range(3):
        sink.append(TABLE, rows((at, at), (-5, 10 + at)))
    keeper.join()
    assert not failed, failed
    expected = [(-5, 3), *((-5, 10 + at) for at in range(3)), *((at, at) for at in range(3))]
    assert content(spark, sink) == expected


def test_compaction_and_vacuum_change_no_row(
    spark: SparkSession, sink: Sink, warehouse: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.sinks.sink._MOST_AT_ONCE", 1)
    for at in range(3):
        sink.append(TABLE, rows(*[(1, at * 10 + n) for n in range(4)], (2, at), files=2))
    before, (many, size) = content(spark, sink), sink.files(TABLE)
    assert many >= 6 and size > 0
    assert sink.compact(TABLE, through=1) is None
    some, _ = sink.files(TABLE)
    assert many > some > 2, "of some partitions"
    sink.append(TABLE, rows((1, 99)))
    before = content(spark, sink)
    assert sink.compact(TABLE) == 1 and sink.files(TABLE)[0] == some, "a portion, and where it ended"
    compact_all(sink, TABLE)
    few, _ = sink.files(TABLE)
    assert few == 2 and sink.compact(TABLE) is None
    stored = _data_files(warehouse)
    sink.vacuum(TABLE, 0)
    assert _data_files(warehouse) == few < stored
    assert content(spark, sink) == before


def test_commits_of_hours_ago_go_from_a_log_that_is_appended_to(
    spark: SparkSession, warehouse: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta keeps those of whole days, and lists them all for each commit: after a day of one every two seconds an
    append took eighteen times its time."""
    monkeypatch.setattr(delta, "_FORGET_EVERY", 3)
    sink = DeltaSink(spark, warehouse)
    sink.prepare(TABLE, COLUMNS, "bucket")
    sink.append(TABLE, rows((1, 1)))
    log = Path(sink.path(TABLE)) / "_delta_log"

    def commits() -> list[int]:
        return sorted(int(file.stem) for file in log.glob("*.json"))

    DeltaTable(sink.path(TABLE)).create_checkpoint()
    for file in log.iterdir():
        os.utime(file, (0, time.time() - 5 * 3600))
    sink.append(TABLE, rows((2, 2)))
    DeltaTable(sink.path(TABLE)).create_checkpoint()
    assert commits() == [0, 1, 2]
    sink.append(TABLE, rows((3, 3)))
    assert commits() == [2, 3], "a checkpoint stands for all before it"
    assert content(spark, sink) == [(1, 1), (2, 2), (3, 3)]
    other = DeltaSink(spark.newSession(), warehouse)
    assert content(spark, other) == [(1, 1), (2, 2), (3, 3)]


def test_sizes_are_told_by_partition(spark: SparkSession, sink: Sink, rows: Any) -> None:
    assert sink.sizes(TABLE) == {}
    sink.append(TABLE, rows((-7, 1), (2, 1)))
    sink.append(TABLE, rows((2, 2)))
    sizes = sink.sizes(TABLE)
    assert set(sizes) == {-7, 2} and sum(sizes.values()) == sink.files(TABLE)[1]
    sink.delete(TABLE, "bucket IN (-7)")
    assert set(sink.sizes(TABLE)) == {2}


def test_what_a_table_does_not_have_is_refused(spark: SparkSession, sink: Sink) -> None:
    sink.append(TABLE, spark.sql("SELECT 1 AS bucket, 1 AS mark"))
    with pytest.raises(Exception, match="unheard"):
        sink.append(TABLE, spark.sql("SELECT 1 AS bucket, 1 AS mark, 1 AS unheard"))
    assert content(spark, sink) == [(1, 1)]


def test_sessions_have_what_their_format_needs(spark: SparkSession) -> None:
    for name, form in FORMATS.items():
        settings = session_settings({"sink": name, "spark.jars": "mine.jar"})
        assert form.settings.items() <= settings.items()
        roots = [str(root) for jars in form.jar_sets for root in jar_set(jars).roots]
        assert form.coordinate in roots, "set-up fetches another jar than the remedy names"
        require_class(spark, form.needs_class, form.coordinate)
    with pytest.raises(LandingError, match=r"no Missing: the jar of a:b:1 is missing; .*--packages a:b:1"):
        require_class(spark, "org.example.Missing", "a:b:1")
    with pytest.raises(ConfigurationError, match="Must be one of delta, iceberg"):
        table_format({"sink": "hudi"})


def test_a_log_without_a_commit_is_no_table_of_deltas(spark: SparkSession, warehouse: str, rows: Any) -> None:
    """A job that is killed while it makes a table leaves that, and the next one makes the table."""
    sink, publisher = DeltaSink(spark, warehouse), DeltaPublisher(spark, warehouse)
    for folder in (sink.path(TABLE), f"{warehouse}/ks/t"):
        (Path(folder) / "_delta_log" / "_staged_commits").mkdir(parents=True)
    assert not sink.exists(TABLE)
    sink.prepare(TABLE, COLUMNS, "bucket")
    sink.append(TABLE, rows((1, 2)))
    assert sink.exists(TABLE) and content(spark, sink) == [(1, 2)]
    assert publisher.schema("ks/t") is None and publisher.turn("ks/t") == 0
    publisher.replace("ks/t", rows((3, 4)), {"of": "it"}, 0, 1000, 1)
    assert publisher.turn("ks/t") == 1 and publisher.note("ks/t") == {"of": "it"}


def test_what_writers_have_said_and_how_much_there_is_stands_in_the_log(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    said = ["an old one", None, '{"a": "\u2028 \\n "commitInfo""}', "the newest"]
    for at, text in enumerate(said):
        written = spark.range(at + 1).write.format("delta").mode("append")
        written = written.option("txnAppId", "ours").option("txnVersion", str(at))
        (written if text is None else written.option("userMetadata", text)).save(path)

    def there() -> tuple[Any, ...]:
        (row,) = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("numFiles", "sizeInBytes").collect()
        return tuple(row)

    def numbers() -> tuple[int | None, int | None]:
        return last_transaction(spark, path, "ours"), last_transaction(spark, path, "nobody's")

    def noted(at_most: int) -> list[str]:
        return [text for commit in newest_commits(spark, path, at_most) if (text := commit.said()) is not None]

    (found, numbered), jobs = _with_jobs(spark, lambda: (extent(spark, path), numbers()))
    assert (found, numbered, jobs) == (there(), (3, None), 0)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").orderBy("version", ascending=False)
    told = [row["userMetadata"] for row in history.collect()]
    assert told == said[::-1]
    assert noted(9) == [text for text in told if text is not None]
    assert noted(3) == told[:2]
    # As upkeep leaves it.
    DeltaTable(path).create_checkpoint()
    for gone in (0, 1):
        (tmp_path / "t" / "_delta_log" / f"{gone:020}.json").unlink()
    assert noted(9) == told[:2]
    # Beside whose commits nothing is noted.
    write_deltalake(path, DeltaTable(path).to_pyarrow_table(), mode="append")
    assert extent(spark, path) == there() and extent(spark, path)[0] == found[0] + 1
    assert numbers() == (3, None)


def _with_jobs(spark: SparkSession, work: Callable[[], Any]) -> tuple[Any, int]:
    """What some work gives, and how many of Spark's jobs it has run."""
    context, group = spark.sparkContext, uuid.uuid4().hex
    context.setLocalProperty("spark.jobGroup.id", group)
    try:
        given = work()
        spark.range(1).collect()
        until(lambda: bool(context.statusTracker().getJobIdsForGroup(group)), 60, "a job that comes after it")
        return given, len(context.statusTracker().getJobIdsForGroup(group)) - 1
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("form", [name for name, form in sorted(FORMATS.items()) if form.publisher is not None])
def test_what_somebody_else_has_written_is_not_replaced(spark: SparkSession, warehouse: str, form: str) -> None:
    made = FORMATS[form].publisher
    assert made is not None
    publisher = made(spark, warehouse)
    place, rows = publisher.relation("ks/t"), publisher.session.sql("SELECT 1 AS id")
    if form == "iceberg":
        publisher.session.sql(f"CREATE NAMESPACE {place.rpartition('.')[0]}")
    publisher.session.sql(f"CREATE TABLE {place} (id int) USING {form}")
    publisher.session.sql(f"INSERT INTO {place} VALUES (7)")
    with pytest.raises(LandingError, match="there already, and not by landing"):
        publisher.replace("ks/t", rows, {"of": 1}, 0, 1000, 1)
    assert [row["id"] for row in publisher.session.table(place).collect()] == [7]
    publisher.session.sql(f"DELETE FROM {place}")
    publisher.replace("ks/t", rows, {"of": 1}, 0, 1000, 1)
    publisher.replace("ks/t", rows, {"of": 2}, 0, 1000, 2)
    assert publisher.note("ks/t") is not None and publisher.session.table(place).count() == 1


def test_a_table_of_ours_whose_notes_have_expired_is_published_on(spark: SparkSession, warehouse: str) -> None:
    """It was taken for somebody else's, for ever: of a table that was compacted, and then rested for a week."""
    publisher = IcebergPublisher(spark, warehouse)
    rows = publisher.session.sql("SELECT 1 AS id")
    publisher.replace("ks/t", rows, {"of": 1}, 0, 1000, 1)
    catalog, name = publisher.relation("ks/t").split(".", 1)

    def call(what: str) -> None:
        publisher.session.sql(f"CALL {catalog}.system.{what}").collect()

    call(f"rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    publisher.vacuum("ks/t", 0)
    assert publisher.note("ks/t") == {"of": 1, "turn": 1}, "landing's own upkeep keeps it"
    call(f"expire_snapshots(table => '{name}', older_than => now(), retain_last => 1)")
    assert publisher.note("ks/t") is None
    publisher.replace("ks/t", rows, {"of": 2}, 0, 1000, publisher.turn("ks/t") + 1)
    assert publisher.note("ks/t") == {"of": 2, "turn": 1} and publisher.session.table(f"{catalog}.{name}").count() == 1


def test_an_iceberg_table_that_its_users_have_brought_to_a_later_format_gets_other_columns(
    spark: SparkSession, warehouse: str
) -> None:
    """`Cannot downgrade v3 table to v2`, it said from the next column with another type on, and it stayed behind."""
    publisher = IcebergPublisher(spark, warehouse)
    publisher.replace("ks/t", publisher.session.sql("SELECT 1 AS id"), {}, 0, 1000, 1)
    mine = "'format-version' = '3', 'write.merge.mode' = 'copy-on-write'"
    publisher.session.sql(f"ALTER TABLE {publisher.relation('ks/t')} SET TBLPROPERTIES ({mine})")
    publisher.replace("ks/t", publisher.session.sql("SELECT 'a' AS id"), {}, 0, 1000, publisher.turn("ks/t") + 1)
    loaded = publisher._sink.loaded("ks/t")
    assert publisher.session.table(publisher.relation("ks/t")).collect() == [("a",)]
    assert loaded.operations().current().formatVersion() == 3
    assert loaded.properties().get("write.merge.mode") == "copy-on-write"


def test_deltas_versions_can_be_read_for_as_long_as_they_are_to_be_kept(spark: SparkSession, warehouse: str) -> None:
    """Delta itself keeps none for longer than a week, and reads none that is older; its log it keeps for a month, which
    each publication listed: of one a minute 43,000 commits."""
    publisher = DeltaPublisher(spark, warehouse)
    rows = publisher.session.sql("SELECT 1 AS id")
    publisher.replace("ks/t", rows, {"of": 1}, 0, 1000, 1)

    def told(retention_days: int | None, do: Callable[[str], None] = publisher.tidy) -> list[str | None]:
        publisher.retention_ms = None if retention_days is None else retention_days * 86_400_000
        do("ks/t")
        there = properties_of(spark, publisher.path("ks/t"))
        return [there.get(f"delta.{name}RetentionDuration") for name in ("deletedFile", "log")]

    assert told(None) == [None, None]
    assert told(7) == told(1) == [None, "interval 604800 seconds"]
    assert told(10) == ["interval 864000 seconds"] * 2
    assert told(60, lambda table: publisher.vacuum(table, 60 * 86_400_000)) == ["interval 5184000 seconds"] * 2
    assert told(7) == ["interval 604800 seconds"] * 2
    path = publisher.path("ks/t")
    for name in ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration"):
        spark.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('{name}')")
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 9 days')"
    )
    assert told(7) == ["interval 9 days", None], "its users have chosen, and Delta keeps no log for less"
    publisher.replace("ks/new", rows, {"of": 1}, 0, 1000, 1)
    there = properties_of(spark, publisher.path("ks/new"))
    assert there["delta.logRetentionDuration"] == "interval 604800 seconds"
    assert spark.read.format("delta").option("versionAsOf", 0).load(publisher.path("ks/t")).count() == 1


def test_a_table_with_the_name_of_one_that_landing_keeps_in_iceberg_is_refused(
    spark: SparkSession, warehouse: str
) -> None:
    """Landing added its columns to the published table, and deleted it where it had a history of that name."""
    sink, publisher = FORMATS["iceberg"].open(spark, warehouse), IcebergPublisher(spark, warehouse)
    rows = publisher.session.sql("SELECT 1 AS id")
    publisher.replace("ks/t__history", rows, {"of": 1}, 0, 1000, 1)
    for asked in (sink.exists, lambda name: sink.prepare(name, COLUMNS, "bucket")):
        with pytest.raises(LandingError, match=r"ks\.t__history of the catalog .* is not what landing keeps"):
            asked("ks/t/history")
    publisher.replace("ks/t__changelog", rows, {"of": 1}, 0, 1000, 1)
    publisher.replace("ks/t__state", rows, {"of": 1}, 0, 1000, 1)
    sink.prepare("ks/u/changelog", COLUMNS, "bucket")
    with pytest.raises(LandingError, match="u__state` is there already, and not by landing"):
        publisher.replace("ks/u__state", rows, {"of": 1}, 0, 1000, 1)
    with pytest.raises(LandingError, match="u__changelog` is there already, and not by landing"):
        publisher.replace("ks/u__changelog", rows, {"of": 1}, 0, 1000, 1)


def test_icebergs_published_table_refuses_who_was_paused_before_the_commit_itself(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything was checked and written, and only then somebody else publishes. No lock of a file system helps."""
    paused, other = IcebergPublisher(spark, warehouse), IcebergPublisher(spark, warehouse)
    for publisher in (paused, other):
        monkeypatch.setattr(publisher._sink, "_locks", None)

    def merge(publisher: IcebergPublisher, turn: int, *values: str) -> None:
        frame = publisher.session.sql(f"SELECT * FROM VALUES {', '.join(values)} AS v(id, v, gone)")
        publisher.merge("ks/t", frame, "t.id = s.id", ["id", "v"], "gone", {"of": values[0]}, turn)

    def replace(publisher: IcebergPublisher, turn: int, *values: str, columns: str = "id, v") -> None:
        frame = publisher.session.sql(f"SELECT * FROM VALUES {', '.join(values)} AS v({columns})")
        publisher.replace("ks/t", frame, {"of": values[0]}, 0, 1000, turn)

    def content() -> tuple[list[tuple[int, str]], Any]:
        found = other.session.sql(f"SELECT id, v FROM {other.relation('ks/t')} ORDER BY id").collect()
        note = other.note("ks/t")
        return [(row["id"], row["v"]) for row in found], note and note["of"]

    assert paused.turn("ks/t") == 0
    replace(paused, 1, "(1, 'a')", "(2, 'a')")
    late: list[tuple[Callable[[int], None], Callable[[int], None]]] = [
        (
            lambda turn: merge(paused, turn, "(7, 'ghost', false)"),
            lambda turn: merge(other, turn, "(1, 'b', false)", "(8, 'b', true)"),
        ),
        (
            lambda turn: replace(paused, turn, "(7, 'ghost')"),
            lambda turn: merge(other, turn, "(2, 'c', false)", "(3, 'c', false)"),
        ),
        (
            lambda turn: merge(paused, turn, "(7, 'ghost', false)"),
            lambda turn: replace(other, turn, "(1, 'b', 1)", "(2, 'd', 2)", columns="id, v, w"),
        ),
        (
            lambda turn: merge(paused, turn, "(7, 'ghost', false)"),
            # Another type: a new table as a whole, which takes no branch away.
            lambda turn: replace(other, turn, "(1L, 'b', 1)", "(2L, 'd', 2)", columns="id, v, w"),
        ),
    ]
    forward = paused._forward
    for turn, (commit, others) in enumerate(late, 2):
        assert paused.turn("ks/t") == other.turn("ks/t") == turn - 1

        def after_the_other(*arguments: Any, turn: int = turn, first: Callable[[int], None] = others) -> int:
            first(turn)
            return forward(*arguments)

        with monkeypatch.context() as patch, pytest.raises(LostRaceError):
            patch.setattr(paused, "_forward", after_the_other)
            commit(turn)
    assert content() == ([(1, "b"), (2, "d")], "(1L, 'b', 1)")
    # A number that nobody has used is not enough: it must be the very commit that one goes on from.
    with pytest.raises(LostRaceError):
        merge(paused, 9, "(7, 'ghost', false)")
    assert paused.turn("ks/t") == 5
    merge(paused, 6, "(1, 'e', true)")
    assert content() == ([(2, "d")], "(1, 'e', true)")
    refs = other.session.sql(f"SELECT name FROM {other.relation('ks/t')}.refs").collect()
    assert [row["name"] for row in refs] == ["main"], "branches that nobody took are gone"


def test_an_iceberg_table_that_rests_is_found_without_spark_after_a_crash_between_two_files(
    spark: SparkSession, warehouse: str
) -> None:
    """Of a job that was killed as it wrote the file that names the newest version. Spark goes by the other files, and
    a commit writes it anew: of a table without one PyIceberg knew nothing, or the version before, for as long."""
    first = IcebergPublisher(spark, warehouse)
    for turn, count in enumerate((1, 2, 3), 1):
        first.replace("ks/t", first.session.range(count), {}, 0, 1000, turn)
    folder = Path(warehouse, "ks/t")
    metadata = folder / "metadata"
    hint, checksum = metadata / "version-hint.text", metadata / ".version-hint.text.crc"
    newest = int(hint.read_text())

    def found_after(text: str | None, with_checksum: bool = False) -> int:
        hint.unlink() if text is None else hint.write_text(text)
        if not with_checksum:
            checksum.unlink()
        (metadata / "5f0c-version-hint.temp").write_text("")
        assert IcebergPublisher(spark, warehouse).turn("ks/t") == 3
        assert hint.read_text() == str(newest)
        return int(StaticTable.from_metadata(str(folder)).scan().to_arrow().num_rows)

    assert found_after(None) == found_after(None, with_checksum=True) == found_after("") == 3
    assert found_after(str(newest - 1)) == found_after(str(newest - 1), with_checksum=True) == 3
    # Of a writer that went on after a pause in which others have committed, and deleted what it names.
    assert found_after(str(newest + 7)) == 3

    written = hint.stat().st_mtime_ns
    IcebergPublisher(spark, warehouse).turn("ks/t")
    assert hint.stat().st_mtime_ns == written, "what is right stays"
    hint.unlink()
    with first._sink._alone("ks/t"):
        assert IcebergPublisher(spark, warehouse).turn("ks/t") == 3
    assert not hint.exists(), "who is writing the table writes it"
    first.stay("ks/t", {}, 4)
    assert int(StaticTable.from_metadata(str(folder)).scan().to_arrow().num_rows) == 3


def test_a_lock_of_a_process_that_stands_still_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as held, (tmp_path / "lock").open("w") as wanted:
        iceberg._lock(held, "ks/t", 0.1)
        with pytest.raises(LandingError, match=r"ks/t: another process is writing it.*continue or kill it.*lock"):
            iceberg._lock(wanted, "ks/t", 0.1)
        fcntl.flock(held, fcntl.LOCK_UN)
        iceberg._lock(wanted, "ks/t", 0.1)


def _name_of(sink: Sink) -> str:
    return next(name for name, form in FORMATS.items() if isinstance(sink, form.open))  # type: ignore[arg-type]


def _data_files(warehouse: str) -> int:
    return sum(1 for _ in Path(warehouse).rglob("*.parquet") if "_delta_log" not in str(_))
