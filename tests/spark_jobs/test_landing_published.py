"""The published table as others read it: delta-rs, polars and pandas, without Spark, against what has landed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError
from pyiceberg.table import StaticTable
from pyspark.sql import Row, SparkSession

from connector.errors import LandingError
from connector.values import parse_type
from spark_jobs.jobs.rebuilding import rebuild
from spark_jobs.jobs.upkeep import maintain
from spark_jobs.land import land
from spark_jobs.model import present, stored_type
from spark_jobs.sinks import LostRaceError
from spark_jobs.sinks.delta_published import DeltaPublisher
from spark_jobs.stream.progress import Progress
from spark_jobs.tables import published_table
from spark_jobs.tables.landed_table import LandedTable, Restored
from spark_jobs.tables.notes import Known
from spark_jobs.tables.published_table import PublishedTable, Stand
from spark_jobs.tables.registration import open_publisher, open_sink
from spark_jobs.tables.shown_values import same
from tests.spark_jobs.landing_feed import cell, change, produce, schema_record
from tests.spark_jobs.landing_way import TABLE, Way
from tests.spark_jobs.published_rows import read_elsewhere

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.usefixtures("interpreted", "planned_once"),
    pytest.mark.timeout(1800),
    # py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def way(way: Way) -> Way:
    way.config["publish.interval.ms"] = 60_000
    return way


class Readers:
    """The table of a way as it is read without Spark."""

    def __init__(self, way: Way) -> None:
        self.path = f"{way.config['warehouse']}/ks/t"

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.path)

    def rows(self) -> list[tuple[Any, ...]]:
        """By delta-rs and Arrow; polars and pandas must see the same, where names are not mapped."""
        read = read_elsewhere(self.path, "delta")
        rows = [tuple(dict(v) if isinstance(v, list) else v for v in row.values()) for row in read.to_pylist()]
        if "delta.columnMapping.mode" in self.table.metadata().configuration:
            with pytest.raises(DeltaProtocolError, match="columnMapping"):
                self.table.to_pandas()
            return sorted(rows, key=repr)
        assert polars.read_delta(self.path).height == len(rows)
        if "deletionVectors" not in self.features:
            assert len(self.table.to_pandas()) == len(rows)
        return sorted(rows, key=repr)

    @property
    def features(self) -> list[str]:
        return list(self.table.protocol().reader_features or [])

    def note(self) -> dict[str, Any]:
        """What the last commit says."""
        (commit,) = self.table.history(1)
        found: dict[str, Any] = json.loads(commit["userMetadata"])["scylla-cdc"]
        return found


_ENTRY = "array(named_struct('key', {}, 'value', {}))"
_PAIR = "named_struct('field_0', 1, 'field_1', {})"


@pytest.mark.parametrize(
    ("cql", "one", "other"),
    [
        ("map<blob, int>", _ENTRY.format("X'CAFE'", 1), _ENTRY.format("X'CAFF'", 1)),
        (
            "map<frozen<tuple<int, text>>, double>",
            _ENTRY.format(_PAIR.format("'a'"), "0d"),
            _ENTRY.format(_PAIR.format("'a'"), "-0d"),
        ),
        ("map<frozen<list<int>>, int>", _ENTRY.format("array(1, 2)", 1), _ENTRY.format("array(1)", 1)),
        (
            "frozen<map<frozen<map<blob, int>>, int>>",
            _ENTRY.format(_ENTRY.format("X'01'", 1), 1),
            _ENTRY.format(_ENTRY.format("X'01'", 2), 1),
        ),
        (
            "frozen<tuple<int, frozen<list<frozen<map<blob, int>>>>>>",
            _PAIR.format("array(" + _ENTRY.format("X'01'", 1) + ")"),
            _PAIR.format("CAST(NULL AS array<array<struct<key:binary,value:int>>>)"),
        ),
    ],
    ids=["bytes", "tuples", "lists", "maps", "within"],
)
def test_shown_maps_are_compared_by_what_they_hold(spark: SparkSession, cql: str, one: str, other: str) -> None:
    """As Spark writes them, keys that are bytes or tuples are told by where they are in memory."""
    type_ = parse_type(cql)
    rows = f"SELECT {one} AS a, {one} AS b, {other} AS c, CAST(NULL AS {stored_type(type_)}) AS n"
    # Not as constants: each is made anew.
    shown = spark.sql(rows).localCheckpoint().selectExpr(*(f"{present(type_, name)} AS {name}" for name in "abcn"))
    answers = shown.selectExpr(*(same(type_, left, right) for left, right in ("ab", "ac", "an", "nn"))).first()
    assert answers is not None and tuple(answers) == (True, False, False, True)


@pytest.mark.parametrize("cql", ["float", "double"])
def test_shown_numbers_are_the_same_where_their_texts_are(spark: SparkSession, cql: str) -> None:
    values = [None, "0.0", "-0.0", "NaN", "1.5", "-1.5"]
    pairs = [(one, other) for one in values for other in values]
    frame = spark.createDataFrame(pairs, "a string, b string")
    numbers = frame.selectExpr(*(f"CAST({name} AS {cql}) AS {name}" for name in "ab")).localCheckpoint()
    answers = numbers.selectExpr(f"{same(parse_type(cql), 'a', 'b')} AS same").collect()
    assert [row["same"] for row in answers] == [one == other for one, other in pairs]


def merged(time: int, pk: int, ck: int | None, **cells: Any) -> bytes:
    return change("u", time, {"pk": pk, "ck": ck, **{name: cell(value) for name, value in cells.items()}})


def _published(spark: SparkSession, way: Way) -> tuple[PublishedTable, Known, Stand]:
    publisher = open_publisher(spark, way.config)
    assert publisher is not None
    published = PublishedTable(publisher, LandedTable(spark, open_sink(spark, way.config), "ks", "t"))
    known, stand = published.landed.known(), published.stand()
    assert known is not None and stand is not None
    return published, known, stand


def _is_behind(spark: SparkSession, way: Way) -> bool:
    published, known, stand = _published(spark, way)
    return published.is_behind(known, stand)


def test_everybody_reads_what_landed_and_only_what_changed_is_written(spark: SparkSession, way: Way) -> None:
    readers = Readers(way)
    delta = {"mode": "modify", "elements": [{"key": "k", "value": 1}]}
    rows = [change("c", 1000, {"pk": pk, "ck": 1, "v": cell(f"v{pk}"), "m": cell(delta)}) for pk in range(6)]
    produce(way.servers, [(way.data, value) for value in rows])
    way.land(spark)
    assert readers.rows() == way.rows(spark) and len(readers.rows()) == 6
    assert sum(sum(parts.values()) for parts in readers.note()["positions"].values()) == 6
    assert "deletionVectors" not in readers.features, "every reader can read a table that is small"

    first = readers.table.version()
    changes = [merged(2000, 1, 1, v="new"), merged(2000, 2, None, s="all"), change("d", 2000, {"pk": 3, "ck": 1})]
    produce(way.servers, [(way.data, value) for value in (*changes, change("c", 2000, {"pk": 9, "ck": 9}))])
    way.land(spark, **{"merge.every.rows": 1})
    assert readers.rows() == way.rows(spark)
    feed = readers.table.load_cdf(starting_version=first + 1).read_all()
    kinds = sorted(kind for kind in feed["_change_type"].to_pylist() if kind != "update_preimage")
    assert kinds == ["delete", "insert", "update_postimage", "update_postimage"], "and no row that stayed as it was"
    assert len(DeltaTable(readers.path, version=first).to_pyarrow_table()) == 6, "yesterday's rows are still there"

    files = readers.table.file_uris()
    produce(way.servers, [(way.data, changes[0]), (way.data, b"no record")])
    way.land(spark)
    assert readers.table.file_uris() == files, "a repeated change changes nothing"
    assert sum(sum(parts.values()) for parts in readers.note()["positions"].values()) == 12, "and is told of"
    version = readers.table.version()
    way.land(spark, **{"merge.every.rows": 1})
    assert readers.table.version() == version, "nothing has landed"
    assert not _is_behind(spark, way), "what was merged is published"
    produce(way.servers, [(way.data, merged(3000, 1, 1, v="newer"))])
    way.land(spark, **{"publish.interval.ms": 0})
    assert _is_behind(spark, way)


def test_many_changes_are_published_as_few_are(spark: SparkSession, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_table, "_MOST_NEAR", 0)
    readers = Readers(way)
    rows = [change("c", 1000, {"pk": pk, "ck": ck, "v": cell(f"v{pk}")}) for pk in range(4) for ck in range(2)]
    produce(way.servers, [(way.data, value) for value in rows])
    way.land(spark)
    first = readers.table.version()
    # What it changes is not merged yet, and was published before.
    produce(way.servers, [(way.data, merged(2000, 1, None, s="all")), (way.data, merged(2000, 2, 1, v="new"))])
    way.land(spark)
    assert readers.rows() == way.rows(spark) and len(readers.rows()) == 8
    feed = readers.table.load_cdf(starting_version=first + 1).read_all()
    assert feed["_change_type"].to_pylist().count("update_postimage") == 3, "two rows have a static, one a new value"
    # This is merged before it is published.
    produce(way.servers, [(way.data, change("d", 3000, {"pk": 2, "ck": 1})), (way.data, merged(3000, 9, 9, v="v"))])
    way.land(spark, **{"merge.every.rows": 1})
    assert readers.rows() == way.rows(spark) and len(readers.rows()) == 8


def test_other_columns_and_another_table_are_published_too(spark: SparkSession, way: Way) -> None:
    readers = Readers(way)
    point = f"{TABLE}; u regular frozen<point>"
    way.schema(schema_record("ks", "t", point, version="1 as well", types={"point": [["x", "int"]]}))
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("a"), "u": cell({"x": 7})}))])
    produce(way.servers, [(way.data, merged(1000, 2, 2, v="gone"))])
    way.land(spark)
    types = {"point": [["x", "int"], ["y", "int"]]}
    way.schema(schema_record("ks", "t", f"{point}; n regular int", version="2", types=types))
    produce(way.servers, [(way.data, merged(1001, 1, 1, n=5))])
    way.land(spark)
    row = dict(zip(readers.table.schema().to_arrow().names, readers.rows()[0]))
    assert (row["n"], row["u"]) == (5, {"x": 7, "y": None})
    anew = [commit for commit in readers.table.history() if commit["operationParameters"].get("mode") == "Overwrite"]
    assert [commit["version"] for commit in anew] == [0], "a user type that got a field makes no other table"
    dropped = [{"name": "v", "type": "text", "dropped_us": 1500}, {"name": "u", "type": "point", "dropped_us": 1500}]
    narrow = TABLE.replace("; v regular text", "") + "; n regular int"
    way.schema(schema_record("ks", "t", narrow, version="3", dropped=dropped))
    way.land(spark)
    assert "v" not in readers.table.schema().to_arrow().names
    assert readers.rows() == way.rows(spark), "a row of nothing but a dropped column is gone"
    # A name that Delta has to map, in the place of another one.
    dropped.append({"name": "n", "type": "int", "dropped_us": 1500})
    mapped = narrow.replace("n regular int", "a,b regular int")
    way.schema(schema_record("ks", "t", mapped, version="4", dropped=dropped))
    produce(way.servers, [(way.data, merged(2000, 1, 1, **{"a,b": 6}))])
    way.land(spark)
    assert "n" not in readers.table.schema().to_arrow().names
    assert readers.rows() == way.rows(spark) and 6 in readers.rows()[0]
    assert readers.table.metadata().configuration["delta.enableChangeDataFeed"] == "true", "it goes on"
    rebuild(spark, way.settings(), way.settings().tables[0], truncated_at_ms=1)
    assert readers.rows(), "until it was landed anew others go on reading what there was"
    way.land(spark)
    assert readers.rows() == way.rows(spark)


def test_keys_that_are_shown_alike_and_columns_named_as_the_feeds_are_published(
    spark: SparkSession, way: Way, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first merge of either failed, and each one after it."""
    way.config["column.types"] = {"ks.t.pk": "decimal(10,2)"}
    columns = "pk partition_key decimal; ck clustering int; v regular text; _change_type regular text"
    way.schema(schema_record("ks", "t", columns, version="2"))
    readers = Readers(way)

    def write(time: int, *keys: str) -> None:
        rows = [{"pk": pk, "ck": 1, "v": cell(f"{pk} at {time}"), "_change_type": cell("a")} for pk in keys]
        produce(way.servers, [(way.data, change("c", time, row)) for row in rows])
        way.land(spark)

    write(1000, "1.0", "1.00", "2.0")
    write(2000, "1.0")
    assert [row[3] for row in readers.rows()] == ["1.0 at 2000", "1.00 at 1000", "2.0 at 1000"]
    write(3000, "2.0", "3")
    assert readers.rows() == way.rows(spark) and len(readers.rows()) == 4
    assert readers.table.metadata().configuration["delta.enableChangeDataFeed"] == "false"
    said = "ks.t is published without a change data feed: _change_type is the name of a column of Delta's"
    assert said in capsys.readouterr().err


def test_a_publication_that_was_cut_off_is_made_up_for(
    spark: SparkSession, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = Readers(way)
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("a")}))])
    way.land(spark)
    with monkeypatch.context() as patch:
        patch.setattr(PublishedTable, "publish", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        produce(way.servers, [(way.data, merged(2000, 1, 1, v="b"))])
        progress = Progress()
        patch.setattr("spark_jobs.land.ATTEMPTS_ONCE", 1)
        assert land(way.settings(**{"merge.every.rows": 1}), True, progress, session=spark) == 1
    assert readers.rows()[0][-1] == "a"
    maintain(spark, way.settings(**{"reader.grace.ms": 0}))
    way.land(spark)
    assert readers.rows() == way.rows(spark) == [(1, 1, None, None, "b")]
    published, known, stand = _published(spark, way)
    assert published.differences(known, stand) == 0
    publisher = published.publisher
    publisher.session.sql(f"UPDATE {publisher.relation('ks/t')} SET v = 'other'")
    assert published.differences(known, stand) == 2, "one that is missing, and one that is too much"
    publisher.session.sql(f"INSERT INTO {publisher.relation('ks/t')} TABLE {publisher.relation('ks/t')}")
    assert published.differences(known, stand) == 3
    assert not Path(readers.path, "changelog").exists(), "nothing is below it that a vacuum would remove"
    warehouse = Path(way.config["warehouse"])
    for name in ("changelog", "state"):
        # As versions without published tables left it.
        (warehouse / "_landing/ks/t" / name).rename(warehouse / "ks/t" / name)
    assert way.rows(spark) == [(1, 1, None, None, "b")]


def _iceberg_table(path: str) -> StaticTable:
    return StaticTable.from_metadata(path)


def _iceberg_rows(path: str) -> list[tuple[Any, ...]]:
    """By PyIceberg; ``u`` is a user type."""
    read = read_elsewhere(path, "iceberg").to_pylist(maps_as_pydicts="strict")
    rows = [{**row, "u": Row(**row["u"])} if row.get("u") else row for row in read]
    return sorted((tuple(row.values()) for row in rows), key=repr)


def test_iceberg_tables_are_published_and_read_without_spark(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = "iceberg"
    table = f"{TABLE}; n regular tinyint; u regular frozen<point>"
    types = {"point": [["x", "int"]]}
    way.schema(schema_record("ks", "t", table, version="2", types=types))
    path = f"{way.config['warehouse']}/ks/t"
    delta = {"mode": "modify", "elements": [{"key": "k", "value": 1}]}
    cells = {"v": cell("a"), "m": cell(delta), "n": cell(5), "u": cell({"x": 7})}
    rows = [change("c", 1000, {"pk": pk, "ck": 1, **cells}) for pk in range(4)]
    produce(way.servers, [(way.data, value) for value in rows])
    way.land(spark)
    assert _iceberg_rows(path) == way.rows(spark) and len(way.rows(spark)) == 4
    types["point"].append(["y", "text"])
    way.schema(schema_record("ks", "t", f"{table}; w regular frozen<list<smallint>>", version="3", types=types))
    changes = [
        merged(2000, 1, 1, v="new", w=[1, 2]),
        change("d", 2000, {"pk": 3, "ck": 1}),
        merged(2000, 9, None, s="x"),
    ]
    produce(way.servers, [(way.data, value) for value in changes])
    way.land(spark, **{"merge.every.rows": 1})
    produce(way.servers, [(way.data, changes[0])])
    way.land(spark)
    assert _iceberg_rows(path) == way.rows(spark)
    first_of_all = [each for each in _iceberg_table(path).snapshots() if each.parent_snapshot_id is None]
    assert len(first_of_all) == 1, "a user type that got a field makes no other table"
    published, known, stand = _published(spark, way)
    publisher = published.publisher
    assert published.differences(known, stand) == 0
    assert sum(sum(parts.values()) for parts in stand.positions.values()) == 8, "a repeated change is told of"
    first = spark.sql(f"SELECT snapshot_id FROM {publisher.relation('ks/t')}.snapshots ORDER BY committed_at").first()
    assert first is not None
    past = spark.sql(f"SELECT * FROM {publisher.relation('ks/t')} VERSION AS OF {first['snapshot_id']}")
    assert past.count() == 4, "yesterday's rows are still there"
    maintain(spark, way.settings(**{"reader.grace.ms": 0}))
    assert _iceberg_rows(path) == way.rows(spark)
    modes = {f"write.{name}.mode": "copy-on-write" for name in ("delete", "merge", "update")}
    chosen = ", ".join(f"'{name}' = '{mode}'" for name, mode in modes.items())
    publisher.session.sql(f"ALTER TABLE {publisher.relation('ks/t')} SET TBLPROPERTIES ({chosen})")
    before = _iceberg_table(path).current_snapshot()
    assert before is not None
    dropped = [{"name": "w", "type": "frozen<list<smallint>>", "dropped_us": 2500}]
    way.schema(schema_record("ks", "t", table, version="4", dropped=dropped, types=types))
    produce(way.servers, [(way.data, merged(3000, 1, 1, v="newer"))])
    way.land(spark)
    assert _iceberg_rows(path) == way.rows(spark)
    assert before.snapshot_id in {each.parent_snapshot_id for each in _iceberg_table(path).snapshots()}, "it goes on"
    told = publisher.session.sql(
        f"CALL {publisher.relation('ks/t').partition('.')[0]}.system.create_changelog_view(table => 'ks.t', "
        f"options => map('start-snapshot-id', '{before.snapshot_id}'), identifier_columns => array('pk', 'ck'))"
    ).collect()[0][0]
    changes = publisher.session.sql(f"SELECT pk, v, _change_type FROM {told} ORDER BY _change_type").collect()
    publisher.session.catalog.dropTempView(told)
    assert [tuple(row) for row in changes] == [(1, "newer", "UPDATE_AFTER"), (1, "new", "UPDATE_BEFORE")]
    dropped.append({"name": "n", "type": "tinyint", "dropped_us": 3500})
    table = table.replace("tinyint", "text")
    way.schema(schema_record("ks", "t", table, version="5", dropped=dropped, types=types))
    way.land(spark)
    assert _iceberg_rows(path) == way.rows(spark)
    assert modes.items() <= _iceberg_table(path).properties.items(), "what users have chosen stays"


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_what_a_paused_job_publishes_late_is_refused(
    spark: SparkSession, way: Way, sink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has computed what to write, and somebody else publishes before it does."""
    way.config["sink"] = sink
    way.config["publish.interval.ms"] = 0
    landed = LandedTable(spark, open_sink(spark, way.config), "ks", "t")

    def publisher() -> PublishedTable:
        opened = open_publisher(spark, way.config)
        assert opened is not None
        return PublishedTable(opened, landed)

    for time, value in enumerate(("a", "b"), 1000):
        produce(way.servers, [(way.data, change("c", time, {"pk": 1, "ck": 1, "v": cell(value)}))])
        way.land(spark)
        restored = landed.restore()
        assert restored.known is not None
        paused = publisher()
        before = paused.stand()
        # The first time the table is made, then a row of it is changed.
        assert (before is None) == (value == "a")
        step = "replace" if before is None else "merge"
        commit = getattr(paused.publisher, step)

        with monkeypatch.context() as patch, pytest.raises(LostRaceError):
            patch.setattr(paused.publisher, step, _after(publisher(), restored, commit))
            paused.publish(restored.known, before, restored.segment - 1, {(way.data, 0): 10**6})
        stand = paused.stand()
        assert stand is not None and stand.covers(restored.positions)
        assert not stand.covers({(way.data, 0): 10**6}), "what it would have said of the table is not there either"
        assert paused.differences(restored.known, stand) == 0
    # It may find its own commit, of which it was not told the outcome, and goes on from there.
    produce(way.servers, [(way.data, change("d", 2000, {"pk": 1, "ck": 1}))])
    way.land(spark)
    restored = landed.restore()
    assert restored.known is not None
    paused.publish(restored.known, stand, restored.segment - 1, restored.positions)
    own = paused.stand()
    assert own is not None and own.own and paused.differences(restored.known, own) == 0


def _after(other: PublishedTable, restored: Restored, commit: Callable[..., None]) -> Callable[..., None]:
    """The commit, which another job's comes before."""

    def late(*arguments: Any) -> None:
        assert restored.known is not None
        other.publish(restored.known, other.stand(), restored.segment - 1, restored.positions)
        commit(*arguments)

    return late


def test_a_published_table_has_its_name_in_a_catalog(spark: SparkSession, way: Way) -> None:
    way.config["publish.catalog"] = "spark_catalog"
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 1, "ck": 1, "v": cell("a")}))])
    way.land(spark)
    try:
        assert spark.catalog.getTable("spark_catalog.ks.t").tableType == "EXTERNAL"
        produce(way.servers, [(way.data, merged(2000, 2, 2, v="b"))])
        way.land(spark, **{"publish.interval.ms": 0})
        assert len(way.rows(spark)) == 1, "what others see is a publication behind"
        assert spark.table("ks.t__live").count() == 2
        other = DeltaPublisher(spark, f"{way.config['warehouse']}/moved")
        other.replace("ks/t", other.session.range(20), {"of": 1}, 1, 1000, 1)
        with pytest.raises(LandingError, match=r"has its files in file:.*, not in .*/moved/ks/t: drop it there"):
            other.enroll("ks/t", "`spark_catalog`.`ks`.`t`")
    finally:
        spark.sql("DROP TABLE IF EXISTS spark_catalog.ks.t")
        spark.sql("DROP VIEW IF EXISTS ks.t__live")


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_what_others_do_to_the_rows_is_told_and_made_up_for(
    spark: SparkSession, way: Way, sink: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of restored partitions stayed as they were restored until somebody changed them in the source."""
    way.config["sink"] = sink
    path = f"{way.config['warehouse']}/ks/t"

    def land(said: str, *changes: bytes) -> None:
        produce(way.servers, [(way.data, value) for value in changes])
        way.land(spark)
        err = capsys.readouterr().err
        assert (said in err) if said else "somebody else" not in err, err
        rows = [tuple(row.values()) for row in read_elsewhere(path, sink).to_pylist()]
        assert sorted(rows, key=repr) == way.rows(spark) != []

    land("", *(change("c", 1000, {"pk": pk, "ck": 1, "v": cell("a")}) for pk in range(3)))
    published, _, _ = _published(spark, way)
    session, relation = published.publisher.session, published.publisher.relation("ks/t")
    if sink == "delta":
        restore, told = f"RESTORE TABLE {relation} TO VERSION AS OF 0", "RESTORE in its version"
        compact, deleted = f"OPTIMIZE {relation}", "DELETE in its version"
    else:
        first = session.sql(f"SELECT snapshot_id FROM {relation}.snapshots").collect()[0][0]
        catalog = relation.partition(".")[0]
        restore, told = (
            f"CALL {catalog}.system.rollback_to_snapshot('ks.t', {first})",
            f"go back to its snapshot {first}",
        )
        compact = f"CALL {catalog}.system.rewrite_data_files(table => 'ks.t', options => map('min-input-files', '1'))"
        deleted = "rows in its snapshot"
    land("", merged(2000, 0, 1, v="b"), change("d", 2000, {"pk": 1, "ck": 1}))
    session.sql(restore)
    newest = DeltaTable(path).version() if sink == "delta" else 0
    land(told)
    if sink == "delta":
        feed = pyarrow.table(DeltaTable(path).load_cdf(starting_version=newest + 1)).to_pylist()
        assert {row["pk"] for row in feed} == {0, 1}, "of what is as it was nobody is told"
    session.sql(compact)
    land("", merged(3000, 0, 1, v="c"))
    # Rows that are there twice are not told apart by their key.
    session.sql(f"INSERT INTO {relation} TABLE {relation}")
    session.sql(f"DELETE FROM {relation} WHERE pk = 0")
    land(deleted, merged(4000, 2, 1, v="d"))
    if sink == "iceberg":
        # Delta takes it of a table with a feature that delta-rs reads no table with.
        session.sql(f"ALTER TABLE {relation} ALTER COLUMN ck TYPE bigint")
        land("is written anew as a whole: ck is bigint in it, and int in the source", merged(5000, 2, 1, v="e"))
    session.sql(f"ALTER TABLE {relation} ADD COLUMNS (mine string)")
    land("somebody else did ADD COLUMN mine")
    # It came again without its values, but for those that were written since.
    if sink == "delta":
        session.sql(f"ALTER TABLE {relation} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    session.sql(f"ALTER TABLE {relation} DROP COLUMN v")
    land("somebody else did DROP COLUMN v")


def test_an_iceberg_table_stays_landings_own_whatever_is_done_to_it(spark: SparkSession, way: Way) -> None:
    """Landing ended with `NoneType`, took its own table for somebody else's, and did not make it again."""
    way.config["sink"] = "iceberg"
    path = f"{way.config['warehouse']}/ks/t"
    publisher: Any = open_publisher(spark, way.config)
    relation = publisher.relation("ks/t")
    catalog = relation.partition(".")[0]

    def land(*changes: bytes) -> None:
        produce(way.servers, [(way.data, value) for value in changes])
        way.land(spark)
        assert _iceberg_rows(path) == way.rows(spark) != []

    publisher.session.sql(f"CREATE NAMESPACE {catalog}.ks")
    publisher.session.sql(f"CREATE TABLE {relation} (id int) USING iceberg")
    land(*(merged(1000, pk, 1, v="a") for pk in range(3)))
    # Its users' choice, and their upkeep: of the commits with notes none is left.
    modes = ", ".join(f"'write.{name}.mode' = 'copy-on-write'" for name in ("delete", "merge", "update"))
    publisher.session.sql(f"ALTER TABLE {relation} SET TBLPROPERTIES ({modes})")
    rewritten = "rewrite_data_files(table => 'ks.t', options => map('rewrite-all', 'true'))"
    publisher.session.sql(f"CALL {catalog}.system.{rewritten}")
    older = "older_than => TIMESTAMP '2100-01-01 00:00:00'"
    publisher.session.sql(f"CALL {catalog}.system.expire_snapshots(table => 'ks.t', {older}, retain_last => 1)")
    assert publisher.note("ks/t") is None
    land(merged(2000, 1, 1, v="b"))
    snapshots = _iceberg_table(path).snapshots()
    written = [each.summary.operation.value for each in snapshots if each.summary is not None]
    assert written == ["replace", "append", "overwrite"], "what differs is written, not all of it"
    published, known, stand = _published(spark, way)
    publisher.session.sql(f"DROP TABLE {relation}")
    assert published.is_changed_meanwhile(known)
    published.publish(known, stand, stand.segment, {})
    assert _iceberg_rows(path) == way.rows(spark)


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_what_others_do_while_a_publication_is_made_is_found_by_the_next(
    spark: SparkSession, way: Way, sink: str
) -> None:
    """Delta takes two commits that touch no file in common, and to Iceberg's table ours is added to theirs."""
    way.config["sink"] = sink
    way.config["publish.interval.ms"] = 0
    landed = LandedTable(spark, open_sink(spark, way.config), "ks", "t")
    publisher = open_publisher(spark, way.config)
    assert publisher is not None
    published = PublishedTable(publisher, landed)
    for time in (1000, 2000):
        produce(way.servers, [(way.data, merged(time, 1, 1, v=f"at {time}"))])
        way.land(spark)
        restored, stand = landed.restore(), published.stand()
        assert restored.known is not None
        assert stand is None or not published.is_changed_by_others(restored.known)
        if stand is not None:
            publisher.session.sql(f"INSERT INTO {publisher.relation('ks/t')} VALUES (7, 7, null, null, 'theirs')")
            publisher.stay("ks/t", {"lineage": stand.lineage}, publisher.turn("ks/t") + 1)
            assert published.is_changed_by_others(restored.known), "though the last commit is ours"
            published.publish(restored.known, published.stand(), restored.segment - 1, restored.positions)
            assert not published.is_changed_by_others(restored.known), "and once"
        else:
            published.publish(restored.known, stand, restored.segment - 1, restored.positions)


def test_a_table_that_its_users_have_clustered_is_compacted(spark: SparkSession, warehouse: str) -> None:
    """Delta sorts it by what it is clustered by, and refuses who names another order: its upkeep always failed."""
    publisher = DeltaPublisher(spark, warehouse)
    publisher.replace("ks/t", publisher.session.range(20), {"of": 1}, 1, 1000, 1)
    relation = publisher.relation("ks/t")
    for text in (
        "ALTER TABLE {} CLUSTER BY (id)",
        "ALTER TABLE {} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM {} WHERE id % 2 = 0",
    ):
        publisher.session.sql(text.format(relation))
    publisher.compact("ks/t")
    assert spark.table(relation).count() == 10
    assert publisher.changed_by_others("ks/t") is not None, "it is told which rows somebody has deleted"


def test_a_table_that_its_users_open_to_icebergs_readers_gets_no_deletion_vectors(
    spark: SparkSession, warehouse: str
) -> None:
    """Delta refuses them there: what follows each sixteenth publication failed, told as publishing that fails."""
    publisher = DeltaPublisher(spark, warehouse)
    publisher.replace("ks/t", publisher.session.range(20), {"of": 1}, 1, 1000, 1)
    wanted = "'delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true'"
    publisher.session.sql(f"ALTER TABLE {publisher.relation('ks/t')} SET TBLPROPERTIES ({wanted})")
    publisher.tidy("ks/t")
    properties = DeltaTable(publisher.path("ks/t")).metadata().configuration
    assert "delta.enableDeletionVectors" not in properties
