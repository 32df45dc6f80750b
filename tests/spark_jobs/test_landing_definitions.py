"""Definitions from the schemas topic and from CQL files, the layout they give, and keys that sort like the server's."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from connector.errors import ConfigurationError, LandingError
from connector.table_name import TableName
from connector.values.binary import encode
from connector.values.ordering import order_key
from connector.values.types import CqlType, UserType, native, parse_type
from spark_jobs.config.settings import load_settings
from spark_jobs.functions.serialised import duration_of, order_bytes, plain_value, tie_bytes
from spark_jobs.functions.unknown_fields import has_unknown
from spark_jobs.model.changelog import changelog_columns, state_columns
from spark_jobs.model.cql_definitions import carried, read_definitions
from spark_jobs.model.definitions import TableDefinition, parse_definition
from spark_jobs.model.landed_types import adapted, as_recorded, as_stored, present, stored_type
from spark_jobs.model.shape import shape
from spark_jobs.stream import kafka_topics
from spark_jobs.stream.kafka_topics import SchemaTopic, Topics
from spark_jobs.tables.landed_table import Restored
from spark_jobs.tables.landing_plan import check_landed, check_rebuilt, lacking, plan_table
from spark_jobs.tables.notes import known_in
from tests.spark_jobs.history_records import TYPES, as_json, some
from tests.spark_jobs.landing_feed import schema_record

CQL = """
-- comments; and semicolons
CREATE TYPE ks.addr (street text, no frozen<list<int>>);
CREATE TABLE IF NOT EXISTS ks.t (
    pk int, "Ck" timeuuid, ck2 text, s int STATIC, v map<text, frozen<addr>>, w decimal,
    PRIMARY KEY ((pk, w), "Ck", ck2)
) WITH CLUSTERING ORDER BY ("Ck" DESC, ck2 ASC)
  AND comment = 'a;b, it''s at https://x.y/z -- not /* here " ''delta'': ''keys''' AND cdc = {'enabled': 'true'};
CREATE TABLE ks.simple (id uuid PRIMARY KEY, n bigint /* and */, e timestamp TTL, "a--b),;" text // more
);
CREATE MATERIALIZED VIEW ks.mv AS SELECT id FROM ks.simple WHERE n > 5 PRIMARY KEY (id);
CREATE TABLE ks.behind (id int PRIMARY KEY) WITH cdc = {'enabled': 'true', 'delta':'keys', 'ttl': '1'};
CREATE INDEX x ON ks.t (s);
"""
_JOB = {"name": "j", "bootstrap.servers": "k", "topic.prefix": "p", "tables": ["ks.t"], "warehouse": "w"}
SETTINGS, FROZEN = load_settings(_JOB), load_settings({**_JOB, "schema.evolution": "freeze"})
TABLE = TableName("ks", "t")


def test_cql_files_give_tables_with_keys_in_order(tmp_path: Path) -> None:
    file = tmp_path / "schema.cql"
    file.write_text(CQL)
    found = read_definitions([str(file)], {"collections": "skip"})
    table = found["ks.t"]
    assert [column.name for column in table.of_kind("partition_key")] == ["pk", "w"]
    assert [(column.name, column.descending) for column in table.of_kind("clustering")] == [
        ("Ck", True),
        ("ck2", False),
    ]
    assert [column.name for column in table.of_kind("static")] == ["s"]
    assert table.of_kind("regular")[0].type.cql() == "map<text, frozen<addr>>"
    simple = [(column.name, column.type.cql()) for column in found["ks.simple"].columns]
    assert simple == [("id", "uuid"), ("n", "bigint"), ("e", "timestamp"), ("a--b),;", "text")]
    assert list(found) == ["ks.t", "ks.simple", "ks.behind"]
    assert carried(table)[1] == ["v"]
    assert [name for name, each in found.items() if each.output.keys_only] == ["ks.behind"]


def test_what_cannot_be_read_in_cql_files_is_told(tmp_path: Path) -> None:
    file = tmp_path / "schema.cql"
    file.write_text("CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE ks.t (a int);")
    with pytest.raises(ConfigurationError) as caught:
        read_definitions([str(file)], {})
    assert [problem.problem for problem in caught.value.problems] == [
        "the name must be keyspace.name",
        "the primary key is missing or names columns that are not there",
    ]


def _version(columns: str, **more: Any) -> TableDefinition:
    return parse_definition(schema_record("ks", "t", columns, **more).decode())


def test_a_column_that_comes_back_with_another_type_gets_columns_of_its_own() -> None:
    first = _version("pk partition_key int; v regular text")
    second = _version("pk partition_key int; v regular int", version="2", dropped=[{"name": "v", "dropped_us": 7}])
    layout = shape([first, second])
    assert [cell.stored.physical for cell in layout.cells] == ["v$v2"]
    assert layout.cells[0].not_before == 7
    assert {"v_v", "v_v$v2"} <= set(changelog_columns(layout))
    assert {"v_v", "t_v", "v_v$v2", "t_v$v2"} <= set(state_columns(layout))


def test_columns_that_differ_only_in_case_do_not_collide() -> None:
    layout = shape([_version("pk partition_key int; v regular text; V regular int")])
    assert len({stored.physical for stored in layout.physical}) == 2


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ({"format": "advanced", "after": "only-updated"}, "cdc.include.after=only-updated"),
        ({"format": "legacy", "collections": "skip"}, "the columns m are not in the records"),
        ({"format": "legacy", "collections": "delta", "skipped_operations": ["d"]}, "leaves out d"),
    ],
)
def test_records_that_cannot_converge_are_refused_with_the_reason(output: dict[str, Any], reason: str) -> None:
    version = _version("pk partition_key int; m regular map<int, int>", output=output)
    with pytest.raises(LandingError, match=reason):
        plan_table(SETTINGS, TABLE, [version], None)


def test_of_keys_alone_nothing_lands_but_images() -> None:
    columns, keys = "pk partition_key int; v regular int", {"delta": "keys"}
    with pytest.raises(LandingError, match="its log has keys only"):
        plan_table(SETTINGS, TABLE, [_version(columns, cdc=keys)], None)
    plan_table(SETTINGS, TABLE, [_version(columns, cdc=keys, output={"format": "advanced", "after": "full"})], None)
    plan_table(SETTINGS, TABLE, [_version("pk partition_key int; ck clustering int", cdc=keys)], None)
    full = _version(columns, cdc={"delta": "full"})
    first = plan_table(SETTINGS, TABLE, [full], None).known
    assert first.incomplete is None
    between = [full, _version(columns, cdc=keys, version="2"), _version(columns, cdc={"delta": "full"}, version="3")]
    for noted in (None, first):
        known = plan_table(SETTINGS, TABLE, between, noted).known
        assert known.incomplete == "records that were made with 'delta': 'keys' have no values"
        filled = replace(known, incomplete=None)
        assert plan_table(SETTINGS, TABLE, between, filled).known.incomplete is None, "a backfill has completed it"


def test_keys_alone_of_a_version_that_frozen_columns_cannot_show_are_told_once() -> None:
    """They were told at each look, also after a backfill: what such a table cannot show is none of its definitions."""
    columns = "pk partition_key int; v regular {}"
    full = _version(columns.format("int"))
    other = _version(columns.format("text"), cdc={"delta": "keys"}, version="2")
    versions = [full, other, _version(columns.format("int"), version="3")]
    plan = plan_table(FROZEN, TABLE, versions, plan_table(FROZEN, TABLE, [full], None).known)
    assert plan.known.incomplete == "records that were made with 'delta': 'keys' have no values"
    assert other not in plan.known.definitions
    assert known_in(plan.known.note(), plan.known.sequence) == plan.known
    filled = replace(plan.known, incomplete=None)
    assert not plan_table(FROZEN, TABLE, versions, filled).changed, "a backfill has completed it"
    more = [*versions, replace(other, text=other.text.replace('"2"', '"4"')), versions[-1]]
    assert plan_table(FROZEN, TABLE, more, filled).known.incomplete, "another one is told of"


def test_a_new_table_id_starts_anew_and_the_same_version_changes_nothing() -> None:
    ids = ["5132b130-ae79-11e4-ab27-0800200c9a66", "6132b130-ae79-11e4-ab27-0800200c9a66"]
    old, new = (_version("pk partition_key int", table_id=table_id) for table_id in ids)
    noted = plan_table(SETTINGS, TABLE, [old], None).known
    assert not plan_table(SETTINGS, TABLE, [old], noted).changed
    plan = plan_table(SETTINGS, TABLE, [old, new], noted)
    assert plan.recreated and plan.known.definitions == (old, new)
    assert new.created_ms is not None and old.created_ms is not None and new.created_ms > old.created_ms


def test_a_table_that_a_cql_file_described_is_the_one_whose_id_is_told_later() -> None:
    """Its rows were thrown away: by whoever moved from the Java connector to ours, and by a misspelt schema.topic."""
    ids = ["5132b130-ae79-11e4-ab27-0800200c9a66", "6132b130-ae79-11e5-ab27-0800200c9a66"]
    described = _version("pk partition_key int; v regular text")
    old, new = (_version("pk partition_key int; v regular text", table_id=id_, version="7") for id_ in ids)
    noted = plan_table(SETTINGS, TABLE, [described], None).known
    adopted = plan_table(SETTINGS, TABLE, [old], noted)
    assert adopted.changed and not adopted.recreated and adopted.known.lineage == noted.lineage
    layout = adopted.known.layout()
    assert not layout.older_tables and layout.versions == (f"{ids[0]} 7",) and layout.readings == {}
    assert state_columns(layout) == state_columns(noted.layout())
    assert not plan_table(SETTINGS, TABLE, [old], adopted.known).changed

    kept = plan_table(SETTINGS, TABLE, [described], adopted.known)
    assert not kept.changed and kept.known is adopted.known
    assert ["topic p.schemas tells nothing of it" in text for text in kept.told] == [True]
    other_keys = _version("pk partition_key int; ck clustering int; v regular text")
    assert plan_table(SETTINGS, TABLE, [other_keys], adopted.known).known is adopted.known

    grown = plan_table(SETTINGS, TABLE, [_version("pk partition_key int; w regular int")], adopted.known)
    assert grown.changed and not grown.recreated and not grown.told
    assert plan_table(SETTINGS, TABLE, [new], grown.known).recreated
    back = plan_table(SETTINGS, TABLE, [old], grown.known)
    assert not back.recreated and [each.column for each in back.known.layout().cells] == ["v"]
    assert back.known.layout().merging is not None, "what landed of w is kept"

    again = plan_table(SETTINGS, TABLE, [old, new], adopted.known)
    assert again.recreated and again.known.layout().versions == (f"{ids[1]} 7",)
    assert again.known.layout().older_tables


def test_what_a_cql_file_described_with_other_keys_is_another_table() -> None:
    described = _version("pk partition_key int; ck clustering int; v regular text")
    told = _version("pk partition_key int; v regular text", table_id="5132b130-ae79-11e4-ab27-0800200c9a66")
    noted = plan_table(SETTINGS, TABLE, [described], None).known
    plan = plan_table(SETTINGS, TABLE, [told], noted)
    assert plan.recreated and [key.name for key in plan.known.layout().keys] == ["pk"]


def test_columns_that_records_did_not_have_make_a_table_incomplete_once_they_have_them() -> None:
    columns = "pk partition_key int; v regular text"
    whole = _version(f"{columns}; m regular map<int, int>", table_id="5132b130-ae79-11e4-ab27-0800200c9a66")
    noted = plan_table(SETTINGS, TABLE, [_version(columns)], None).known
    plan = plan_table(SETTINGS, TABLE, [whole], noted)
    assert plan.known.incomplete == "records that landed with table.definitions had no m"
    assert not plan_table(SETTINGS, TABLE, [whole], plan.known).changed


def test_a_recreated_table_with_other_key_types_does_not_share_columns_with_the_old_one() -> None:
    old = _version("pk partition_key int; ck clustering int; v regular int")
    new = _version("pk partition_key text; ck clustering text; v regular int")
    before, after = changelog_columns(shape([old])), changelog_columns(shape([old, new]))
    assert {name for name in before if before[name] != after.get(name, before[name])} == set()
    assert {"k_p0$v2", "k_c0$v2", "bounds$v2"} <= set(after)
    assert shape([old, old]).keys == shape([old]).keys


ADDRESS = "pk partition_key int; a clustering int; b clustering int; u regular addr"
OLD_FIELDS = _version(ADDRESS, types={"addr": [["street", "text"], ["no", "int"]]}, version="old")
NEW_FIELDS = _version(ADDRESS, types={"addr": [["road", "text"], ["no", "int"], ["street", "int"]]}, version="new")


def test_renamed_fields_stay_where_they_are_and_records_are_read_by_their_own_names() -> None:
    layout = shape([OLD_FIELDS, NEW_FIELDS])
    assert [(cell.field, cell.stored.physical) for cell in layout.cells] == [
        ("road", "u$00street"),
        ("no", "u$00no"),
        ("street", "u$00street$002"),
    ]
    assert [name for name, _ in layout.readings["old"].parts["u"]] == ["street", "no"] and set(layout.readings) == {
        "old"
    }
    street, road = (
        _version("pk partition_key int; f regular frozen<addr>", types={"addr": [[name, "int"]]}).columns[1].type
        for name in ("street", "road")
    )
    assert "y.`street`" in str(adapted(street, road, "y")), "what was landed before the name was another one"


def test_keys_that_swapped_their_names_are_read_by_the_names_they_had() -> None:
    was = _version("pk partition_key int; a clustering int; b clustering int; v regular int", version="was")
    now = _version("pk partition_key int; b clustering int; a clustering int; v regular int", version="now")
    layout = shape([was, now])
    assert [key.names for key in layout.keys] == [("pk",), ("b",), ("a",)]
    assert [key.names for key in layout.readings["was"].keys] == [("pk",), ("a",), ("b",)]
    added = _version("pk partition_key int; b clustering int; c clustering int; a regular text", version="added")
    layout = shape([was, now, added])
    assert [key.names for key in layout.keys] == [("pk",), ("b",), ("c",)] and set(layout.readings) == {"was", "now"}


def test_versions_stand_where_they_were_seen_first_and_the_current_one_last() -> None:
    text, number = _version("pk partition_key int; v regular text"), _version("pk partition_key int; v regular int")
    noted = plan_table(SETTINGS, TABLE, [text, number], None).known
    again = plan_table(SETTINGS, TABLE, [number, text], noted).known
    assert again.definitions == (text, number, text)
    assert [cell.stored.physical for cell in again.layout().cells] == ["v"]
    assert not plan_table(SETTINGS, TABLE, [number, text], again).changed


def test_the_youngest_table_counts_whoever_publishes_last() -> None:
    ids = ["5132b130-ae79-11e4-ab27-0800200c9a66", "6132b130-ae79-11e5-ab27-0800200c9a66"]
    old, new = (_version("pk partition_key int", table_id=table_id) for table_id in ids)
    noted = plan_table(SETTINGS, TABLE, [old, new], None).known
    assert noted.definitions[-1] is new
    assert not plan_table(SETTINGS, TABLE, [new, old], noted).recreated


def test_merges_keep_columns_that_an_older_version_published_again_does_not_know() -> None:
    narrow = _version("pk partition_key int; v regular int")
    wide = _version("pk partition_key int; v regular int; w regular int")
    merging = shape([narrow, wide, narrow]).merging
    assert merging is not None and [cell.column for cell in merging.cells] == ["v", "w"]
    dropped = _version("pk partition_key int; v regular int", dropped=[{"name": "w", "dropped_us": 1}])
    assert shape([wide, dropped]).merging is None


def test_frozen_columns_stay_and_records_of_later_versions_are_understood() -> None:
    """They became dead letters, with all that they say of the columns that are kept."""
    kept = _version("pk partition_key int; ck clustering int; v regular text", version="kept")
    more = _version("pk partition_key int; c clustering int; v regular text; n regular int", version="more")
    less = _version("pk partition_key int; c clustering int; n regular int", version="less", dropped=[])
    noted = plan_table(FROZEN, TABLE, [kept], None).known
    plan = plan_table(FROZEN, TABLE, [kept, more], noted)
    assert plan.changed and plan.known.definitions == (kept, more, kept)
    assert plan.told == ("ks.t: it keeps the columns of its first landing (schema.evolution=freeze), without n",)
    layout = plan.known.layout()
    assert {column.name for column, _ in layout.recorded} == {"v", "n"} and layout.keys[1].names == ("ck", "c")
    assert [(cell.column, cell.hidden) for cell in layout.cells] == [("v", False), ("n", True)]
    assert (plan.known.source, plan.known.lineage) == (more, 0)
    again = plan_table(FROZEN, TABLE, [kept, more], plan.known)
    assert not again.changed and again.told == plan.told
    assert plan_table(FROZEN, TABLE, [kept, more, less], plan.known).known.definitions == (kept, more, less, kept)
    dropped = [{"name": "n", "dropped_us": 1}]
    gone = _version("pk partition_key int; c clustering int; v regular text", version="gone", dropped=dropped)
    assert plan_table(FROZEN, TABLE, [kept, more, gone], plan.known).known.lineage == 1, "rows are published"
    untold = replace(plan.known, source=None)
    assert plan_table(FROZEN, TABLE, [kept, more], untold).known.lineage == 1, "rows are not published"
    assert known_in(plan.known.note(), plan.known.sequence) == plan.known
    thawed = plan_table(SETTINGS, TABLE, [kept, more], plan.known).known
    assert (thawed.definitions, thawed.source) == ((kept, more), None)
    assert thawed.lineage == 1, "what is published has no values of it"
    assert plan_table(SETTINGS, TABLE, [kept, more], noted).known.lineage == 0


def test_keeping_columns_lets_pass_no_records_that_do_not_tell_everything() -> None:
    columns = "pk partition_key int; v regular decimal"
    noted = plan_table(FROZEN, TABLE, [_version(columns)], None).known
    silent = _version(columns, output={"format": "legacy", "collections": "delta", "skipped_operations": ["d"]})
    with pytest.raises(LandingError, match="leaves out d; landing needs"):
        plan_table(FROZEN, TABLE, [silent], noted)
    declaring = load_settings({**_JOB, "schema.evolution": "freeze", "column.types": {"ks.t.v": "decimal(10,2)"}})
    plan = plan_table(declaring, TABLE, [_version(columns)], noted)
    assert not plan.changed and "column.types says of it by now has no effect" in "".join(plan.told)


@pytest.mark.parametrize(
    ("was", "becomes", "shown"),
    [
        ("v regular int", "v regular varint", False),
        ("v regular text", "v regular blob", False),
        ("v regular text", "v static text", False),
        ("v regular text", "v regular map<int, text>", False),
        ("v regular set<int>", "v regular list<int>", False),
        ("v regular ascii", "v regular text", True),
        ("v regular frozen<u>", "v regular frozen<u>", True),
        ("v regular map<int, frozen<list<frozen<u>>>>", "v regular map<int, frozen<list<frozen<u>>>>", True),
        ("v regular map<frozen<u>, int>", "v regular map<frozen<u>, int>", False),
        ("v regular list<frozen<set<frozen<u>>>>", "v regular list<frozen<set<frozen<u>>>>", False),
    ],
)
def test_frozen_columns_show_what_they_can(was: str, becomes: str, shown: bool) -> None:
    head = "pk partition_key int; ck clustering int; "
    kept = _version(head + was, version="kept", types={"u": [["a", "int"]]})
    after = _version(head + becomes, version="after", types={"u": [["a", "int"], ["b", "int"]]})
    noted = plan_table(FROZEN, TABLE, [kept], None).known
    if shown:
        layout = plan_table(FROZEN, TABLE, [kept, after], noted).known.layout()
        assert layout.merging is not None, "what it cannot show is not lost"
        for each, version in ((layout, kept), (layout.merging, after)):
            assert [part.stored.type for part in (*each.cells, *each.elements)] == [version.columns[-1].type]
        return
    with pytest.raises(LandingError, match="a column or the key has another type; without freeze it is landed on"):
        plan_table(FROZEN, TABLE, [kept, after], noted)


def test_keys_whose_values_are_stored_in_another_way_are_found_or_refused() -> None:
    def version(spelled: str, *fields: str) -> TableDefinition:
        kinds = {"k": [[name, "int"] for name in fields]} if fields else {}
        return _version(f"pk partition_key int; ck clustering {spelled}", types=kinds)

    small, grown = version("frozen<k>", "a"), version("frozen<k>", "a", "b")
    key = shape([small, grown]).keys[1]
    assert (key.place, [old.place for old in key.follows]) == ("c0$v2", ["c0"])
    assert order_bytes(small.columns[1].type)((1,)) == order_bytes(grown.columns[1].type)((1, None))
    assert "`k_c0$v2`" in key.order_key() or key.order_key() == "`i_c0$v2`"
    noted = plan_table(SETTINGS, TABLE, [small], None).known
    check_landed(TABLE, noted, plan_table(SETTINGS, TABLE, [small, grown], noted).known)
    for was, became, moves in (("int", "varint", True), ("text", "blob", True), ("decimal", "blob", False)):
        noted = plan_table(SETTINGS, TABLE, [version(was)], None).known
        new = plan_table(SETTINGS, TABLE, [version(was), version(became)], noted).known
        if moves:
            assert check_landed(TABLE, noted, new)
            noted = replace(noted, history=True)
        with pytest.raises(LandingError, match=f"ck was changed from {was} to {became}.*land --rebuild ks.t"):
            check_landed(TABLE, noted, new)
    assert shape([version("timeuuid"), version("uuid")]).keys[1].place == "c0"


def test_a_declared_column_may_be_dropped_and_not_misspelt() -> None:
    """Until somebody had changed the file, nothing of the table landed behind a DROP in the source."""
    declaring = load_settings({**_JOB, "column.types": {"ks.t.n": "decimal(10,2)"}})
    there, gone = (_version(f"pk partition_key int{more}") for more in ("; n regular decimal", ""))
    noted = plan_table(declaring, TABLE, [there], None).known
    with pytest.raises(LandingError, match=r"column\.types\.ks\.t\.n: the table has no such column"):
        plan_table(declaring, TABLE, [there, gone], noted)
    dropped = replace(gone, dropped=(("n", 7),))
    plan = plan_table(declaring, TABLE, [there, dropped], noted)
    assert plan.changed and plan.told == ("ks.t: n is dropped, so column.types has no effect on it",)


def test_what_topics_lost_before_it_landed_is_noted_until_the_source_was_read() -> None:
    version = _version("pk partition_key int")
    restored = Restored(None, {("p.ks.t", 0): 7}, 0, 1, 0, None)
    assert lacking(restored, {("p.ks.t", 0): 5, ("p.ks.t", 1): 0}) is None
    lost = lacking(restored, {("p.ks.t", 0): 5, ("p.ks.t", 1): 3})
    assert lost == "the first 3 records of p.ks.t, partition 1, expired before they were landed"
    noted = plan_table(SETTINGS, TABLE, [version], None, lost).known
    assert plan_table(SETTINGS, TABLE, [version], noted).known.incomplete == lost
    filled = replace(noted, backfilled=())
    assert lacking(replace(restored, known=filled), {("p.ks.t", 1): 3}) is None
    begun = known_in(replace(filled, covered={("p.ks.t", 1): 3}, filled_to=7).note(), 1)
    for versions in ([version], []):
        assert plan_table(SETTINGS, TABLE, versions, begun).known.filled_to == 7
        plan = plan_table(SETTINGS, TABLE, versions, begun, "it lacks something else").known
        assert (plan.covered, plan.filled_to) == (begun.covered, None), "what was read before is read again"
    with pytest.raises(
        LandingError, match=r"a rebuild ended before it had read the source .*land --rebuild ks.t again"
    ):
        check_rebuilt(TABLE, replace(noted, rebuilding=True))


def test_a_table_nobody_describes_is_an_error_that_names_the_topic() -> None:
    with pytest.raises(LandingError, match=r"p\.schemas"):
        plan_table(SETTINGS, TABLE, [], None)


def test_numbers_of_any_length_land_and_texts_that_are_none_do_not() -> None:
    digits = "7" * 20_000
    assert tie_bytes(native("varint"))(f"-{digits}") is not None
    ordered = order_bytes(native("varint"))
    found = [ordered(text) for text in (f"-{digits}1", f"-{digits}", "0", digits, f"{digits}1")]
    assert None not in found and found == sorted(found)  # type: ignore[type-var]
    for name, text in (("varint", "²"), ("varint", "1_0"), ("duration", "٣d"), ("duration", "9" * 5000 + "d")):
        assert tie_bytes(native(name))(text) is None


def test_a_record_nested_too_deeply_is_none_of_its_types() -> None:
    look = has_unknown((("u", "image", UserType("ks", "u", (("a", native("int")),))),))
    assert look('{"after": {"u": {"b": 1}}}')
    assert not look('{"after": {"u": ' + "[" * 100_000)


def test_a_broken_schema_record_is_named() -> None:
    with pytest.raises(LandingError, match="cannot be read"):
        parse_definition(json.dumps({"keyspace_name": "ks"}))


@pytest.mark.parametrize(
    "spelled",
    [
        "decimal",
        "double",
        "inet",
        "timeuuid",
        "blob",
        "frozen<list<decimal>>",
        "frozen<map<double, frozen<set<text>>>>",
        "frozen<tuple<decimal, text, int>>",
        "frozen<addr>",
    ],
)
def test_order_bytes_sort_as_the_server_and_tie_bytes_are_its_serialisation(spelled: str) -> None:
    kind = parse_type(spelled, TYPES)
    rnd = random.Random(spelled)
    values = [some(rnd, kind) for _ in range(60)]
    landed = [_as_landed(kind, value) for value in values]
    raw = [encode(kind, value) for value in values]
    assert [tie_bytes(kind)(value) for value in landed] == raw
    order, server = order_bytes(kind), order_key(kind)
    keys = [(order(value), server(cell)) for value, cell in zip(landed, raw)]
    for mine, theirs in keys:
        assert mine is not None
        for other, others in keys:
            assert other is not None
            assert (mine < other, mine == other) == (theirs < others, theirs == others)


def _as_landed(kind: CqlType, value: Any) -> Any:
    """A value as Spark hands it to Python: texts for numbers and addresses, rows for structs and entries."""
    shown = as_json(kind, value)
    if kind.cql() == "blob":
        return value
    return _rows(shown)


def _rows(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_rows(part) for part in value.values())
    if isinstance(value, list):
        return [_rows(part) for part in value]
    return (
        {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(value, value)
        if isinstance(value, str)
        else value
    )


def test_durations_are_read_from_their_text() -> None:
    assert duration_of("-1y2mo3d4h5m6s7ms8us9ns") == (-14, -3, -14706007008009)
    assert duration_of("") == (0, 0, 0)
    assert plain_value(parse_type("decimal"))("1E+3") == Decimal("1E+3")


def test_fields_of_user_types_have_names_that_every_table_format_takes() -> None:
    kind = parse_type('frozen<"odd">', {"odd": UserType("ks", "odd", (("a b", native("int")), ("A", native("text"))))})
    assert stored_type(kind) == "struct<`a$20b`:int,`$41`:string>"
    assert as_stored(kind, "x") == "CAST(x AS struct<`a$20b`:int,`$41`:string>)"
    assert as_recorded(kind, "x") == "CAST(x AS struct<`a b`:int,`A`:string>)", "people know them by their own names"
    assert present(kind, "x").startswith("CASE WHEN x IS NOT NULL THEN named_struct('a b', x.`a$20b`, 'A', x.`$41`)")


def test_no_two_columns_or_fields_share_a_physical_name() -> None:
    odd = _version(
        "pk partition_key int; äb regular int; \u0e4b regular int; u regular addr; u.street regular text",
        types={"addr": [["street", "text"]]},
    )
    names = [stored.physical for stored in shape([odd]).physical]
    assert len(names) == len(set(names)) == 5


class Written:
    """A topic's records as landing's consumer gives them."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.id = "a"

    def ids(self, names: list[str]) -> dict[str, str]:
        return dict.fromkeys(names, self.id) if self.id else {}

    def offsets(self, names: list[str]) -> dict[tuple[str, int], int]:
        return {(name, 0): len(self.values) for name in names}

    def read_from(self, topic: str, offset: int, end: int) -> list[tuple[int, str | None]]:
        return [(at, self.values[at].decode()) for at in range(offset, end)]


def test_a_schemas_topic_that_is_created_again_is_read_from_its_beginning() -> None:
    written = Written()
    schemas = SchemaTopic(cast(Topics, written), "p.schemas")
    written.values = [schema_record("ks", "t", "pk partition_key int", version=str(at)) for at in range(3)]
    assert [each.version for each in schemas.read()["ks.t"]] == ["0", "1", "2"]
    written.values = [schema_record("ks", "t", "pk partition_key int", version="0")]
    assert [each.version for each in schemas.read()["ks.t"]] == ["1", "2", "0"]
    assert [each.version for each in schemas.read()["ks.t"]] == ["1", "2", "0"]


@pytest.mark.parametrize("more", [0, 1])
def test_a_schemas_topic_that_is_created_again_is_read_from_its_beginning_however_long_it_is_by_then(
    monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """It was read from where the one before it had ended: what was told before that place was never heard of."""
    monkeypatch.setattr(kafka_topics, "_LOOKED_AT_S", 0.0)
    written = Written()
    schemas = SchemaTopic(cast(Topics, written), "p.schemas")
    written.values = [schema_record("ks", "t", "pk partition_key int", version=at) for at in "ab"]
    assert [each.version for each in schemas.read()["ks.t"]] == ["a", "b"]
    written.values = [schema_record("ks", "t", "pk partition_key int", version=at) for at in "cde"[: 2 + more]]
    # A broker that knows no ids says nothing of it.
    for written.id, said in (("", "abe" if more else "ab"), ("b", "abcde"[: 4 + more])):
        assert [each.version for each in schemas.read()["ks.t"]] == list(said)


@pytest.mark.parametrize("foreign", [b"x", b"[" * 100_000, b"1", b'{"a": 1}', b'{"keyspace_name": 1, "table_name": 2}'])
def test_foreign_records_of_the_schemas_topic_are_named_and_passed_over(
    foreign: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    written = Written()
    schemas = SchemaTopic(cast(Topics, written), "p.schemas")
    written.values = [schema_record("ks", "t", "pk partition_key int", version="0"), foreign]
    for _ in range(2):
        assert [each.version for each in schemas.versions("ks.t")] == ["0"]
    assert len(caplog.records) == 1 and "topic p.schemas, partition 0, offset 1: skipped" in caplog.text


@pytest.mark.parametrize(
    "damage",
    [
        {"columns": 7},
        {"columns": ["x"]},
        {"columns": [{"name": "pk", "type": "list<" * 2000 + "int" + ">" * 2000, "kind": "partition_key"}]},
        {"columns": [{"name": "pk", "type": 5, "kind": "partition_key"}]},
        {"columns": [{"name": "\ud800", "type": "int", "kind": "partition_key"}]},
        {"dropped": [{"name": "x", "dropped_us": 1e999}]},
        {"output": "advanced"},
        {"output": {"format": ["legacy"]}},
        {"types": {"a": [["x"]]}},
        {"table_id": "no uuid"},
    ],
)
def test_a_damaged_record_of_the_schemas_topic_stops_its_table_alone(damage: dict[str, Any]) -> None:
    written = Written()
    schemas = SchemaTopic(cast(Topics, written), "p.schemas")
    good = schema_record("ks", "t", "pk partition_key int")
    damaged = json.dumps({**json.loads(good), **damage}).encode()
    written.values = [good, schema_record("ks", "u", "pk partition_key int"), damaged]
    for _ in range(2):
        with pytest.raises(LandingError, match=r"topic p.schemas, partition 0, offset 2: a schema record"):
            schemas.versions("ks.t")
        assert set(schemas.read()) == {"ks.u"} and schemas.versions("ks.u")
    written.values = [*written.values, good]
    assert schemas.versions("ks.t")
