"""Converters: which one a file names, and its options.

In: the properties ``<which>.converter`` and ``<which>.converter.*`` as text. Out: a ``ConverterConfig``, or problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from connector.config.properties import (
    BOOLEAN,
    PASSWORD,
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
from connector.config.secret import Secret
from connector.config.tls import TlsConfig
from connector.suggestions import did_you_mean

JSON_CLASS = "org.apache.kafka.connect.json.JsonConverter"
AVRO_CLASS = "io.confluent.connect.avro.AvroConverter"

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
SUPPORTED = f"{JSON_CLASS}, {AVRO_CLASS}, or one of single values such as StringConverter"

_HEADER_NAMES: dict[str, ConverterKind] = {
    SIMPLE_CLASS.lower(): "simple",
    "simpleheaderconverter": "simple",
    "simple": "simple",
    **{name: kind for name, kind in _NAMES.items() if kind != "avro"},
}


def _urls(text: str) -> tuple[str, ...]:
    urls = tuple(item.strip().rstrip("/") for item in text.split(",") if item.strip())
    if not urls and text.strip():
        raise Invalid("Names no address", "http://127.0.0.1:8081")
    for url in urls:
        if "@" in url.rpartition("//")[2].partition("/")[2].partition("?")[0]:
            raise Invalid("Has an @ after a slash", "in a password write / as %2F, ? as %3F, # as %23 and @ as %40")
        if not _is_address(url):
            raise Invalid("Must be a list of http or https addresses", "http://127.0.0.1:8081")
    return urls


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no number, or brackets that do not close
        return False


URLS = Kind("list of URLs", _urls)


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

AVRO_OPTIONS = Section(
    "AvroConverter",
    f"`{AVRO_CLASS}`, `AvroConverter` or `avro`. The options follow `key.converter.` or `value.converter.`.",
    (
        Property(
            "schema.registry.url",
            URLS,
            "Schema Registry; several addresses are tried in turn.",
            required='Missing required configuration "schema.registry.url" which has no default value',
        ),
        Property(
            "basic.auth.credentials.source",
            one_of("URL", "USER_INFO", "SASL_INHERIT"),
            "Where to find user and password: in the URL or in `basic.auth.user.info`.",
            default="URL",
        ),
        Property(
            "basic.auth.user.info",
            PASSWORD,
            "`user:password`.",
            aliases=("schema.registry.basic.auth.user.info",),
        ),
        Property(
            "bearer.auth.credentials.source",
            one_of("STATIC_TOKEN", "USER_INFO"),
            "`STATIC_TOKEN` takes `bearer.auth.token`.",
        ),
        Property("bearer.auth.token", PASSWORD, "Token sent with each request."),
        Property("schema.registry.ssl.truststore.location", STRING, "Trusted certificates: JKS, PKCS12 or PEM."),
        Property("schema.registry.ssl.truststore.password", PASSWORD, "Its password."),
        Property("schema.registry.ssl.keystore.location", STRING, "Client certificate and key: JKS, PKCS12 or PEM."),
        Property("schema.registry.ssl.keystore.password", PASSWORD, "Its password."),
        Property("schema.registry.ssl.key.password", PASSWORD, "Password of the key, if it has its own."),
        Property(
            "schema.registry.ssl.endpoint.identification.algorithm",
            STRING,
            "`https` checks the host name, empty does not.",
            default="https",
        ),
        *without_effect(
            "the type of a store is detected by its content",
            ("schema.registry.ssl.truststore.type", "schema.registry.ssl.keystore.type"),
        ),
        Property("auto.register.schemas", BOOLEAN, "Whether new schemas are registered.", default=True),
        Property(
            "use.latest.version",
            BOOLEAN,
            "Whether the subject's newest schema is used when `auto.register.schemas` is false.",
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
        *without_effect("schemas are compared by the registry", ("latest.compatibility.strict",), BOOLEAN),
        *without_effect("connections are kept open", ("max.schemas.per.subject",), integer(0)),
        *without_effect(
            "schemas are built once for each version of a table",
            ("latest.cache.size", "latest.cache.ttl.sec"),
            integer(-1),
        ),
    ),
)

_STRATEGIES: dict[str, Literal["topic", "record", "topic-record"]] = {
    "TopicNameStrategy": "topic",
    "RecordNameStrategy": "record",
    "TopicRecordNameStrategy": "topic-record",
}


_CHECKED = TlsConfig(enabled=True, check_host=True)


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """How a Schema Registry is reached; ``tls`` counts for its https URLs."""

    urls: tuple[str, ...]
    user_info: Secret | None = None
    token: Secret | None = None
    tls: TlsConfig = _CHECKED


@dataclass(frozen=True, slots=True)
class ConverterConfig:
    """One converter, for keys or for values."""

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


def converter_kind(class_name: str) -> ConverterKind:
    """The converter that a class name or short name means; raises ``Invalid`` with the reason it is refused."""
    kind = _NAMES.get(class_name.strip().lower())
    if kind:
        return kind
    short = _short(class_name)
    for refused, reason in _REFUSED.items():
        if short.lower() in (refused.lower(), refused.removesuffix("Converter").lower()):
            raise Invalid(f"{refused} is not supported: {reason}", SUPPORTED)
    hint = did_you_mean(short, ("JsonConverter", "AvroConverter")) or SUPPORTED
    raise Invalid(f"Unknown converter {class_name.strip()!r}", hint)


def header_converter_kind(class_name: str) -> ConverterKind:
    """The converter of headers that a name means; raises ``Invalid``."""
    kind = _HEADER_NAMES.get(class_name.strip().lower())
    if kind is None:
        raise Invalid(f"{_short(class_name)} is not supported for headers", SIMPLE_CLASS)
    return kind


def without_logins(urls: tuple[str, ...]) -> tuple[tuple[str, ...], Secret | None]:
    """Addresses without ``user:password@``, and the first such login."""
    bare, login = [], None
    for url in urls:
        parts = urlsplit(url)
        user, found, host = parts.netloc.rpartition("@")
        bare.append(parts._replace(netloc=host).geturl())
        if found and login is None:
            login = Secret(unquote(user))
    return tuple(bare), login


def _in_header(secret: Secret | None) -> Secret | None:
    """Files of secrets end with a line break, which is no part of them and which no HTTP header can carry."""
    return Secret(secret.reveal().strip()) if secret else None


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


def build_converter(kind: ConverterKind, which: str, options: dict[str, Any]) -> ConverterConfig:
    """The converter of already parsed options; ``which`` is ``key`` or ``value``."""
    if kind == "json":
        return ConverterConfig(
            kind="json",
            schemas_enable=options["schemas.enable"],
            replace_null_with_default=options["replace.null.with.default"],
        )
    if kind != "avro":
        return ConverterConfig(kind=kind, encoding=options.get("converter.encoding", "utf-8"))
    urls, login = without_logins(options["schema.registry.url"])
    registry = RegistryConfig(
        urls=urls,
        # Connect's default source of a login is the URL; one that is given beside it is meant all the same.
        user_info=_in_header(options["basic.auth.user.info"]) or login,
        token=_in_header(options["bearer.auth.token"]),
        tls=TlsConfig(
            enabled=True,
            truststore=options["schema.registry.ssl.truststore.location"],
            truststore_password=options["schema.registry.ssl.truststore.password"],
            keystore=options["schema.registry.ssl.keystore.location"],
            keystore_password=options["schema.registry.ssl.keystore.password"],
            key_password=options["schema.registry.ssl.key.password"],
            check_host=options["schema.registry.ssl.endpoint.identification.algorithm"].lower() == "https",
        ),
    )
    return ConverterConfig(
        kind="avro",
        registry=registry,
        auto_register=options["auto.register.schemas"],
        use_latest_version=options["use.latest.version"],
        normalize=options["normalize.schemas"],
        connect_meta_data=options["connect.meta.data"],
        scrub_names=options["scrub.invalid.names"],
        subject_strategy=subject_strategy(options[f"{which}.subject.name.strategy"]),
    )
