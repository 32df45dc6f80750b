"""Which properties reach which Kafka client, in the order in which Kafka Connect stacks them.

In: both documents and the worker's parsed values. Out: ``KafkaProperties``; findings name the place they are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.kafka.override_policy import known_policy, refused_override
from connector.config.kafka.table import ALL, CONSUMER, PRODUCER
from connector.config.kafka.translation import KafkaProperties, Setting, is_client_property, is_secret, translate
from connector.config.leniency import Unknown
from connector.config.properties import WORKER_BY_NAME

_POLICY = "connector.client.config.override.policy"

#: The worker's own properties that clients get, with the clients they mean something to.
_OWN = {
    "bootstrap.servers": ALL,
    "transaction.timeout.ms": (PRODUCER,),
    "session.timeout.ms": (CONSUMER,),
    "heartbeat.interval.ms": (CONSUMER,),
    "group.protocol": (CONSUMER,),
}


def kafka_properties(
    connector: Document,
    worker: Document,
    values: Mapping[str, Any],
    findings: Findings,
    exactly_once: bool,
    unknown: Unknown = "warn",
) -> KafkaProperties:
    """librdkafka's properties of all clients; problems go to ``findings``."""
    layers: dict[str, list[Setting]] = {role: [] for role in ALL}
    owners: dict[str, Document] = {}
    for name, text in worker.texts.items():
        owners[name] = worker
        if name in worker.broken or name.partition(".")[0] in ALL:
            continue
        if name in _OWN or (name not in WORKER_BY_NAME and is_client_property(name)):
            for role in _OWN.get(name, ALL):
                if is_client_property(name, (role,)):
                    layers[role].append(Setting(name, text, "worker", name))
    for name, text in worker.texts.items():
        prefix, _, rest = name.partition(".")
        if prefix in ALL and name not in worker.broken:
            layers[prefix].append(Setting(rest, text, "worker", name))
    policy = str(values[_POLICY])
    if known_policy(policy) is None:
        text = (
            f"{policy} is a class of Java's that is not known here (All, None, Principal are): nothing is refused by it"
        )
        findings.notice(worker, _POLICY, text, warn=True)
    for name, text in connector.texts.items():
        prefix, _, rest = name.partition(".override.")
        if rest and prefix in ALL and name not in connector.broken:
            owners[name] = connector
            if (why := refused_override(policy, rest)) is not None:
                findings.problem(connector, name, why, secret=is_secret(rest), known=is_client_property(rest))
                continue
            layers[prefix].append(Setting(rest, text, "connector", name))
    required = {name: str(values[name]) for name in _OWN if name not in worker.texts and values.get(name) is not None}
    if "heartbeat.interval.ms" in required:
        # A shorter session was asked for: its heartbeats follow, as nobody would want to be told of a default.
        required["heartbeat.interval.ms"] = str(min(values["heartbeat.interval.ms"], values["session.timeout.ms"] // 3))
    found, said = translate(layers, required, exactly_once, unknown)
    for finding in said:
        setting = finding.setting
        owner = owners.get(setting.written_as) or (connector if setting.file == "connector" else worker)
        if finding.fatal and _follows(setting.name, worker.broken | connector.broken):
            continue
        if finding.fatal:
            findings.problem(
                owner,
                setting.written_as,
                finding.text,
                finding.suggestion,
                secret=is_secret(setting.name),
                known=is_client_property(setting.name),
            )
        else:
            findings.notice(owner, setting.written_as, finding.text, warn=finding.warns)
    _one_cluster(layers, required, {"worker": worker, "connector": connector}, findings)
    return found


def _follows(name: str, broken: Iterable[str]) -> bool:
    """Whether what is missed of a login or of certificates is what a reference could not be resolved to."""
    families = {each.rpartition("ssl.")[1] or each.rpartition("sasl.")[1] for each in broken}
    return name.partition(".")[0] + "." in families


def _one_cluster(
    layers: Mapping[str, list[Setting]],
    required: Mapping[str, str],
    documents: Mapping[str, Document],
    findings: Findings,
) -> None:
    """Records, positions and the group are of one transaction, which no two clusters have. In Kafka Connect records
    may go to another one (`producer.override.bootstrap.servers`); here that would wait for it until it times out."""
    name = "bootstrap.servers"
    usual = required.get(name, "")
    given: dict[str, Setting] = {}
    for role, settings in layers.items():
        for setting in settings:
            if setting.name == name:
                given[role] = setting
                usual = setting.text if setting.written_as == name else usual
    named = {role: _brokers(given[role].text if role in given else usual) for role in ALL}
    # Who names some of the same brokers means the same cluster.
    common = _brokers(usual) if any(brokers & _brokers(usual) for brokers in named.values()) else named[PRODUCER]
    for role, brokers in named.items():
        if common and brokers and not brokers & common:
            setting = given[role]
            text = (
                f"The {role}'s Kafka is another one than that of the other clients ({', '.join(sorted(common))}): "
                "records and positions are committed in one transaction, so they must be in one cluster"
            )
            hint = f"{name}={setting.text.strip()} in the worker's file, for all of them; copies elsewhere: MirrorMaker"
            findings.problem(documents[setting.file], setting.written_as, text, hint)


def _brokers(text: str) -> frozenset[str]:
    return frozenset(each.strip().lower() for each in text.split(",") if each.strip())
