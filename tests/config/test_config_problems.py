"""Validation: each kind of mistake, the property it names, and that all of them come in one answer."""

from __future__ import annotations

from typing import Any

import pytest

from connector.config import Configuration, load
from connector.errors import ConfigurationError, Problem
from connector.formats import check_transform
from connector.step_conditions import conditions_in
from smt import PREDICATES, TYPES, SmtOptionError, build_chain, transform_options
from tests.config.files import CONNECTOR, WORKER, loaded, problem, validate

LONG = "k" * 60


def checked(connector: dict[str, str]) -> Configuration:
    """As commands load a file: classes and options of its chain are looked at by those who own them."""
    return load({**CONNECTOR, **connector}, WORKER, {}, transform_check=check_transform)


def refused(connector: dict[str, str]) -> Problem:
    """The only problem that a command finds."""
    with pytest.raises(ConfigurationError) as error:
        checked(connector)
    (found,) = error.value.problems
    return found


def test_everything_at_once() -> None:
    found = validate(
        {
            "name": "x",
            "topic.prefix": "a b",
            "scylla.table.names": "t",
            "scylla.user": "u",
            "tasks.max": 0,
            "cdc.include.before": "all",
            "transforms": "a",
            "transforms.a.type": "Foo",
            "value.converter": "ProtobufConverter",
            "tombstone.on.delete": "true",
        },
        {"groupid": "x", "producer.acks": "0", "session.timeout.ms": -1},
        {},
    )
    named = {(one.file, one.property) for one in found}
    assert named == {
        ("connector", "topic.prefix"),
        ("connector", "scylla.table.names"),
        ("connector", "scylla.cluster.ip.addresses"),
        ("connector", "scylla.password"),
        ("connector", "tasks.max"),
        ("connector", "cdc.include.before"),
        ("connector", "transforms.a.type"),
        ("connector", "value.converter"),
        ("connector", "tombstone.on.delete"),
        ("worker", "groupid"),
        ("worker", "producer.acks"),
        ("worker", "session.timeout.ms"),
    }
    assert len(found) == len(named)


@pytest.mark.parametrize(
    ("given", "name", "text"),
    [
        ({"topic.prefix": ""}, "topic.prefix", "A value is required"),
        ({"scylla.cluster.ip.addresses": "h:x"}, "scylla.cluster.ip.addresses", "invalid port number"),
        ({"scylla.cluster.ip.addresses": "h:123456"}, "scylla.cluster.ip.addresses", "invalid port number"),
        ({"scylla.cluster.ip.addresses": "h:99999"}, "scylla.cluster.ip.addresses", "<IP>:<PORT> pair"),
        ({"scylla.cluster.ip.addresses": "http://h"}, "scylla.cluster.ip.addresses", "Expected host specification"),
        ({"scylla.cluster.ip.addresses": ","}, "scylla.cluster.ip.addresses", "Host specification is required"),
        ({"scylla.table.names": "t"}, "scylla.table.names", "Expected a comma-separated list of pairs"),
        ({"scylla.table.names": "ks.bad-name"}, "scylla.table.names", "invalid table name"),
        ({"scylla.table.names": "ks.t_scylla_cdc_log"}, "scylla.table.names", "not a base table"),
        ({"cdc.include.before": "full"}, "cdc.include.before", "must be 'none'"),
        ({"cdc.include.after": "only-updated"}, "cdc.include.after", "must be 'none'"),
        ({"cdc.include.primary-key.placement": "kafka-key"}, "cdc.include.primary-key.placement", "must be at default"),
        ({"worker.max.retries": 0}, "worker.max.retries", "Must be a positive integer or -1 for unlimited"),
        ({"worker.max.retries": -2}, "worker.max.retries", "Must be a positive integer or -1 for unlimited"),
        ({"max.queue.size": 2048}, "max.queue.size", "Must be larger than the maximum batch size"),
        ({"max.batch.size": 8192}, "max.batch.size", "less than max.queue.size"),
        ({"scylla.user": "u"}, "scylla.password", "Password is not set while username was set."),
        ({"scylla.password": "p"}, "scylla.user", "Username is not set while password was set."),
        ({"tasks.max": "many"}, "tasks.max", "whole number"),
        ({"tasks.max": "1.5"}, "tasks.max", "whole number"),
        ({"scylla.confidence.window.size": -1}, "scylla.confidence.window.size", "at least 0"),
        ({"scylla.confidence.window.size": 2**31}, "scylla.confidence.window.size", "at most"),
        ({"tombstones.on.delete": "yes"}, "tombstones.on.delete", "true or false"),
        ({"skipped.operations": "c,x"}, "skipped.operations", "'x' is not one of"),
        ({"skipped.operations": "none,c"}, "skipped.operations", "cannot be combined"),
        ({"connector.class": "io.debezium.connector.mysql.MySqlConnector"}, "connector.class", "This service runs"),
        ({"worker.retry.backoff.base": 60000}, "worker.maximum.backoff", "at least worker.retry.backoff.base"),
        ({"config": 3}, "config", "Must be an object"),
        ({"topic.creation.default.partitions": "0"}, "topic.creation.default.partitions", "at least 1"),
        ({"topic.creation.defualt.partitions": "3"}, "topic.creation.defualt.partitions", "names no 'defualt'"),
        ({"topic.creation.groups": "fast"}, "topic.creation.fast.include", "patterns"),
        ({"offsets.storage.topic": "scylla-cdc-status"}, "offsets.storage.topic", "Must differ"),
        ({"scylla.table.names": f"k.{'t' * 193}"}, "scylla.table.names", "Got invalid table name"),
        (
            {"scylla.table.names": f"{LONG}.{'t' * 191}1,{LONG}.{'t' * 191}2"},
            "topic.prefix",
            f"The changes of {LONG}.{'t' * 191}1 and the changes of {LONG}.{'t' * 191}2 would have one topic, shop.k",
        ),
        (
            {"scylla.table.names": f"{LONG}.{'t' * 192}", "cdc.range.deletes": "topic"},
            "topic.prefix",
            f"the range deletes of {LONG}.{'t' * 192} would have one topic, shop.k",
        ),
        ({"scylla.table.names": "a_b.c,a.b_c", "topic.delimiter": "_"}, "topic.delimiter", "one topic, shop_a_b_c"),
    ],
)
def test_single_mistakes(given: dict[str, Any], name: str, text: str) -> None:
    found = problem(given)
    assert found.property == name
    assert text in found.problem


@pytest.mark.parametrize(
    ("given", "name", "text"),
    [
        ({"experimental.preimages.enabled": True}, "experimental.preimages.enabled", "not compatible"),
        ({"cdc.include.collections": "delta"}, "cdc.include.collections", "legacy"),
        ({"cdc.include.primary-key.placement": "foo"}, "cdc.include.primary-key.placement", "location: 'foo'"),
        ({"cdc.include.primary-key.placement": "payload-key"}, "cdc.include.primary-key.placement", "no key"),
        (
            {
                "cdc.include.primary-key.placement": "kafka-key,payload-key",
                "cdc.include.primary-key.payload-key-name": "op",
            },
            "cdc.include.primary-key.payload-key-name",
            "a member of that name",
        ),
    ],
)
def test_mistakes_of_the_advanced_format(given: dict[str, Any], name: str, text: str) -> None:
    found = problem({"cdc.output.format": "advanced", **given})
    assert found.property == name
    assert text in found.problem


@pytest.mark.parametrize(
    ("given", "suggestion"),
    [
        ({"cdc.output.fromat": "legacy"}, "did you mean cdc.output.format?"),
        ({"Tasks.Max": 1}, "did you mean tasks.max?"),
        ({"tombstone.on.delete": 1}, "did you mean tombstones.on.delete?"),
        ({"cdc.range.deletes": "topics"}, "did you mean topic?"),
        ({"producer.override.compresion.type": "lz4"}, "did you mean producer.override.compression.type?"),
        (
            {"value.converter": "json", "value.converter.schema.enable": 1},
            "did you mean value.converter.schemas.enable?",
        ),
    ],
)
def test_likely_intended_spellings(given: dict[str, Any], suggestion: str) -> None:
    assert problem(given).suggestion == suggestion


def test_the_old_name_of_topic_prefix() -> None:
    given = {name: value for name, value in CONNECTOR.items() if name != "topic.prefix"}
    found = validate({**given, "scylla.name": "shop"}, None, {})
    assert [(one.property, one.suggestion) for one in found] == [
        ("topic.prefix", "rename scylla.name to topic.prefix"),
    ]


def test_enums_are_compared_as_debezium_does() -> None:
    assert loaded({"cdc.output.format": " ADVANCED "}).connector.output.format == "advanced"
    order = {"cdc.include.primary-key.placement": "payload-before, kafka-key,payload-after"}
    assert loaded(order).connector.output.format == "legacy"
    assert loaded({"cdc.output.format": "advanced", "cdc.include.primary-key.placement": "kafka-key,payload-diff"})


def test_heartbeats_are_off_unless_asked_for() -> None:
    assert loaded().connector.output.heartbeat_interval_ms == 0
    assert loaded({"heartbeat.interval.ms": 0}).connector.output.heartbeat_interval_ms == 0
    assert loaded({"heartbeat.interval.ms": 30000}).connector.output.heartbeat_interval_ms == 30000


def test_transforms() -> None:
    chain = {
        "transforms": "route,flat",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "$1-x",
        "transforms.flat.type": "com.scylladb.cdc.debezium.connector.transforms.ScyllaFlattenColumns",
        "transforms.flat.predicate": "data",
        "transforms.flat.negate": "true",
        "predicates": "data",
        "predicates.data.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.data.pattern": "shop.*",
    }
    first, second = loaded(chain).connector.output.transforms
    assert (first.type, first.options) == ("RegexRouter", {"regex": "(.*)", "replacement": "$1-x"})
    assert second.type == "ScyllaFlattenColumns" and second.negate
    assert second.predicate is not None and second.predicate.options == {"pattern": "shop.*"}

    wrong = {
        **chain,
        "transforms.flat.predicate": "dat",
        "transforms.rout.regex": "x",
        "transforms.route.regex": "(",
        "transforms.route.replacment": "y",
        "predicates.data.type": "TopicNameMatch",
        "transforms.flat.negate": "maybe",
    }
    with pytest.raises(ConfigurationError) as error:
        checked(wrong)
    assert {one.property for one in error.value.problems} == {
        "transforms.flat.predicate",
        "transforms.flat.negate",
        "transforms.rout.regex",
        "transforms.route.regex",
        "transforms.route.replacment",
        "predicates.data.type",
    }


@pytest.mark.parametrize(
    ("kind", "option"),
    [("TopicNameMatches", "pattern"), ("HasHeaderKey", "name")],
)
def test_a_predicate_that_says_nothing_is_refused(kind: str, option: str) -> None:
    chain = {"predicates": "p", "predicates.p.type": kind, f"predicates.p.{option}": " "}
    assert refused(chain).property == f"predicates.p.{option}"
    with pytest.raises(SmtOptionError, match=option):
        build_chain({"transforms": "t", "transforms.t.type": "Filter", "transforms.t.predicate": "p", **chain})


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        ({"transforms.drop.negate": "true"}, "transforms.drop.negate"),
        ({"transforms.drop.predicate": " "}, "transforms.drop.predicate"),
        ({"transforms.drop.predicate": "", "transforms.drop.negate": "true"}, "transforms.drop.predicate"),
    ],
)
def test_a_transform_whose_predicate_is_forgotten_is_not_for_every_record(own: dict[str, str], wanted: str) -> None:
    chain = {"transforms": "drop", "transforms.drop.type": "Filter", **own}
    assert problem(chain).property == wanted
    with pytest.raises(SmtOptionError, match=wanted):
        build_chain(chain)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("org.apache.kafka.connect.transforms.predicates.TopicNameMatch", "TopicNameMatches"),
        ("org.apache.kafka.connect.transform.predicates.TopicNameMatches", "TopicNameMatches"),
        ("HasHeaderKeys", "HasHeaderKey"),
        ("com.acme.predicates.TopicNameMatch", None),
    ],
)
def test_a_predicate_of_another_package_is_no_slip_of_the_keys(name: str, meant: str | None) -> None:
    given = {"transforms": "f", "transforms.f.type": "Filter", "transforms.f.predicate": "p", "predicates": "p"}
    found = refused({**given, "predicates.p.type": name})
    assert str(found.suggestion).startswith(f"did you mean {meant}?" if meant else "one of ")
    assert ("classes of the JVM" in found.problem) == (meant is None)


_OF_CONNECT = "org.apache.kafka.connect.transforms."


@pytest.mark.parametrize(
    ("transform", "predicate", "option", "said"),
    [
        ("RecordIsTombstone", None, "transforms.t.type", "RecordIsTombstone is a predicate, and no transform"),
        (f"{_OF_CONNECT}predicates.HasHeaderKey", None, "transforms.t.type", "HasHeaderKey is a predicate, and no"),
        (f"{_OF_CONNECT}predicates.HasHeaderKeys", None, "transforms.t.type", "predicates are predicates, and no tran"),
        ("Filter", "Filter", "predicates.p.type", "Filter is a transform, and no predicate"),
        ("Filter", f"{_OF_CONNECT}InsertField$Key", "predicates.p.type", "InsertField$Key is a transform, and no pred"),
        ("Filter", "io.debezium.transforms.Filter", "predicates.p.type", "io.debezium.transforms are transforms, and"),
        ("Filter", "", "predicates.p.type", "Missing required configuration"),
        ("Filter", f"{_OF_CONNECT}HasHeaderKey", "predicates.p.type", "There is no predicate"),
        (f"{_OF_CONNECT}predicates.InsertHeader", None, "transforms.t.type", "There is no transform"),
    ],
)
def test_a_class_in_the_place_of_the_other_kind_is_called_what_it_is(
    transform: str, predicate: str | None, option: str, said: str
) -> None:
    chain = {"transforms": "t", "transforms.t.type": transform}
    if predicate is not None:
        chain |= {"transforms.t.predicate": "p", "predicates": "p", "predicates.p.type": predicate}
    found = refused(chain)
    assert found.property == option and said in found.problem and "JVM" not in str(found)
    with pytest.raises(SmtOptionError) as error:
        build_chain(chain)
    (told,) = error.value.problems
    assert told.option == option and said in told.problem


@pytest.mark.parametrize("option", ["negate", "negated"])
@pytest.mark.parametrize("kind", ["TopicNameMatches", "RecordIsTombstone"])
def test_what_is_said_of_a_predicate_where_it_is_named_is_not_taken_where_it_is_defined(kind: str, option: str) -> None:
    """A `Filter` would drop what was to be kept."""
    given = {"transforms": "f", "transforms.f.type": "Filter", "transforms.f.predicate": "p", "predicates": "p"}
    given |= {"predicates.p.type": kind, f"predicates.p.{option}": "true"}
    given |= {"predicates.p.pattern": "x"} if kind == "TopicNameMatches" else {}
    found = refused(given)
    assert found.property == f"predicates.p.{option}"
    assert found.suggestion == "transforms.NAME.negate is where it belongs"
    with pytest.raises(SmtOptionError, match=rf"predicates\.p\.{option}"):
        build_chain(given)


@pytest.mark.parametrize("name", ["predicat", "predicates", "Predicate", "negat", "negated"])
@pytest.mark.parametrize(
    "kind", ["Filter", "RegexRouter", "ReplaceField$Value", "ExtractNewRecordState", "ScyllaFlattenColumns"]
)
def test_a_misspelt_condition_of_a_step_is_not_passed_over(kind: str, name: str) -> None:
    """The step would be for all records."""
    options = {"RegexRouter": {"regex": "(.*)", "replacement": "$1"}}
    given = {"transforms": "t", "transforms.t.type": kind, f"transforms.t.{name}": "p"}
    given |= {f"transforms.t.{option}": text for option, text in options.get(kind, {}).items()}
    found = refused(given)
    meant = "predicate" if name.lower().startswith("pred") else "negate"
    assert (found.property, found.suggestion) == (f"transforms.t.{name}", f"did you mean transforms.t.{meant}?")
    with pytest.raises(SmtOptionError) as error:
        build_chain(given)
    assert [each.suggestion for each in error.value.problems] == [found.suggestion]


def test_no_option_of_a_transform_resembles_a_condition() -> None:
    assert not [kind for kind in TYPES if conditions_in({each.name: "" for each in transform_options(kind)})]
    assert not [kind for kind in PREDICATES if conditions_in({each.name: "" for each in PREDICATES[kind].options})]


def test_other_transforms_are_refused_with_what_is_supported() -> None:
    found = problem({"transforms": "a", "transforms.a.type": "com.example.MaskCards"})
    assert "ScyllaExtractNewRecordState" in str(found.suggestion) and "RegexRouter" in str(found.suggestion)


def test_topic_creation_groups() -> None:
    creation = loaded(
        {
            "topic.creation.groups": "big",
            "topic.creation.big.include": "shop\\..*",
            "topic.creation.big.exclude": ".*small",
            "topic.creation.big.partitions": "12",
            "topic.creation.default.replication.factor": "2",
            "topic.creation.default.retention.ms": "1000",
        }
    ).connector.delivery.topic_creation
    assert creation.settings_for("shop.orders").partitions == 12
    assert creation.settings_for("shop.small").replication_factor == 2
    assert creation.settings_for("xshop.orders").config == {"retention.ms": "1000"}


def test_misspelt_settings_of_topics() -> None:
    found = problem({"topic.creation.default.retention.mss": "1"})
    assert found.suggestion == "did you mean topic.creation.default.retention.ms?"
    assert (
        problem({"topic.creation.default.partition": "1"}).suggestion
        == "did you mean topic.creation.default.partitions?"
    )
    assert problem(worker={"offset.storage.topics": "a"}).suggestion == "did you mean offset.storage.topic?"
    kept = loaded({}, {"offset.storage.segment.bytes": "1048576", "offset.storage.redpanda.remote.write": "true"})
    assert set(kept.worker.offsets.config) == {"segment.bytes", "redpanda.remote.write"}


def test_compaction_of_deltas_is_mentioned() -> None:
    compacted = {"topic.creation.default.cleanup.policy": "compact"}
    (notice,) = loaded(compacted).notices
    assert "topic.creation.default.cleanup.policy" in notice and "loses changes" in notice
    assert loaded({**compacted, "cdc.output.format": "advanced"}).notices == ()


def test_aliases_may_have_dots_and_steps_options_that_they_do_not_know() -> None:
    """Kafka Connect runs by such files."""
    dotted = {
        "transforms": "unwrap.v1,route",
        "predicates": "of.orders",
        "predicates.of.orders.type": "TopicNameMatches",
        "predicates.of.orders.pattern": "shop.*",
        "predicates.of.orders.stray": "x",
        "transforms.unwrap.v1.type": "ScyllaFlattenColumns",
        "transforms.unwrap.v1.predicate": "of.orders",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "$1-x",
        "transforms.route.stray": "x",
    }
    found = checked(dotted)
    first, second = found.connector.output.transforms
    assert (first.alias, first.type, second.alias) == ("unwrap.v1", "ScyllaFlattenColumns", "route")
    assert first.predicate is not None and first.predicate.alias == "of.orders"
    strays = [notice for notice in found.notices if "stray" in notice]
    assert len(strays) == 2 and all("has no effect: it knows" in notice for notice in strays)
    wrong = problem(dotted | {"transforms.rout.v1.type": "Filter"})
    assert wrong.problem == "`transforms` names no 'rout'"


def test_expressions_are_javas() -> None:
    named = {
        "transforms": "r",
        "transforms.r.type": "RegexRouter",
        "transforms.r.regex": "(?<table>.*)",
        "transforms.r.replacement": "${table}-x",
        "topic.creation.groups": "g",
        "topic.creation.g.include": "(?<any>shop.*)",
    }
    assert loaded(named).connector.delivery.topic_creation.settings_for("shop.orders").name == "g"


ROUTER = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.replacement": "$1"}
CHOSEN = {"transforms": "f", "transforms.f.type": "Filter", "transforms.f.predicate": "p"}
CHOSEN |= {"predicates": "p", "predicates.p.type": "TopicNameMatches"}
GROUP = {"topic.creation.groups": "g"}


@pytest.mark.parametrize(
    ("given", "name"),
    [(ROUTER, "transforms.r.regex"), (CHOSEN, "predicates.p.pattern"), (GROUP, "topic.creation.g.include")],
)
def test_expressions_have_all_that_javas_have(given: dict[str, str], name: str) -> None:
    for regex in (r"\Qshop.\E(.*)", r"\p{Alpha}+\.(.*)", r"[a-z&&[^x]]+\.(.*)", r"[a-z[.]]+(.*)", r"shop(?i)\.(.*)\z"):
        found = checked({**given, name: regex}).connector.delivery.topic_creation.settings_for("shop.orders")
        assert found.name == ("g" if given is GROUP else "default")
    wrong = refused({**given, name: r"\p{IsGreek}"})
    assert wrong.property == name
    assert wrong.value == r"\p{IsGreek}" and "not supported" in wrong.problem


def test_a_number_of_partitions_that_is_the_brokers_is_as_if_it_were_left_out() -> None:
    numbers = {"offset.storage.partitions": " -1", "status.storage.partitions": "-1"}
    found = loaded({}, numbers)
    assert (found.worker.offsets.partitions, found.worker.status.partitions) == (25, 5)
    assert not numbers.keys() & found.worker.given
    assert sum("is as if it were left out" in notice for notice in found.notices) == 2
    assert problem({}, {"offset.storage.partitions": "0"}).problem.startswith("Must be a whole number of at least 1")
