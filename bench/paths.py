"""What a record costs on each path through the options that users are told to use, natively and the plain way.

In: `python -m bench paths [--service] [--rows N] [--plain-rows N] [--only TEXT]`. Out: of each path the records per
CPU-second and the bytes of a record: key, value and headers. From a page of the log to records in memory, in one
thread; with `--service` of the workers, their whole processes, on the embedded servers: one worker natively, two of
them, one the plain way, and the floor, what it takes the Kafka client alone to send the same bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from confluent_kafka import Consumer, Message, TopicPartition

from bench._floor import floor
from bench._service import service
from bench.formats import CountingIds, log_rows, records_per_second
from bench.formats import table as table_of_eight
from bench.service import COLUMNS, flood
from connector.changes import BatchAssembler, UncutBatches, changes_of
from connector.config import Configuration, OutputConfig, load
from connector.formats import Encoder
from connector.native import BlockEncoder, Kernel
from connector.native.samples import page_of
from embedded.kafka import EmbeddedKafka
from embedded.scylla.process import EmbeddedScylla

PLAIN, IMAGES, CLUSTERED = "bench.t", "bench.images", "bench.clustered"
SAMPLE = 2_000
ROWS_OF_A_PAGE, TURNS = 5_000, 3
OF_CLUSTERED = COLUMNS.replace("id bigint PRIMARY KEY", "id bigint, part int") + ", PRIMARY KEY (id, part)"
#: The default. What else the services of benchmarks have makes windows of so many streams hold a few hundred rows each.
FULL_PAGES = {"scylla.query.time.window.size": "30000"}
DELTA = {"cdc.include.collections": "delta"}
METADATA = {"cdc.include.metadata": "true"}
PREIMAGES = {"experimental.preimages.enabled": "true"}
ADVANCED = {"cdc.output.format": "advanced", "cdc.include.before": "full", "cdc.include.after": "full"}
JSON, AVRO = "org.apache.kafka.connect.json.JsonConverter", "io.confluent.connect.avro.AvroConverter"
SCHEMAS = {
    f"{side}.converter{option}": value
    for side in ("key", "value")
    for option, value in (("", JSON), (".schemas.enable", "true"))
}


def _unwrapped(kind: str, **options: str) -> dict[str, str]:
    of_step = {f"transforms.flat.{name.replace('_', '.')}": value for name, value in options.items()}
    return {"transforms": "flat", "transforms.flat.type": kind} | of_step


#: Of which table, with which properties; `avro` stands for those of its converters.
PATHS: dict[str, tuple[str, dict[str, str]]] = {
    "legacy, JSON": (PLAIN, {}),
    "legacy, JSON with schemas": (PLAIN, SCHEMAS),
    "legacy, Avro": (PLAIN, {"avro": ""}),
    "legacy, with pre-images": (IMAGES, PREIMAGES),
    "as landing wants it: deltas, metadata, range deletes": (
        CLUSTERED,
        DELTA | METADATA | {"cdc.range.deletes": "topic"},
    ),
    "the same, Avro": (CLUSTERED, DELTA | METADATA | {"cdc.range.deletes": "topic", "avro": ""}),
    "advanced, both images": (IMAGES, ADVANCED),
    "advanced, both images, Avro": (IMAGES, ADVANCED | {"avro": ""}),
    "advanced, keys in headers too": (
        IMAGES,
        ADVANCED | {"cdc.include.primary-key.placement": "kafka-key,payload-after,kafka-headers"},
    ),
    "`extract-new-state`": (PLAIN, _unwrapped("extract-new-state")),
    "`ScyllaExtractNewRecordState`, rewritten deletes, `op` added": (
        PLAIN,
        _unwrapped(
            "ScyllaExtractNewRecordState", delete_tombstone_handling_mode="rewrite", add_fields="op,source.ts_ms"
        ),
    ),
    "`ScyllaExtractNewRecordState`, Avro": (PLAIN, _unwrapped("ScyllaExtractNewRecordState") | {"avro": ""}),
    "`ScyllaExtractNewRecordState`, `add.headers`": (
        PLAIN,
        _unwrapped("ScyllaExtractNewRecordState", add_headers="op,source.ts_ms"),
    ),
    "`ScyllaFlattenColumns`": (PLAIN, _unwrapped("ScyllaFlattenColumns")),
    "another transform: `InsertField`": (
        PLAIN,
        _unwrapped("InsertField$Value", static_field="site", static_value="a"),
    ),
}


def main() -> None:
    args = _arguments()
    if not args.service:
        print("| path | native | plain | bytes |", flush=True)
        kernel = Kernel()
        for path, (table, properties) in PATHS.items():
            if args.only in path:
                print(f"| {path} | {' | '.join(_encoded(kernel, args, table, properties))} |", flush=True)
        return
    print("| path | native | two workers | plain | floor | bytes |", flush=True)
    # The first of two workers would have read much, or all, before the second one has its slots.
    together = {"group.initial.rebalance.delay.ms": "3000"}
    with EmbeddedKafka(properties=together) as kafka, EmbeddedScylla(ring_delay=0) as scylla, _registry() as registry:
        scylla.admin.cql(
            "CREATE KEYSPACE bench WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} "
            "AND tablets = {'enabled': true, 'initial': 16}"
        )
        sizes = {"on": args.rows, "off": args.plain_rows}
        for native, rows in sizes.items():
            for table, columns, more in (
                (PLAIN, COLUMNS, ""),
                (IMAGES, COLUMNS, ", 'preimage': 'full', 'postimage': true"),
                (CLUSTERED, OF_CLUSTERED, ""),
            ):
                scylla.admin.cql(f"CREATE TABLE {table}_{native} ({columns}) WITH cdc = {{'enabled': true{more}}}")
                scylla.preload(f"{table}_{native}", rows)
        for number, (path, (table, properties)) in enumerate(PATHS.items()):
            if args.only not in path:
                continue
            rates = []
            connector = FULL_PAGES | _with_registry(properties, registry)
            for native, workers in (("on", 1), ("on", 2), ("off", 1)):
                name, source = f"bench-{number}-{native}-{workers}", f"{table}_{native}"
                with service(kafka, scylla, name, source, connector=connector, native=native, tasks=workers) as running:
                    rates.append(flood(running, source, sizes[native])["records per CPU-second of the worker"])
            messages = _sample(kafka, f"bench-{number}-on-1.{table}_on")
            configuration = _configuration(connector, kafka.bootstrap_servers)
            rates.append(f"{floor(configuration, messages, f'floor-{number}', args.rows):,.0f}")
            print(f"| {path} | {' | '.join(rates)} | {_size(messages)} |", flush=True)


def _encoded(kernel: Kernel, args: argparse.Namespace, table: str, properties: dict[str, str]) -> list[str]:
    """Records per CPU-second natively and the plain way, and bytes of a record; the best of a few turns."""
    layout = table_of_eight()
    images = table == IMAGES
    pages = [log_rows(layout, ROWS_OF_A_PAGE, images) for _ in range(max(1, args.plain_rows // ROWS_OF_A_PAGE))]
    ids = CountingIds()
    encoder = Encoder(_options(_with_registry(properties, "http://127.0.0.1:1")), ids, ids)
    blocks, bodies = BlockEncoder(kernel, encoder), [page_of(page) for page in pages]
    native, plain = 0.0, 0.0
    made, size = 0, 0
    for _ in range(TURNS):
        began, made, size = time.process_time(), 0, 0
        for _ in range(max(1, args.rows // args.plain_rows)):
            for page, body in zip(pages, bodies, strict=True):
                uncut = kernel.scan(body, 0, layout.columns, len(page), list)
                assert uncut is not None
                batches = UncutBatches(layout, uncut)
                while batches:
                    block = blocks.encode(batches, 1 << 30, 1 << 30)
                    if block is None:
                        break
                    made, size = made + len(block), size + block.size - 70 * len(block)
                    batches = batches[len(block.ends) :]
        native = max(native, made / (time.process_time() - began))
        plain = max(plain, records_per_second(encoder, layout, pages))
    first = encoder.encode(changes_of((BatchAssembler().feed(layout, pages[0]))[0])[0])[0]
    alone = len(first.key or b"") + len(first.value or b"")
    return [f"{native:,.0f}" if made else "-", f"{plain:,.0f}", str(round(size / made) if made else alone)]


def _options(properties: dict[str, str]) -> OutputConfig:
    """As a configuration gives them."""
    return _configuration(properties, "127.0.0.1:9092").connector.output


def _configuration(properties: dict[str, str], brokers: str) -> Configuration:
    connector = {
        "name": "bench",
        "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
        "topic.prefix": "bench",
        "scylla.cluster.ip.addresses": "127.0.0.1:9042",
        "scylla.table.names": "shop.orders",
    }
    converters = {
        f"{side}.converter{option}": value
        for side in ("key", "value")
        for option, value in (("", JSON), (".schemas.enable", "false"))
    }
    worker = {"bootstrap.servers": brokers, "group.id": "bench", "offset.storage.topic": "offsets"}
    return load(connector | converters | properties, worker | converters, {})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench paths", description=__doc__)
    parser.add_argument("--service", action="store_true", help="the whole service, on the embedded servers")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--plain-rows", type=int, default=60_000, help="that many are enough for what is slow")
    parser.add_argument("--only", default="", help="paths that have this in their name")
    return parser.parse_args()


def _with_registry(properties: dict[str, str], registry: str) -> dict[str, str]:
    if "avro" not in properties:
        return properties
    rest = {name: value for name, value in properties.items() if name != "avro"}
    converters = {f"{side}.converter": AVRO for side in ("key", "value")}
    return rest | converters | {f"{side}.converter.schema.registry.url": registry for side in ("key", "value")}


def _sample(kafka: EmbeddedKafka, topic: str) -> list[Message]:
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "sizes", "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
        return [message for message in consumer.consume(SAMPLE, timeout=30) if message.error() is None]
    finally:
        consumer.close()


def _size(messages: list[Message]) -> int:
    """Bytes of a record, on average."""
    sizes = [
        len(message.key() or b"")
        + len(message.value() or b"")
        + sum(len(name) + len(text or b"") for name, text in message.headers() or [])
        for message in messages
    ]
    return round(sum(sizes) / len(sizes)) if sizes else 0


@contextlib.contextmanager
def _registry() -> Iterator[str]:
    """A Schema Registry that takes every schema."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            schema = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._answer({"id": zlib.crc32(schema) & 0x7FFFFFFF})

        def do_GET(self) -> None:
            self._answer({"compatibilityLevel": "NONE"})

        def _answer(self, document: dict[str, object]) -> None:
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
