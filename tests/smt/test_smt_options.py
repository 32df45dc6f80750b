"""Options: everything wrong with them in one answer."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest

import smt
from connector.config import OUTPUT_FORMATS
from smt import SmtOptionError, build_transform
from smt.options import IN_CELLS, ExtractOptions
from tests.smt.records import JAVA


def problems(type_name: str, **options: str) -> dict[str, str | None]:
    with pytest.raises(SmtOptionError) as caught:
        build_transform(type_name, {name.replace("_", "."): text for name, text in options.items()})
    return {found.option: found.suggestion for found in caught.value.problems}


def test_all_at_once() -> None:
    found = problems(
        JAVA,
        delete_handling_mode="rewritten",
        delete_tombstone_handling_mode="tombstones",
        drop_tombstone="true",
        add_fields="op,sorce.ts_ms,a.b.c,x:y:z",
        drop_fields_from_key="yes",
        untouched_fields="skip",
        compatibility="java",
    )
    assert found == {
        "drop.tombstone": "did you mean drop.tombstones?",
        "delete.handling.mode": "did you mean rewrite?",
        "delete.tombstone.handling.mode": "did you mean tombstone?",
        "add.fields": "for example source.ts_ms:ts",
        "drop.fields.from.key": "true or false",
        "untouched.fields": None,
        "compatibility": None,
    }


def test_old_and_new_delete_options_contradict() -> None:
    found = problems(
        "extract-new-state",
        delete_tombstone_handling_mode="rewrite",
        delete_handling_mode="rewrite",
        drop_tombstones="true",
    )
    assert set(found) == {"delete.handling.mode", "drop.tombstones"}


@pytest.mark.parametrize("name", ["io.debezium.transforms.ExtractNewRecordState", JAVA])
def test_fields_of_the_key_are_dropped_by_a_header_alone_and_java_says_nothing_of_it(name: str) -> None:
    said = "drop.fields.from.key has no effect without drop.fields.header.name, as in Java"
    assert said in build_transform(name, {"drop.fields.from.key": "true"}).notes
    assert build_transform(name, {"drop.fields.from.key": "false"}).notes == build_transform(name).notes
    assert build_transform("extract-new-state", {"drop.fields.from.key": "false"}).notes == ()
    assert problems("extract-new-state", drop_fields_from_key="true").keys() == {"drop.fields.from.key"}


def test_names_given_twice() -> None:
    assert set(problems(JAVA, add_fields="ts_ms,source.ts_ms:ts_ms")) == {"add.fields"}
    assert build_transform(JAVA, {"add.fields": "ts_ms,source.ts_ms"})


def test_types() -> None:
    for name in (JAVA, "ScyllaExtractNewRecordState", "ScyllaFlattenColumns", "extract-new-state"):
        assert build_transform(name)
    assert problems("ScyllaExtractNewRecordStat") == {"": "did you mean ScyllaExtractNewRecordState?"}


@pytest.mark.parametrize("name", ["io.debezium.transforms.ExtractNewRecordState", JAVA, "ScyllaFlattenColumns"])
def test_options_of_none_that_java_would_ignore_are_said_and_ignored(name: str) -> None:
    built = build_transform(name, {"array.encoding": "document"})
    assert [option for option, _ in built.ignored] == ["array.encoding"]
    assert any("array.encoding" in note and "has no effect: it knows" in note for note in built.notes)
    # Of ours nobody has a file that another connector runs by.
    found = problems("extract-new-state", array_encoding="document")
    assert str(found["array.encoding"]).startswith("known: delete.tombstone.handling.mode")


def test_old_options_may_be_given_to_the_safe_name() -> None:
    transform = build_transform("extract-new-state", {"delete.handling.mode": "drop", "untouched.fields": "null"})
    assert len(transform.losses) == 2


@pytest.mark.parametrize("name", ["io.debezium.transforms.ExtractNewRecordState", JAVA, "extract-new-state"])
def test_what_debezium_has_no_more_is_ignored_as_in_java(name: str) -> None:
    plain = build_transform(name)
    built = build_transform(name, {"operation.header": "true", "add.source.fields": "table", "drop.deletes": "false"})
    assert built.losses == plain.losses
    assert [option for option, _ in built.ignored] == ["operation.header", "add.source.fields", "drop.deletes"]
    (said, *_) = (note for note in built.notes if "operation.header" in note)
    assert "has no effect, as in the Java connector" in said and "add.headers=op" in said
    assert problems(name, operation_headers="true").keys() == {"operation.headers"}


def test_every_format_of_the_connector_is_known() -> None:
    assert tuple(IN_CELLS) == OUTPUT_FORMATS


#: What one of the implementations has no use for, each with the reason.
_WITHOUT_USE = {
    "extract": {
        "drop_only_optional": "without a schema no field is optional",
        "null_is_default": "without a schema no field has a default",
    },
    "typed": {"tombstones": "they have no value, so no schema: smt/extract.py takes them"},
    "spark": {
        "drop_fields_from_key": "counts with drop.fields.header.name, which is refused",
        "drop_only_optional": "counts with drop.fields.header.name, which is refused",
        "null_is_default": "a DataFrame's schema has no defaults",
    },
}


@pytest.mark.parametrize("implementation", _WITHOUT_USE)
def test_no_implementation_forgets_an_option(implementation: str) -> None:
    source = Path(smt.__file__).with_name(f"{implementation}.py").read_text()
    read = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    options = {field.name for field in dataclasses.fields(ExtractOptions)}
    assert options - read == set(_WITHOUT_USE[implementation])
