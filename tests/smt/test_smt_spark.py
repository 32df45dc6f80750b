"""Spark gives the rows of the pure functions: for random records and every option that the expressions share, and for
chains over the records of which Java's answers are recorded."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smt import Place, Record, SmtOptionError, build_transform
from smt.rows import RowTransform
from tests.servers.patience import patience
from tests.smt.connect.recorded import read
from tests.smt.connect.test_smt_chain import lines_of, row_of
from tests.smt.records import JAVA

ROOT = Path(__file__).parents[2]
SAFE = "extract-new-state"
NULLS = {"untouched.fields": "null"}

CASES: list[tuple[str, dict[str, str], bool]] = [
    (JAVA, {}, False),
    (JAVA, {"drop.tombstones": "false"}, False),
    (JAVA, {"delete.handling.mode": "none", "drop.tombstones": "false", "add.headers": "op,source.ts_us"}, False),
    (JAVA, {"delete.handling.mode": "rewrite", "add.fields": "op,table_name,source.ts_us:when,transaction.id"}, False),
    (JAVA, {"compatibility": "strict", "delete.handling.mode": "rewrite"}, False),
    (JAVA, {"delete.tombstone.handling.mode": "rewrite-with-tombstone", "add.headers": "op"}, False),
    (JAVA, {"delete.tombstone.handling.mode": "rewrite", "route.by.field": "v"}, False),
    (JAVA, {"delete.tombstone.handling.mode": "tombstone", "route.by.field": "pk"}, False),
    (JAVA, {"cdc.output.format": "advanced", "delete.handling.mode": "rewrite"}, False),
    (SAFE, NULLS, False),
    (SAFE, {}, True),
    (SAFE, {"delete.tombstone.handling.mode": "rewrite", "add.fields": "op,ts_ms"}, True),
]


def random_records(count: int) -> list[Record]:
    """All operations, images there or not, cells untouched, null or set; tombstones."""
    rng = random.Random(count)

    def row(key: dict[str, Any]) -> dict[str, Any] | None:
        if rng.random() < 0.3:
            return None
        texts = (None, {"value": None}, {"value": rng.choice(["a", "", 'quote " and \\', "ä€", " "])})
        numbers = (None, {"value": None}, {"value": rng.randrange(-5, 5)})
        return {"ck": key["ck"], "pk": key["pk"], "v": rng.choice(texts), "w": rng.choice(numbers)}

    records = []
    for number in range(count):
        key = {"pk": rng.randrange(3), "ck": rng.choice([None, 1, 2])}
        transaction = rng.choice([None, {"id": "tx"}])
        op = rng.choice("ccuuddrtm")
        value: Any = {
            "source": {"ts_us": number, "table_name": "t"},
            "before": row(key),
            "after": row(key),
            "op": op,
            "ts_ms": number,
            "transaction": transaction,
        }
        if rng.random() < 0.1:
            value = None
        records.append(Record(f"t{rng.randrange(2)}", key, value, rng.choice([[], [("h", "x")]])))
    return records


@pytest.mark.spark
def test_spark_gives_the_rows_of_the_pure_function() -> None:
    records = random_records(400)
    order = {
        "records": [[one.topic, one.key, one.value, one.headers] for one in records],
        "cases": CASES,
        "chains": [[lines, [_plain(row) for row in rows]] for lines, rows in CHAINS],
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.smt.spark_run"],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280 * patience(),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["chains"] == [
        [number, n, *_plain((*made, None))[:4]]
        for number, (lines, rows) in enumerate(CHAINS)
        for n, row in enumerate(rows)
        if (made := RowTransform(lines)(*row)) is not None
    ]
    for (type_name, options, as_json), results in zip(CASES, found["cases"], strict=True):
        transform = build_transform(type_name, options)
        expected = [
            expectation(number, found, options, as_json)
            for number, one in enumerate(records)
            if (found := transform(one)) is not None
        ]
        got = [
            [n, topic, value if not as_json or value is None else json.loads(value), h]
            for n, topic, value, h in results
        ]
        assert got == expected, (type_name, options)


def chains() -> list[tuple[dict[str, str], list[Any]]]:
    """Recorded cases in which Java answers each record, and what the place of a record gives."""
    found: list[tuple[dict[str, str], list[Any]]] = []
    for file in ("chains", "ReplaceField", "HeaderFrom", "ByLogicalTableRouter"):
        answered = [
            case
            for case, java in read(file)
            if isinstance(java, list) and all("error" not in one for one in java) and len(case["records"]) > 1
        ]
        longest = max(answered, key=lambda case: len(case["chain"]))
        found.append((lines_of(longest), [row_of(given) for given in longest["records"]]))
    dropping = {
        "transforms": "at,stones",
        "transforms.at.type": "InsertField$Value",
        "transforms.at.timestamp.field": "when",
        "transforms.at.offset.field": "offset",
        "transforms.stones.type": "Filter",
        "transforms.stones.predicate": "isStone",
        "predicates": "isStone",
        "predicates.isStone.type": "RecordIsTombstone",
    }
    place = Place(3, 1700000000123, 42)
    rows: list[Any] = [("t", None, '{"a":"ä"}', [("h", b"x"), ("n", None)], place), ("t", "1", None, [], place)]
    return [*found, (dropping, rows)]


def _plain(row: Any) -> list[Any]:
    """A row as JSON can hold it."""
    topic, key, value, headers, place = row
    texts = [[name, None if data is None else data.decode()] for name, data in headers]
    return [topic, key, value, texts, place and list(place)]


CHAINS = chains()


def expectation(number: int, record: Record, options: dict[str, str], as_json: bool) -> list[Any]:
    value = record.value
    if value is not None and not as_json:
        # A struct has all its fields: what is absent without a schema is null in Spark.
        columns = {name: value.get(name) for name in ("ck", "pk", "v", "w")}
        value = columns | value
    headers = [[name, None if part is None else str(part)] for name, part in record.headers]
    return [number, record.topic, value, headers]


def test_what_spark_cannot_do_is_refused_before_it_starts() -> None:
    from smt.spark import extract_new_state, transform_records

    with pytest.raises(SmtOptionError, match="as_json"):
        extract_new_state(None, type_name=SAFE)  # type: ignore[arg-type]
    with pytest.raises(SmtOptionError):
        extract_new_state(None, type_name="ScyllaFlattenColumns")  # type: ignore[arg-type]
    with pytest.raises(SmtOptionError, match=r"transforms\.x\.type"):
        transform_records(None, {"transforms": "x"})  # type: ignore[arg-type]
