"""Declarations: how ScyllaDB is reached, and how its change log is read."""

from __future__ import annotations

from connector.config.properties.address import CONTACT_POINTS, TABLE_NAMES
from connector.config.properties.kind import BOOLEAN, LIST, LONG_MAX, PASSWORD, STRING, integer, list_of, one_of
from connector.config.properties.property import Effect, Property, Section, without_effect

#: Modes of Debezium's that stand in files of the Java connector, which looks at none: with what would be used here.
OTHER_SNAPSHOT_MODES = {
    "": None,
    "schema_only": None,
    "schema_only_recovery": None,
    "recovery": None,
    "exported": "initial",
    "configuration_based": "initial, or when_needed",
    "custom": "initial, or signals for a part of the rows",
}

CONNECTION = Section(
    "Connection to ScyllaDB",
    "Where the cluster is and how to log in.",
    (
        Property(
            "scylla.cluster.ip.addresses",
            CONTACT_POINTS,
            "Contact points. The port is optional (9042); write IPv6 addresses in brackets.",
            required="Host specification is required",
        ),
        Property(
            "scylla.table.names",
            TABLE_NAMES,
            "Base tables whose changes are streamed. Vnode and tablet tables may be mixed.",
            required="A table specification with at least one table is required",
        ),
        Property("scylla.user", STRING, "User name for password authentication; needs `scylla.password`."),
        Property("scylla.password", PASSWORD, "Password; needs `scylla.user`."),
        Property(
            "scylla.consistency.level",
            one_of("quorum", "one", "two", "three", "local_quorum", "all", "local_one"),
            "Consistency level of reads of the change log.",
            default="quorum",
        ),
        Property(
            "scylla.query.options.fetch.size",
            integer(0),
            "Rows per page; 0 means the driver's default of 5000.",
            default=0,
        ),
        Property(
            "scylla.local.dc",
            STRING,
            "Data centre whose nodes are used; all of them if unset. Set it if there are several and "
            "`scylla.consistency.level` is `local_quorum` or `local_one`: these read in the data centre of the node "
            "that is asked.",
        ),
        Property("scylla.ssl.enabled", BOOLEAN, "TLS to ScyllaDB.", default=False),
        Property(
            "scylla.ssl.truststore.path",
            STRING,
            "File with the trusted certificates: JKS, PKCS12 or PEM, detected by content. Default: the system's.",
        ),
        Property("scylla.ssl.truststore.password", PASSWORD, "Password of the trust store."),
        Property(
            "scylla.ssl.keystore.path",
            STRING,
            "File with the client's certificate and key: JKS, PKCS12 or PEM.",
        ),
        Property("scylla.ssl.keystore.password", PASSWORD, "Password of the key store."),
        Property(
            "scylla.ssl.openssl.keyCertChain",
            STRING,
            "PEM file with the client's certificate chain; needs `scylla.ssl.openssl.privateKey`.",
        ),
        Property(
            "scylla.ssl.openssl.privateKey",
            STRING,
            "PEM file with the client's private key; needs `scylla.ssl.openssl.keyCertChain`.",
        ),
        Property("scylla.ssl.cipherSuites", LIST, "Cipher suites, by their Java or OpenSSL names.", default=()),
        Property(
            "scylla.ssl.hostname.verification",
            BOOLEAN,
            "Whether a node's certificate must name the address it is reached at. The Java connector never checks.",
            default=False,
            ours=True,
        ),
        Property(
            "scylla.ssl.provider",
            one_of("jdk", "openssl", "openssl_refcnt"),
            "TLS library of the Java driver.",
            default="jdk",
            effect=Effect.NONE,
            reason="TLS is always Python's (OpenSSL)",
        ),
        Property(
            "scylla.request.timeout.ms",
            integer(1),
            "Timeout of one request to ScyllaDB, after which it is retried.",
            default=10_000,
            ours=True,
        ),
        *without_effect(
            "the driver keeps one connection to each shard and queries in flight are limited in total "
            "(see `scylla.max.queries.in.flight`)",
            (
                "worker.pooling.core.pool.local",
                "worker.pooling.max.pool.local",
                "worker.pooling.max.requests.per.connection",
                "worker.pooling.max.queue.size",
                "worker.pooling.pool.timeout.ms",
            ),
            integer(0),
        ),
        *without_effect("one session per worker process, always", ("worker.shared.session.enabled",), BOOLEAN),
    ),
)

READING = Section(
    "Reading the change log",
    "When and how fast to read, and what happens after an error.",
    (
        Property(
            "scylla.confidence.window.size",
            integer(0),
            "How many milliseconds the reader stays behind the clock. A write acknowledged later than this after its "
            "timestamp may be missed.",
            default=30_000,
        ),
        Property(
            "scylla.query.time.window.size",
            integer(1),
            "Milliseconds of log that one query may span, applied only while a stream holds more than one page.",
            default=30_000,
        ),
        Property(
            "scylla.minimal.wait.for.window.time",
            integer(0),
            "Minimum pause in milliseconds between two reads of the same streams.",
            default=0,
        ),
        Property(
            "scylla.initial.lookback.ms",
            integer(0, LONG_MAX),
            "A table without saved positions starts this many milliseconds ago; 0: at the oldest row of the log. "
            "Never applies to streams that open later.",
            default=0,
        ),
        Property(
            "scylla.max.queries.per.second",
            integer(1),
            "Queries of the log per second and worker.",
            default=500,
            ours=True,
        ),
        Property(
            "scylla.max.queries.in.flight",
            integer(1, 32_768),
            "Queries of the log waiting for their answer, per worker.",
            default=64,
            ours=True,
        ),
        Property(
            "snapshot.mode",
            one_of(
                *("no_data", "never", "initial", "initial_only", "always", "when_needed"),
                taken_as=dict.fromkeys(OTHER_SNAPSHOT_MODES, "no_data"),
            ),
            "`initial`: the rows that a table holds already are written to its topic as well, as `r` records, when the "
            "table is started (see [snapshots](snapshots.md)); `initial_only`: and `run` ends when they are; `always`: "
            "also at each start of the connector; `when_needed`: also when changes have expired unread. `no_data` "
            "and `never`: they are not, as in the Java connector, which has no snapshots and ignores the property "
            "whatever it says; with `scylla.compatibility=strict` they never are. Nothing, and Debezium's other modes "
            "(`schema_only`, `recovery`, `custom`, …), are taken as `no_data`.",
            default="no_data",
            ours=True,
        ),
        Property(
            "scylla.snapshot.max.queries.per.second",
            integer(1),
            "Queries of tables for a snapshot, per second and worker. Fewer are made while answers are slow.",
            default=50,
            ours=True,
        ),
        Property(
            "signal.enabled.channels",
            list_of("kafka", "source", "file", "jmx", "in-process"),
            "With `kafka`, snapshots are asked for, stopped, paused and resumed by Debezium's signals in "
            "`signal.kafka.topic`, which `scylla-cdc snapshot` writes. Other channels have no effect here.",
            default=frozenset(),
        ),
        Property(
            "signal.kafka.topic",
            STRING,
            "Where signals are read, by their offsets, each once. Its records have `topic.prefix` as their key.",
            default_text="`<topic.prefix>-signal`",
        ),
        Property(
            "notification.enabled.channels",
            list_of("log", "sink", "jmx"),
            "Where beginning, progress and end of snapshots are told: `log` to the log, `sink` to "
            "`notification.sink.topic.name`. `jmx` has no effect here.",
            default=frozenset(),
        ),
        Property(
            "notification.sink.topic.name",
            STRING,
            "The topic of notifications: JSON, with Debezium's fields.",
        ),
        Property(
            "scylla.query.mode",
            one_of("auto", "group", "stream"),
            "`group` reads the streams of a vnode with one IN query, `stream` each separately; `auto` chooses.",
            default="auto",
            ours=True,
        ),
        Property(
            "worker.retry.backoff.base",
            integer(1),
            "Initial backoff in milliseconds before a failed read is retried; doubles up to `worker.maximum.backoff`.",
            default=50,
        ),
        Property(
            "worker.maximum.backoff", integer(1), "Maximum backoff between retries, in milliseconds.", default=30_000
        ),
        Property(
            "worker.jitter.percentage",
            integer(1, 100),
            "Random part of a backoff, in per cent.",
            default=20,
        ),
        Property(
            "worker.max.retries",
            integer(1, also=(-1,), problem="Must be a positive integer or -1 for unlimited"),
            "Tries at start-up before the Java connector gives up.",
            default=20,
            effect=Effect.NONE,
            reason="the connector waits, visibly, for a server that cannot be reached",
        ),
        Property(
            "cdc.incomplete.task.timeout.ms",
            integer(1, LONG_MAX),
            "Age at which the Java connector drops a half-collected change.",
            default=15_000,
            effect=Effect.NONE,
            reason="a change is assembled from one whole batch of the log and never dropped",
        ),
    ),
)
