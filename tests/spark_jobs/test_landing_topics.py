"""Topics that were created again: nothing lands from others' positions on, and no rebuild loses what they held."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.config.settings import load_settings
from spark_jobs.jobs.rebuilding import rebuild
from spark_jobs.land import land
from spark_jobs.model.definitions import parse_definition
from spark_jobs.stream.kafka_topics import SchemaTopic, Topics
from spark_jobs.stream.progress import Progress
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.landed_topics import check_positions, lost_by_topics
from spark_jobs.tables.landing_plan import plan_table
from spark_jobs.tables.notes import Known, known_in
from tests.servers.patience import until
from tests.spark_jobs.landing_feed import cell, change, create_topics, produce, schema_record
from tests.spark_jobs.landing_way import Way, is_batch
from tests.spark_jobs.source_tables import ANY_FORMAT

TABLE = TableName("ks", "t")
SETTINGS = load_settings(
    {"name": "j", "bootstrap.servers": "k", "topic.prefix": "p", "tables": ["ks.t"], "warehouse": "w"}
)
VERSION = parse_definition(schema_record("ks", "t", "pk partition_key int").decode())
Place = tuple[str, int]
DATA, RANGES = "p.ks.t", "p.ks.t.range-deletes"
POSITIONS = {(DATA, 0): 7, (DATA, 1): 0, (RANGES, 0): 0}
BEGINS = dict.fromkeys(POSITIONS, 0)
ENDS = dict.fromkeys(POSITIONS, 9)


def _noted(**ids: str) -> Known:
    known = plan_table(SETTINGS, TABLE, [VERSION], None, None, {DATA: "a", RANGES: "b"}).known
    return known_in(replace(known, **ids).note(), 1)


def test_a_topic_that_has_another_id_is_not_landed_from_where_the_one_before_it_was() -> None:
    noted = _noted()
    assert noted.topic_ids == {DATA: "a", RANGES: "b"}
    check_positions(TABLE, noted, POSITIONS, BEGINS, ENDS, {DATA: "a", RANGES: "b"})
    assert lost_by_topics(noted, POSITIONS, BEGINS, ENDS, {DATA: "a", RANGES: "b"}) is None
    with pytest.raises(LandingError, match=r"p\.ks\.t was deleted and created again .*land --rebuild ks\.t"):
        check_positions(TABLE, noted, POSITIONS, BEGINS, ENDS, {DATA: "other", RANGES: "b"})
    lost = lost_by_topics(noted, POSITIONS, BEGINS, ENDS, {DATA: "other"})
    assert lost is not None and "p.ks.t was deleted and created again" in lost


def test_ids_are_adopted_where_none_is_noted_or_nothing_landed() -> None:
    old, now = replace(_noted(), topic_ids={}), {DATA: "a", RANGES: "another"}
    for noted in (old, _noted()):
        check_positions(TABLE, noted, POSITIONS, BEGINS, ENDS, now)
        plan = plan_table(SETTINGS, TABLE, [VERSION], noted, None, now)
        assert plan.changed and plan.known.topic_ids == now and plan.known.lineage == noted.lineage
        assert not plan_table(SETTINGS, TABLE, [VERSION], plan.known, None, {DATA: "a"}).changed
        assert not plan_table(SETTINGS, TABLE, [VERSION], plan.known).changed


def test_topics_do_not_hold_what_is_behind_their_end_or_was_before_an_unfinished_rebuild() -> None:
    old = replace(_noted(), topic_ids={})
    short = {**ENDS, (DATA, 0): 5}
    lost = lost_by_topics(old, POSITIONS, BEGINS, short, {})
    assert lost is not None and "p.ks.t, partition 0 ends before offset 7" in lost
    assert lost_by_topics(old, POSITIONS, BEGINS, {}, {}) is not None
    begun = replace(old, rebuilding=True, incomplete=lost)
    assert lost_by_topics(begun, {}, BEGINS, short, {}) == lost
    assert lost_by_topics(old, {}, BEGINS, short, {}) is None
    # What records lacked they lack still: it was forgotten, and nothing said so any more.
    assert lost_by_topics(replace(old, incomplete="no values"), POSITIONS, BEGINS, ENDS, {}) == "no values"


@pytest.mark.parametrize(
    ("begins", "ends", "said"),
    [
        ({(DATA, 0): 7}, {(DATA, 0): 7, (DATA, 1): 0, (RANGES, 0): 0}, None),
        ({(DATA, 0): 9}, {}, "partition 0: 2 records expired before they were landed; land --rebuild ks.t"),
        ({}, {(DATA, 0): 6}, "partition 0: 7 records are landed, but it ends before.*land --rebuild ks.t"),
        ({}, {(DATA, 1): None}, "partition 1: 0 records are landed, but it ends before"),
        ({(DATA, 2): 3}, {}, "partition 2: 3 records expired before they were landed; land --rebuild ks.t"),
    ],
)
def test_nothing_is_landed_behind_records_that_are_gone(
    begins: dict[Place, int], ends: dict[Place, int | None], said: str | None
) -> None:
    there = {place: end for place, end in (ENDS | ends).items() if end is not None}
    for noted in (None, _noted()):
        with contextlib.nullcontext() if said is None else pytest.raises(LandingError, match=said):
            check_positions(TABLE, noted, POSITIONS, BEGINS | begins, there, {})


def test_what_expired_between_a_backfill_and_landing_is_told() -> None:
    """It was lost in silence: a table that was backfilled counted as complete."""
    filled = known_in(replace(_noted(), backfilled=(), covered={(DATA, 0): 7}).note(), 1)
    for covering, positions, at in ((filled, {}, 7), (filled, POSITIONS, 7), (replace(filled, covered=None), {}, 8)):
        check_positions(TABLE, covering, positions, {**BEGINS, (DATA, 0): at}, ENDS, {})
    for place, lost in (((DATA, 0), 2), ((RANGES, 0), 9)):
        said = rf"{place[0]}, partition 0: {lost} records expired after the backfill, and before .*land --rebuild ks\.t"
        with pytest.raises(LandingError, match=said):
            check_positions(TABLE, filled, {}, {**BEGINS, place: 9}, ENDS, {})
    plan = plan_table(SETTINGS, TABLE, [VERSION], filled, None, {DATA: "another"})
    assert plan.changed and plan.known.covered == filled.covered


def test_topics_whose_first_records_are_gone_do_not_hold_all_that_landed() -> None:
    whole = {place: POSITIONS[place] for place in ENDS}
    assert lost_by_topics(None, POSITIONS, BEGINS, whole, {}) is None
    assert lost_by_topics(None, {(DATA, 1): 0}, {}, {}, {}) is None
    lost = lost_by_topics(None, POSITIONS, {**BEGINS, (DATA, 1): 1}, ENDS, {})
    assert lost is not None and "p.ks.t, partition 1 begins at offset 1: its first records are gone" in lost
    ended = lost_by_topics(replace(_noted(), rebuilding=True), {}, BEGINS, ENDS, {})
    assert ended is not None and ended.startswith("a rebuild of it ended early")


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_what_is_left_of_a_schemas_topic_is_read(spark: SparkSession, way: Way) -> None:
    """Kafka went on at its end: no table had a definition, or none that had come since."""
    way.schema(schema_record("ks", "t", "pk partition_key int; n regular int", version="2"))
    schemas = f"{way.prefix}.schemas"
    admin = AdminClient({"bootstrap.servers": way.servers})
    admin.delete_records([TopicPartition(schemas, 0, 1)])[TopicPartition(schemas, 0)].result(90)
    with contextlib.closing(Topics(spark, way.settings().kafka())) as topics:
        assert [version.version for version in SchemaTopic(topics, schemas).versions("ks.t")] == ["2"]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.usefixtures("interpreted")
# py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("running", [False, True], ids=["between-jobs", "between-batches"])
def test_a_topic_that_was_created_again_is_told_and_not_read_from_the_middle(
    spark: SparkSession, way: Way, monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    """It was landed from the old one's positions on, and a rebuild threw away what only the old one had held."""
    way.config.update({"sink": ANY_FORMAT, "max.offsets.per.trigger": 3, "retry.backoff.max.ms": 10})
    rows = [change("c", 1000 + pk, {"pk": pk, "ck": 1, "v": cell("v")}) for pk in range(9)]

    def create_again() -> None:
        admin = AdminClient({"bootstrap.servers": way.servers})
        admin.delete_topics([way.data])[way.data].result(90)
        until(lambda: way.data not in admin.list_topics(timeout=30).topics, what="the topic is gone")
        create_topics(way.servers, [way.data])
        produce(way.servers, [(way.data, row) for row in rows])

    append = LandedTable.append

    def with_another_topic_behind_it(landed: LandedTable, frame: DataFrame) -> None:
        append(landed, frame)
        if is_batch(frame):
            create_again()

    if running:
        produce(way.servers, [(way.data, row) for row in rows[:6]])
        monkeypatch.setattr(LandedTable, "append", with_another_topic_behind_it)
    else:
        produce(way.servers, [(way.data, row) for row in rows[:3]])
        way.land(spark)
        create_again()
    progress = Progress()
    assert land(way.settings(), True, progress, session=spark) == 1
    assert f"{way.data} was deleted and created again" in str(progress.of("ks.t").last_error)
    with pytest.raises(LandingError, match=r"created again.*scylla\.cluster\.ip\.addresses"):
        rebuild(spark, way.settings(), TABLE)
    assert [row[0] for row in way.rows(spark)] == [0, 1, 2]
