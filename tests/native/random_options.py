"""Options as users combine them, of a seed: those that the kernel knows most often, and some that it leaves alone.

In: a seed. Out: properties of a connector that a configuration takes, and what they are about in one word.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from connector.config import OutputConfig, load
from connector.errors import ConfigurationError
from connector.formats.transforms import check_transform
from tests.formats.options import BASE, JSON, WORKER
from tests.formats.test_formats_columnwise import AVRO

_JSON_CLASS = JSON["value.converter"]
_REGISTRY = "http://127.0.0.1:1"
_FORMATS_OF_IMAGES = ("none", "full", "only-updated")
_PLACEMENTS = ("kafka-key", "payload-after", "payload-before", "payload-diff", "payload-key", "kafka-headers")
_FIELDS = (
    *("op", "ts_ms", "ts_us", "ts_ns", "version", "connector", "name", "source.ts_ms:s1", "source.ts_us:s2"),
    *("source.ts_ns:s3", "snapshot", "db", "sequence", "keyspace_name", "table_name", "stream_id", "time"),
    *("batch_seq_no", "operation", "ttl", "transaction.id", "source.op:o", "source.nothing", "after.a", "before.pk"),
)
_ROUTES = (("(.*)", "x.$1"), (r"([^.]+)\..*", "$1-all"), ("nothing", "y"))
_OTHERS: tuple[Mapping[str, str], ...] = (
    {"type": "InsertField$Value", "static.field": "site", "static.value": "a"},
    {"type": "InsertHeader", "header": "h", "value.literal": "1"},
    {"type": "ReplaceField$Value", "exclude": "a"},
    {"type": "HoistField$Value", "field": "x"},
    {"type": "MaskField$Value", "fields": "op"},
    {"type": "DropHeaders", "headers": "scylla.table.id"},
    {"type": "SetSchemaMetadata$Value", "schema.name": "n"},
    {"type": "Filter", "predicate": "gone"},
)
_PREDICATES = {
    "gone": {"type": "RecordIsTombstone"},
    "named": {"type": "TopicNameMatches", "pattern": ".*ks.*"},
    "headed": {"type": "HasHeaderKey", "name": "scylla.table.id"},
    "elsewhere": {"type": "TopicNameMatches", "pattern": "x\\..*"},
}


def random_options(seed: int) -> tuple[dict[str, str], OutputConfig]:
    """The first that a configuration takes of those that the seed gives: not all go together."""
    pick = random.Random(seed)
    while True:
        properties = _drawn(pick)
        try:
            loaded = load(BASE | JSON | properties, WORKER | JSON, {}, transform_check=check_transform)
        except ConfigurationError:
            continue
        return properties, loaded.connector.output


def _drawn(pick: random.Random) -> dict[str, str]:
    made = _format(pick) | _sides(pick)
    _perhaps(pick, 0.2, made, "scylla.compatibility", "strict")
    _perhaps(pick, 0.35, made, "cdc.include.metadata", "true")
    _perhaps(pick, 0.4, made, "cdc.range.deletes", "topic")
    _perhaps(pick, 0.3, made, "tombstones.on.delete", "false")
    _perhaps(pick, 0.25, made, "skipped.operations", ",".join(_some(pick, ("c", "u", "d", "r", "t"))) or "none")
    _perhaps(pick, 0.2, made, "topic.prefix", "Shop-1.eu_x")
    _perhaps(pick, 0.1, made, "topic.delimiter", "_")
    if pick.random() < 0.45:
        made |= _chain(pick)
    if made.get("value.converter") == AVRO and "cdc.include.primary-key.payload-key-name" in made:
        made["cdc.include.primary-key.payload-key-name"] = "ids"  # Avro allows few names
    return made


def _format(pick: random.Random) -> dict[str, str]:
    if pick.random() < 0.55:
        made: dict[str, str] = {}
        _perhaps(pick, 0.45, made, "experimental.preimages.enabled", "true")
        _perhaps(pick, 0.55, made, "cdc.include.collections", "delta")
        return made
    made = {"cdc.output.format": "advanced"}
    for side in ("before", "after"):
        made[f"cdc.include.{side}"] = pick.choice(_FORMATS_OF_IMAGES)
    _perhaps(pick, 0.8, made, "cdc.include.primary-key.placement", ",".join(_some(pick, _PLACEMENTS)))
    _perhaps(pick, 0.2, made, "cdc.include.primary-key.payload-key-name", pick.choice(["ids", 'the "k\\-é']))
    return made


def _sides(pick: random.Random) -> dict[str, str]:
    made: dict[str, str] = {}
    for side in ("key", "value"):
        kind = pick.choice(
            ("plain", "plain", "plain", "schemas", "avro", "avro", "string" if side == "key" else "plain")
        )
        if kind == "avro":
            made |= {f"{side}.converter": AVRO, f"{side}.converter.schema.registry.url": _REGISTRY}
            _perhaps(pick, 0.2, made, f"{side}.converter.connect.meta.data", "false")
            _perhaps(pick, 0.1, made, f"{side}.converter.ignore.default.for.nullables", "true")
            _perhaps(pick, 0.2, made, f"{side}.converter.{side}.subject.name.strategy", "RecordNameStrategy")
        elif kind == "string":
            made[f"{side}.converter"] = "org.apache.kafka.connect.storage.StringConverter"
        elif kind == "schemas":
            made |= {f"{side}.converter": _JSON_CLASS, f"{side}.converter.schemas.enable": "true"}
        if kind in ("plain", "schemas"):
            _perhaps(pick, 0.1, made, f"{side}.converter.replace.null.with.default", "false")
    if pick.random() < 0.1:
        made |= {"header.converter": _JSON_CLASS, "header.converter.schemas.enable": "false"}
    return made


def _chain(pick: random.Random) -> dict[str, str]:
    """One that unwraps in most cases, between others that name topics, and perhaps one of another kind."""
    steps: list[Mapping[str, str]] = []
    if pick.random() < 0.3:
        steps.append(_route(pick))
    if pick.random() < 0.85:
        steps.append(_unwrapping(pick))
    if pick.random() < 0.2:
        steps.append(pick.choice(_OTHERS))
    if pick.random() < 0.3:
        steps.append(_route(pick))
    made, named = {"transforms": ",".join(f"s{at}" for at in range(len(steps)))}, set()
    for at, step in enumerate(steps):
        given = dict(step)
        _perhaps(pick, 0.15, given, "predicate", pick.choice(sorted(_PREDICATES)))
        if "predicate" in given:
            named.add(given["predicate"])
            _perhaps(pick, 0.5, given, "negate", "true")
        made |= {f"transforms.s{at}.{name}": text for name, text in given.items()}
    if named:
        made["predicates"] = ",".join(sorted(named))
        for name in named:
            made |= {f"predicates.{name}.{option}": text for option, text in _PREDICATES[name].items()}
    return made


def _unwrapping(pick: random.Random) -> dict[str, str]:
    kind = pick.choice(
        ("extract-new-state", "ScyllaExtractNewRecordState", "io.debezium.transforms.ExtractNewRecordState")
        if pick.random() < 0.75
        else ("ScyllaFlattenColumns",)
    )
    made = {"type": kind}
    if kind == "ScyllaFlattenColumns":
        return made
    modes = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
    if pick.random() < 0.5:
        _perhaps(pick, 0.8, made, "delete.tombstone.handling.mode", pick.choice(modes))
    else:
        _perhaps(pick, 0.6, made, "delete.handling.mode", pick.choice(("drop", "none", "rewrite")))
        _perhaps(pick, 0.5, made, "drop.tombstones", pick.choice(("true", "false")))
    _perhaps(pick, 0.5, made, "add.fields", ",".join(_some(pick, _FIELDS)))
    _perhaps(pick, 0.2, made, "add.fields.prefix", pick.choice(("", "m_")))
    _perhaps(pick, 0.2, made, "untouched.fields", pick.choice(("omit", "null")))
    _perhaps(pick, 0.25, made, "add.headers", ",".join(_some(pick, _FIELDS)))
    _perhaps(pick, 0.05, made, "route.by.field", "a")
    _perhaps(pick, 0.1, made, "replace.null.with.default", "false")
    return made


def _route(pick: random.Random) -> dict[str, str]:
    regex, replacement = pick.choice(_ROUTES)
    return {"type": "RegexRouter", "regex": regex, "replacement": replacement}


def _perhaps(pick: random.Random, chance: float, made: dict[str, str], name: str, text: str) -> None:
    if pick.random() < chance:
        made[name] = text


def _some(pick: random.Random, of: tuple[str, ...]) -> list[str]:
    return pick.sample(of, pick.randint(1, len(of))) if pick.random() < 0.5 else [pick.choice(of)]
