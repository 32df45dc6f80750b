"""Converters: class names, options, whose file counts."""

from __future__ import annotations

import pytest

from tests.config.files import loaded, problem, problems

AVRO = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://127.0.0.1:8081/",
}


def test_names_of_converters() -> None:
    for name in ("org.apache.kafka.connect.json.JsonConverter", "JsonConverter", "json"):
        assert loaded({"key.converter": name}).connector.output.key_converter.kind == "json"
    assert loaded(AVRO).connector.output.value_converter.kind == "avro"


def test_the_workers_converter_counts_unless_the_connector_names_one() -> None:
    worker = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    assert loaded({}, worker).connector.output.value_converter.schemas_enable is False
    # As in Kafka Connect: naming one starts from its defaults, an option alone changes nothing.
    assert loaded({"value.converter": "JsonConverter"}, worker).connector.output.value_converter.schemas_enable is True
    alone = loaded({"value.converter.schemas.enable": "true"}, worker)
    assert alone.connector.output.value_converter.schemas_enable is False
    assert "value.converter.schemas.enable" in alone.notices[0]
    # The options of the worker's do not come with it.
    found = problem({"value.converter": "AvroConverter"}, AVRO)
    assert found.property == "value.converter.schema.registry.url" and "the worker's options" in str(found.suggestion)
    (header,) = loaded({"header.converter": "simple", "header.converter.converter.type": "header"}).notices
    assert header.endswith("no option of the SimpleHeaderConverter")


@pytest.mark.parametrize(
    "name",
    [
        "io.confluent.connect.json.JsonSchemaConverter",
        "CloudEventsConverter",
        "io.confluent.connect.protobuf.ProtobufConverter",
    ],
)
def test_converters_that_are_refused_with_a_reason(name: str) -> None:
    found = problem({"value.converter": name})
    assert "is not supported: " in found.problem
    assert "JsonConverter" in str(found.suggestion)


@pytest.mark.parametrize(
    ("name", "whose", "hint"),
    [
        ("io.apicurio.registry.utils.converter.AvroConverter", "Apicurio's", "/apis/ccompat/"),
        ("com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter", "AWS Glue's", "Glue has none"),
        ("com.amazonaws.services.schemaregistry.kafkaconnect.protobuf.ProtobufSchemaConverter", "AWS Glue's", "Json"),
        ("com.microsoft.azure.schemaregistry.kafka.connect.avro.AvroConverter", "Azure's", "Event Hubs has none"),
    ],
)
def test_converters_of_registries_with_an_api_of_their_own(name: str, whose: str, hint: str) -> None:
    found = problem({"value.converter": name})
    assert found.problem == f"{whose} converters are not supported: its own API is not spoken here"
    assert hint in str(found.suggestion)


def test_registry() -> None:
    registry = loaded(
        {
            **AVRO,
            "value.converter.basic.auth.credentials.source": "USER_INFO",
            "value.converter.basic.auth.user.info": "u:p",
        }
    ).connector.output.value_converter.registry
    assert registry is not None
    assert registry.urls == ("http://127.0.0.1:8081",)
    assert registry.user_info is not None and registry.user_info.reveal() == "u:p"
    inside = loaded({**AVRO, "value.converter.schema.registry.url": "https://u:p%40@h:1/path,http://k"})
    registry = inside.connector.output.value_converter.registry
    assert registry is not None
    assert registry.urls == ("https://h:1/path", "http://k")
    assert registry.user_info is not None and registry.user_info.reveal() == "u:p@"


def test_registry_mistakes() -> None:
    assert problem({"value.converter": "AvroConverter"}).property == "value.converter.schema.registry.url"
    assert "http" in problem({**AVRO, "value.converter.schema.registry.url": "host:8081"}).problem
    found = problems(
        {
            **AVRO,
            "value.converter.basic.auth.credentials.source": "USER_INFO",
            "value.converter.auto.register.schema": "true",
            "value.converter.value.subject.name.strategy": "com.example.Mine",
        }
    )
    assert {one.property for one in found} == {
        "value.converter.basic.auth.user.info",
        "value.converter.auto.register.schema",
        "value.converter.value.subject.name.strategy",
    }


@pytest.mark.parametrize("side", ["key", "value"])
@pytest.mark.parametrize(("text", "fills"), [(None, True), ("false", True), ("TRUE", False)])
def test_defaults_of_nullables(side: str, text: str | None, fills: bool) -> None:
    given = {name.replace("value.", f"{side}.", 1): each for name, each in AVRO.items()}
    option = {} if text is None else {f"{side}.converter.ignore.default.for.nullables": text}
    output = loaded({**given, **option}).connector.output
    assert (output.key_converter if side == "key" else output.value_converter).replace_null_with_default is fills


@pytest.mark.parametrize("side", ["key", "value"])
def test_ids_of_schemas_stand_before_values_alone(side: str) -> None:
    package = "io.confluent.kafka.serializers.schema.id"
    name = f"value.converter.{side}.schema.id.serializer"
    loaded({**AVRO, name: f"{package}.PrefixSchemaIdSerializer"})
    found = problem({**AVRO, name: f"{package}.HeaderSchemaIdSerializer"})
    assert found.property == name and "not into headers" in found.problem
    assert found.suggestion == f"leave it out, or {package}.PrefixSchemaIdSerializer"


def test_a_converter_of_somebody_elses_that_is_called_like_one_of_connects() -> None:
    found = problem({"value.converter": "io.confluent.connect.replicator.util.ByteArrayConverter"})
    assert found.suggestion == "did you mean ByteArrayConverter?"


def test_options_of_the_other_converter_are_only_mentioned() -> None:
    notices = loaded({"value.converter": "json", "value.converter.schema.registry.url": "http://h"}).notices
    assert "no option of the JsonConverter" in notices[0]


def test_names_of_schemas_that_avro_refuses_are_found_in_the_files() -> None:
    given = {**AVRO, "topic.prefix": "eu.3pl", "scylla.table.names": "ks.1st,ks.t"}
    found = problems(given)
    assert [(one.property, "'3pl'" in one.problem, "'1st'" in one.problem) for one in found] == [
        ("topic.prefix", True, False),
        ("scylla.table.names", False, True),
    ]
    assert "scrub.invalid.names=true" in str(found[0].suggestion)
    for remedy in (
        {"value.converter.scrub.invalid.names": "true"},
        {"schema.name.adjustment.mode": "avro_unicode"},
        {"value.converter": "JsonConverter"},
        # It may give schemas other names, which only records show.
        {"transforms": "s", "transforms.s.type": "SetSchemaMetadata$Value", "transforms.s.schema.name": "a.b"},
    ):
        assert not problems({**given, **remedy}), remedy
    router = {"transforms.r.type": "RegexRouter", "transforms.r.regex": "a", "transforms.r.replacement": "b"}
    assert len(problems({**given, **router, "transforms": "r"})) == 2
    strict = {"schema.name.adjustment.mode": "avro", "scylla.compatibility": "strict"}
    assert len(problems({**given, **strict})) == 2
