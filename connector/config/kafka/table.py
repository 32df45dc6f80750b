"""The one table of Kafka client properties: each Java name, whose it is, and what librdkafka calls it.

In: nothing. Out: ``CLIENT_PROPERTIES``. A rule has a target (the librdkafka name), or a reason for having none, or a
demand that it must not contradict. TLS stores and SASL logins need several names: ``kafka_security``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from connector.config.properties import BOOLEAN, BROKERS, INT_MAX, STRING, Kind, integer, one_of

PRODUCER, CONSUMER, ADMIN = "producer", "consumer", "admin"
ALL = (PRODUCER, CONSUMER, ADMIN)


@dataclass(frozen=True, slots=True)
class ClientProperty:
    """``targets``: the librdkafka name for each kind of client; ``demand``: what a value contradicts, or None."""

    name: str
    roles: tuple[str, ...]
    kind: Kind = STRING
    targets: tuple[tuple[str, str], ...] = ()
    convert: Callable[[str], str] | None = None
    low: int | None = None
    high: int | None = None
    reason: str = ""
    demand: Callable[[str], str | None] | None = None
    #: The demand is made by exactly once alone.
    freed: bool = False

    def target(self, role: str) -> str | None:
        return dict(self.targets).get(role)


def _to(target: str, roles: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((role, target) for role in roles)


def _same(name: str, roles: tuple[str, ...] = ALL, kind: Kind = STRING) -> ClientProperty:
    return ClientProperty(name, roles, kind, _to(name, roles))


def _number(
    name: str, low: int, high: int, roles: tuple[str, ...] = ALL, target: str | None = None, least: int = 0
) -> ClientProperty:
    """A whole number that librdkafka takes within ``low`` and ``high``: what lies outside is moved to the border."""
    return ClientProperty(name, roles, integer(least, 2**63 - 1), _to(target or name, roles), low=low, high=high)


def _none(reason: str, *names: str, roles: tuple[str, ...] = ALL) -> list[ClientProperty]:
    return [ClientProperty(name, roles, reason=reason) for name in names]


def _demanded(
    name: str, roles: tuple[str, ...], allowed: tuple[str, ...], because: str, freed: Kind | None = None
) -> ClientProperty:
    """``freed``: what it may be where nobody asks for exactly once."""

    def demand(text: str) -> str | None:
        return None if text.strip().lower() in allowed else because

    return ClientProperty(name, roles, freed or STRING, demand=demand, freed=freed is not None)


_LOOKUPS = one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only", "default")


def _dns_lookup(text: str) -> str:
    # "default" is a value of older Java clients; librdkafka has always tried every address of a name.
    lookup = text.strip().lower()
    return "use_all_dns_ips" if lookup == "default" else lookup


def _kilobytes(text: str) -> str:
    return str(max(1, int(text) // 1024))


def _identification(text: str) -> str:
    return text.strip().lower() or "none"


def _partitioner(text: str) -> str | None:
    if text.strip().rsplit(".", 1)[-1] in ("", "DefaultPartitioner", "BuiltInPartitioner", "murmur2_random", "murmur2"):
        return None
    return "records of one key must stay in the partition that Java's default partitioner gives them"


_METRICS = "metrics are Prometheus'"
_OWN = "set by this service"

_TABLE: list[ClientProperty] = [
    # every client
    _same("bootstrap.servers", kind=BROKERS),
    ClientProperty("client.dns.lookup", ALL, _LOOKUPS, _to("client.dns.lookup", ALL), _dns_lookup),
    _same("client.rack"),
    _number("metadata.max.age.ms", 1, 86_400_000),
    _number("send.buffer.bytes", 0, 100_000_000, target="socket.send.buffer.bytes", least=-1),
    _number("receive.buffer.bytes", 0, 100_000_000, target="socket.receive.buffer.bytes", least=-1),
    _number("reconnect.backoff.ms", 0, 3_600_000),
    _number("reconnect.backoff.max.ms", 0, 3_600_000),
    _number("retry.backoff.ms", 1, 300_000),
    _number("retry.backoff.max.ms", 1, 300_000),
    _number("connections.max.idle.ms", 0, INT_MAX, least=-1),
    _number("socket.connection.setup.timeout.ms", 1000, INT_MAX),
    ClientProperty(
        "request.timeout.ms",
        ALL,
        integer(1),
        ((PRODUCER, "request.timeout.ms"), (CONSUMER, "socket.timeout.ms"), (ADMIN, "socket.timeout.ms")),
        low=10,
        high=300_000,
    ),
    _same("metadata.recovery.strategy", kind=one_of("none", "rebootstrap")),
    _number("metadata.recovery.rebootstrap.trigger.ms", 0, INT_MAX),
    _same("enable.metrics.push", kind=BOOLEAN),
    ClientProperty(
        "security.protocol",
        ALL,
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        _to("security.protocol", ALL),
        lambda text: text.strip().lower(),
    ),
    ClientProperty(
        "ssl.endpoint.identification.algorithm",
        ALL,
        one_of("https", "none", ""),
        _to("ssl.endpoint.identification.algorithm", ALL),
        _identification,
    ),
    *_none("OpenSSL negotiates the TLS version", "ssl.protocol", "ssl.enabled.protocols", "ssl.provider"),
    *_none(
        "TLS is OpenSSL's",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.secure.random.implementation",
        "security.providers",
    ),
    *_none("a setup is tried for `socket.connection.setup.timeout.ms`", "socket.connection.setup.timeout.max.ms"),
    *_none(
        _METRICS,
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "auto.include.jmx.reporter",
    ),
    *_none("classes of the JVM cannot be loaded here", "interceptor.classes"),
    *_none("this service sets it, as claims depend on it", "client.id"),
    *_none("each call has its own time limit", "default.api.timeout.ms", "api.timeout.ms"),
    *_none("this service talks to brokers", "bootstrap.controllers", roles=(ADMIN,)),
    *_none("this service retries calls of the admin client", "retries", roles=(ADMIN, CONSUMER)),
    ClientProperty(
        "ssl.engine.factory.class",
        ALL,
        demand=lambda text: "classes of the JVM cannot be loaded here" if text.strip() else None,
        reason="TLS is OpenSSL's",
    ),
    # the producer
    _demanded("acks", (PRODUCER,), ("all", "-1"), "exactly once needs acks=all", one_of("all", "-1", "0", "1")),
    _demanded("enable.idempotence", (PRODUCER,), ("true",), "exactly once needs an idempotent producer", BOOLEAN),
    _demanded("transactional.id", (PRODUCER,), (), "the transactional id is the name that claims are made with"),
    _number("transaction.timeout.ms", 1000, INT_MAX, (PRODUCER,), least=1000),
    ClientProperty(
        "buffer.memory", (PRODUCER,), integer(0, 2**62), _to("queue.buffering.max.kbytes", (PRODUCER,)), _kilobytes
    ),
    ClientProperty(
        "max.block.ms",
        (PRODUCER,),
        integer(0, 2**63 - 1),
        reason="a full buffer slows reading until Kafka takes more, for as long as the transaction may last",
    ),
    _number("batch.size", 1, INT_MAX, (PRODUCER,)),
    _number("linger.ms", 0, 900_000, (PRODUCER,)),
    ClientProperty(
        "compression.type",
        (PRODUCER,),
        one_of("none", "gzip", "snappy", "lz4", "zstd"),
        _to("compression.type", (PRODUCER,)),
    ),
    *(
        ClientProperty(f"compression.{codec}.level", (PRODUCER,), integer(-(2**31), INT_MAX))
        for codec in ("gzip", "lz4", "zstd")
    ),
    ClientProperty(
        "retries",
        (PRODUCER,),
        integer(0),
        _to("retries", (PRODUCER,)),
        demand=lambda text: "an idempotent producer must be allowed to retry" if text.strip() == "0" else None,
    ),
    _number("delivery.timeout.ms", 1, INT_MAX, (PRODUCER,)),
    ClientProperty(
        "max.in.flight.requests.per.connection",
        (PRODUCER,),
        integer(1),
        _to("max.in.flight.requests.per.connection", (PRODUCER,)),
        demand=lambda text: (
            "an idempotent producer keeps the order of at most 5 requests"
            if re.fullmatch("0*([6-9]|[1-9][0-9]+)", text.strip())
            else None
        ),
    ),
    _number("max.request.size", 1000, 1_000_000_000, (PRODUCER,), target="message.max.bytes"),
    ClientProperty("partitioner.class", (PRODUCER,), reason="it is always Java's default", demand=_partitioner),
    ClientProperty("partitioner", (PRODUCER,), reason="it is always Java's default", demand=_partitioner),
    _demanded("partitioner.ignore.keys", (PRODUCER,), ("false",), "records of one key must stay in one partition"),
    *_none(
        "records have keys, which decide the partition",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        roles=(PRODUCER,),
    ),
    _demanded("transaction.two.phase.commit.enable", (PRODUCER,), ("false",), "transactions have one phase"),
    *_none("keys and values are bytes already", "key.serializer", "value.serializer", roles=(PRODUCER,)),
    *_none("topics in use stay cached", "metadata.max.idle.ms", roles=(PRODUCER,)),
    # the consumer
    _number("session.timeout.ms", 1, 3_600_000, (CONSUMER,), least=1),
    _number("heartbeat.interval.ms", 1, 3_600_000, (CONSUMER,), least=1),
    _number("max.poll.interval.ms", 1, 86_400_000, (CONSUMER,), least=1),
    _number("fetch.min.bytes", 1, 100_000_000, (CONSUMER,)),
    # librdkafka wants room for one largest message.
    _number("fetch.max.bytes", 1_000_000, 2_147_483_135, (CONSUMER,)),
    _number("fetch.max.wait.ms", 0, 300_000, (CONSUMER,), target="fetch.wait.max.ms"),
    _number("max.partition.fetch.bytes", 1, 1_000_000_000, (CONSUMER,)),
    _same("check.crcs", (CONSUMER,), BOOLEAN),
    _demanded(
        "isolation.level", (CONSUMER,), ("read_committed",), "positions are read read_committed, or they would be wrong"
    ),
    _demanded(
        "enable.auto.commit", (CONSUMER,), ("false",), "positions are committed with the records, never by themselves"
    ),
    _demanded(
        "group.protocol",
        (CONSUMER,),
        ("classic",),
        "with the new protocol a worker that comes back waits until its predecessor has timed out",
    ),
    *_none(
        _OWN,
        "group.id",
        "group.instance.id",
        "auto.offset.reset",
        "partition.assignment.strategy",
        "group.remote.assignor",
        "auto.commit.interval.ms",
        "allow.auto.create.topics",
        "exclude.internal.topics",
        "max.poll.records",
        "enable.partition.eof",
        "enable.auto.offset.store",
        "share.acknowledgement.mode",
        roles=(CONSUMER,),
    ),
    *_none("keys and values are bytes already", "key.deserializer", "value.deserializer", roles=(CONSUMER,)),
]

#: (role, Java name) → rule.
CLIENT_PROPERTIES: dict[tuple[str, str], ClientProperty] = {
    (role, declared.name): declared for declared in _TABLE for role in declared.roles
}

_NATIVE = """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms batch.num.messages
    broker.address.family broker.address.ttl broker.version.fallback compression.codec compression.level
    coordinator.query.interval.ms debug enable.random.seed enable.sasl.oauthbearer.unsecure.jwt
    enable.ssl.certificate.verification fetch.error.backoff.ms fetch.message.max.bytes fetch.queue.backoff.ms
    fetch.wait.max.ms https.ca.location https.ca.pem log.connection.close log.thread.name log_level
    message.copy.max.bytes message.max.bytes queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
    receive.message.max.bytes sasl.kerberos.keytab sasl.kerberos.principal sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method sasl.oauthbearer.scope sasl.password
    sasl.username socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms ssl.ca.location ssl.ca.pem ssl.certificate.location
    ssl.certificate.pem ssl.crl.location ssl.curves.list ssl.key.location ssl.key.pem ssl.providers
    ssl.sigalgs.list statistics.interval.ms sticky.partitioning.linger.ms topic.blacklist
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse
"""

#: librdkafka's own names that a file may use directly, beside those that are spelt as in Java.
NATIVE_NAMES: frozenset[str] = frozenset(_NATIVE.split())

__all__ = ["ADMIN", "ALL", "CLIENT_PROPERTIES", "CONSUMER", "NATIVE_NAMES", "PRODUCER", "ClientProperty"]
