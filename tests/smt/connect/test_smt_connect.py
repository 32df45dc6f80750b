"""The transforms of Connect and Debezium answer as Java's classes did, case by case."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import smt
from connector.config.transforms import PREDICATES, TRANSFORMS
from smt import Place, Record, SmtOptionError, SmtRecordError, build_transform
from smt.connect.document_table import tables
from smt.connect.java_date_parser import DateParser
from smt.connect.java_dates import compiled
from smt.connect.registry import ALL
from tests.smt.connect.recorded import FILES, answers, read, same

PAGE = (Path(__file__).parents[3] / "docs" / "smt.md").read_text(encoding="utf-8")
ROW = {"id": 7, "name": "x", "in": {"a": 1}}


@pytest.mark.parametrize("file", [file for file in FILES if file != "converters"])
def test_answers_are_javas(file: str) -> None:
    compared = 0
    for case, java in read(file):
        ours = list(answers(case))
        if isinstance(java, dict):
            assert "refused" in ours[0], (case["chain"], java)
        elif "refused" in ours[0]:
            # What fails at every record is refused before the first.
            assert all("error" in one for one in java), (case["chain"], ours)
        else:
            for given, our, its in zip(case["records"], ours, java, strict=True):
                assert same(our, its), (case["chain"], given, our, its)
        compared += 1
    assert compared >= 40


def test_every_transform_has_answers_of_javas() -> None:
    """Filter is in the chains: it is nothing without a predicate."""
    assert {declared.name for declared in ALL} - {"Filter"} <= set(FILES)


def test_the_page_holds_the_generated_tables() -> None:
    assert tables() in PAGE


def test_configurations_know_the_same_transforms() -> None:
    assert TRANSFORMS == smt.TYPES
    assert {name: each.name for name, each in smt.PREDICATES.items()} == PREDICATES


def applied(type_name: str, options: dict[str, str], record: Record) -> Record:
    done = build_transform(type_name, options)(record)
    assert done is not None
    return done


def test_names_of_before_connect_4_are_taken() -> None:
    done = applied("ReplaceField$Value", {"blacklist": "in"}, Record("t", None, ROW))
    assert done.value == {"id": 7, "name": "x"}
    with pytest.raises(SmtOptionError, match="Contradicts blacklist"):
        build_transform("ReplaceField$Value", {"blacklist": "a", "exclude": "b"})


def test_an_abstract_class_is_answered_with_its_two_sides() -> None:
    with pytest.raises(SmtOptionError, match=r"Cast\$Key or .*Cast\$Value"):
        build_transform("org.apache.kafka.connect.transforms.Cast", {"spec": "int8"})


def test_scripts_are_refused_with_what_to_use_instead() -> None:
    with pytest.raises(SmtOptionError, match=r"no engine here: skipped\.operations"):
        build_transform("io.debezium.transforms.Filter", {"language": "jsr223.groovy", "condition": "value.op == 'u'"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("io.confluent.connect.transforms.Filter$Value", "skipped.operations drops operations"),
        ("io.confluent.connect.transforms.ExtractTopic$Value", "route.by.field"),
        ("io.debezium.transforms.HeaderToValue", "where records are read"),
        ("HeaderToValue", "where records are read"),
        ("io.debezium.transforms.outbox.EventRouter", "rows of an outbox table"),
        ("io.debezium.transforms.ExtractChangedRecordState", "nothing here names the columns that changed"),
        ("io.debezium.transforms.UnwrapFromEnvelope", "ExtractNewRecordState since 0.10"),
        ("io.debezium.transforms.EnforceRecordSize", "producer.override.max.request.size"),
        ("io.debezium.transforms.SwapGeometryCoordinates", "no geometries in CQL"),
        ("io.debezium.transforms.openlineage.OpenLineage", "take the transform out"),
        ("io.debezium.connector.mongodb.transforms.ExtractNewDocumentState", "another database's records"),
        ("io.aiven.kafka.connect.transforms.ExtractTimestamp$Value", "cannot be loaded here"),
        ("com.acme.transforms.ReplaceField", "cannot be loaded here"),
        ("com.acme.ReplaceField$Value", "cannot be loaded here"),
    ],
)
def test_classes_of_others_are_not_taken_for_slips_of_the_keys(name: str, said: str) -> None:
    with pytest.raises(SmtOptionError) as caught:
        build_transform(name)
    (found,) = caught.value.problems
    assert said in found.problem
    assert "did you mean" not in str(found) and "$Key or" not in str(found)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("org.apache.kafka.connect.transform.RegexRouter", "org.apache.kafka.connect.transforms.RegexRouter"),
        ("org.apache.kafka.connect.transforms.RegexRoutr", "org.apache.kafka.connect.transforms.RegexRouter"),
        ("org.apache.kafka.connect.transforms.Cast$key", "org.apache.kafka.connect.transforms.Cast$Key"),
        ("io.debezium.transforms.ExtractNewRecordStat", "io.debezium.transforms.ExtractNewRecordState"),
        ("org.apache.kafka.connect.transforms.ExtractNewRecordState", "io.debezium.transforms.ExtractNewRecordState"),
        ("ExtractNewRecordStat", "ExtractNewRecordState"),
        (
            "com.scylladb.cdc.transforms.ScyllaFlattenColumns",
            "com.scylladb.cdc.debezium.connector.transforms.ScyllaFlattenColumns",
        ),
        (
            "com.scylladb.cdc.debezium.connector.transforms.ScyllaExtractNewState",
            "com.scylladb.cdc.debezium.connector.transforms.ScyllaExtractNewRecordState",
        ),
    ],
)
def test_slips_of_the_keys_are_answered_with_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(SmtOptionError) as caught:
        build_transform(name)
    assert [found.suggestion for found in caught.value.problems] == [f"did you mean {meant}?"]


@pytest.mark.parametrize(
    "name", ["org.apache.kafka.connect.transforms.ExtractTopic$Value", "io.debezium.transforms.Tee"]
)
def test_names_are_not_alike_by_their_packages(name: str) -> None:
    with pytest.raises(SmtOptionError, match=r"There is no transform .*\(one of ByLogicalTableRouter, "):
        build_transform(name)


def test_unknown_options_are_ignored_with_a_word_unless_they_resemble_one() -> None:
    built = build_transform("ExtractField$Key", {"field": "id", "owner": "me"})
    assert built.notes == (
        "owner is no option of it, and has no effect: it knows field, field.syntax.version, replace.null.with.default",
    )
    with pytest.raises(SmtOptionError, match="did you mean field"):
        build_transform("ExtractField$Key", {"field": "id", "feild": "id"})


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SmtOptionError) as caught:
        build_transform("HeaderFrom$Value", {"fields": "", "operation": "keep"})
    assert [one.option for one in caught.value.problems] == ["fields", "operation", "headers"]


def test_a_record_keeps_its_place_through_every_transform() -> None:
    place = Place(3, 1700000000000, 42)
    record = Record("t", {"id": 7}, ROW, place=place)
    for type_name, options in (
        ("HoistField$Key", {"field": "k"}),
        ("RegexRouter", {"regex": ".*", "replacement": "x"}),
        ("InsertHeader", {"header": "h", "value.literal": "1"}),
        ("extract-new-state", {}),
    ):
        assert applied(type_name, options, record).place == place
    assert applied("TimestampRouter", {}, record).topic == "t-20231114"
    with pytest.raises(SmtRecordError, match="no timestamp"):
        applied("TimestampRouter", {}, Record("t", None, ROW))


def test_dates_that_leave_32_bits_are_javas() -> None:
    """As of seconds that were milliseconds."""
    options = {"field": "at", "target.type": "Date", "unix.precision": "seconds"}
    row = {"at": 253_402_300_800_000}
    assert applied("TimestampConverter$Value", options, Record("t", None, row)).value == {"at": -1_362_070_296}


@pytest.mark.parametrize(
    ("pattern", "text", "java"),
    [
        ("MM/dd/yyyy HH:mm:ss a", "09/21/2023 14:05:00 PM", 1_695_305_100_000),
        ("HH:mm a", "00:30 PM", 1_800_000),
        ("HH K a", "14 3 AM", 10_800_000),
        ("a K HH", "AM 3 14", 50_400_000),
        ("HH a K", "14 PM 3", 54_000_000),
        ("K:mm", "03:05", 11_100_000),
        ("a", "PM", 43_200_000),
    ],
)
def test_an_hour_of_the_whole_day_counts_before_half_a_word_of_twelve(pattern: str, text: str, java: int) -> None:
    options = {"field": "at", "target.type": "unix", "format": pattern}
    assert applied("TimestampConverter$Value", options, Record("t", None, {"at": text})).value == {"at": java}


@pytest.mark.parametrize(
    ("pattern", "text", "java"),
    [
        ("yy-MM-dd", "45-12-31", 2_398_291_200_000),
        ("yy-MM-dd", "46-03-01", 2_403_475_200_000),
        ("yy-MM-dd HH", "46-11-30 00", 2_427_148_800_000),
        ("yy-MM-dd", "46-12-31", -725_932_800_000),
        ("yy-MM-dd", "47-01-01", -725_846_400_000),
    ],
)
def test_two_digits_are_a_year_of_the_hundred_years_from_a_moment_on(pattern: str, text: str, java: int) -> None:
    """With what Java answers whose hundred years begin then: the first part of their first year is in none of them."""
    parser = DateParser(compiled(pattern), datetime(1946, 11, 30, 12, tzinfo=UTC))
    assert parser.milliseconds(text) == java


@pytest.mark.parametrize(
    ("pattern", "text", "java"),
    [
        ("d z", "5 GMT-04:30", 361_800_000),
        ("d z", "5 gmt+1:30", 340_200_000),
        ("d Z", "5 -0430", 361_800_000),
        ("d Z", "5 UTC+3", 345_600_000),
        ("d z", "5 GMT:30", 345_600_000),
        ("d X", "5 -04", 360_000_000),
        ("d Z", "5 -04:30", None),
        ("d Z", "5 -04", None),
        ("d Z", "5 -4", None),
        ("d Z", "5 +2400", None),
        ("d z", "5 GMT-24:00", None),
        ("d z", "5 GMT-0430", None),
        ("d z", "5 UT", None),
        ("d XX", "5 +0160", None),
        ("d Z", "5 +٠٤٠٠", None),
    ],
)
def test_a_zone_is_read_only_in_the_form_that_java_reads(pattern: str, text: str, java: int | None) -> None:
    """Of a bare offset four digits, behind GMT a colon: everything else is no match, rather than another hour."""
    options = {"field": "at", "target.type": "unix", "format": pattern}
    record = Record("t", None, {"at": text})
    if java is not None:
        assert applied("TimestampConverter$Value", options, record).value == {"at": java}
        return
    with pytest.raises(SmtRecordError, match="does not match the pattern"):
        applied("TimestampConverter$Value", options, record)


def test_the_record_given_is_not_changed() -> None:
    record = Record("t", {"id": 7}, ROW, [("h", "v")])
    for type_name, options in (
        ("Cast$Value", {"spec": "id:string"}),
        ("MaskField$Value", {"fields": "name"}),
        ("HeaderFrom$Value", {"fields": "id", "headers": "h", "operation": "move"}),
        ("InsertField$Value", {"static.field": "s", "static.value": "v"}),
        ("DropHeaders", {"headers": "h"}),
    ):
        applied(type_name, options, record)
    assert record == Record("t", {"id": 7}, {"id": 7, "name": "x", "in": {"a": 1}}, [("h", "v")])


@pytest.mark.parametrize(
    ("regex", "problem"),
    [
        (r"\p{IsGreek}", "not supported"),
        (r"\X", "unsupported escape"),
        ("(?<=a*)b", "fixed-width"),
        ("(", "Unclosed group"),
        ("a\\", "Nothing follows"),
    ],
)
def test_expressions_without_a_counterpart_are_refused(regex: str, problem: str) -> None:
    with pytest.raises(SmtOptionError, match=problem):
        build_transform("RegexRouter", {"regex": regex, "replacement": "x"})


@pytest.mark.parametrize("regex", [r"^*shop\.(.*)", r"\b{2}shop\.(.*)$+", r"^{2}shop\.(.*)\Z?"])
def test_places_may_be_repeated_as_in_java(regex: str) -> None:
    assert applied("RegexRouter", {"regex": regex, "replacement": "$1"}, Record("shop.t", None, ROW)).topic == "t"


def test_a_replacement_that_names_no_group_is_refused() -> None:
    with pytest.raises(SmtOptionError, match="no group 2"):
        build_transform("RegexRouter", {"regex": "(.*)", "replacement": "$2"})


@pytest.mark.parametrize(
    ("literal", "payload"),
    [
        ("{1:2}", [[1, 2]]),
        ("{[1]:2, [1] : 3}", [[[1], 3]]),
        ('{"a":{true:1}}', {"a": [[True, 1]]}),
        ('{{"a":1}:2}', [[{"a": 1}, 2]]),
    ],
)
def test_a_literal_whose_keys_are_no_texts_is_a_list_of_pairs(literal: str, payload: object) -> None:
    """As Java's JsonConverter writes such maps, and as SimpleHeaderConverter does."""
    done = applied("InsertHeader", {"header": "h", "value.literal": literal}, Record("t", None, ROW))
    [header] = done.headers
    assert header[1] == payload
    written = smt.simple_text(header.schema, header[1])
    assert written is not None and written[0] == "{"
    assert applied("InsertHeader", {"header": "h", "value.literal": written}, done).headers[1][1] == payload


@pytest.mark.parametrize(
    ("literal", "java"),
    [
        *((text, text) for text in ('{"a": }', '{"a": , "b": 2}', "{ : 1}", "[1, , 2]", "[ , ]", '{"a":}')),
        ("[1, ]", [1]),
        ("[ ]", []),
        ('{ "a" : 1 , }', {"a": 1}),
        ('["2020-01-01",2.5]', '["2020-01-01",2.5]'),
        ("[2020-01-01,70000]", "[2020-01-01,70000]"),
        ('[70000,"2020-01-02"]', [70000, 18263]),
        ('["2020-01-02","2020-01-01T12:30:00.000Z"]', [1577923200000, 1577881800000]),
        ("1e399999999999", "1e399999999999"),
        ("1.5e2147483648", "1.5e2147483648"),
        ("1e-2147483648", "1e-2147483648"),
        ("1e00000000001", 10),
    ],
)
def test_a_literal_with_blanks_dates_or_beyond_javas_numbers(literal: str, java: object) -> None:
    """What Connect's `Values.parseString` (4.1.1) makes of it: a text where the whole is none of a list or a map."""
    done = applied("InsertHeader", {"header": "h", "value.literal": literal}, Record("t", None, ROW))
    assert done.headers[0][1] == java


def test_maps_and_zeros_are_masked_as_by_java() -> None:
    ints = {"type": "int32", "optional": False}
    fields = [
        {"type": "map", "keys": ints, "values": ints, "optional": True, "field": "m"},
        {"type": "map", "keys": {"type": "string", "optional": False}, "values": ints, "optional": True, "field": "n"},
    ]
    record = Record("t", None, {"m": [[1, 2]], "n": {"a": 2}}, value_schema={"type": "struct", "fields": fields})
    assert applied("MaskField$Value", {"fields": "m,n"}, record).value == {"m": [], "n": {}}
    schema = {"type": "struct", "fields": [{"type": "double", "optional": True, "field": "d"}]}
    done = applied(
        "MaskField$Value", {"fields": "d", "replacement": "-0"}, Record("t", None, {"d": 1.5}, value_schema=schema)
    )
    assert str(done.value["d"]) == "0.0"
