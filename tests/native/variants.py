"""Options under which both ways are compared: those of the column-wise encoder, and what only the kernel knows."""

from __future__ import annotations

from tests.formats.test_formats_columnwise import BOTH_AVRO, SCHEMAS, VARIANTS, advanced

DELTA = {"cdc.include.collections": "delta"}
METADATA = {"cdc.include.metadata": "true"}
ALL: dict[str, dict[str, str]] = VARIANTS | {
    "deltas": DELTA,
    "deltas, with schemas": DELTA | SCHEMAS,
    "deltas, Avro, with metadata": DELTA | METADATA | BOTH_AVRO,
    "deltas, strict": DELTA | {"scylla.compatibility": "strict"},
    "as landing wants it": DELTA | METADATA | {"cdc.range.deletes": "topic", "experimental.preimages.enabled": "true"},
    "images with metadata": advanced("full", "full", "payload-key") | METADATA,
    "Avro images with metadata": advanced("only-updated", "only-updated", "payload-after") | METADATA | BOTH_AVRO,
    "without inserts": {"skipped.operations": "c"},
}
