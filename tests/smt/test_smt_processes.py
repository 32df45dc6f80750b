"""Transforms and records go into other processes, as executors of Python and of Spark send them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from smt import Header, Record, Transform, build_chain, build_transform

ENVELOPE = {"source": {"ts_us": 7}, "before": None, "after": {"pk": 1, "v": {"value": 5}}, "op": "c"}
CHAIN = {
    "transforms": "flat,cast",
    "transforms.flat.type": "extract-new-state",
    "transforms.flat.add.headers": "op",
    "transforms.cast.type": "Cast$Value",
    "transforms.cast.spec": "v:string",
    "transforms.cast.predicate": "gone",
    "transforms.cast.negate": "true",
    "predicates": "gone",
    "predicates.gone.type": "RecordIsTombstone",
}


@pytest.mark.parametrize(
    "transform",
    [
        build_transform("extract-new-state", {"add.fields": "op"}),
        build_transform("ScyllaExtractNewRecordState", {"untouched.fields": "omit"}),
        build_transform("ScyllaFlattenColumns"),
        build_transform("InsertHeader", {"header": "h", "value.literal": "5"}),
        build_transform("RegexRouter", {"regex": "(.*)", "replacement": "x-$1"}),
        build_chain(CHAIN),
    ],
    ids=lambda transform: transform.type,
)
def test_a_transform_is_the_same_in_another_process(transform: Transform) -> None:
    record = Record("t", {"pk": 1}, ENVELOPE)
    there = pickle.loads(pickle.dumps(transform))
    assert there(record) == transform(record) != record
    assert there.notes == transform.notes


@pytest.mark.parametrize(
    "copied", [lambda made: pickle.loads(pickle.dumps(made)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_a_record_keeps_its_headers_with_their_schemas(copied: Any) -> None:
    record = Record("t", {"pk": 1}, {"v": 1}, [Header("h", 5, {"type": "int8"}), ("bare", "x")])
    there = copied(record)
    assert there == record
    assert there.headers[0].schema == {"type": "int8"}
