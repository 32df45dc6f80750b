"""How fast log rows become records: rows as the driver cuts them in, bytes for Kafka out, one thread, Python's garbage
collector as in a worker (without its settings each imported module, used or not, makes the figures lower).

Prints records per CPU-second for each format and converter, made together and made one by one; rows of the advanced
format come with their pre-images and post-images.
"""

from __future__ import annotations

import struct
import time
import uuid

from connector.changes import (
    Batch,
    BatchAssembler,
    Column,
    LogLayout,
    Row,
    TableDescription,
    changes_of,
    layout_of,
    whole_rows,
)
from connector.config import ConverterConfig, Names, OutputConfig
from connector.formats import Encoder
from connector.values import encode, native
from connector.worker.collector import collect_rarely

COLUMNS = {
    "pk": ("bigint", "partition_key"),
    "ck": ("int", "clustering"),
    "name": ("text", "regular"),
    "note": ("text", "regular"),
    "amount": ("double", "regular"),
    "count": ("int", "regular"),
    "at": ("timestamp", "regular"),
    "total": ("bigint", "regular"),
}


class CountingIds:
    """Stands in for a Schema Registry: gives numbers."""

    def __init__(self) -> None:
        self.schemas: list[tuple[str, str]] = []

    def id_for(self, subject: str, schema_json: str) -> int:
        self.schemas.append((subject, schema_json))
        return len(self.schemas)


def output_options(converter: ConverterConfig, format_: str = "legacy", preimages: bool = False) -> OutputConfig:
    """Options as a configuration without further properties gives them."""
    return OutputConfig(
        format="advanced" if format_ == "advanced" else "legacy",
        include_before="full" if format_ == "advanced" else "none",
        include_after="full" if format_ == "advanced" else "none",
        key_placement=frozenset(("kafka-key", "payload-after", "payload-before")),
        payload_key_name="key",
        preimages=preimages,
        tombstones=True,
        skipped_operations=frozenset("t"),
        collections="none",
        metadata=False,
        range_deletes="skip",
        compatibility="default",
        heartbeat_interval_ms=0,
        schema_topic="bench.schemas",
        names=Names("bench"),
        key_converter=converter,
        value_converter=converter,
        header_converter=ConverterConfig("simple"),
        transforms=(),
    )


def table() -> LogLayout:
    """A table of eight columns and the layout of its log's pages."""
    columns = tuple(
        Column(name, native(type_), kind, 0 if kind != "regular" else -1)  # type: ignore[arg-type]
        for name, (type_, kind) in COLUMNS.items()
    )
    description = TableDescription("shop", "orders", str(uuid.UUID(int=1)), columns)
    log = [("cdc$stream_id", "blob"), ("cdc$time", "timeuuid"), ("cdc$batch_seq_no", "int")]
    rest = {"cdc$end_of_batch": "boolean", "cdc$operation": "tinyint", "cdc$ttl": "bigint"}
    for column in columns:
        rest[column.name] = column.type.cql()
        if not column.is_key:
            rest[f"cdc$deleted_{column.name}"] = "boolean"
    return layout_of(description, (*log, *sorted(rest.items())))


def log_rows(layout: LogLayout, count: int, images: bool = False) -> list[Row]:
    """Inserts, with their images of both kinds if so asked."""
    rows = []
    for number in range(count):
        values = {
            "cdc$stream_id": struct.pack(">qq", number % 16, 1),
            "cdc$time": uuid.uuid1(node=1, clock_seq=number % 1000).bytes,
            "cdc$batch_seq_no": struct.pack(">i", 0),
            "cdc$operation": b"\x02",
            "cdc$end_of_batch": b"\x01",
            "pk": struct.pack(">q", number),
            "ck": struct.pack(">i", number % 100),
            "name": f"customer {number}".encode(),
            "note": "a note of some length, with an accent: é".encode(),
            "amount": encode(native("double"), number / 7),
            "count": struct.pack(">i", number % 13),
            "at": struct.pack(">q", 1_700_000_000_000 + number),
            "total": struct.pack(">q", number * 1000),
        }
        if images:
            last = values.pop("cdc$end_of_batch")
            for number_in_batch, operation in enumerate((b"\x00", b"\x02")):
                values |= {"cdc$batch_seq_no": struct.pack(">i", number_in_batch), "cdc$operation": operation}
                rows.append(tuple(values.get(name) for name in layout.columns))
            values |= {"cdc$batch_seq_no": struct.pack(">i", 2), "cdc$operation": b"\x09", "cdc$end_of_batch": last}
        rows.append(tuple(values.get(name) for name in layout.columns))
    return rows


def records_per_second(encoder: Encoder, layout: LogLayout, pages: list[list[Row]], one_by_one: bool = False) -> float:
    """Records per second of CPU time, from raw rows to bytes."""
    started, records = time.process_time(), 0
    for page in pages:
        assembler = BatchAssembler()
        batches = assembler.feed(layout, page) + assembler.finish()
        for at in range(0, len(batches), 500):
            changes = [change for batch in batches[at : at + 500] for change in changes_of(batch)]
            alike = None if one_by_one else encoder.encode_alike(changes)
            made = alike if alike is not None else [encoder.encode(change) for change in changes]
            records += sum(map(len, made))
    return records / (time.process_time() - started)


def snapshot_rows_per_second(encoder: Encoder, layout: LogLayout, rows: list[Row]) -> float:
    """Rows of a table, as a SELECT gives them, to the bytes of their `r` records, per second of CPU time."""
    shape = whole_rows(layout.description)
    at = [layout.columns.index(column.name) for column in shape.columns]
    selected = [tuple(row[place] for place in at) for row in rows]
    when = uuid.uuid1(node=1).bytes
    started, records = time.process_time(), 0
    for first in range(0, len(selected), 500):
        partitions = selected[first : first + 500]
        batches = [Batch(shape.layout, b"s" * 16, when, list(shape.of_partition([row]))) for row in partitions]
        changes = [change for batch in batches for change in changes_of(batch)]
        alike = encoder.encode_alike(changes)
        assert alike is not None
        records += sum(map(len, alike))
    return records / (time.process_time() - started)


def _pages(rows: list[Row]) -> list[list[Row]]:
    return [rows[at : at + 6000] for at in range(0, len(rows), 6000)]


def measure(rows: int = 50_000, repeats: int = 3) -> dict[str, int]:
    """The best of a few runs for each variant."""
    layout = table()
    plain, imaged = (_pages(log_rows(layout, rows, images)) for images in (False, True))
    variants = {
        "legacy, JSON": output_options(ConverterConfig("json", schemas_enable=False)),
        "legacy, JSON, pre-images": output_options(ConverterConfig("json", schemas_enable=False), preimages=True),
        "legacy, JSON with schemas": output_options(ConverterConfig("json")),
        "legacy, Avro": output_options(ConverterConfig("avro")),
        "advanced, JSON": output_options(ConverterConfig("json", schemas_enable=False), "advanced"),
        "advanced, Avro": output_options(ConverterConfig("avro"), "advanced"),
    }
    result = {}
    for name, options in variants.items():
        ids = CountingIds()
        encoder = Encoder(options, ids, ids)
        pages = imaged if options.format == "advanced" or options.preimages else plain
        # In turns, so that other work of the machine weighs on both alike.
        rates = [
            [records_per_second(encoder, layout, pages, one_by_one) for one_by_one in (False, True)]
            for _ in range(repeats)
        ]
        together, alone = (int(max(column)) for column in zip(*rates))
        if options.format == "legacy" and not options.preimages:
            rows_of_table = [row for page in plain for row in page]
            best = max(snapshot_rows_per_second(encoder, layout, rows_of_table) for _ in range(repeats))
            result[f"{name}, rows of a snapshot"] = int(best)
        result |= {name: together, f"{name}, each record by itself": alone}
    return result


def main() -> dict[str, str]:
    collect_rarely()
    return {name: f"{rate:,} records per CPU-second" for name, rate in measure().items()}


if __name__ == "__main__":
    for figure, rate in main().items():
        print(f"{figure}: {rate}")
