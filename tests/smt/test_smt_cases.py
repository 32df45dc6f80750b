"""What the Java connector's own documentation and tests show of its transforms, as examples."""

from __future__ import annotations

from typing import Any

from smt import Record
from tests.smt.records import JAVA, TOMBSTONE, envelope, values

PK = {"pk1": 1, "pk2": "p2", "pk3": "453662fa-db4b-4938-9033-d8523c0a371c", "pk4": 4}
FIRST = {**PK, "value_int": 100, "value_text": "first"}
SECOND = {**PK, "value_int": 200, "value_text": "second"}
ADVANCED = {"cdc.output.format": "advanced"}


def change(op: str, before: Any, after: Any, key: Any = None) -> Record:
    return Record("p.ks.c", key if key is not None else PK, envelope(op, before, after))


def test_tombstones_kept_deletes_dropped() -> None:
    given = [change("c", None, FIRST), change("u", FIRST, SECOND), change("d", SECOND, None), TOMBSTONE]
    assert values(JAVA, ADVANCED | {"drop.tombstones": "false"}, *given) == [FIRST, SECOND, None]


def test_all_defaults() -> None:
    given = [change("c", None, FIRST), change("d", FIRST, None), TOMBSTONE]
    for compatibility in ("strict", "default"):
        assert values(JAVA, ADVANCED | {"compatibility": compatibility}, *given) == [FIRST]


def test_rewritten_delete() -> None:
    given = [change("c", None, FIRST), change("d", FIRST, None), TOMBSTONE]
    assert values(JAVA, ADVANCED | {"delete.handling.mode": "rewrite"}, *given) == [
        {**FIRST, "__deleted": "false"},
        {**FIRST, "__deleted": "true"},
    ]


def test_rewritten_delete_without_images() -> None:
    row = {"id": 3, "name": "x"}
    given = [change("c", None, row, {"id": 3}), change("d", None, None, {"id": 3}), TOMBSTONE]
    options = ADVANCED | {"delete.handling.mode": "rewrite"}
    assert values(JAVA, options | {"compatibility": "strict"}, *given) == [{**row, "__deleted": "false"}]
    assert values(JAVA, options, *given) == [{**row, "__deleted": "false"}, {"id": 3, "__deleted": "true"}]


def test_cells_become_columns() -> None:
    given = change("c", None, {"ck": 2, "pk": 20, "v": {"value": "3"}, "w": None}, {"ck": 2, "pk": 20})
    for compatibility in ("strict", "default"):
        assert values(JAVA, {"compatibility": compatibility}, given) == [{"ck": 2, "pk": 20, "v": "3", "w": None}]


def test_flattened_columns_in_their_envelope() -> None:
    given = change("c", None, {"ck": 7, "pk": 1, "v": {"value": "7"}, "w": None}, {"ck": 7, "pk": 1})
    assert values("ScyllaFlattenColumns", {}, given) == [envelope("c", None, {"ck": 7, "pk": 1, "v": "7", "w": None})]
