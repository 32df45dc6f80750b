"""Topics are made, and demanded, under the names that records get behind the transforms."""

from __future__ import annotations

from typing import Any

import pytest

from connector.config import TransformSpec
from connector.formats import check_transform
from connector.worker.settings import topic_specs
from tests.config.files import loaded

PLAIN = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"


def data_topics(**given: Any) -> list[str]:
    specs = topic_specs(loaded({**PLAIN, **{name.replace("__", "."): value for name, value in given.items()}}))
    return [spec.name for spec in specs if spec.property == "topic.prefix"]


def step(alias: str, regex: str, replacement: str, **more: str) -> dict[str, str]:
    options = {"type": ROUTER, "regex": regex, "replacement": replacement, **more}
    return {f"transforms.{alias}.{name}": value for name, value in options.items()}


def predicate(alias: str, kind: str, **options: str) -> dict[str, str]:
    named = {"type": f"org.apache.kafka.connect.transforms.predicates.{kind}", **options}
    return {"predicates": alias, **{f"predicates.{alias}.{name}": value for name, value in named.items()}}


def test_without_transforms() -> None:
    assert data_topics(cdc__range__deletes="topic", heartbeat__interval__ms="1000") == [
        *("shop.shop.orders", "shop.shop.orders.range-deletes", "__debezium-heartbeat.shop"),
    ]


def test_routers_one_after_the_other() -> None:
    chain = {
        "transforms": "a,b",
        **step("a", r"shop\.shop\.(.*)", "cdc_$1"),
        **step("b", "cdc_(?<table>.*)", "${table}-v1"),
    }
    assert data_topics(**chain, cdc__range__deletes="topic", heartbeat__interval__ms="1000") == [
        *("orders-v1", "orders.range-deletes-v1", "__debezium-heartbeat.shop"),
    ]


def test_tables_that_meet_in_one_topic() -> None:
    chain = {"transforms": "a", **step("a", ".*", "everything")}
    assert data_topics(**chain, **{"scylla.table.names": "shop.a,shop.b"}) == ["everything"]


def test_a_topic_of_changes_and_heartbeats_is_one_of_changes() -> None:
    chain = {"transforms": "a", **step("a", ".*", "everything"), "topic.creation.default.partitions": "7"}
    heartbeats = {"heartbeat.interval.ms": "1000"}
    specs = {each.name: each for each in topic_specs(loaded({**PLAIN, **chain, **heartbeats}))}
    assert (specs["everything"].partitions, specs["everything"].keeps_all) == (7, True)


def test_a_topic_of_heartbeats_is_created_as_its_group_says() -> None:
    group = {"topic.creation.default.partitions": "7", "heartbeat.interval.ms": "1000"}
    specs = {each.name: each for each in topic_specs(loaded({**PLAIN, **group}))}
    heartbeats = specs["__debezium-heartbeat.shop"]
    assert (heartbeats.partitions, heartbeats.keeps_all) == (7, False)


@pytest.mark.parametrize(
    ("more", "condition", "expected"),
    [
        ({}, predicate("p", "TopicNameMatches", pattern=".*orders"), ["x"]),
        ({}, predicate("p", "TopicNameMatches", pattern="other"), ["shop.shop.orders"]),
        ({"negate": "true"}, predicate("p", "TopicNameMatches", pattern="other"), ["x"]),
        ({}, predicate("p", "RecordIsTombstone"), ["shop.shop.orders", "x"]),
        ({}, predicate("p", "HasHeaderKey", name="h"), ["shop.shop.orders", "x"]),
    ],
)
def test_routers_with_a_predicate(more: dict[str, str], condition: dict[str, str], expected: list[str]) -> None:
    chain = {"transforms": "a", **step("a", ".*", "x", predicate="p", **more), **condition}
    assert data_topics(**chain) == expected


def test_a_predicate_of_tombstones_where_there_are_none() -> None:
    chain = {"transforms": "a", **step("a", ".*", "x", predicate="p"), **predicate("p", "RecordIsTombstone")}
    assert data_topics(**chain, tombstones__on__delete="false") == ["shop.shop.orders"]
    flat = {"transforms.f.type": "ScyllaExtractNewRecordState", **chain, "transforms": "f,a"}
    assert data_topics(**flat, tombstones__on__delete="false") == ["shop.shop.orders", "x"]


def test_nothing_is_demanded_where_a_column_names_the_topic() -> None:
    chain = {
        "transforms": "f",
        "transforms.f.type": "ScyllaExtractNewRecordState",
        "transforms.f.route.by.field": "kind",
    }
    assert data_topics(**chain) == []
    assert data_topics(**chain, heartbeat__interval__ms="1000") == ["__debezium-heartbeat.shop"]


def test_creation_groups_match_the_new_name() -> None:
    chain = {"transforms": "a", **step("a", ".*", "fast.x"), "topic.creation.groups": "fast"}
    group = {"topic.creation.fast.include": r"fast\..*", "topic.creation.fast.partitions": "7"}
    (spec,) = (each for each in topic_specs(loaded({**PLAIN, **chain, **group})) if each.name == "fast.x")
    assert spec.partitions == 7


@pytest.mark.parametrize(
    ("replacement", "said"),
    [
        ("$2", "no group 2"),
        ("${nobody}", "no group nobody"),
        ("a$", "meant literally"),
        ("$-", "meant literally"),
        ("a\\", "meant literally"),
    ],
)
def test_replacements_that_java_would_refuse_with_the_first_record(replacement: str, said: str) -> None:
    options = {"regex": "(.*)", "replacement": replacement}
    (found,) = check_transform(TransformSpec("a", "RegexRouter", options), True)
    assert said in found.problem


@pytest.mark.parametrize("replacement", ["$0", "$1", "${n}", r"\$x", r"a\\b", "$10"])
def test_replacements_that_java_takes(replacement: str) -> None:
    assert data_topics(**{"transforms": "a", **step("a", "(?<n>.*)", replacement)})
