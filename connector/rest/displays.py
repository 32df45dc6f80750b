"""How Kafka Connect and the Java connector show their properties to tools that draw forms.

Out: `DISPLAYED`: groups, order, names and widths by the names of properties, in the order in which Connect lists them;
properties of ours alone have none. `DEFAULTS` of those that have no effect here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Importance = Literal["HIGH", "MEDIUM", "LOW"]
Width = Literal["NONE", "SHORT", "MEDIUM", "LONG"]


@dataclass(frozen=True, slots=True)
class Display:
    group: str
    order: int
    name: str
    importance: Importance
    width: Width


_GROUPS: dict[str, dict[str, tuple[int, str, Importance, Width]]] = {
    "Common": {
        "name": (1, "Connector name", "HIGH", "MEDIUM"),
        "connector.class": (2, "Connector class", "HIGH", "LONG"),
        "connector.plugin.version": (3, "Connector version", "MEDIUM", "MEDIUM"),
        "tasks.max": (4, "Tasks max", "HIGH", "SHORT"),
        "tasks.max.enforce": (5, "Enforce tasks max", "LOW", "SHORT"),
        "key.converter": (6, "Key converter class", "LOW", "SHORT"),
        "key.converter.plugin.version": (7, "Key converter version", "LOW", "SHORT"),
        "value.converter": (8, "Value converter class", "LOW", "SHORT"),
        "value.converter.plugin.version": (9, "Value converter version", "LOW", "SHORT"),
        "header.converter": (10, "Header converter class", "LOW", "SHORT"),
        "header.converter.plugin.version": (11, "Header converter version", "LOW", "SHORT"),
        "config.action.reload": (14, "Reload Action", "LOW", "MEDIUM"),
    },
    "Transforms": {
        "transforms": (12, "Transforms", "LOW", "LONG"),
    },
    "Predicates": {
        "predicates": (13, "Predicates", "LOW", "LONG"),
    },
    "Error Handling": {
        "errors.retry.timeout": (1, "Retry Timeout for Errors", "MEDIUM", "MEDIUM"),
        "errors.retry.delay.max.ms": (2, "Maximum Delay Between Retries for Errors", "MEDIUM", "MEDIUM"),
        "errors.tolerance": (3, "Error Tolerance", "MEDIUM", "SHORT"),
        "errors.log.enable": (4, "Log Errors", "MEDIUM", "SHORT"),
        "errors.log.include.messages": (5, "Log Error Details", "MEDIUM", "SHORT"),
    },
    "Topic Creation": {
        "topic.creation.groups": (1, "Topic Creation Groups", "LOW", "LONG"),
    },
    "Exactly Once Support": {
        "exactly.once.support": (2, "Exactly once support", "MEDIUM", "SHORT"),
        "transaction.boundary": (3, "Transaction Boundary", "MEDIUM", "SHORT"),
        "transaction.boundary.interval.ms": (4, "Transaction boundary interval", "LOW", "SHORT"),
    },
    "offsets.topic": {
        "offsets.storage.topic": (1, "Offsets topic", "LOW", "LONG"),
    },
    "Scylla": {
        "scylla.cluster.ip.addresses": (1, "Hosts", "HIGH", "LONG"),
        "scylla.user": (2, "User", "HIGH", "SHORT"),
        "scylla.password": (3, "Password", "HIGH", "SHORT"),
        "topic.prefix": (4, "Topic prefix", "HIGH", "MEDIUM"),
        "scylla.consistency.level": (5, "Consistency Level", "MEDIUM", "SHORT"),
        "scylla.query.options.fetch.size": (6, "Queries fetch size", "LOW", "SHORT"),
        "scylla.local.dc": (7, "Local DC Name", "LOW", "MEDIUM"),
        "scylla.ssl.enabled": (8, "SSL", "HIGH", "NONE"),
        "scylla.ssl.provider": (9, "SSL Provider", "LOW", "NONE"),
        "scylla.ssl.truststore.path": (10, "SSL Truststore Path", "MEDIUM", "NONE"),
        "scylla.ssl.truststore.password": (11, "SSL Truststore Password", "MEDIUM", "NONE"),
        "scylla.ssl.keystore.path": (12, "SSL Keystore Path", "MEDIUM", "NONE"),
        "scylla.ssl.keystore.password": (13, "SSL Keystore Password", "MEDIUM", "NONE"),
        "scylla.ssl.cipherSuites": (14, "The cipher suites to enable", "HIGH", "NONE"),
        "scylla.ssl.openssl.keyCertChain": (15, "The path to the certificate chain file", "HIGH", "NONE"),
        "scylla.ssl.openssl.privateKey": (16, "The path to the private key file", "HIGH", "NONE"),
    },
    "Connector": {
        "event.processing.failure.handling.mode": (1, "Event deserialization failure handling", "MEDIUM", "SHORT"),
        "max.batch.size": (2, "Change event batch size", "MEDIUM", "SHORT"),
        "max.queue.size": (3, "Change event buffer size", "MEDIUM", "SHORT"),
        "poll.interval.ms": (4, "Poll interval (ms)", "MEDIUM", "SHORT"),
        "max.queue.size.in.bytes": (5, "Change event buffer size in bytes", "MEDIUM", "LONG"),
        "skipped.operations": (6, "Skipped Operations", "LOW", "SHORT"),
        "streaming.delay.ms": (7, "Streaming Delay (milliseconds)", "LOW", "MEDIUM"),
        "snapshot.mode.custom.name": (8, "Snapshot Mode Custom Name", "MEDIUM", "MEDIUM"),
        "snapshot.mode.configuration.based.snapshot.data": (
            9,
            "Snapshot mode property based snapshot data",
            "MEDIUM",
            "MEDIUM",
        ),
        "snapshot.mode.configuration.based.snapshot.schema": (
            10,
            "Snapshot mode property based snapshot schema",
            "MEDIUM",
            "MEDIUM",
        ),
        "snapshot.mode.configuration.based.start.stream": (
            11,
            "Snapshot mode property based start stream",
            "MEDIUM",
            "MEDIUM",
        ),
        "snapshot.mode.configuration.based.snapshot.on.schema.error": (
            12,
            "Snapshot mode property based snapshot on schema error",
            "MEDIUM",
            "MEDIUM",
        ),
        "snapshot.mode.configuration.based.snapshot.on.data.error": (
            13,
            "Snapshot mode property based snapshot on data error",
            "MEDIUM",
            "MEDIUM",
        ),
        "retriable.restart.connector.wait.ms": (14, "Retriable restart wait (ms)", "LOW", "MEDIUM"),
        "errors.max.retries": (15, "The maximum number of retries", "LOW", "MEDIUM"),
        "incremental.snapshot.watermarking.strategy": (
            16,
            "Incremental snapshot watermarking strategy",
            "LOW",
            "MEDIUM",
        ),
        "scylla.query.time.window.size": (18, "Query Time Window Size (ms)", "LOW", "MEDIUM"),
        "scylla.confidence.window.size": (19, "Confidence Window Size (ms)", "LOW", "MEDIUM"),
        "scylla.minimal.wait.for.window.time": (20, "Minimal 'waitForWindow' time (ms)", "LOW", "MEDIUM"),
        "scylla.initial.lookback.ms": (21, "Initial lookback window (ms)", "MEDIUM", "MEDIUM"),
        "cdc.output.format": (22, "CDC Output Format", "HIGH", "MEDIUM"),
        "experimental.preimages.enabled": (
            23,
            "Enable experimental preimages support (legacy mode only)",
            "LOW",
            "MEDIUM",
        ),
        "cdc.include.before": (24, "CDC Include Before", "MEDIUM", "MEDIUM"),
        "cdc.include.after": (25, "CDC Include After", "MEDIUM", "MEDIUM"),
        "cdc.include.primary-key.placement": (26, "CDC Include PK Locations", "MEDIUM", "LONG"),
        "cdc.include.primary-key.payload-key-name": (27, "CDC Include PK Payload Key Field Name", "LOW", "MEDIUM"),
        "cdc.incomplete.task.timeout.ms": (28, "Incomplete Task Timeout (ms)", "LOW", "MEDIUM"),
        "worker.retry.backoff.base": (29, "Worker's retry base backoff (ms)", "LOW", "MEDIUM"),
        "worker.maximum.backoff": (30, "Worker's retry maximum backoff (ms)", "LOW", "MEDIUM"),
        "worker.jitter.percentage": (31, "Worker's retry jitter percentage", "LOW", "MEDIUM"),
        "worker.max.retries": (32, "Maximum worker execution attempts", "LOW", "MEDIUM"),
        "worker.shared.session.enabled": (33, "Share worker CQL sessions across tasks", "LOW", "SHORT"),
        "worker.pooling.core.pool.local": (34, "Number of connections to DB node", "LOW", "MEDIUM"),
        "worker.pooling.max.pool.local": (35, "Max number of connections to DB node", "LOW", "MEDIUM"),
        "worker.pooling.max.requests.per.connection": (36, "Max requests per DB connection", "LOW", "MEDIUM"),
        "worker.pooling.max.queue.size": (37, "Max requests queue size", "LOW", "MEDIUM"),
        "worker.pooling.pool.timeout.ms": (38, "Timeout for acquiring a DB connection", "LOW", "MEDIUM"),
    },
    "Events": {
        "converters": (1, "List of prefixes defining custom values converters.", "LOW", "MEDIUM"),
        "post.processors": (2, "List of change event post processors.", "LOW", "MEDIUM"),
        "tombstones.on.delete": (
            3,
            "Change the behaviour of Debezium with regards to delete operations",
            "MEDIUM",
            "SHORT",
        ),
        "heartbeat.topics.prefix": (4, "A prefix used for naming of heartbeat topics", "LOW", "MEDIUM"),
        "signal.data.collection": (5, "Signaling data collection", "MEDIUM", "MEDIUM"),
        "signal.poll.interval.ms": (6, "Signal processor poll interval", "MEDIUM", "SHORT"),
        "signal.enabled.channels": (7, "Enabled channels names", "MEDIUM", "LONG"),
        "topic.naming.strategy": (8, "Topic naming strategy class", "MEDIUM", "MEDIUM"),
        "notification.enabled.channels": (9, "Enabled notification channels names", "MEDIUM", "LONG"),
        "notification.sink.topic.name": (10, "Notification topic name", "HIGH", "LONG"),
        "transaction.metadata.factory": (
            11,
            "Factory class to create transaction context & transaction struct maker classes",
            "LOW",
            "MEDIUM",
        ),
        "custom.metric.tags": (12, "Customize metric tags", "LOW", "MEDIUM"),
        "scylla.table.names": (13, "Table Names", "HIGH", "LONG"),
        "heartbeat.interval.ms": (14, "Connector heartbeat interval (milli-seconds)", "MEDIUM", "MEDIUM"),
    },
}
DISPLAYED = {
    each: Display(group, order, name, importance, width)
    for group, members in _GROUPS.items()
    for each, (order, name, importance, width) in members.items()
}
#: Connect's, of properties without an effect here.
DEFAULTS = {
    "errors.log.enable": "false",
    "errors.log.include.messages": "false",
    "errors.retry.delay.max.ms": "60000",
    "errors.retry.timeout": "0",
    "tasks.max.enforce": "true",
}
