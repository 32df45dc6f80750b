"""The shortcuts of both formats and both converters are held against the reference: the same bytes, or none."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.changes import Batch, Change, changes_of, whole_rows
from connector.errors import PoisonRow
from connector.formats.encoder import Encoder
from connector.values import UserType, native
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import STREAM, TIME, Log, table
from tests.values.strategies import NATIVE_VALUES

NATIVES = sorted(set(NATIVE_VALUES) - {"counter"})
U = UserType("ks", "u", (("a", native("int")), ("b", native("text"))))
NAMES = ("v", '100% "quoted"', "back\\slash", "größe😀")
AVRO_NAMES = ("v", "w2", "_x", "Y")
JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
AVRO_VALUES = {"value.converter": AVRO, "value.converter.schema.registry.url": "http://127.0.0.1:1"}
BOTH_AVRO = AVRO_VALUES | {"key.converter": AVRO, "key.converter.schema.registry.url": "http://127.0.0.1:1"}
SCHEMAS = {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}

PREIMAGES = {"experimental.preimages.enabled": "true"}
REWRITTEN = {"delete_tombstone_handling_mode": "rewrite"}
METADATA = {"cdc.include.metadata": "true"}
DELTA = {"cdc.include.collections": "delta"}


def advanced(before: str, after: str, placement: str) -> dict[str, str]:
    return {
        "cdc.output.format": "advanced",
        "cdc.include.before": before,
        "cdc.include.after": after,
        "cdc.include.primary-key.placement": f"kafka-key,{placement}",
    }


def step(kind: str, **options: str) -> dict[str, str]:
    of_step = {f"transforms.flat.{name.replace('_', '.')}": value for name, value in options.items()}
    return {"transforms": "flat", "transforms.flat.type": kind} | of_step


VARIANTS: dict[str, dict[str, str]] = {
    "legacy": {},
    "legacy, strict": {"scylla.compatibility": "strict"},
    "legacy with schemas": SCHEMAS,
    "legacy without tombstones": {"tombstones.on.delete": "false"},
    "legacy with pre-images": {"experimental.preimages.enabled": "true"},
    "legacy Avro": BOTH_AVRO,
    "legacy Avro with pre-images": BOTH_AVRO | {"experimental.preimages.enabled": "true"},
    "legacy Avro, strict, with keys in JSON": AVRO_VALUES | {"scylla.compatibility": "strict"},
    "keys without defaults": {"key.converter.replace.null.with.default": "false"},
    "Avro keys without defaults": BOTH_AVRO | {"key.converter.ignore.default.for.nullables": "true"},
    "rows, Avro, without defaults": BOTH_AVRO
    | {"value.converter.ignore.default.for.nullables": "true"}
    | step("ScyllaExtractNewRecordState", add_fields="source.snapshot"),
    "images": advanced("full", "full", "payload-before,payload-after,payload-key"),
    "what was updated, with schemas": SCHEMAS | advanced("only-updated", "only-updated", "payload-after"),
    "images before, strict": {"scylla.compatibility": "strict"} | advanced("full", "none", "payload-before"),
    "Avro images": BOTH_AVRO | advanced("full", "full", "payload-before,payload-after,payload-key"),
    "Avro, what was updated": BOTH_AVRO | advanced("only-updated", "full", "payload-diff"),
    "routed, and their tombstones elsewhere": {
        **{"transforms": "a,b", "predicates": "gone", "predicates.gone.type": "RecordIsTombstone"},
        **{"transforms.a.type": "RegexRouter", "transforms.a.regex": "(.*)", "transforms.a.replacement": "x.$1"},
        **{"transforms.b.type": "RegexRouter", "transforms.b.regex": ".*", "transforms.b.replacement": "gone"},
        **{"transforms.b.predicate": "gone"},
    },
    "metadata": METADATA,
    "metadata with schemas": METADATA | SCHEMAS,
    "metadata, Avro": METADATA | BOTH_AVRO,
    "deltas": DELTA,
    "deltas, strict": DELTA | {"scylla.compatibility": "strict"},
    "deltas with schemas, pre-images": DELTA | SCHEMAS | {"experimental.preimages.enabled": "true"},
    "deltas and metadata, Avro": DELTA | METADATA | BOTH_AVRO,
    "deltas, Avro, pre-images, keys in JSON": DELTA | AVRO_VALUES | {"experimental.preimages.enabled": "true"},
    "images and metadata": METADATA | advanced("full", "full", "payload-before,payload-after"),
    "images and metadata, Avro": METADATA | BOTH_AVRO | advanced("full", "full", "payload-key"),
    "keys in headers": METADATA | advanced("full", "full", "kafka-headers"),
    "keys in headers, strict": {"scylla.compatibility": "strict"} | advanced("full", "none", "kafka-headers"),
    "keys in headers as JSON, Avro": BOTH_AVRO
    | advanced("none", "full", "kafka-headers")
    | {"header.converter": JSON, "header.converter.schemas.enable": "true"},
    "rows": step("extract-new-state"),
    "rows with nulls": step("extract-new-state", untouched_fields="null"),
    "rows of deltas": DELTA | METADATA | step("extract-new-state", **REWRITTEN, add_fields="op"),
    "rows with schemas, of deletes too": SCHEMAS
    | METADATA
    | step("ScyllaExtractNewRecordState", **REWRITTEN, add_fields="op,ts_ms,source.ts_us,source.snapshot,source.ttl"),
    "rows, Avro, deltas": BOTH_AVRO | DELTA | step("ScyllaExtractNewRecordState", **REWRITTEN, add_fields="op:o,ts_ms"),
    "rows with tombstones": step("ExtractNewRecordState", delete_tombstone_handling_mode="tombstone"),
    "rows of images": METADATA
    | advanced("full", "full", "payload-after,kafka-headers")
    | step("extract-new-state", add_fields="source.time"),
    "rows of images, Avro": BOTH_AVRO
    | advanced("none", "only-updated", "payload-before")
    | step("ExtractNewRecordState", **REWRITTEN),
    "rows in another topic": step("extract-new-state")
    | {"transforms": "flat,a", "transforms.a.type": "RegexRouter"}
    | {"transforms.a.regex": "(.*)", "transforms.a.replacement": "x.$1"},
    "without cells": step("ScyllaFlattenColumns"),
    "without cells, with schemas, deltas, pre-images": SCHEMAS | DELTA | PREIMAGES | step("ScyllaFlattenColumns"),
    "without cells, Avro, deltas": BOTH_AVRO | DELTA | METADATA | step("ScyllaFlattenColumns"),
    "without cells that images have not": advanced("full", "full", "payload-after") | step("ScyllaFlattenColumns"),
    "transformed, but for some": {"transforms": "h", "transforms.h.type": "HoistField$Value", "transforms.h.field": "x"}
    | {"transforms.h.predicate": "other", "predicates": "other", "predicates.other.type": "TopicNameMatches"}
    | {"predicates.other.pattern": r"another\..*"},
    "no images": AVRO_VALUES | advanced("none", "none", "payload-key"),
}


class Ids:
    """A registry in memory."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str], int] = {}

    def id_for(self, subject: str, schema_json: str) -> int:
        return self.numbers.setdefault((subject, schema_json), len(self.numbers) + 7)


def encoder(**properties: str) -> Encoder:
    ids = Ids()
    return Encoder(output_options(**properties), ids, ids, clock=lambda: NOW_NS)


def held_equal(made: Encoder, changes: list[Change]) -> None:
    assert made.encode_alike(changes) == [made.encode(change) for change in changes]


@st.composite
def logs(draw: st.DrawFn, names: tuple[str, ...]) -> list[Change]:
    """Changes, with and without images, of a table with a key and columns of any native types, and some others."""
    types = {name: draw(st.sampled_from(NATIVES)) for name in ("pk", "ck", *names)}
    types |= {"l": "list<int>", "f": "frozen<set<text>>", "vec": "vector<float, 2>"}
    types |= {"s": "set<text>", "m": "map<int, frozen<tuple<text>>>", "u": "u"}
    log = Log(table(types, clustering=("ck",), static=(names[1],), types={"u": U}))

    def row(operation: int, number: int, last: bool, time: uuid.UUID, key: dict[str, Any]) -> Any:
        if key["ck"] is None:
            # Of the static row.
            value = draw(NATIVE_VALUES[types[names[1]]])
            return log.row(operation, number, last, time, **{names[1]: value}, **key)
        values: dict[str, Any] = {name: draw(st.none() | NATIVE_VALUES[types[name]]) for name in names}
        values["vec"] = draw(st.none() | st.just([0.5, 1e10]))
        values["f"] = draw(st.none() | st.lists(NATIVE_VALUES["text"], max_size=2))
        values["l"] = draw(st.none() | st.just([(time, 1)]))
        values["s"] = draw(st.none() | st.sets(NATIVE_VALUES["text"], min_size=1, max_size=2).map(sorted))
        values["m"] = draw(st.none() | st.just([(1, (None,)), (2, ("ä",))]))
        values["u"] = draw(st.none() | st.just((7, None)))
        deleted = tuple(draw(st.sets(st.sampled_from((*names, "l", "s", "m", "u")))))
        removed = draw(st.sampled_from(({}, {"l": [time], "s": ["x"], "m": [3]}, {"u": [1]})))
        ttl = draw(st.none() | st.integers(0, 2**31 - 1))
        return log.row(operation, number, last, time, ttl=ttl, deleted=deleted, removed=removed, **values, **key)

    changes = []
    for _ in range(draw(st.integers(1, 4))):
        key = {"pk": draw(NATIVE_VALUES[types["pk"]]), "ck": draw(st.none() | NATIVE_VALUES[types["ck"]])}
        time = uuid.UUID(int=draw(st.integers(0, 2**128 - 1)), version=1)
        rows = [row(0, 0, False, time, key)] if draw(st.booleans()) else []
        codes = (1, 0x7F, 0x7E) if key["ck"] is None else (1, 2, 3, -3, 0x7F, 0x7E)
        rows.append(row(draw(st.sampled_from(codes)), 1, False, time, key))
        rows += [row(9, 2, True, time, key)] if draw(st.booleans()) else []
        changes += log.changes(*rows)
    return changes


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_all_native_types_are_the_references(variant: str, data: st.DataObject) -> None:
    properties = VARIANTS[variant]
    names = AVRO_NAMES if AVRO in properties.values() else NAMES
    held_equal(encoder(**properties), data.draw(logs(names)))


@pytest.mark.parametrize(
    "properties", [METADATA, METADATA | BOTH_AVRO, METADATA | advanced("none", "full", "payload-key")]
)
def test_rows_of_a_snapshot_tell_of_their_cells_in_headers(properties: dict[str, str]) -> None:
    layout = whole_rows(LOG.description, dated=True).layout
    told = (None, b'{"a":1}')
    rows = [
        tuple(
            {"cdc$operation": operation, "pk": b"\0\0\0\7", "cdc$ends": ends, "cdc$written": written}.get(column)
            for column in layout.columns
        )
        for operation in (b"\x7f", b"\x7e")
        for ends in told
        for written in told
    ]
    held_equal(encoder(**properties), changes_of(Batch(layout, STREAM, TIME.bytes, rows)))


LOG = Log(table({"pk": "int", "ck": "int", "a": "double", "b": "text", "u": "uuid"}, clustering=("ck",)))
ONE = LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, b="x"))


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 0.1, 1e7, 9999999.999, 1e-3, 9e-4, 1e23, 5e-324, float("nan"), -float("inf")]
)
@pytest.mark.parametrize("converters", [{}, BOTH_AVRO], ids=["JSON", "Avro"])
def test_doubles(number: float, converters: dict[str, str]) -> None:
    held_equal(encoder(**converters), LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, a=number)))


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, 8191, 8192, -8193, 2**20, 2**27, 2**31 - 1, -(2**31)])
def test_integers_of_all_lengths(number: int) -> None:
    held_equal(encoder(**BOTH_AVRO), LOG.changes(LOG.row(2, 0, True, pk=number, ck=1)))


def test_what_is_no_plain_row_has_no_shortcut() -> None:
    image = LOG.changes(LOG.row(0, 0, pk=1, ck=1), LOG.row(1, 1, True, pk=1, ck=1))
    partition = LOG.changes(LOG.row(4, 0, True, pk=1))
    # Logs of one layout, which is kept as long as few others were asked for since.
    logs = Log(LOG.description), Log(LOG.description)
    one, other = (log.changes(log.row(2, 0, True, pk=1, ck=1)) for log in logs)
    assert encoder().encode_alike([]) is None
    assert encoder().encode_alike(ONE + partition) is None
    held_equal(encoder(**{"experimental.preimages.enabled": "true"}), ONE + image)
    # An image that nobody asked for is nothing to look at.
    held_equal(encoder(), ONE + image)
    newer = Log(table({"pk": "int", "ck": "int", "a": "double", "c": "text"}, clustering=("ck",)))
    assert encoder().encode_alike(ONE + newer.changes(newer.row(2, 0, True, pk=1, ck=1))) is None
    assert encoder().encode_alike(one + other) is not None


@pytest.mark.parametrize(
    "properties",
    [
        {"skipped.operations": "c"},
        {"value.converter.replace.null.with.default": "false"},
        BOTH_AVRO | {"value.converter.ignore.default.for.nullables": "true"},
        {"transforms": "h", "transforms.h.type": "org.apache.kafka.connect.transforms.HoistField$Value"}
        | {"transforms.h.field": "x"},
        step("extract-new-state", add_headers="op"),
        step("extract-new-state", add_fields="transaction.id"),
        step("extract-new-state", route_by_field="b"),
        {"scylla.compatibility": "strict"} | step("ScyllaExtractNewRecordState"),
    ],
)
def test_other_options_have_no_shortcut(properties: dict[str, str]) -> None:
    made = encoder(**properties)
    assert made.encode_alike(ONE) is None
    made.encode(ONE[0])


@pytest.mark.parametrize(
    "properties",
    [
        {"value.converter.replace.null.with.default": "false"},
        BOTH_AVRO | {"value.converter.ignore.default.for.nullables": "true"},
    ],
)
def test_values_without_their_defaults_are_not_the_kernels(properties: dict[str, str]) -> None:
    assert encoder(**properties).outline(LOG.layout) is None
    assert encoder(**{name.replace("value.", "key.", 1): text for name, text in properties.items()}).outline(LOG.layout)


def test_a_key_of_collections_alone_has_no_shortcut_in_the_legacy_format() -> None:
    log = Log(table({"pk": "frozen<list<int>>", "v": "int"}))
    changes = log.changes(log.row(2, 0, True, pk=[1], v=1))
    assert encoder().encode_alike(changes) is None
    assert encoder().encode(changes[0])[0].key == b"{}"
    held_equal(encoder(**advanced("none", "full", "payload-after")), changes)


KEY_ONLY = Log(table({"pk": "int", "ck": "text"}, clustering=("ck",)))


@pytest.mark.parametrize("placement", ["payload-diff", "payload-before", "payload-after", "payload-key"])
@pytest.mark.parametrize("converters", [{}, SCHEMAS, BOTH_AVRO], ids=["JSON", "with schemas", "Avro"])
def test_tables_of_key_columns_alone(converters: dict[str, str], placement: str) -> None:
    changes = [
        change
        for operation, number in ((2, 1), (1, 2), (3, 3))
        for change in KEY_ONLY.changes(
            KEY_ONLY.row(0, 0, pk=number, ck="a"),
            KEY_ONLY.row(operation, 1, pk=number, ck="a"),
            KEY_ONLY.row(9, 2, True, pk=number, ck="a"),
        )
    ]
    made = encoder(**converters, **advanced("full", "full", placement))
    assert made.encode_alike(changes) is not None
    held_equal(made, changes)


class Surprise(Exception):
    """What nobody expects of a shortcut."""


@pytest.mark.parametrize("surprise", [Surprise("new"), RecursionError(), StopIteration(), AssertionError()])
def test_a_shortcut_that_fails_in_any_way_leaves_the_table_to_the_reference(
    surprise: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    made = encoder()
    wanted = made.encode(ONE[0])

    def failing(changes: object, now: int) -> list[tuple[bytes, bytes]]:
        raise surprise

    layout = ONE[0].batch.layout
    made._plans[layout] = replace(made._plans[layout], columnwise=failing)
    for _ in range(2):
        assert made.encode_alike(ONE) is None
    assert made.encode(ONE[0]) == wanted
    assert len(caplog.records) == 1 and "ks.t" in caplog.text and type(surprise).__name__ in caplog.text


def test_what_a_plan_fails_with_names_the_row() -> None:
    made = encoder()
    made.encode(ONE[0])

    def failing(change: Change, now: int) -> object:
        raise RecursionError("too deep")

    layout = ONE[0].batch.layout
    bound = made._plans[layout]
    made._plans[layout] = replace(bound, plan=replace(bound.plan, value=failing))
    with pytest.raises(PoisonRow, match=r"ks\.t.*RecursionError: too deep"):
        made.encode(ONE[0])


def test_two_structs_with_one_avro_name_are_told() -> None:
    log = Log(table({"pk": "int", "a": "frozen<tuple<tuple<int>, text>>", "b": "frozen<tuple<tuple<int, text>>>"}))
    changes = log.changes(log.row(2, 0, True, pk=1, a=((1,), "x")))
    with pytest.raises(PoisonRow, match=r"two different structs have the name .*Tuple_Tuple_INT_VARCHAR"):
        encoder(**BOTH_AVRO, **advanced("none", "full", "payload-after")).encode(changes[0])


@pytest.mark.parametrize("raw", [{"a": b""}, {"a": b"123"}, {"pk": b""}, {"b": b"\xff"}, {"u": b""}])
@pytest.mark.parametrize("converters", [{}, BOTH_AVRO], ids=["JSON", "Avro"])
def test_unusual_cells_are_left_to_the_reference(raw: dict[str, bytes], converters: dict[str, str]) -> None:
    assert encoder(**converters).encode_alike(LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, raw=raw))) is None


@pytest.mark.parametrize("converters", [{}, BOTH_AVRO], ids=["JSON", "Avro"])
@pytest.mark.parametrize("images", [PREIMAGES, advanced("full", "none", "payload-diff")], ids=["legacy", "advanced"])
def test_cells_that_a_transform_takes_away_are_read(images: dict[str, str], converters: dict[str, str]) -> None:
    made = encoder(**converters, **images, **step("ScyllaExtractNewRecordState"))
    assert made.encode_alike(ONE) is not None
    before = LOG.row(0, 0, pk=1, ck=1, raw={"b": b"\xff"})
    changes = LOG.changes(before, LOG.row(1, 1, True, pk=1, ck=1, b="x"))
    assert made.encode_alike(changes) is None
    with pytest.raises(PoisonRow):
        made.encode(changes[0])


def test_subjects_are_asked_for_when_the_first_record_comes() -> None:
    ids = Ids()
    made = Encoder(output_options(**BOTH_AVRO), ids, ids)
    assert made.encode_alike(LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, raw={"b": b"\xff"}))) is None
    assert not ids.numbers
    made.encode_alike(ONE)
    assert [subject for subject, _ in ids.numbers] == ["cases.ks.t-value", "cases.ks.t-key"]
