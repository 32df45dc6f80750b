"""Java client properties become librdkafka's: one map for each kind of client.

In: the layers of properties that Kafka Connect stacks for a client (the worker file's top level, its ``producer.``,
the connector file's ``producer.override.``), as text. Out: ``KafkaProperties``, problems, and notices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.config.kafka import security
from connector.config.kafka.table import (
    ADMIN,
    ALL,
    CLIENT_PROPERTIES,
    CONSUMER,
    NATIVE_NAMES,
    PRODUCER,
    ClientProperty,
)
from connector.config.leniency import Unknown, is_refused
from connector.config.properties import Invalid, integer
from connector.config.secret import is_secret_name
from connector.secrets import MASK
from connector.suggestions import did_you_mean

#: librdkafka's own defaults, where one that is given must fit to one that is not.
_FIRST_RECONNECT_MS, _LONGEST_RECONNECT_MS, _POLL_INTERVAL_MS = 100, 10_000, 300_000

_CODEC_LEVELS = {"gzip": (1, 9), "lz4": (1, 12), "zstd": (1, 22)}

_SECURITY = frozenset((*security.SSL_NAMES, *security.SASL_NAMES, *security.SASL_WITHOUT_EFFECT))


@dataclass(frozen=True, slots=True, repr=False)
class KafkaProperties:
    """librdkafka's properties for each kind of client."""

    producer: Mapping[str, Any] = field(default_factory=dict)
    consumer: Mapping[str, Any] = field(default_factory=dict)
    admin: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        def masked(properties: Mapping[str, Any]) -> dict[str, Any]:
            return {name: MASK if is_secret(name) else value for name, value in properties.items()}

        return (
            f"KafkaProperties(producer={masked(self.producer)}, consumer={masked(self.consumer)}, "
            f"admin={masked(self.admin)})"
        )


@dataclass(frozen=True, slots=True)
class Setting:
    """One given property: the client's name of it, its text, and where it stands (file and whole name)."""

    name: str
    text: str
    file: str
    written_as: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to say about a setting: a problem, or (``fatal`` false) a notice, which may be a warning."""

    setting: Setting
    text: str
    suggestion: str | None = None
    fatal: bool = True
    warns: bool = False


def _idle(setting: Setting, reason: str) -> Finding:
    return Finding(setting, f"has no effect here: {reason}", None, fatal=False)


def is_secret(name: str) -> bool:
    """Whether a client property's value is masked."""
    return name in security.SECRET_NAMES or is_secret_name(name)


def is_client_property(name: str, roles: Iterable[str] = ALL) -> bool:
    """Whether some of these kinds of client know the name."""
    return name in _SECURITY or name in NATIVE_NAMES or any((role, name) in CLIENT_PROPERTIES for role in roles)


def client_names(roles: Iterable[str] = ALL) -> set[str]:
    """All names of these kinds of client, for suggestions."""
    return {name for role, name in CLIENT_PROPERTIES if role in roles} | set(_SECURITY) | NATIVE_NAMES


def translate(
    layers: Mapping[str, Iterable[Setting]],
    required: Mapping[str, str],
    exactly_once: bool = True,
    unknown: Unknown = "warn",
) -> tuple[KafkaProperties, list[Finding]]:
    """``layers``: the settings of each kind of client, later ones win.

    ``required``: texts of the worker's own properties (``bootstrap.servers``, …), which every layer may override.
    ``exactly_once``: whether records are written in transactions. ``unknown``: what a name is that no client knows.
    """
    findings: list[Finding] = []
    results = {}
    for role in ALL:
        settings = {name: Setting(name, text, "", name) for name, text in required.items()}
        for setting in layers.get(role, ()):
            if is_client_property(setting.name, (role,)):
                settings[setting.name] = setting
            elif setting.name.startswith("confluent."):
                findings.append(_idle(setting, "it is for classes of the JVM"))
            elif setting.name != setting.written_as or not is_client_property(setting.name):
                # A name at the top level may be meant for another kind of client; behind a prefix it may not.
                findings.append(_unknown(setting, role, unknown))
        results[role] = _translate_role(role, settings, findings, exactly_once)
    found = KafkaProperties(results[PRODUCER], results[CONSUMER], results[ADMIN])
    return found, _without_repeats(findings)


def _unknown(setting: Setting, role: str, unknown: Unknown) -> Finding:
    prefix = setting.written_as.removesuffix(setting.name)
    hint = did_you_mean(setting.name, client_names((role,)), 0.75, before=prefix)
    if is_refused(unknown, hint):
        return Finding(setting, f"The {role} has no such property", hint)
    text = f"unknown property, ignored, as by Java's clients: the {role} has none of that name"
    return Finding(setting, text, None, fatal=False, warns=unknown == "warn")


def _without_repeats(findings: list[Finding]) -> list[Finding]:
    unique = {(finding.setting.file, finding.setting.written_as, finding.text): finding for finding in findings}
    return list(unique.values())


def _translate_role(
    role: str, settings: Mapping[str, Setting], findings: list[Finding], exactly_once: bool
) -> dict[str, Any]:
    texts = {name: setting.text for name, setting in settings.items()}
    protocol = texts.get("security.protocol", "plaintext").strip().lower()

    def report(name: str, text: str, suggestion: str | None) -> None:
        place = settings.get(name) or settings.get("security.protocol") or Setting(name, "", "", name)
        findings.append(Finding(place if place.name == name else _sibling(place, name), text, suggestion))

    result: dict[str, Any] = {}
    for name, setting in settings.items():
        declared = CLIENT_PROPERTIES.get((role, name))
        if declared:
            result.update(_apply(declared, role, setting, findings, exactly_once))
        elif name in security.SASL_WITHOUT_EFFECT:
            findings.append(_idle(setting, "logins are refreshed by librdkafka"))
        elif name in NATIVE_NAMES and name not in _SECURITY:
            result[name] = setting.text.strip()
    result.update(security.translate_sasl(texts, protocol, report))
    result.update(security.translate_ssl(texts, protocol, report))
    _unused_security(settings, protocol, findings)
    _within_backoff(result)
    if role == PRODUCER:
        _level(texts, settings, result, findings)
        _within_transaction(settings, result, findings)
        if not exactly_once:
            _acknowledged(settings, result, findings)
    if role == CONSUMER:
        _within_poll(settings, result, findings)
    return result


def _sibling(place: Setting, name: str) -> Setting:
    """The place where a missing property would stand: beside the one that asks for it."""
    return Setting(name, "", place.file, place.written_as.removesuffix(place.name) + name)


def _apply(
    declared: ClientProperty, role: str, setting: Setting, findings: list[Finding], exactly_once: bool
) -> dict[str, Any]:
    free = declared.freed and not exactly_once
    objection = declared.demand(setting.text) if declared.demand and not free else None
    if objection:
        hint = "leave it out, or set exactly.once.support=disabled" if declared.freed else "leave it out"
        findings.append(Finding(setting, f"Contradicts a guarantee of this service: {objection}", hint))
        return {}
    try:
        parsed = declared.kind.parse(setting.text)
    except Invalid as invalid:
        findings.append(Finding(setting, invalid.problem, invalid.suggestion))
        return {}
    target = declared.target(role)
    if target is None:
        if declared.reason and setting.file:
            findings.append(_idle(setting, declared.reason))
        return {}
    if declared.convert:
        return {target: declared.convert(setting.text)}
    if declared.low is None or declared.high is None:
        return {target: str(parsed).lower() if isinstance(parsed, bool) else str(parsed)}
    kept = min(max(parsed, declared.low), declared.high)
    if kept != parsed and parsed >= 0:
        findings.append(
            Finding(setting, f"librdkafka takes {declared.low} to {declared.high}: {kept} is used", None, False)
        )
    return {target: str(kept)}


def _unused_security(settings: Mapping[str, Setting], protocol: str, findings: list[Finding]) -> None:
    """Certificates or a login that the protocol does not use are a mistake more often than not: said, not refused."""
    for name, setting in settings.items():
        if name in security.SSL_NAMES and not protocol.endswith("ssl"):
            findings.append(_idle(setting, f"security.protocol={protocol} has no TLS"))
        elif name in security.SASL_NAMES and not protocol.startswith("sasl"):
            findings.append(_idle(setting, f"security.protocol={protocol} has no login"))


def _level(
    texts: Mapping[str, str], settings: Mapping[str, Setting], result: dict[str, Any], findings: list[Finding]
) -> None:
    codec = texts.get("compression.type", "none").strip().lower()
    for name, (low, high) in _CODEC_LEVELS.items():
        setting = settings.get(f"compression.{name}.level")
        if setting is None:
            continue
        if name != codec:
            findings.append(_idle(setting, f"compression.type is {codec}"))
            continue
        try:
            # librdkafka's -1 is the codec's default; Java's names for it lie outside the codec's range.
            level = integer(-(2**31)).parse(setting.text)
        except Invalid:
            continue  # already reported by the table
        result["compression.level"] = str(
            level if low <= level <= min(high, 12) else -1 if level < low else min(high, 12)
        )


def _within_transaction(settings: Mapping[str, Setting], result: dict[str, Any], findings: list[Finding]) -> None:
    """librdkafka refuses a delivery time beyond the transaction's, which existing files have (Connect's is endless)."""
    limit = result.get("transaction.timeout.ms")
    delivery = result.get("delivery.timeout.ms")
    if limit is not None and delivery is not None and int(delivery) > int(limit):
        result["delivery.timeout.ms"] = limit
        setting = settings["delivery.timeout.ms"]
        findings.append(
            Finding(setting, f"a record cannot outlive its transaction: {limit} is used", None, fatal=False)
        )
    linger, delivery = result.get("linger.ms"), result.get("delivery.timeout.ms") or limit
    if linger is not None and delivery is not None and int(linger) >= int(delivery):
        name = "delivery.timeout.ms" if "delivery.timeout.ms" in result else "transaction.timeout.ms"
        findings.append(Finding(settings["linger.ms"], f"Must be less than {name} ({delivery})", None))


def _acknowledged(settings: Mapping[str, Setting], result: dict[str, Any], findings: list[Finding]) -> None:
    """What a producer outside of transactions waits for; as in Java, fewer acknowledgements make it not idempotent."""
    acks, idempotent = settings.get("acks"), settings.get("enable.idempotence")
    fewer = acks is not None and acks.text.strip() in ("0", "1")
    asked = None if idempotent is None else idempotent.text.strip().lower()
    if acks is not None and fewer:
        if asked == "true":
            findings.append(Finding(acks, "Must be all where enable.idempotence=true", "leave one of them out"))
        result["acks"] = acks.text.strip()
        cost = "records are lost when a leader is, although their positions are committed"
        findings.append(Finding(acks, f"is not all: {cost}", None, fatal=False))
    if not fewer and asked != "false":
        return
    result["enable.idempotence"] = "false"
    flight = settings.get("max.in.flight.requests.per.connection")
    if flight is None:
        # As Kafka Connect's workers do: what is sent again must not come behind what was sent after it.
        result["max.in.flight.requests.per.connection"] = "1"
    elif flight.text.strip() != "1":
        cost = "a key's records may change places when some are sent again"
        findings.append(
            Finding(flight, f"is more than 1, and the producer is not idempotent: {cost}", None, fatal=False)
        )


def _within_backoff(result: dict[str, Any]) -> None:
    """Java raises the longest pause to the first one silently; librdkafka refuses a first one that is longer."""
    first, longest = result.get("reconnect.backoff.ms"), result.get("reconnect.backoff.max.ms")
    if first is not None and int(first) > int(longest if longest is not None else _LONGEST_RECONNECT_MS):
        result["reconnect.backoff.max.ms"] = first
    elif first is None and longest is not None and int(longest) < _FIRST_RECONNECT_MS:
        result["reconnect.backoff.ms"] = longest


def _within_poll(settings: Mapping[str, Setting], result: dict[str, Any], findings: list[Finding]) -> None:
    session, poll = result.get("session.timeout.ms"), result.get("max.poll.interval.ms")
    beat = result.get("heartbeat.interval.ms")
    if session is not None and poll is not None and int(poll) < int(session):
        findings.append(
            Finding(settings["max.poll.interval.ms"], f"Must be at least session.timeout.ms ({session})", None)
        )
    if session is not None and poll is None and int(session) > _POLL_INTERVAL_MS:
        result["max.poll.interval.ms"] = session
    if session is not None and beat is not None and int(beat) >= int(session):
        findings.append(
            Finding(settings["heartbeat.interval.ms"], f"Must be less than session.timeout.ms ({session})", None)
        )
