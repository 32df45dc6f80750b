"""The shortcut for legacy JSON is held against the reference: the same bytes, or none."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.changes import Change
from connector.formats.encoder import Encoder
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import Log, table
from tests.values.strategies import NATIVE_VALUES

NATIVES = sorted(set(NATIVE_VALUES) - {"counter"})
NAMES = ("v", '100% "quoted"', "back\\slash", "größe😀")
JSON = "org.apache.kafka.connect.json.JsonConverter"
VARIANTS: dict[str, dict[str, str]] = {
    "plain": {},
    "strict": {"scylla.compatibility": "strict"},
    "with schemas": {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")},
    "no tombstones": {"tombstones.on.delete": "false"},
}


def encoder(**properties: str) -> Encoder:
    converters = {"key.converter": JSON, "value.converter": JSON}
    return Encoder(output_options(**(converters | properties)), clock=lambda: NOW_NS)


def held_equal(made: Encoder, changes: list[Change]) -> None:
    assert made.encode_alike(changes) == [made.encode(change) for change in changes]


@st.composite
def logs(draw: st.DrawFn) -> list[Change]:
    """Changes of a table with a key and columns of any native types."""
    types = {name: draw(st.sampled_from(NATIVES)) for name in ("pk", "ck", *NAMES)}
    types |= {"l": "list<int>", "f": "frozen<set<text>>", "vec": "vector<float, 2>"}
    log = Log(table(types, clustering=("ck",), static=(NAMES[1],)))
    changes = []
    for at in range(draw(st.integers(1, 5))):
        values: dict[str, Any] = {"pk": draw(NATIVE_VALUES[types["pk"]])}
        for name in ("ck", *NAMES):
            values[name] = draw(st.none() | NATIVE_VALUES[types[name]])
        values["vec"] = draw(st.none() | st.just([0.5, 1e10]))
        deleted = tuple(draw(st.sets(st.sampled_from(NAMES))))
        time = uuid.UUID(int=draw(st.integers(0, 2**128 - 1)), version=1)
        operation = draw(st.sampled_from((1, 2, 3, -3)))
        changes += log.changes(log.row(operation, at, True, time, deleted=deleted, **values))
    return changes


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=60, deadline=None)
@given(logs())
def test_all_native_types_are_the_references(variant: str, changes: list[Change]) -> None:
    held_equal(encoder(**VARIANTS[variant]), changes)


LOG = Log(table({"pk": "int", "ck": "int", "a": "double", "b": "text"}, clustering=("ck",)))


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 0.1, 1e7, 9999999.999, 1e-3, 9e-4, 1e23, 5e-324, float("nan"), -float("inf")]
)
def test_doubles(number: float) -> None:
    held_equal(encoder(), LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, a=number)))


def test_what_is_no_plain_row_has_no_shortcut() -> None:
    plain = LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, b="x"))
    image = LOG.changes(LOG.row(0, 0, pk=1, ck=1), LOG.row(1, 1, True, pk=1, ck=1))
    partition = LOG.changes(LOG.row(4, 0, True, pk=1))
    other = Log(LOG.description).changes(LOG.row(2, 0, True, pk=1, ck=1))
    assert encoder().encode_alike([]) is None
    assert encoder().encode_alike(plain + partition) is None
    assert encoder(**{"experimental.preimages.enabled": "true"}).encode_alike(plain + image) is None
    # An image that nobody asked for is nothing to look at.
    held_equal(encoder(), plain + image)
    newer = Log(table({"pk": "int", "ck": "int", "a": "double", "c": "text"}, clustering=("ck",)))
    assert encoder().encode_alike(plain + newer.changes(newer.row(2, 0, True, pk=1, ck=1))) is None
    assert encoder().encode_alike(plain + other) is not None


@pytest.mark.parametrize(
    "properties",
    [
        {"cdc.output.format": "advanced"},
        {"cdc.include.metadata": "true"},
        {"cdc.include.collections": "delta"},
        {"skipped.operations": "c"},
        {"value.converter.replace.null.with.default": "false"},
        {"transforms": "r", "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter"}
        | {"transforms.r.regex": ".*", "transforms.r.replacement": "x"},
    ],
)
def test_other_options_have_no_shortcut(properties: dict[str, str]) -> None:
    made, changes = encoder(**properties), LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, b="x"))
    assert made.encode_alike(changes) is None
    made.encode(changes[0])


@pytest.mark.parametrize("raw", [{"a": b""}, {"a": b"123"}, {"pk": b""}, {"b": b"\xff"}])
def test_unusual_cells_are_left_to_the_reference(raw: dict[str, bytes]) -> None:
    assert encoder().encode_alike(LOG.changes(LOG.row(2, 0, True, pk=1, ck=1, raw=raw))) is None
