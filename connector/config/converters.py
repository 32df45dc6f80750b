"""Converters: which one a file names, and its options.

In: the properties ``<which>.converter`` and ``<which>.converter.*`` as text. Out: a ``ConverterConfig``, or problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from connector.config.properties import (
    BOOLEAN,
    STRING,
    Effect,
    Invalid,
    Kind,
    Property,
    Section,
    integer,
    one_of,
    without_effect,
)
from connector.config.registry import REGISTRY_OPTIONS, RegistryConfig, registry_of
from connector.suggestions import did_you_mean

JSON_CLASS = "org.apache.kafka.connect.json.JsonConverter"
AVRO_CLASS = "io.confluent.connect.avro.AvroConverter"

NameMode = Literal["none", "avro", "avro_unicode"]
ConverterKind = Literal[
    "json", "avro", "string", "integer", "long", "short", "double", "float", "boolean", "bytes", "simple"
]
#: Converters of single values, by Java's names.
_PLAIN: dict[str, ConverterKind] = {
    "org.apache.kafka.connect.storage.StringConverter": "string",
    "org.apache.kafka.connect.converters.IntegerConverter": "integer",
    "org.apache.kafka.connect.converters.LongConverter": "long",
    "org.apache.kafka.connect.converters.ShortConverter": "short",
    "org.apache.kafka.connect.converters.DoubleConverter": "double",
    "org.apache.kafka.connect.converters.FloatConverter": "float",
    "org.apache.kafka.connect.converters.BooleanConverter": "boolean",
    "org.apache.kafka.connect.converters.ByteArrayConverter": "bytes",
}
SIMPLE_CLASS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_NAMES: dict[str, ConverterKind] = {
    **{
        spelling.lower(): kind
        for name, kind in _PLAIN.items()
        for spelling in (name, name.rpartition(".")[2], name.rpartition(".")[2].removesuffix("Converter"))
    },
    JSON_CLASS.lower(): "json",
    "jsonconverter": "json",
    "json": "json",
    AVRO_CLASS.lower(): "avro",
    "avroconverter": "avro",
    "avro": "avro",
}
_REFUSED = {
    "ProtobufConverter": "Protobuf is not written here",
    "JsonSchemaConverter": "JSON Schema is not written here",
    "CloudEventsConverter": "CloudEvents are not written here",
    "BinaryDataConverter": "ByteArrayConverter is Kafka Connect's own",
}
#: Converters of registries that have an API of their own, by the beginning of their names: whose, and what to do.
_OF_OTHER_REGISTRIES = {
    "io.apicurio.": (
        "Apicurio's",
        f"{AVRO_CLASS} with schema.registry.url=http://HOST:8080/apis/ccompat/v7, which Apicurio has too",
    ),
    "com.amazonaws.": (
        "AWS Glue's",
        f"{JSON_CLASS}, or {AVRO_CLASS} with a registry that has Confluent's API; Glue has none",
    ),
    "com.microsoft.azure.": (
        "Azure's",
        f"{JSON_CLASS}, or {AVRO_CLASS} with a registry that has Confluent's API; Event Hubs has none",
    ),
}
_PREFIX = "PrefixSchemaIdSerializer"
SUPPORTED = f"{JSON_CLASS}, {AVRO_CLASS}, or one of single values such as StringConverter"

_HEADER_NAMES: dict[str, ConverterKind] = {
    SIMPLE_CLASS.lower(): "simple",
    "simpleheaderconverter": "simple",
    "simple": "simple",
    **{name: kind for name, kind in _NAMES.items() if kind != "avro"},
}


def _short(class_name: str) -> str:
    return class_name.strip().rsplit(".", 1)[-1]


JSON_OPTIONS = Section(
    "JsonConverter",
    f"`{JSON_CLASS}`, `JsonConverter` or `json`. The options follow `key.converter.` or `value.converter.`.",
    (
        Property(
            "schemas.enable",
            BOOLEAN,
            'Whether each record carries its schema: `{"schema": …, "payload": …}`.',
            default=True,
        ),
        Property(
            "decimal.format",
            one_of("BASE64", "NUMERIC"),
            "Form of Connect decimals.",
            default="BASE64",
            effect=Effect.NONE,
            reason="CQL decimals are texts, as in the Java connector",
        ),
        Property(
            "replace.null.with.default",
            BOOLEAN,
            "Whether a null in a field with a default is written as that default (`source.snapshot`).",
            default=True,
        ),
        *without_effect("schemas are built once for each version of a table", ("schemas.cache.size",), integer(0)),
    ),
)


def _charset(text: str) -> str:
    known = {"utf8": "utf-8", "iso88591": "latin-1", "latin1": "latin-1", "usascii": "ascii", "ascii": "ascii"}
    found = known.get(text.strip().lower().replace("-", "").replace("_", ""))
    if found is None:
        raise Invalid("Must be UTF-8, ISO-8859-1 or US-ASCII", "UTF-8")
    return found


STRING_OPTIONS = Section(
    "StringConverter",
    "`org.apache.kafka.connect.storage.StringConverter`, `StringConverter` or `string`: texts as they are, anything "
    "else as Java's `toString()`. For keys and values of which a transform has made texts.",
    (Property("converter.encoding", Kind("character set", _charset), "Character set.", default="utf-8"),),
)
PLAIN_OPTIONS = Section(
    "Converters of single values",
    "`IntegerConverter`, `LongConverter`, `ShortConverter`, `DoubleConverter`, `FloatConverter`, `BooleanConverter`, "
    "`ByteArrayConverter` (of `org.apache.kafka.connect.converters`): binary, big-endian. They take values of their "
    "type only; another one is an error of the record. They have no options.",
    (),
)


def _schema_id_serializer(text: str) -> str:
    if _short(text) != _PREFIX:
        why = "Schema ids are written before each value, where every consumer finds them, and not into headers"
        raise Invalid(why, f"leave it out, or io.confluent.kafka.serializers.schema.id.{_PREFIX}")
    return _PREFIX


AVRO_OPTIONS = Section(
    "AvroConverter",
    f"`{AVRO_CLASS}`, `AvroConverter` or `avro`. The options follow `key.converter.` or `value.converter.`.",
    (
        *REGISTRY_OPTIONS,
        Property("auto.register.schemas", BOOLEAN, "Whether new schemas are registered.", default=True),
        Property(
            "use.latest.version",
            BOOLEAN,
            "Whether the subject's newest schema is used when `auto.register.schemas` is false. It may have other "
            "documentation, defaults and names of records; one that says other bytes than are written is refused.",
            default=False,
        ),
        Property(
            "scrub.invalid.names",
            BOOLEAN,
            "Whether names of tables and columns that Avro does not allow are changed to valid ones.",
            default=False,
        ),
        Property("normalize.schemas", BOOLEAN, "Whether the registry normalises schemas it compares.", default=False),
        Property(
            "connect.meta.data",
            BOOLEAN,
            "Whether Avro schemas carry Connect's names and versions.",
            default=True,
        ),
        Property(
            "ignore.default.for.nullables",
            BOOLEAN,
            "Whether a null in a field with a default stays null (`source.snapshot`).",
            default=False,
        ),
        *(
            Property(
                f"{side}.schema.id.serializer",
                Kind("class", _schema_id_serializer),
                "`PrefixSchemaIdSerializer`: the schema's id stands before each value.",
                default=_PREFIX,
            )
            for side in ("key", "value")
        ),
        Property(
            "key.subject.name.strategy",
            STRING,
            "`TopicNameStrategy`, `RecordNameStrategy` or `TopicRecordNameStrategy`.",
            default="TopicNameStrategy",
        ),
        Property(
            "value.subject.name.strategy",
            STRING,
            "`TopicNameStrategy`, `RecordNameStrategy` or `TopicRecordNameStrategy`.",
            default="TopicNameStrategy",
        ),
        *without_effect("schemas are built once for each version of a table", ("schemas.cache.config",), integer(0)),
        *without_effect("schemas are built once for each version of a table", ("schemas.cache.size",), integer(0)),
        *without_effect(
            "no record of this connector has such a part",
            (
                "allow.optional.map.keys",
                "flatten.singleton.unions",
                "flatten.unions",
                "generalized.sum.type.support",
                "enhanced.avro.schema.support",
                "discard.type.doc.default",
            ),
            BOOLEAN,
        ),
        *without_effect(
            "a latest schema that says other bytes than are written is refused, whatever this says",
            ("latest.compatibility.strict",),
            BOOLEAN,
        ),
        *without_effect("schemas are compared by the registry", ("id.compatibility.strict",), BOOLEAN),
        *without_effect(
            "no class of Java's stands behind a record",
            ("avro.reflection.allow.null", "avro.use.logical.type.converters", "avro.remove.java.properties"),
            BOOLEAN,
        ),
        *without_effect(
            "schemas of records refer to no other subject", ("reference.subject.name.strategy", "reference.lookup.only")
        ),
        *without_effect(
            "schemas are built once for each version of a table",
            (
                "latest.cache.size",
                "latest.cache.ttl.sec",
                "missing.cache.size",
                "missing.id.cache.ttl.sec",
                "missing.schema.cache.ttl.sec",
                "max.schemas.per.subject",
            ),
            integer(-1),
        ),
    ),
)

_STRATEGIES: dict[str, Literal["topic", "record", "topic-record"]] = {
    "TopicNameStrategy": "topic",
    "RecordNameStrategy": "record",
    "TopicRecordNameStrategy": "topic-record",
}


@dataclass(frozen=True, slots=True)
class ConverterConfig:
    """One converter, for keys or for values. ``replace_null_with_default`` is of JSON and of Avro, where its name is
    another one and says the opposite."""

    kind: ConverterKind
    schemas_enable: bool = True
    replace_null_with_default: bool = True
    registry: RegistryConfig | None = None
    auto_register: bool = True
    use_latest_version: bool = False
    normalize: bool = False
    connect_meta_data: bool = True
    subject_strategy: Literal["topic", "record", "topic-record"] = "topic"
    encoding: str = "utf-8"
    scrub_names: bool = False
    #: How names are made Avro's where a schema has one that is not: modes of Debezium's adjustment.
    field_names: NameMode = "none"
    schema_names: NameMode = "none"


def converter_kind(class_name: str) -> ConverterKind:
    """The converter that a class name or short name means; raises ``Invalid`` with the reason it is refused."""
    kind = _NAMES.get(class_name.strip().lower())
    if kind:
        return kind
    short = _short(class_name)
    for prefix, (whose, hint) in _OF_OTHER_REGISTRIES.items():
        if class_name.strip().lower().startswith(prefix):
            raise Invalid(f"{whose} converters are not supported: its own API is not spoken here", hint)
    for refused, reason in _REFUSED.items():
        if short.lower() in (refused.lower(), refused.removesuffix("Converter").lower()):
            raise Invalid(f"{refused} is not supported: {reason}", SUPPORTED)
    hint = did_you_mean(short, ("JsonConverter", "AvroConverter", *map(_short, _PLAIN))) or SUPPORTED
    raise Invalid(f"Unknown converter {class_name.strip()!r}", hint)


def header_converter_kind(class_name: str) -> ConverterKind:
    """The converter of headers that a name means; raises ``Invalid``."""
    kind = _HEADER_NAMES.get(class_name.strip().lower())
    if kind is None:
        raise Invalid(f"{_short(class_name)} is not supported for headers", SIMPLE_CLASS)
    return kind


def options_of(kind: ConverterKind) -> dict[str, Property]:
    """The options of a converter, by the name that follows the prefix."""
    section = {"json": JSON_OPTIONS, "avro": AVRO_OPTIONS, "string": STRING_OPTIONS}.get(kind, PLAIN_OPTIONS)
    named = {declared.name: declared for declared in section.properties}
    for declared in section.properties:
        for alias in declared.aliases:
            named[alias] = declared
    return named


def subject_strategy(text: str) -> Literal["topic", "record", "topic-record"]:
    """The subject naming strategy a class name means."""
    found = _STRATEGIES.get(_short(text))
    if found is None:
        raise Invalid("Unknown subject name strategy", ", ".join(_STRATEGIES))
    return found


def build_converter(
    kind: ConverterKind, which: str, options: dict[str, Any], inherited: Mapping[str, str] | None = None
) -> ConverterConfig:
    """The converter of already parsed options; ``which`` is ``key`` or ``value``, ``inherited`` the worker's login."""
    if kind == "json":
        return ConverterConfig(
            kind="json",
            schemas_enable=options["schemas.enable"],
            replace_null_with_default=options["replace.null.with.default"],
        )
    if kind != "avro":
        return ConverterConfig(kind=kind, encoding=options.get("converter.encoding", "utf-8"))
    return ConverterConfig(
        kind="avro",
        registry=registry_of(options, inherited),
        auto_register=options["auto.register.schemas"],
        use_latest_version=options["use.latest.version"],
        normalize=options["normalize.schemas"],
        connect_meta_data=options["connect.meta.data"],
        replace_null_with_default=not options["ignore.default.for.nullables"],
        scrub_names=options["scrub.invalid.names"],
        subject_strategy=subject_strategy(options[f"{which}.subject.name.strategy"]),
    )
