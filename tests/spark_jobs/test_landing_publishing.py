"""When a table is published and up to what: whole segments, and none that is published is filled any more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.config.settings import load_settings
from spark_jobs.model import TTL
from spark_jobs.model.definitions import parse_definition
from spark_jobs.sinks import DEFAULT, FORMATS, LostRaceError, iceberg_published
from spark_jobs.sinks.iceberg_published import IcebergPublisher
from spark_jobs.stream import TableStream, publishing, table_stream
from spark_jobs.stream.ending_cells import EndingCells
from spark_jobs.stream.progress import Progress
from spark_jobs.stream.publishing import Publishing
from spark_jobs.stream.unmerged import Unmerged
from spark_jobs.tables.landed_table import Restored
from spark_jobs.tables.notes import Known
from spark_jobs.tables.parcels import Parcel
from spark_jobs.tables.publishable import unpublishable, without_feed
from spark_jobs.tables.published_table import Stand
from tests.spark_jobs.landing_feed import schema_record

PLACE = ("p.ks.t", 0)
KNOWN = Known((parse_definition(schema_record("ks", "t", "pk partition_key int").decode()),))
PUBLISHED = {"p.ks.t": {"0": 5}}
JOB = {"name": "j", "bootstrap.servers": "k", "topic.prefix": "p", "tables": ["ks.t"], "warehouse": "w"}
RESTORED = Restored(KNOWN, {PLACE: 5}, 1, 3, 5, 0)


class Table:
    """A published table that notes what it is told."""

    def __init__(self, there: Stand | None) -> None:
        self.there = there
        self.published: list[tuple[int, dict[tuple[str, int], int]]] = []
        self.stands: list[Stand | None] = []
        self.late: Stand | None = None
        self.loses: Held | None = None
        self.enrolled: list[str] = []
        self.refuses = False
        self.others_wrote = False

    def is_changed_by_others(self, known: Known) -> bool:
        return self.others_wrote

    def is_changed_meanwhile(self, known: Known) -> bool:
        return self.others_wrote

    def enroll(self, catalog: str, known: Known) -> None:
        if self.refuses:
            raise LandingError("the catalog does not answer")
        self.enrolled.append(catalog)

    def stand(self) -> Stand | None:
        return self.there

    def publish(self, known: Known, stand: Stand | None, through: int, positions: dict[tuple[str, int], int]) -> Stand:
        self.stands.append(stand)
        if self.late is not None:
            self.there, self.late = self.late, None
            if self.loses is not None:
                self.loses.lost = True
            raise LostRaceError
        self.published.append((through, dict(positions)))
        return Stand(known.lineage, through, ())


class Held:
    lost = False

    def check(self) -> None:
        if self.lost:
            raise LandingError("another process took over")


@contextmanager
def beside(
    there: Stand | None, said: list[str] | None = None, lease: Held | None = None, **properties: Any
) -> Iterator[tuple[Publishing, Table]]:
    table: Any = Table(there)
    settings = load_settings({**JOB, **properties})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "open_publisher", lambda *_: object())
        patch.setattr(publishing, "LandedTable", lambda *_: None)
        patch.setattr(publishing, "PublishedTable", lambda *_: table)
        say = said.append if said is not None else print
        nothing = cast(Any, None)
        yield Publishing(nothing, settings, nothing, TableName("ks", "t"), cast(Any, lease or Held()), say), table


def test_what_is_published_is_a_whole_segment_with_the_positions_it_stands_for() -> None:
    with beside(None) as (found, table):
        assert found.begin(RESTORED) == 3
        found.landed({PLACE: 9})
        assert found.is_due(now=False)
        assert found.publish(3) == 4, "what lands from now on is in the next segment"
        assert table.published == [(3, {PLACE: 9})]
        found.landed({PLACE: 9})
        assert not found.is_due(now=True), "there is nothing new"
        found.landed({PLACE: 10})
        assert found.is_due(now=True) and not found.is_due(now=False), "that is due in a minute"
        found.publish(4)
        found.landed({})
        assert found.is_due(now=True), "rows of a backfill have no positions"


def test_a_start_fills_no_segment_that_is_published_already() -> None:
    with beside(Stand(0, 7, (), positions=PUBLISHED)) as (found, _):
        assert found.begin(RESTORED) == 8
        assert not found.is_due(now=True)
    with beside(Stand(0, 7, (), positions=PUBLISHED)) as (found, table):
        table.others_wrote = True
        assert found.begin(RESTORED) == 8 and found.is_due(now=False), "rows of others do not stay until a change comes"
        assert found.publish(8) == 9
        table.others_wrote = False
        found.look()
        assert not found.is_due(now=True)
        table.others_wrote = True
        found.look()
        assert found.is_due(now=True), "nor do they while the job runs"
    with beside(Stand(0, 2, ())) as (found, _):
        assert found.begin(replace(RESTORED, segment=6)) == 6 and found.is_due(now=False)
    with beside(Stand(1, 7, ())) as (found, _):
        assert found.begin(RESTORED) == 3 and found.is_due(now=False), "another lineage is published anew"


def test_what_came_late_into_a_published_segment_is_published_with_the_next() -> None:
    with beside(Stand(0, 7, (), positions={"p.ks.t": {"0": 4}})) as (found, table):
        assert found.begin(RESTORED) == 8 and found.is_due(now=False)
        assert found.publish(8) == 9
        (stand,) = table.stands
        assert stand is not None and stand.segment == RESTORED.mark, "all that is not merged is looked at"


def test_who_publishes_late_is_refused_and_who_comes_after_takes_no_harm() -> None:
    lease = Held()
    with beside(Stand(0, 2, (), positions=PUBLISHED), lease=lease) as (found, table):
        found.begin(RESTORED)
        found.landed({PLACE: 9})
        for end, late, following in ((10, 2, Stand(0, 2, ())), (11, 3, None)):
            table.late = Stand(0, late, ())
            found.landed({PLACE: end})
            found.publish(3)
            assert table.stands[-1] == following, "where it has segments that are filled here, all is published anew"
        table.late, table.loses = Stand(0, 3, ()), lease
        found.landed({PLACE: 12})
        for segment in (4, 5):
            with pytest.raises(LandingError, match="took over"):
                found.publish(segment)
        assert [through for through, _ in table.published] == [3, 3], "who knows that does not even try"


def test_what_a_backfill_hands_over_is_published_and_is_not_all_before_its_last_parcel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("F", "Observation"):
        monkeypatch.setattr(table_stream, name, MagicMock())
    monkeypatch.setattr(table_stream, "told", lambda *_: {"landed": 1, TTL: 0})
    anything, lacking = cast(Any, MagicMock()), replace(KNOWN, incomplete="the first records expired")
    with beside(Stand(0, 2, (), positions=PUBLISHED)) as (found, _):
        stream: Any = SimpleNamespace(
            _known=lacking, _publishing=found, _ends=EndingCells(), lease=Held(), session=None
        )
        vars(stream).update(name="ks.t", progress=Progress(), topics=SimpleNamespace())
        stream._unmerged = Unmerged(load_settings(JOB))
        stream._unmerged.segment = found.begin(replace(RESTORED, known=lacking))
        parcel = Parcel(1, None, (), lacking.lineage, KNOWN.definitions[-1].version)
        TableStream._take_up(stream, anything, anything, replace(parcel, lineage=lacking.lineage + 1))
        assert stream._known is lacking, "it was made for another table"
        for filled_to, incomplete in ((7, lacking.incomplete), (None, None)):
            assert not found.is_due(now=True)
            TableStream._take_up(stream, anything, anything, replace(parcel, filled_to=filled_to))
            assert found.is_due(now=True), "nothing else has to come for that"
            assert (stream._known.filled_to, stream._known.incomplete) == (filled_to, incomplete)
            found.publish(stream._unmerged.segment)
        # While it was read, records without values came: to rows that were read before, too.
        stream._known = replace(lacking, keyed=("a version without values",))
        for filled_to in (7, None):
            TableStream._take_up(stream, anything, anything, replace(parcel, filled_to=filled_to))
            assert (stream._known.filled_to, stream._known.incomplete) == (None, lacking.incomplete)
        assert not parcel.continues(stream._known, ())
        TableStream._take_up(stream, anything, anything, replace(parcel, without_values=1))
        assert stream._known.incomplete is None


def test_a_catalog_that_refuses_a_table_leaves_no_published_segment_to_be_filled() -> None:
    """What landed in one until the catalog answered was never published."""
    named: dict[str, Any] = {"publish.catalog": "c"}
    with beside(None, **named) as (found, table):
        stream: Any = SimpleNamespace(_publishing=found, _unmerged=Unmerged(load_settings(JOB)))
        stream._unmerged.segment = found.begin(RESTORED)
        table.refuses = True
        for end, segment in ((9, 4), (10, 5)):
            found.landed({PLACE: end})
            with pytest.raises(LandingError, match="does not answer"):
                TableStream.publish(stream, now=True)
            assert stream._unmerged.segment == segment
        table.refuses = False
        TableStream.publish(stream, now=True)
        assert table.enrolled == ["c"] and not found.is_due(now=True)
        assert [through for through, _ in table.published] == [3, 4, 4], "nothing has landed since, and it is told of"


def test_changes_are_merged_when_they_are_many_when_batches_are_or_when_the_first_has_waited() -> None:
    for every, rows, batches in ((10, 10, 1), (1_000, 1, 200)):
        found = Unmerged(load_settings({**JOB, "merge.every.rows": every, "merge.every.ms": 0}))
        found.begin(replace(RESTORED, unmerged=0, since_ms=None))
        for _ in range(batches):
            assert not found.is_due
            found.count(rows)
        assert found.is_due
        found.merged()
        assert not found.is_due and (found.mark, found.segment, found.rows) == (3, 4, 0)
    found = Unmerged(load_settings({**JOB, "merge.every.ms": 60_000}))
    found.begin(RESTORED)
    assert found.is_due, "the job before it has left some long ago"


def test_changes_are_kept_for_a_published_table_that_is_left_alone_for_a_while() -> None:
    """They were removed once they were merged: published again, the table never got the rows that had changed."""
    off: dict[str, Any] = {"publish.interval.ms": 0}
    said: list[str] = []
    with beside(Stand(0, 2, (), positions=PUBLISHED), said, **off) as (found, table):
        assert found.begin(RESTORED) == 3 and found.published_through == 2
        assert found.begin(replace(RESTORED, segment=2)) == 3, "nobody would look for more rows in the segment 2"
        found.landed({PLACE: 9})
        assert not found.is_due(now=True) and table.published == []
    assert said == [
        "ks.t was published, and is not now (publish.interval.ms=0): all changes since are kept for it, until its "
        "published table is deleted"
    ]
    for there in (None, Stand(1, 2, ())):
        with beside(there, said, **off) as (found, _):
            found.begin(RESTORED)
            assert found.published_through is None, "what there is will be published as a whole"
    assert len(said) == 1


def test_the_first_version_has_rows_and_columns_that_nobody_can_tell_apart_have_none() -> None:
    said: list[str] = []
    with beside(None, said) as (found, _):
        found.begin(Restored(None, {}, 0, 1, 0, None))
        found.adopt(KNOWN)
        assert not found.is_due(now=False) and found.is_due(now=True)
        odd = schema_record("ks", "t", "pk partition_key int; v regular int; V regular int").decode()
        found.adopt(replace(KNOWN, definitions=(parse_definition(odd),)))
        assert not found.is_due(now=True)
    assert said == [
        "ks.t is not published: its columns V and v differ by case only, which the table format does not tell apart"
    ]


@pytest.mark.parametrize(
    "type_", ["u", "frozen<u>", "map<int, frozen<u>>", "list<frozen<tuple<int, u>>>", "frozen<outer>"]
)
def test_fields_that_nobody_can_tell_apart_are_not_published(type_: str) -> None:
    types = {"u": [("a", "int"), ("A", "int")], "outer": [("a", "frozen<u>")]}
    for same, fields in ((True, types["u"]), (False, [("a", "int"), ("b", "int")])):
        record = json.loads(schema_record("ks", "t", f"pk partition_key int; c regular {type_}"))
        record["types"] = {**types, "u": fields}
        why = unpublishable(parse_definition(json.dumps(record)), FORMATS[DEFAULT])
        assert (why or "").startswith("the fields A and a of its column c differ by case only") == same


def test_a_column_with_the_name_of_one_of_the_formats_own_is_told() -> None:
    """Each publication failed with a message of the format's, or of Spark's."""
    definition = parse_definition(schema_record("ks", "t", "pk partition_key int; _row_id_ regular int").decode())
    why = unpublishable(definition, FORMATS["delta"])
    assert why == "the delta format keeps the names _row_id_ for its own columns; another sink takes them"
    assert unpublishable(definition, FORMATS["iceberg"]) is None
    assert not FORMATS["delta"].reserved & FORMATS["iceberg"].reserved
    fields = json.loads(schema_record("ks", "t", "pk partition_key int; c regular list<frozen<u>>"))
    for names, told in ((("a", "b"), None), (("a", "_Commit_Version"), "_Commit_Version"), (("a`b", "c"), "a`b")):
        typed = parse_definition(json.dumps({**fields, "types": {"u": [(name, "int") for name in names]}}))
        without = without_feed(typed, FORMATS["delta"])
        assert (without is None) == (told is None) and (told or "") in (without or "")
        assert without_feed(typed, FORMATS["iceberg"]) is None


def test_a_published_iceberg_table_keeps_few_metadata_files_and_is_known_by_what_earlier_versions_gave_it() -> None:
    """Each file tells of all snapshots: 12 MB of those of a week, and a hundred of them were kept."""
    kept = "write.metadata.previous-versions-max"
    assert int(iceberg_published._PROPERTIES[kept]) <= 20
    publisher, table = IcebergPublisher.__new__(IcebergPublisher), MagicMock()
    publisher._sink = MagicMock(**{"loaded.return_value": table})
    table.currentSnapshot.return_value.summary.return_value = {}
    table.currentSnapshot.return_value.parentId.return_value = None

    def is_ours(properties: dict[str, str]) -> bool:
        table.properties.return_value = properties
        return publisher._is_made_here("ks/t")

    assert is_ours({"scylla-cdc.published": "true", kept: "1"})
    assert is_ours({**iceberg_published._PROPERTIES, kept: "100"}) and not is_ours(iceberg_published._PROPERTIES)
