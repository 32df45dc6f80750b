"""Output options from Java property names, through the real configuration loader."""

from __future__ import annotations

from connector.config import OutputConfig, load

JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
BASE = {
    "name": "cases",
    "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
    "topic.prefix": "cases",
    "scylla.cluster.ip.addresses": "127.0.0.1:9042",
    "scylla.table.names": "ks.t",
}
WORKER = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "cases", "offset.storage.topic": "offsets"}


def output_options(**properties: str) -> OutputConfig:
    """``output_options(**{"cdc.output.format": "advanced"})``: JSON without schemas unless converters are given."""
    return load(BASE | JSON | properties, WORKER | JSON, {}).connector.output
