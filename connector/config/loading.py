"""``load``: files, environment and references become one ``Configuration``, or one answer with all that is wrong.

In: the connector's document, the worker's (optional), the environment. Out: ``Configuration`` or an error.
Opens no connection; reads the files that properties point to (secrets, key stores).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from connector.config import rules
from connector.config.catalogue import (
    CONNECTOR,
    CONNECTOR_FAMILIES,
    RENAMED,
    WORKER_BY_NAME,
    WORKER_FAMILIES,
    family_of,
)
from connector.config.connector_config import (
    ConnectorConfig,
    DeliveryConfig,
    connection_config,
    names_of,
    output_config,
    reading_config,
)
from connector.config.converter_choice import choose_converters
from connector.config.document import (
    Document,
    environment_properties,
    provider_names,
    read_document,
    resolve_references,
)
from connector.config.findings import Findings
from connector.config.kafka_layers import kafka_properties
from connector.config.kafka_properties import KafkaProperties, client_names, is_client_property, is_secret
from connector.config.kind import Invalid, nearest
from connector.config.property import Effect, Family, Property
from connector.config.secret import Secret
from connector.config.topic_creation import read_topic_creation
from connector.config.transforms import TransformCheck, read_transforms
from connector.config.worker_config import Configuration, StorageTopic, WorkerConfig
from connector.errors import ConfigurationError, Problem

Source = str | os.PathLike[str] | Mapping[str, Any]


def load(
    connector: Source,
    worker: Source | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    transform_check: TransformCheck | None = None,
) -> Configuration:
    """The configuration of both documents; raises ``ConfigurationError`` with every problem of both.

    ``transform_check`` looks at the options of the ScyllaDB transforms, whose owner this room may not know.
    """
    environ = os.environ if environ is None else environ
    findings = Findings()
    connector_document = read_document(connector, "connector")
    worker_document = read_document(worker, "worker")
    unknown_variables = _take_environment(worker_document, environ)
    providers = provider_names(worker_document)
    for document in (connector_document, worker_document):
        resolve_references(document, environ, providers)
        findings.problems += document.problems
    connector_values = _parse(connector_document, CONNECTOR, findings)
    worker_values = _parse(worker_document, WORKER_BY_NAME, findings)
    lenient = connector_values.get("config.unknown") == "ignore"
    _unknown_connector_names(connector_document, findings, lenient)
    _unknown_worker_names(worker_document, unknown_variables, findings, lenient)

    key, value, worker_key, worker_value = choose_converters(connector_document, worker_document, findings)
    transforms, transform_problems = read_transforms(
        connector_values.get("transforms", ()),
        connector_values.get("predicates", ()),
        connector_document.texts,
        transform_check,
        # A converter that is wrong itself should not make the transforms look wrong too.
        schemaless=value is None or (value.kind == "json" and not value.schemas_enable),
        output_format=connector_values["cdc.output.format"],
    )
    creation, creation_problems = read_topic_creation(
        connector_values.get("topic.creation.groups", ()), connector_document.texts
    )
    for found in (*transform_problems, *creation_problems):
        findings.problem(connector_document, found.property, found.problem, found.suggestion)
    kafka = kafka_properties(connector_document, worker_document, worker_values, findings)
    rules.check(connector_document, worker_document, connector_values, worker_values, findings)
    if findings.problems or key is None or value is None or worker_key is None or worker_value is None:
        raise ConfigurationError(findings.problems)

    names = names_of(connector_values)
    rules.mention_compaction(connector_document, connector_values, names, creation, findings)
    built = ConnectorConfig(
        name=connector_values["name"],
        tasks_max=connector_values["tasks.max"],
        connection=connection_config(connector_values),
        reading=reading_config(connector_values),
        output=output_config(connector_values, names, key, value, transforms),
        delivery=DeliveryConfig(
            exactly_once=connector_values["exactly.once.support"] != "disabled",
            transaction_interval_ms=connector_values["transaction.boundary.interval.ms"],
            transaction_timeout_ms=int(kafka.producer["transaction.timeout.ms"]),
            offset_topic=connector_values["offsets.storage.topic"] or worker_values["offset.storage.topic"],
            topic_creation=creation,
            create_topics=worker_values["topic.creation.enable"],
            dead_letters=connector_values["errors.tolerance"] == "all",
            dead_letter_topic=names.dead_letter_topic,
            dead_letter_replication=connector_values["errors.deadletterqueue.topic.replication.factor"],
            dead_letter_headers=connector_values["errors.deadletterqueue.context.headers.enable"],
        ),
        values=_with_families(connector_document, connector_values),
        given=frozenset(connector_document.texts),
    )
    return Configuration(
        connector=built,
        worker=_worker_config(worker_document, worker_values, kafka, worker_key, worker_value),
        kafka=kafka,
        notices=findings.notices,
    )


def validate(
    connector: Source,
    worker: Source | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    transform_check: TransformCheck | None = None,
) -> list[Problem]:
    """The problems that ``load`` would raise; none if there are none."""
    try:
        load(connector, worker, environ, transform_check=transform_check)
    except ConfigurationError as error:
        return list(error.problems)
    return []


def _worker_config(
    document: Document, values: Mapping[str, Any], kafka: KafkaProperties, key: Any, value: Any
) -> WorkerConfig:
    return WorkerConfig(
        bootstrap_servers=kafka.producer["bootstrap.servers"],
        group_id=values["group.id"],
        group_instance_id=values["group.instance.id"] or None,
        offsets=_storage_topic("offset.storage", document, values),
        status=_storage_topic("status.storage", document, values),
        session_timeout_ms=int(kafka.consumer["session.timeout.ms"]),
        heartbeat_interval_ms=int(kafka.consumer["heartbeat.interval.ms"]),
        transaction_timeout_ms=int(kafka.producer["transaction.timeout.ms"]),
        key_converter=key,
        value_converter=value,
        values=_with_families(document, values),
        given=frozenset(document.texts),
    )


def _storage_topic(prefix: str, document: Document, values: Mapping[str, Any]) -> StorageTopic:
    config = {
        name[len(prefix) + 1 :]: text
        for name, text in document.texts.items()
        if name.startswith(f"{prefix}.") and name not in WORKER_BY_NAME
    }
    return StorageTopic(
        values[f"{prefix}.topic"], values[f"{prefix}.partitions"], values[f"{prefix}.replication.factor"], config
    )


def _with_families(document: Document, values: Mapping[str, Any]) -> dict[str, Any]:
    """The declared values and, as text, what the families and the Kafka clients were given."""
    others = {
        name: text if document.masked(name, is_secret(name)) == text else Secret(text)
        for name, text in document.texts.items()
        if name not in values
    }
    return {**others, **values}


def _take_environment(worker: Document, environ: Mapping[str, str]) -> dict[str, str]:
    """Puts the environment's properties over the worker file's; gives back those that no one knows, by variable."""
    unknown = {}
    for name, (variable, text) in environment_properties(environ).items():
        if _is_worker_name(name):
            worker.put(name, text, f"environment variable {variable}")
        else:
            unknown[name] = variable
    return unknown


def _is_worker_name(name: str) -> bool:
    return name in WORKER_BY_NAME or family_of(name, WORKER_FAMILIES) is not None or is_client_property(name)


def _parse(document: Document, declared: Mapping[str, Property], findings: Findings) -> dict[str, Any]:
    """The typed value of each declared property; what cannot be parsed is reported and keeps its default."""
    values: dict[str, Any] = {}
    for name, one in declared.items():
        if name != one.name:
            continue
        values[name] = one.default
        text = document.texts.get(name)
        if name in document.broken:
            continue
        if text is None or (one.required and not text.strip()):
            if one.required and document.readable:
                findings.problem(document, name, one.required, _rename_hint(name, document))
            continue
        try:
            values[name] = one.kind.parse(text)
        except Invalid as invalid:
            findings.problem(document, name, invalid.problem, invalid.suggestion, secret=one.secret)
            continue
        if one.effect is Effect.NONE:
            findings.notice(document, name, f"has no effect here: {one.reason}")
    return values


def _rename_hint(name: str, document: Document) -> str | None:
    older = [old for old, new in RENAMED.items() if new == name and old in document.texts]
    if older:
        return f"rename {older[0]} to {name}"
    typo = nearest(name, document.texts, 0.85)
    return f"did you mean it by {typo}?" if typo and typo not in CONNECTOR else None


def _unknown_connector_names(document: Document, findings: Findings, lenient: bool) -> None:
    for name in document.texts:
        if name in CONNECTOR:
            continue
        family = family_of(name, CONNECTOR_FAMILIES)
        if family:
            _family_notice(document, name, family, findings)
            continue
        hint = RENAMED.get(name)
        near = nearest(name, CONNECTOR, 0.8)
        if hint is None and near is None and _is_worker_name(name):
            text = "Belongs in the worker's file"
            suggestion: str | None = f"move it there, or write producer.override.{name} for the producer alone"
            if name in WORKER_BY_NAME:
                suggestion = "move it there"
        else:
            meant = hint or near or nearest(name, CONNECTOR)
            text, suggestion = "Unknown property", f"did you mean {meant}?" if meant else None
        secret = any(CONNECTOR[near].secret for near in (hint, near) if near)
        _say_unknown(document, name, text, suggestion, findings, lenient, secret)


def _unknown_worker_names(document: Document, variables: Mapping[str, str], findings: Findings, lenient: bool) -> None:
    known = [*WORKER_BY_NAME, *sorted(client_names())]
    for name in document.texts:
        if name in WORKER_BY_NAME or is_client_property(name):
            continue
        family = family_of(name, WORKER_FAMILIES)
        if family:
            _family_notice(document, name, family, findings)
            continue
        meant = nearest(name, known)
        if name in CONNECTOR or (meant is None and nearest(name, CONNECTOR, 0.85)):
            _say_unknown(document, name, "Belongs in the connector's file", "move it there", findings, lenient)
        else:
            suggestion = f"did you mean {meant}?" if meant else None
            secret = meant is not None and is_secret(meant)
            _say_unknown(document, name, "Unknown property", suggestion, findings, lenient, secret)
    for name, variable in variables.items():
        meant = nearest(name, WORKER_BY_NAME, 0.85)
        if meant and not lenient:
            right = "CONNECT_" + meant.upper().replace(".", "_")
            place = Document(f"environment variable {variable}")
            findings.problem(place, name, "Unknown property", f"did you mean {right}?")
        else:
            findings.remark(f"environment variable {variable}", "no property of that name, ignored")


def _say_unknown(
    document: Document,
    name: str,
    text: str,
    suggestion: str | None,
    findings: Findings,
    lenient: bool,
    secret: bool = False,
) -> None:
    if lenient:
        hint = f" ({suggestion})" if suggestion else ""
        findings.notice(document, name, f"{text[0].lower()}{text[1:]}, ignored{hint}")
    else:
        findings.problem(document, name, text, suggestion, secret=secret)


def _family_notice(document: Document, name: str, family: Family, findings: Findings) -> None:
    if family.effect is Effect.NONE:
        findings.notice(document, name, f"has no effect here: {family.reason}")
