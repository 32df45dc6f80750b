"""Random cases for transforms: options right and wrong, records with schemas, without, and tombstones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

CONNECT = "org.apache.kafka.connect.transforms."
DEBEZIUM = "io.debezium.transforms."
DATA = "org.apache.kafka.connect.data."

Json = dict[str, Any]


def field(name: str, type_: str, optional: bool = True, **parts: Any) -> Json:
    return {"type": type_, "optional": optional, **parts, "field": name}


def logical(name: str, type_: str, optional: bool = True) -> Json:
    return {"type": type_, "optional": optional, "name": DATA + name, "version": 1}


PRIMITIVES = [
    *(("i8", "int8"), ("i16", "int16"), ("i32", "int32"), ("i64", "int64"), ("f", "float"), ("d", "double")),
    *(("b", "boolean"), ("s", "string"), ("raw", "bytes")),
]
NUMBERS = {
    "int8": [0, 1, -1, 127, -128],
    "int16": [0, 300, -32768],
    "int32": [0, 7, 70000, -(2**31), 2**31 - 1],
    "int64": [0, 5, 2**40, -(2**63), 2**63 - 1, 1700000000123, -1],
    "float": [0.0, 1.5, -2.25, 1024.5, 0.1],
    "double": [0.0, 0.5, 1e10, -3.75, 1e300, 123456.789, -0.001],
    "boolean": [True, False],
    "string": [
        "",
        "a",
        "12",
        "-7",
        " 5",
        "1.5",
        "true",
        "TRUE",
        "1e3",
        "999",
        "ü€",
        'q"u\\o',
        "2024-02-29 23:59:58.123",
    ],
    "bytes": ["", "eHg=", "AAEC"],
}
LOGICAL = {"Date": [0, 19000, -1, 20000], "Time": [0, 1, 86399999], "Timestamp": [0, 1700000000123, -1, 86400000]}


def inner(optional: bool = True) -> Json:
    fields = [field("x", "int32", False), field("y", "string", default="why"), field("z", "double")]
    return {"type": "struct", "fields": fields, "optional": optional, "name": "inner", "version": 2}


def row_schema(rng: random.Random) -> Json:
    fields = [field(name, type_, rng.random() < 0.8) for name, type_ in PRIMITIVES if rng.random() < 0.85]
    fields += [
        {**logical(name, t), "field": name.lower()}
        for name, t in (("Date", "int32"), ("Time", "int32"), ("Timestamp", "int64"))
    ]
    if rng.random() < 0.5:
        fields.append(field("defaulted", "string", default="dflt"))
    fields.append({**inner(rng.random() < 0.7), "field": "in"})
    fields.append({"type": "array", "items": {"type": "int32", "optional": True}, "optional": True, "field": "list"})
    if rng.random() < 0.2:
        keys, values = {"type": "string", "optional": False}, {"type": "int32", "optional": True}
        fields.append({"type": "map", "keys": keys, "values": values, "optional": True, "field": "map"})
    rng.shuffle(fields)
    schema: Json = {"type": "struct", "fields": fields, "optional": rng.random() < 0.3, "name": "row"}
    if rng.random() < 0.3:
        schema |= {"version": 3, "doc": "a row"}
    return schema


def content(rng: random.Random, schema: Json) -> Any:
    if schema["optional"] and rng.random() < 0.2:
        return None
    kind, name = schema["type"], schema.get("name", "").rpartition(".")[2]
    if kind == "struct":
        return {each["field"]: content(rng, each) for each in schema["fields"]}
    if kind == "array":
        return [content(rng, schema["items"]) for _ in range(rng.randrange(3))]
    if kind == "map":
        return {key: content(rng, schema["values"]) for key in rng.sample(["k", "l"], rng.randrange(2))}
    return rng.choice(LOGICAL.get(name) or NUMBERS[kind])


def schemaless(rng: random.Random) -> Any:
    return {
        "i64": rng.choice(NUMBERS["int64"]),
        "d": rng.choice([0.5, -3.75, 123.25, None]),
        "s": rng.choice(NUMBERS["string"]),
        "b": rng.choice([True, False, None]),
        "in": rng.choice([None, {"x": 1, "y": {"z": [1, 2]}}]),
        "list": [1, "a"],
    }


def side(rng: random.Random) -> Any:
    """A key or a value, as JsonConverter reads it."""
    dice = rng.random()
    if dice < 0.12:
        return None
    if dice < 0.3:
        return {"schema": None, "payload": schemaless(rng)}
    if dice < 0.36:
        return {"schema": None, "payload": rng.choice([5, "text", [1], True])}
    if dice < 0.48:
        _, type_ = rng.choice(PRIMITIVES)
        schema: Json = {"type": type_, "optional": True}
        if rng.random() < 0.4:
            schema = logical(*rng.choice([("Date", "int32"), ("Time", "int32"), ("Timestamp", "int64")]))
        return {"schema": schema, "payload": content(rng, schema)}
    schema = row_schema(rng)
    return {"schema": schema, "payload": content(rng, schema)}


def record(rng: random.Random) -> Json:
    made: Json = {
        "topic": rng.choice(["shop.ks.orders", "shop.ks.t1", "a-b", "x"]),
        "key": side(rng),
        "value": side(rng),
        "headers": [],
    }
    for name in rng.sample(["h", "g", "hide"], rng.randrange(3)):
        made["headers"].append(
            [name, {"schema": {"type": "string", "optional": True}, "payload": rng.choice(["v", None])}]
        )
    if rng.random() < 0.6:
        made |= {"partition": rng.randrange(5), "timestamp": rng.choice([0, 1700000000123, 1583020800000])}
        if rng.random() < 0.5:
            made["offset"] = rng.randrange(1000)
    return made


FIELDS = [*(name for name, _ in PRIMITIVES), "date", "time", "timestamp", "in", "list", "defaulted", "map", "nix"]


def names(rng: random.Random, most: int = 3) -> str:
    return ",".join(rng.sample(FIELDS, rng.randrange(1, most + 1)))


def options_of(rng: random.Random, name: str) -> Json:
    """Options of a transform, some of them wrong."""
    made: Json = {}

    def maybe(chance: float, **options: Any) -> None:
        if rng.random() < chance:
            made.update({key.replace("_", "."): value for key, value in options.items()})

    if name == "Cast":
        types = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "STRING", " int32 "]
        spec = ",".join(f"{each}:{rng.choice(types)}" for each in names(rng).split(","))
        made["spec"] = rng.choice(
            [spec, spec, spec, rng.choice(types), "a:b", "", "i32:int8:int16", "int8,int16", "bytes"]
        )
    elif name == "ExtractField":
        maybe(0.97, field=rng.choice([*FIELDS, "in.x", "in.y", "`in`.x", "in.nix", "`broken"]))
        maybe(0.5, **{"field_syntax_version": rng.choice(["V1", "V2", "v2", "V3"])})
    elif name == "Flatten":
        maybe(0.5, delimiter=rng.choice(["_", "", "--"]))
    elif name == "HeaderFrom":
        listed = names(rng)
        made |= {"fields": listed, "headers": ",".join(f"h-{each}" for each in listed.split(","))}
        maybe(0.05, headers="one,two,three,four")
        made["operation"] = rng.choice(["copy", "move", "move", "Copy"])
    elif name == "HoistField":
        made["field"] = rng.choice(["up", "x"])
    elif name == "InsertField":
        for option in ("topic", "partition", "offset", "timestamp", "static"):
            if rng.random() < 0.35:
                made[f"{option}.field"] = f"_{option}" + rng.choice(["", "?", "!"])
        maybe(0.1, topic_field="s")
        maybe(0.7, static_value="fixed")
    elif name == "InsertHeader":
        made["header"] = rng.choice(["h", "new"])
        made["value.literal"] = rng.choice(LITERALS)
    elif name == "DropHeaders":
        made["headers"] = rng.choice(["h", "h, g", "none", ""])
    elif name == "MaskField":
        made["fields"] = rng.choice([names(rng), names(rng), ""])
        maybe(0.5, replacement=rng.choice(["12", "-1", "1.5", "xyz", "", "300", "1e2"]))
    elif name == "RegexRouter":
        made |= rng.choice(ROUTES)
    elif name == "ReplaceField":
        maybe(0.5, exclude=names(rng))
        maybe(0.4, include=names(rng, 6))
        maybe(
            0.5,
            renames=rng.choice(["s:text", "s:text,i32:number", "nix:b", "s:raw", "s", "a:b:c", "s:text:", "i64:raw"]),
        )
    elif name == "SetSchemaMetadata":
        maybe(0.7, schema_name="renamed.Schema")
        maybe(0.6, schema_version=rng.choice(["7", "x", "-1"]))
    elif name == "TimestampConverter":
        maybe(0.85, field=rng.choice(["i64", "date", "time", "timestamp", "s", "i32", "nix"]))
        maybe(0.98, target_type=rng.choice(["string", "unix", "Date", "Time", "Timestamp", "date"]))
        maybe(0.8, format=rng.choice(FORMATS))
        maybe(0.4, unix_precision=rng.choice(["seconds", "milliseconds", "microseconds", "nanoseconds", "days"]))
    elif name == "TimestampRouter":
        maybe(
            0.6, topic_format=rng.choice(["${topic}_${timestamp}", "x-${timestamp}-${timestamp}", "$1${topic}", "fix"])
        )
        maybe(0.6, timestamp_format=rng.choice([*FORMATS, "yyyy", "ww"]))
    elif name == "ValueToKey":
        made["fields"] = rng.choice([names(rng), names(rng), names(rng), "s,s", ""])
    if name in WITH_DEFAULTS and rng.random() < 0.4:
        made["replace.null.with.default"] = rng.choice(["true", "false", "FALSE", "no"])
    return made


SIDED = [
    *("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField", "ReplaceField"),
    *("SetSchemaMetadata", "TimestampConverter"),
]
PLAIN = ["DropHeaders", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey"]
WITH_DEFAULTS = {*SIDED, "ValueToKey"} - {"Flatten", "HoistField"}
FORMATS = [
    *("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMdd", "dd/MM/yyyy", "yyyy-MM-dd'T'HH:mm:ss'Z'", "EEE, d MMM yyyy"),
    *(
        "yyyyMMddHHmmss",
        "hh:mm a",
        "D yyyy",
        "MMMM",
        "yyyy-MM-dd HH:mm:ss.SSSXXX",
        "yyyy.MM.dd G",
        "k:K",
        "u F W w YYYY",
    ),
    *("yyyy-bb", "'it''s' yyyy", "Z z", "", "'open"),
]
LITERALS = [
    *("", "text", "1", "-5", "+7", "300", "70000", "5000000000", "99999999999999999999", "1.5", "1.50", "1e3", "1e-3"),
    *("true", "false", "null", "true}", "TRUE", "2024-06-10", "12:30:00.000Z", "2024-06-10T12:30:00.000Z", "[1, 2]"),
    *("[1, 2.5]", '["a", "b"]', "[1, a]", "[]", '{"a": 1}', '{"a": 1, "b": 2.5}', "{a:1}", "[1,]", "[1", " 5 ", "   "),
    *("a:b", "a,b", '"quoted"', "[true, false]", "[null, 1]", '{"a": null}', "[[1],[2,3]]", "0x10", "1_000", "١٢"),
    *("12:30", "-", "+", "1e400", "3.4e39", '["2024-06-10"]', "{}", "[300, 1]", '{"a": "x", "b": 1}', "10%", "1 2"),
]
ROUTES = [
    {"regex": "(.*)", "replacement": "pre-$1"},
    {"regex": r"([^.]+)\.([^.]+)\.([^.]+)", "replacement": "$3"},
    {"regex": r"shop\.ks\.(?<table>.*)", "replacement": "${table}_x"},
    {"regex": "(.*", "replacement": "x"},
    {"regex": "x", "replacement": r"\$1"},
    {"regex": "x|.*", "replacement": "[$0]"},
    {"regex": "", "replacement": "y"},
    {"regex": r"\p{Alpha}+", "replacement": "letters"},
    {"regex": ".*"},
]
PREDICATES = [
    {"type": f"{CONNECT}predicates.TopicNameMatches", "options": {"pattern": "shop.*"}},
    {"type": f"{CONNECT}predicates.HasHeaderKey", "options": {"name": "h"}},
    {"type": f"{CONNECT}predicates.RecordIsTombstone", "options": {}},
    {"type": f"{CONNECT}predicates.TopicNameMatches", "options": {"pattern": "("}},
    {"type": f"{CONNECT}predicates.HasHeaderKey", "options": {"name": ""}},
]


def step(rng: random.Random, name: str) -> Json:
    suffix = rng.choice(["$Key", "$Value", "$Value"]) if name in SIDED else ""
    return {"type": CONNECT + name + suffix, "options": options_of(rng, name)}


def connect_cases(name: str, number: int) -> Iterator[Json]:
    """Cases of one transform, the same at every run."""
    rng = random.Random(f"{name} 1")
    for _ in range(number):
        yield {"chain": [step(rng, name)], "records": [record(rng) for _ in range(5)]}


def chain_cases(number: int) -> Iterator[Json]:
    """Chains of several transforms, with predicates."""
    rng = random.Random("chains 1")
    for _ in range(number):
        chain = [step(rng, rng.choice([*SIDED, *PLAIN])) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.3:
            chain.append({"type": f"{CONNECT}Filter", "options": {}, "predicate": rng.choice(PREDICATES)})
        for each in chain:
            if rng.random() < 0.4:
                each |= {"predicate": rng.choice(PREDICATES), "negate": rng.random() < 0.4}
        yield {"chain": chain, "records": [record(rng) for _ in range(4)]}


def envelope_schema(topic: str) -> Json:
    row = [field("pk", "int32", False), field("v", "string"), field("d", "string", default="dflt")]
    image = {"type": "struct", "fields": row, "optional": True, "name": f"{topic}.Value"}
    source = [field("ts_ms", "int64", False), field("table", "string"), field("snapshot", "string", default="false")]
    return {
        "type": "struct",
        "fields": [
            {**image, "field": "before"},
            {**image, "field": "after"},
            {"type": "struct", "fields": source, "optional": False, "name": "source", "field": "source"},
            field("op", "string"),
            field("ts_ms", "int64"),
            {
                "type": "struct",
                "fields": [field("id", "string", False)],
                "optional": True,
                "name": "event.block",
                "field": "transaction",
            },
        ],
        "optional": False,
        "name": f"{topic}.Envelope",
    }


def change(rng: random.Random, *, images: bool) -> Json:
    """A change record of Debezium's shape, a tombstone, or a heartbeat."""
    topic = rng.choice(["shop.ks.orders_1", "shop.ks.orders_2", "shop.ks.other"])
    key_schema = {"type": "struct", "fields": [field("pk", "int32", False)], "optional": False, "name": f"{topic}.Key"}
    key = {"schema": key_schema, "payload": {"pk": rng.randrange(9)}}
    made: Json = {"topic": topic, "key": key, "value": None, "headers": []}
    if rng.random() < 0.3:
        listed = {"type": "array", "items": {"type": "string", "optional": False}, "optional": True}
        made["headers"].append(["hide", {"schema": listed, "payload": rng.choice([["v"], ["pk", "d"], []])}])
    dice = rng.random()
    if dice < 0.12:
        return made
    if dice < 0.2:
        beat = {"type": "struct", "fields": [field("ts_ms", "int64")], "optional": False, "name": "Heartbeat"}
        return {**made, "value": {"schema": beat, "payload": {"ts_ms": 5}}}
    schema = envelope_schema(topic)
    op = rng.choice(["c", "u", "d", "r"])

    def row() -> Json:
        texts = [None, "x", "élan"]
        return {"pk": key["payload"]["pk"], "v": rng.choice(texts), "d": rng.choice(texts)}

    payload = {
        "before": row() if op == "d" or (op == "u" and rng.random() < 0.5) else None,
        "after": None if op == "d" else row(),
        "source": {"ts_ms": 7, "table": "orders", "snapshot": rng.choice([None, "true"])},
        "op": op,
        "ts_ms": 9,
        "transaction": rng.choice([None, {"id": "t1"}]),
    }
    if not images and rng.random() < 0.3:
        payload |= {"before": None, "after": None}
    return {**made, "value": {"schema": schema, "payload": payload}}


def debezium_cases(name: str, number: int) -> Iterator[Json]:
    """Cases of Debezium's transforms."""
    rng = random.Random(f"{name} 1")
    for _ in range(number):
        options: Json = {}
        if name == "ByLogicalTableRouter":
            regex, replacement = rng.choice(
                [("(.*)orders_(.*)", "$1all"), ("(.*)", "$1"), ("(.*", "x"), ("x", ""), ("(.*)other", "9-$1é")]
            )
            options = {"topic.regex": regex, "topic.replacement": replacement}
            if rng.random() < 0.4:
                options["key.enforce.uniqueness"] = rng.choice(["true", "false"])
            if rng.random() < 0.4:
                options |= {"key.field.regex": "(.*)orders_(.*)", "key.field.replacement": rng.choice(["$2", "$2", ""])}
            if rng.random() < 0.3:
                options["key.field.name"] = rng.choice(["shard", "pk"])
            if rng.random() < 0.4:
                options["schema.name.adjustment.mode"] = rng.choice(["none", "avro", "avro_unicode"])
        else:
            if rng.random() < 0.5:
                options["delete.tombstone.handling.mode"] = rng.choice(MODES)
            else:
                if rng.random() < 0.7:
                    options["delete.handling.mode"] = rng.choice(["drop", "none", "rewrite", "nix"])
                if rng.random() < 0.5:
                    options["drop.tombstones"] = rng.choice(["true", "false"])
            if rng.random() < 0.5:
                options["add.fields"] = rng.choice(
                    ["op,table", "source.ts_ms:ts", "transaction.id,op", "op,snapshot", "nix"]
                )
            if rng.random() < 0.2:
                options["add.fields.prefix"] = "p."
            if rng.random() < 0.4:
                options["add.headers"] = rng.choice(["op", "source.ts_ms,op", "transaction.id:tx"])
            if rng.random() < 0.2:
                options["route.by.field"] = "v"
            if rng.random() < 0.3:
                options["drop.fields.header.name"] = "hide"
                if rng.random() < 0.5:
                    options["drop.fields.from.key"] = "true"
                if rng.random() < 0.5:
                    options["drop.fields.keep.schema.compatible"] = "false"
        images = name == "ByLogicalTableRouter" or rng.random() < 0.5
        yield {
            "chain": [{"type": DEBEZIUM + name, "options": options}],
            "records": [change(rng, images=images) for _ in range(6)],
        }


MODES = ["drop", "tombstone", "rewrite", "rewrite-with-tombstone"]


CONVERTERS: dict[str, tuple[Json, ...]] = {
    "org.apache.kafka.connect.storage.StringConverter": ({}, {"converter.encoding": "ISO-8859-1"}),
    **{
        f"org.apache.kafka.connect.converters.{kind}Converter": ({},)
        for kind in ("Integer", "Long", "Short", "Double", "Float", "Boolean", "ByteArray")
    },
}


def converter_cases() -> Iterator[Json]:
    """Values for the converters of keys, values and headers."""
    rng = random.Random("converters 1")
    for name, all_options in CONVERTERS.items():
        for options in all_options:
            for header in (False, True):
                values = [side(rng) for _ in range(40)]
                for type_, contents in NUMBERS.items():
                    schema = {"type": type_, "optional": True}
                    values += [{"schema": schema, "payload": content} for content in (*contents, None)]
                yield {"converter": name, "options": options, "header": header, "values": values}
