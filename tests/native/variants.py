"""Options under which both ways are compared: those of the column-wise encoder, and what only the kernel knows."""

from __future__ import annotations

from tests.formats.test_formats_columnwise import BOTH_AVRO, SCHEMAS, VARIANTS, advanced

DELTA = {"cdc.include.collections": "delta"}
METADATA = {"cdc.include.metadata": "true"}
HEADERS = advanced("full", "only-updated", "kafka-headers")
EXTRACT, DEBEZIUM = "ScyllaExtractNewRecordState", "io.debezium.transforms.ExtractNewRecordState"
REWRITE = {"delete.tombstone.handling.mode": "rewrite-with-tombstone"}
EVERYTHING = (
    "op,ts_ms,ts_us,ts_ns,version,connector,name,source.ts_ms:s1,source.ts_us:s2,source.ts_ns:s3,snapshot,db,sequence,"
    "keyspace_name,table_name,stream_id,time,batch_seq_no,operation,ttl,transaction.id,source.op:o"
)
OF_A_TOPIC = {
    "predicates": "there",
    "predicates.there.type": "TopicNameMatches",
    "predicates.there.pattern": r"[^.]+\.[^.]+\..*",
}
#: Those of which the kernel makes nothing.
PLAIN = frozenset(
    (
        *("routed, and their tombstones elsewhere", "unwrapped images without nulls"),
        *("unwrapped, but for some", "keys in headers as JSON, Avro"),
    )
)
#: Those of which it makes less: some tables or all deletes are the plain way's.
FEWER = frozenset(
    (
        *("keys in headers, strict, with metadata", "unwrapped, Avro, rewriting deletes"),
        *("rows, Avro, deltas", "rows of images, Avro"),
    )
)

#: What images do not tell, and a configuration may want all the same, by naming the format for its transform alone.
OMITS_AS_IF_LEGACY = {"untouched.fields": "omit", "cdc.output.format": "legacy"}


def unwrapped(kind: str, **options: str) -> dict[str, str]:
    of_step = {f"transforms.flat.{name}": value for name, value in ({"type": kind} | options).items()}
    return {"transforms": "flat"} | of_step


ALL: dict[str, dict[str, str]] = VARIANTS | {
    "deltas": DELTA,
    "deltas, with schemas": DELTA | SCHEMAS,
    "deltas, Avro, with metadata": DELTA | METADATA | BOTH_AVRO,
    "deltas, strict": DELTA | {"scylla.compatibility": "strict"},
    "as landing wants it": DELTA | METADATA | {"cdc.range.deletes": "topic", "experimental.preimages.enabled": "true"},
    "images with metadata": advanced("full", "full", "payload-key") | METADATA,
    "Avro images with metadata": advanced("only-updated", "only-updated", "payload-after") | METADATA | BOTH_AVRO,
    "without inserts": {"skipped.operations": "c"},
    "keys in headers": HEADERS,
    "keys in headers, strict, with metadata": HEADERS | METADATA | {"scylla.compatibility": "strict"},
    "keys in headers, Avro": HEADERS | BOTH_AVRO,
    "unwrapped safely": unwrapped("extract-new-state"),
    "unwrapped safely, with deltas and images": unwrapped("extract-new-state", **{"add.fields": EVERYTHING})
    | {"cdc.include.collections": "delta", "experimental.preimages.enabled": "true", "cdc.include.metadata": "true"},
    "unwrapped as Java does": unwrapped(EXTRACT),
    "unwrapped, rewriting deletes, with schemas": unwrapped(EXTRACT, **REWRITE, **{"add.fields": "op,source.ts_ms"})
    | DELTA
    | SCHEMAS,
    "unwrapped, rewriting deletes": unwrapped("extract-new-state", **REWRITE)
    | {"experimental.preimages.enabled": "true"},
    "unwrapped, Avro": unwrapped(EXTRACT, **{"add.fields": EVERYTHING, "delete.tombstone.handling.mode": "tombstone"})
    | DELTA
    | METADATA
    | BOTH_AVRO,
    "unwrapped, Avro, rewriting deletes": unwrapped(EXTRACT, **REWRITE) | BOTH_AVRO,
    "unwrapped images, routed": {"transforms": "route,flat", "transforms.route.type": "RegexRouter"}
    | {"transforms.route.regex": "(.*)", "transforms.route.replacement": "x.$1"}
    | {f"transforms.flat.{name}": value for name, value in ({"type": DEBEZIUM} | REWRITE).items()}
    | advanced("full", "only-updated", "payload-before,payload-after"),
    "unwrapped images, with keys in headers": unwrapped("extract-new-state") | HEADERS,
    "without cells": unwrapped("ScyllaFlattenColumns") | DELTA | {"experimental.preimages.enabled": "true"},
    "without cells, Avro": unwrapped("ScyllaFlattenColumns") | DELTA | BOTH_AVRO,
    "unwrapped, with headers": unwrapped(EXTRACT, **{"add.headers": "op"}),
    "unwrapped, with all headers": unwrapped(
        EXTRACT, **REWRITE, **{"add.headers": EVERYTHING, "add.headers.prefix": "h"}
    )
    | DELTA
    | METADATA,
    "unwrapped images, with headers": unwrapped(
        "extract-new-state", **{"add.headers": "ts_ms,ts_us,ttl,sequence,snapshot"}
    )
    | HEADERS
    | METADATA
    | BOTH_AVRO,
    "unwrapped, with headers, deletes as null": unwrapped(
        EXTRACT, **{"add.headers": "op,source.ts_ms", "delete.handling.mode": "none", "drop.tombstones": "false"}
    ),
    "unwrapped images without nulls": unwrapped(EXTRACT, **REWRITE, **OMITS_AS_IF_LEGACY)
    | advanced("full", "full", "payload-before,payload-after"),
    "unwrapped, by their topic": unwrapped("extract-new-state", predicate="there", **{"add.headers": "op"})
    | OF_A_TOPIC
    | {"transforms": "flat,more", "transforms.more.type": "InsertHeader", "transforms.more.header": "h"}
    | {"transforms.more.value.literal": "1", "transforms.more.predicate": "there", "transforms.more.negate": "true"},
    "routed, and left alone by their topic": unwrapped("extract-new-state", predicate="there")
    | OF_A_TOPIC
    | {"transforms": "route,flat", "transforms.route.type": "RegexRouter"}
    | {"transforms.route.regex": "(.*)", "transforms.route.replacement": "elsewhere"},
    "unwrapped, but for some": unwrapped("extract-new-state", predicate="gone")
    | {"predicates": "gone", "predicates.gone.type": "RecordIsTombstone", "transforms.flat.negate": "true"},
}
