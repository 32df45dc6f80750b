"""Options: everything wrong with them in one answer."""

from __future__ import annotations

import pytest

from connector.config import OUTPUT_FORMATS
from smt import SmtOptionError, build_transform
from smt.options import IN_CELLS
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


def test_names_given_twice() -> None:
    assert set(problems(JAVA, add_fields="ts_ms,source.ts_ms:ts_ms")) == {"add.fields"}
    assert build_transform(JAVA, {"add.fields": "ts_ms,source.ts_ms"})


def test_types() -> None:
    for name in (JAVA, "ScyllaExtractNewRecordState", "ScyllaFlattenColumns", "extract-new-state"):
        assert build_transform(name)
    assert problems("ScyllaExtractNewRecordStat") == {"": "did you mean ScyllaExtractNewRecordState?"}
    assert problems("ScyllaFlattenColumns", add_fields="op") == {"add.fields": "known: compatibility"}


def test_old_options_may_be_given_to_the_safe_name() -> None:
    transform = build_transform("extract-new-state", {"delete.handling.mode": "drop", "untouched.fields": "null"})
    assert len(transform.losses) == 2


def test_every_format_of_the_connector_is_known() -> None:
    assert tuple(IN_CELLS) == OUTPUT_FORMATS
