"""Signals of snapshots: what is none is passed over with a word, and none keeps its worker busy for ever."""

from __future__ import annotations

import json
import time

import pytest

from connector.table_name import TableName
from connector.worker.signals import Signal, parse_signal


def parsed(*expressions: str) -> Signal:
    signal = {"id": "s", "type": "execute-snapshot", "data": {"data-collections": list(expressions)}}
    return parse_signal(json.dumps(signal).encode())


@pytest.mark.parametrize("expression", ["(" * 5_000, "a{99999999999999999999}", "(?a)(?u)x", "[", "[[a]]", "[a--b]"])
def test_what_is_no_expression_is_told_and_ends_nothing(expression: str) -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        parsed("shop.orders", expression)


@pytest.mark.parametrize("expression", ["(a*)*b", "(x|x)+y", "a?" * 9, "(a|a)" * 9, "(a){30}", ".*" * 5])
def test_what_might_never_be_done_is_not_begun(expression: str) -> None:
    with pytest.raises(ValueError, match="might never be done"):
        parsed(expression)


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        (r"shop\.orders", {"shop.orders"}),
        ("shop.orders", {"shop.orders"}),
        (r"SHOP\..*", {"shop.orders", "shop.items"}),
        (r"(shop|eu)\.(orders|items)", {"shop.orders", "shop.items", "eu.items"}),
        (r"[a-z*+({]+\.i.+?s", {"shop.items", "eu.items"}),
    ],
)
def test_usual_expressions_mean_what_they_say(expression: str, meant: set[str]) -> None:
    signal = parsed(expression)
    tables = [TableName("shop", "orders"), TableName("shop", "items"), TableName("eu", "items")]
    assert {str(table) for table in tables if signal.wish(1, table)} == meant


def test_the_longest_names_are_compared_at_once() -> None:
    before = time.process_time()
    assert parsed(".*.*.*.*x").wish(1, TableName("k" * 48, "y" * 192)) is None
    assert time.process_time() - before < 10


def conditions(**data: object) -> tuple[tuple[str, str], ...]:
    signal = {"id": "s", "type": "execute-snapshot", "data": {"data-collections": ["ks.t", "ks.u"], **data}}
    return parse_signal(json.dumps(signal).encode()).filters


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (" v = 'a' ", "v = 'a'"),
        ("v = 'a' ALLOW FILTERING;", "v = 'a'"),
        ("v = 'a' allow  filtering", "v = 'a'"),
        ("selected = 1", "selected = 1"),
        ("v = 'no filtering", "v = 'no filtering"),
    ],
)
def test_a_filter_is_a_condition(text: str, meant: str) -> None:
    assert conditions(**{"additional-conditions": [{"data-collection": "ks.u", "filter": text}]}) == (("ks.u", meant),)
    assert conditions(**{"additional-condition": text}) == (("ks.t", meant), ("ks.u", meant))


@pytest.mark.parametrize("text", ["", "  ", ";", " ALLOW FILTERING "])
def test_a_filter_that_says_nothing_is_none(text: str) -> None:
    assert conditions(**{"additional-conditions": [{"data-collection": "ks.u", "filter": text}]}) == ()


@pytest.mark.parametrize("kind", ["incremental", "INCREMENTAL", "blocking", "BLOCKING"])
def test_a_blocking_snapshot_is_as_any_other(kind: str) -> None:
    assert conditions(type=kind) == conditions()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"type": "initial"}, "'initial' is none of incremental and blocking"),
        ({"data-collections": "ks.t"}, "no list"),
        ({"additional-condition": "SELECT * FROM ks.t WHERE v = 1"}, "no statement"),
        ({"additional-conditions": [{"filter": "v = 1"}]}, "not a signal: KeyError"),
    ],
)
def test_what_would_be_misunderstood_is_refused(data: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        conditions(**data)
