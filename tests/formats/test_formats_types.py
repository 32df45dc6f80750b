"""Every CQL type in both formats and both converters: what a JSON consumer reads, an Avro consumer reads too."""

from __future__ import annotations

import json
from base64 import b64encode
from struct import pack
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from connector.changes import Column, TableDescription
from connector.formats.encoder import Encoder
from connector.values.binary import encode
from connector.values.types import CqlType, ListType, MapType, SetType, UserType, native
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import Log
from tests.formats.test_formats_avro import AVRO, Ids
from tests.values.strategies import frozen_types, typed_values, values_of

IMAGES = {"cdc.output.format": "advanced", "cdc.include.after": "full"}
DELTA = {"cdc.include.collections": "delta", "cdc.include.metadata": "true"}


def both(type_: CqlType, properties: dict[str, str], rows: Any) -> tuple[Any, Any]:
    """The value that JSON consumers and Avro consumers get of one change."""
    log = Log(TableDescription("ks", "t", "id", (Column("k", native("int"), "partition_key", 0), Column("v", type_))))
    changes = log.changes(*rows(log))
    ids = Ids()
    plain = Encoder(output_options(**properties), clock=lambda: NOW_NS)
    avro = Encoder(output_options(**AVRO, **properties), ids, ids, clock=lambda: NOW_NS)
    (json_record,), (avro_record,) = plain.encode(changes[0]), avro.encode(changes[0])
    assert json.loads(json_record.key or b"") == ids.read(avro_record.key)
    return json.loads(json_record.value or b""), ids.read(avro_record.value)


WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def alike(seen: Any, avro: Any) -> bool:
    """Whether a JSON consumer's value stands for an Avro consumer's."""
    if isinstance(avro, bytes):
        return bool(seen == b64encode(avro).decode())
    if isinstance(avro, float):
        number = WORDS[seen] if isinstance(seen, str) else float(seen)
        # A float's shortest text names it among the numbers of single precision only.
        return repr(number) == repr(avro) or pack(">f", number) == pack(">f", avro)
    if isinstance(avro, dict):
        return isinstance(seen, dict) and list(seen) == list(avro) and all(alike(seen[k], avro[k]) for k in avro)
    if isinstance(avro, list):
        return isinstance(seen, list) and len(seen) == len(avro) and all(map(alike, seen, avro))
    return type(seen) is type(avro) and bool(seen == avro)


@settings(max_examples=60, deadline=None)
@given(typed_values)
def test_frozen_values(typed: tuple[CqlType, Any]) -> None:
    type_, value = typed
    raw = {"v": encode(type_, value)}

    def images(log: Log) -> Any:
        return [log.row(2, 0, raw=raw, k=1), log.row(9, 1, True, raw=raw, k=1)]

    for properties in (IMAGES, DELTA):
        seen, avro = both(type_, properties, images)
        assert alike(seen, avro)


def _columns(inner: CqlType) -> st.SearchStrategy[CqlType]:
    fields = (("a", inner), ("b", native("int")))
    made: list[CqlType] = [ListType(inner), SetType(inner), MapType(inner, inner), UserType("ks", "u", fields)]
    return st.sampled_from(made)


@settings(max_examples=60, deadline=None)
@given(frozen_types.flatmap(_columns), st.data())
def test_deltas_of_columns_stored_cell_by_cell(type_: CqlType, data: st.DataObject) -> None:
    deleted = data.draw(st.booleans())
    log_value: Any
    removed: list[Any] | None
    if isinstance(type_, ListType):
        log_value = data.draw(st.lists(st.tuples(st.uuids(version=1), values_of(type_.element)), max_size=2))
        removed = data.draw(st.lists(st.uuids(version=1), max_size=2))
    elif isinstance(type_, SetType):
        log_value, removed = data.draw(values_of(type_)), data.draw(st.lists(values_of(type_.element), max_size=2))
    elif isinstance(type_, MapType):
        log_value, removed = data.draw(values_of(type_)), data.draw(st.lists(values_of(type_.key), max_size=2))
    else:
        log_value, removed = data.draw(values_of(type_)), data.draw(st.lists(st.integers(0, 1), max_size=2))

    def update(log: Log) -> Any:
        gone = {"v": removed} if removed else None
        return [log.row(1, 0, True, deleted=("v",) if deleted else (), removed=gone, k=1, v=log_value)]

    seen, avro = both(type_, DELTA, update)
    assert alike(seen, avro)
    cell = seen["after"]["v"]["value"]
    assert cell["mode"] == ("overwrite" if deleted else "modify")
    if not isinstance(type_, UserType):
        assert [element["value"] is None for element in cell["elements"]].count(True) >= len(removed or ())
