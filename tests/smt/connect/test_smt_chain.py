"""Chains as a connector's file names them, over records as Kafka has them: Java's answers, and what is refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from smt import Place, Record, SmtOptionError, SmtRecordError, build_chain, simple_text
from smt.rows import RowTransform
from tests.smt.connect.random_cases import Json
from tests.smt.connect.recorded import FILES, decoded, read

SCHEMA = {"type": "struct", "fields": [{"type": "int32", "optional": False, "field": "id"}], "optional": False}


def lines_of(case: Json) -> dict[str, str]:
    """The properties that name a recorded case's chain."""
    lines: dict[str, str] = {"scylla.compatibility": "strict"}
    for number, step in enumerate(case["chain"]):
        prefix = f"transforms.s{number}."
        lines[f"{prefix}type"] = step["type"]
        lines |= {prefix + name: text for name, text in step["options"].items()}
        if "predicate" in step:
            lines |= {f"{prefix}predicate": f"p{number}", f"{prefix}negate": str(step.get("negate", False))}
            lines[f"predicates.p{number}.type"] = step["predicate"]["type"]
            named = step["predicate"]["options"]
            lines |= {f"predicates.p{number}.{name}": text for name, text in named.items()}
    lines["transforms"] = ",".join(f"s{number}" for number in range(len(case["chain"])))
    lines["predicates"] = ",".join(f"p{number}" for number, step in enumerate(case["chain"]) if "predicate" in step)
    return lines


def row_of(given: Json) -> tuple[str, str | None, str | None, list[tuple[str, bytes | None]], Place]:
    """A recorded record as it stands in Kafka."""
    key, value = (None if part is None else json.dumps(part) for part in (given["key"], given["value"]))
    headers = []
    for name, part in given["headers"]:
        text = None if part is None else simple_text(part["schema"], decoded(part["schema"], part["payload"]))
        headers.append((name, None if text is None else text.encode()))
    return (
        given["topic"],
        key,
        value,
        headers,
        Place(given.get("partition"), given.get("timestamp"), given.get("offset")),
    )


def same(ours: Any, java: Json) -> bool:
    if java.get("written") is False:
        # The transforms did their work, and JsonConverter refuses what they made: another converter may take it.
        return bool(ours != "dropped")
    if "error" in java or "dropped" in java:
        return bool(ours == next(iter(java)))
    if isinstance(ours, str):
        return False
    topic, *parts, headers = ours
    texts = [_wrapped(part) for part in parts]
    javas = [_wrapped(java[side]) for side in ("key", "value")]
    found = [(name, None if data is None else data.decode()) for name, data in headers]
    return topic == java["topic"] and texts == javas and _same_headers(found, java["headers"])


def _wrapped(text: str | None) -> Any:
    """A part that had no wrapping gets none, unless a transform gives it a schema; Java always writes it."""
    part = None if text is None else json.loads(text)
    return (
        part if isinstance(part, dict) and part.keys() == {"schema", "payload"} else {"schema": None, "payload": part}
    )


def _same_headers(ours: list[tuple[str, str | None]], java: list[Any]) -> bool:
    return len(ours) == len(java) and all(
        # The order of members of objects without a schema is Java's HashMap's.
        name == its[0] and (text == its[1] or (its[1] or "").startswith("{"))
        for (name, text), its in zip(ours, java, strict=True)
    )


@pytest.mark.parametrize("file", [file for file in FILES if file != "converters"])
def test_texts_of_records_become_what_javas_classes_make_of_the_records(file: str) -> None:
    compared = 0
    # Every third: the transforms themselves are compared for all of them.
    for case, java in read(file)[::3]:
        if isinstance(java, dict):
            with pytest.raises(SmtOptionError):
                RowTransform(lines_of(case))
            continue
        try:
            apply = RowTransform(lines_of(case))
        except SmtOptionError:
            assert all("error" in one for one in java), case["chain"]
            continue
        for given, its in zip(case["records"], java, strict=True):
            ours: Any
            try:
                ours = apply(*row_of(given)) or "dropped"
            except SmtRecordError:
                ours = "error"
            assert same(ours, its), (case["chain"], given, ours, its)
            compared += 1
    assert compared >= 30


def test_all_that_is_wrong_with_a_chain_is_said_at_once_by_the_names_of_its_lines() -> None:
    lines = {
        "name": "shop",
        "transforms": "flat,gone,flat",
        "transforms.flat.type": "ExtractNewRecordStat",
        "transforms.flta.type": "Filter",
        "transforms.gone.type": "Filter",
        "transforms.gone.predicate": "stones",
        "transforms.gone.negate": "maybe",
        "predicates": "topic",
        "predicates.topic.type": "TopicNameMatches",
        "predicates.topic.pattern": "(",
    }
    with pytest.raises(SmtOptionError) as caught:
        build_chain(lines)
    assert sorted(one.option for one in caught.value.problems) == [
        *("predicates.topic.pattern", "transforms", "transforms.flat.type", "transforms.flta.type"),
        *("transforms.gone.negate", "transforms.gone.predicate"),
    ]
    assert "did you mean flat?" in str(caught.value)


def test_a_chain_without_steps_changes_nothing() -> None:
    record = Record("t", 1, {"a": 1})
    assert build_chain({"name": "shop"})(record) == record


def test_what_a_step_drops_no_later_step_sees() -> None:
    lines = {"transforms": "f,r", "transforms.f.type": "Filter", "transforms.r.type": "TimestampRouter"}
    assert build_chain(lines)(Record("t", 1, {"a": 1})) is None


def test_the_safe_flattening_takes_the_connectors_format() -> None:
    lines = {"transforms": "f", "transforms.f.type": "extract-new-state", "cdc.output.format": "advanced"}
    envelope = {"source": {}, "before": None, "after": {"pk": 1, "box": {"value": 5}, "w": None}, "op": "u"}
    done = build_chain(lines)(Record("t", {"pk": 1}, envelope))
    assert done is not None and done.value == {"pk": 1, "box": {"value": 5}, "w": None}
    as_java = lines | {"transforms.f.type": "ScyllaExtractNewRecordState"}
    assert not any("touch" in note for note in build_chain(as_java).notes), "what helps would be refused"
    omits = {"transforms.f.type": "ScyllaExtractNewRecordState", "transforms.f.untouched.fields": "omit"}
    with pytest.raises(SmtOptionError, match=r"f\.untouched\.fields.*Contradicts cdc\.output\.format=advanced"):
        build_chain(lines | omits)


def test_rows_keep_their_wrapping_and_the_bytes_of_headers_that_nothing_touched() -> None:
    lines = {"transforms": "h", "transforms.h.type": "InsertHeader", "transforms.h.header": "n"}
    apply = pickle.loads(pickle.dumps(RowTransform(lines | {"transforms.h.value.literal": "5"})))
    odd = ("odd", b"[1, \xff")
    wrapped = json.dumps({"schema": SCHEMA, "payload": {"id": 1}}, separators=(",", ":"))
    assert apply("t", wrapped, b'{"id": "\xc3\xa4"}', [odd]) == ("t", wrapped, '{"id":"ä"}', [odd, ("n", b"5")])
    nothing = '{"schema":null,"payload":null}'
    assert apply("t", nothing, None) == ("t", None, None, [("n", b"5")])
    assert apply("t", '{"schema":null,"payload":1}', None)[1] == '{"schema":null,"payload":1}'


def test_a_record_that_is_none_is_named_by_its_place() -> None:
    apply = RowTransform({"transforms": "x", "transforms.x.type": "ValueToKey", "transforms.x.fields": "id"})
    with pytest.raises(SmtRecordError, match=r"^t\[3\]@42: its value is not JSON"):
        apply("t", None, b"{", [], Place(3, 1, 42))
    with pytest.raises(SmtRecordError, match="half of a"):
        apply("t", None, b'{"id": "\\ud800"}')


def test_an_alias_may_have_dots() -> None:
    chain = build_chain({"transforms": "flat.v1", "transforms.flat.v1.type": "Flatten$Value"})
    done = chain(Record("t", None, {"a": {"b": 1}}))
    assert done is not None and done.value == {"a.b": 1}
    with pytest.raises(SmtOptionError, match="names no 'flat'"):
        build_chain({"transforms": "flat.v1", "transforms.flat.v2.type": "Flatten$Value"})
