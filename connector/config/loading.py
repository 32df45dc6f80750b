"""``load``: files, environment and references become one ``Configuration``, or one answer with all that is wrong.

In: the connector's document, the worker's (optional), the environment. Out: ``Configuration`` or an error.
Opens no connection; reads the files that properties point to (secrets, key stores).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from connector.config import rules
from connector.config.avro_names import check_avro_names
from connector.config.connector_config import (
    ConnectionConfig,
    ConnectorConfig,
    DeliveryConfig,
    OutputConfig,
    ReadingConfig,
    names_of,
    signal_topic_of,
)
from connector.config.converter_choice import choose_converters, with_name_modes
from connector.config.converters import ConverterConfig
from connector.config.document import (
    OF_A_CONNECTOR,
    OF_THE_SOURCE,
    Document,
    Source,
    is_worker_document,
    of_another_connector,
    read_document,
)
from connector.config.environment import OF_A_WORKER, PREFIX, environment_properties, without_prefix
from connector.config.findings import Findings
from connector.config.http_config import HttpConfig, check_http
from connector.config.kafka import KafkaProperties, is_client_property, is_secret, kafka_properties
from connector.config.parsing import parse
from connector.config.properties import (
    CONNECTOR,
    CONNECTOR_FAMILIES,
    WORKER_BY_NAME,
    WORKER_FAMILIES,
    family_of,
    idle_reason,
    neighbour_of,
)
from connector.config.references import provider_names, resolve_references
from connector.config.secret import Secret
from connector.config.single_values import check_single_values
from connector.config.source_config import SourceConfig
from connector.config.tls import TlsConfig
from connector.config.topic_creation import TopicCreation, read_topic_creation
from connector.config.transforms import TransformCheck, TransformNote, TransformSpec, read_transforms
from connector.config.unfilled import unfilled
from connector.config.unknown_names import is_worker_name, unknown_connector_names, unknown_worker_names
from connector.config.unlisted import check_unlisted
from connector.config.worker_config import Configuration, StorageTopic, WorkerConfig
from connector.errors import ConfigurationError, Problem
from connector.secrets import hideable

_FAMILIES = (*CONNECTOR_FAMILIES, *WORKER_FAMILIES)
_OF_DEBEZIUM_SERVER = "debezium.source."


def load(
    connector: Source,
    worker: Source | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    transform_check: TransformCheck | None = None,
    findings: Findings | None = None,
) -> Configuration:
    """The configuration of both documents; raises ``ConfigurationError`` with every problem of both.

    ``transform_check`` looks at the options of the ScyllaDB transforms, whose owner this room may not know.
    ``findings`` collects what is found, for who wants it by property.
    """
    environ = os.environ if environ is None else environ
    findings = Findings() if findings is None else findings
    try:
        return _load(_read(connector, worker, environ, findings), transform_check, findings)
    except ConfigurationError as error:
        error.notices = findings.notices
        raise


def _load(files: _Files, transform_check: TransformCheck | None, findings: Findings) -> Configuration:
    values, worker_values = _parsed(files, findings)

    key, value, header, worker_key, worker_value = choose_converters(files.connector, files.worker, findings)
    key, value = (with_name_modes(one, values) for one in (key, value))
    # A converter that is wrong itself should not make the transforms look wrong too.
    schemaless = value is None or (value.kind == "json" and not value.schemas_enable)
    transforms, creation = _transforms_and_topics(files.connector, values, schemaless, transform_check, findings)
    for document in (files.connector, files.worker):
        _mention_weak(document, findings)
        _mention_placeholders(document, findings)
    exactly_once = values["exactly.once.support"] != "disabled"
    unknown = values["config.unknown"]
    kafka = kafka_properties(files.connector, files.worker, worker_values, findings, exactly_once, unknown)
    rules.check(files.connector, files.worker, values, worker_values, findings)
    check_http(files.worker, worker_values, findings)
    if key is not None and value is not None:
        check_single_values(files.connector, key, value, transforms, findings)
        check_avro_names(files.connector, values, (key, value), transforms, findings)
    if findings.problems or any(one is None for one in (key, value, header, worker_key, worker_value)):
        raise ConfigurationError(findings.problems)

    assert key is not None and value is not None and header is not None
    assert worker_key is not None and worker_value is not None
    names = names_of(values)
    rules.require_topics_of_their_own(files.connector, values, names, findings)
    if findings.problems:
        raise ConfigurationError(findings.problems)
    rules.mention_compaction(files.connector, values, names, creation, findings)
    output = OutputConfig.made_of(
        values,
        names=names,
        schema_topic=names.schema_topic,
        key_converter=key,
        value_converter=value,
        header_converter=header,
        transforms=transforms,
    )
    delivery = DeliveryConfig.made_of(
        values,
        exactly_once=exactly_once,
        transaction_timeout_ms=kafka.producer["transaction.timeout.ms"],
        offset_topic=values["offsets.storage.topic"] or worker_values["offset.storage.topic"],
        topic_creation=creation,
        create_topics=worker_values["topic.creation.enable"],
        dead_letters=values["errors.tolerance"] == "all",
        dead_letter_topic=names.dead_letter_topic,
    )
    return Configuration(
        connector=_connector_config(files.connector, values, output, delivery),
        worker=_worker_config(files.worker, worker_values, kafka, worker_key, worker_value),
        kafka=kafka,
        notices=findings.notices,
        warnings=findings.warnings,
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """Both documents, with what their references name. ``unknown_variables``: of the environment, by property."""

    connector: Document
    worker: Document
    unknown_variables: Mapping[str, str]


def _read(connector: Source, worker: Source | None, environ: Mapping[str, str], findings: Findings) -> _Files:
    connector_document = read_document(connector, "connector", environ)
    worker_document = read_document(worker, "worker", environ)
    files = _Files(connector_document, worker_document, _take_environment(worker_document, environ))
    _mention_without_prefix(files.worker, environ, findings)
    providers = provider_names(files.worker, environ, [files.connector])
    _told_apart(files.connector, files.worker)
    for document in (files.connector, files.worker):
        resolve_references(document, environ, providers, partial(idle_reason, worker=document is files.worker))
        findings.problems += document.problems
        for name, text in document.notes:
            findings.notice(document, name, text)
    if "warehouse" in files.connector.texts and not OF_A_CONNECTOR & files.connector.texts.keys():
        text = "This is a landing file, which `scylla-cdc land` takes; a connector has a file of its own"
        raise ConfigurationError([Problem("warehouse", text, None, "see docs/configuration.md", files.connector.file)])
    return files


def _parsed(files: _Files, findings: Findings) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of the connector and of the worker."""
    _take_no_number(files.worker, findings)
    values = parse(files.connector, CONNECTOR, findings)
    worker_values = parse(files.worker, WORKER_BY_NAME, findings)
    unknown = values["config.unknown"]
    unknown_connector_names(files.connector, findings, unknown)
    unknown_worker_names(files.worker, files.unknown_variables, findings, unknown)
    check_unlisted(files.connector, values, findings)
    return values, worker_values


def _transforms_and_topics(
    document: Document,
    values: Mapping[str, Any],
    schemaless: bool,
    transform_check: TransformCheck | None,
    findings: Findings,
) -> tuple[tuple[TransformSpec, ...], TopicCreation]:
    """What families of properties describe: the chain of transforms, and how topics are created."""
    transforms, transform_findings = read_transforms(
        values.get("transforms", ()),
        values.get("predicates", ()),
        document.texts,
        transform_check,
        schemaless=schemaless,
        output_format=values["cdc.output.format"],
    )
    creation, creation_problems = read_topic_creation(values.get("topic.creation.groups", ()), document.texts)
    for found in (*transform_findings, *creation_problems):
        if isinstance(found, TransformNote):
            findings.notice(document, found.property, found.text)
        else:
            findings.problem(document, found.property, found.problem, found.suggestion)
    return transforms, creation


def _connector_config(
    document: Document, values: Mapping[str, Any], output: OutputConfig, delivery: DeliveryConfig
) -> ConnectorConfig:
    return ConnectorConfig(
        name=values["name"],
        tasks_max=values["tasks.max"],
        connection=connection_config(values),
        reading=ReadingConfig.made_of(values, signal_topic=signal_topic_of(values)),
        output=output,
        delivery=delivery,
        values=_with_families(document, values),
        given=frozenset(document.texts),
        written=_as_written(document),
    )


def _worker_config(
    document: Document,
    values: Mapping[str, Any],
    kafka: KafkaProperties,
    key_converter: ConverterConfig,
    value_converter: ConverterConfig,
) -> WorkerConfig:
    return WorkerConfig.made_of(
        values,
        bootstrap_servers=kafka.producer["bootstrap.servers"],
        offsets=_storage_topic("offset.storage", document, values),
        status=_storage_topic("status.storage", document, values),
        configs=_storage_topic("config.storage", document, values),
        session_timeout_ms=kafka.consumer["session.timeout.ms"],
        heartbeat_interval_ms=kafka.consumer["heartbeat.interval.ms"],
        transaction_timeout_ms=kafka.producer["transaction.timeout.ms"],
        key_converter=key_converter,
        value_converter=value_converter,
        http=HttpConfig.made_of(values),
        values=_with_families(document, values),
        given=frozenset(document.texts),
    )


def load_connector(
    connector: Source, worker: Source | None = None, environ: Mapping[str, str] | None = None
) -> SourceConfig:
    """What a connector's file says about ScyllaDB, for commands that need no Kafka.

    Of the worker's properties only the providers of secrets matter. What is wrong elsewhere in a file that ``load``
    would take (a reference of a producer's password, say) does not matter here.
    """
    environ = os.environ if environ is None else environ
    document, findings = read_document(connector, "connector", environ), Findings()
    worker_document = read_document(worker, "worker", environ)
    _take_environment(worker_document, environ)
    resolve_references(document, environ, provider_names(worker_document, environ, [document]))
    findings.problems += worker_document.problems
    for problem in document.problems:
        if problem.property not in document.broken:
            findings.problems.append(problem)
        elif problem.property in OF_THE_SOURCE:
            findings.problems.append(_with_hint(problem) if worker is None else problem)
    values = parse(document, CONNECTOR, findings)
    unknown_connector_names(document, findings, values["config.unknown"])
    rules.check_connection(document, values, findings)
    if findings.problems:
        raise ConfigurationError(findings.problems)
    return SourceConfig(
        connection=connection_config(values),
        reading=ReadingConfig.made_of(values, signal_topic=signal_topic_of(values)),
    )


def _told_apart(connector: Document, worker: Document) -> None:
    """A file in another's place would be told of as many mistakes as it has properties."""
    if of_another_connector(connector):
        name = "connector.class"
        text, value = (
            "This is another connector; this service runs the Scylla CDC source connector only",
            connector.texts[name],
        )
        raise ConfigurationError([Problem(name, text, value, "run it where it is", connector.file)])
    if any(name.startswith(_OF_DEBEZIUM_SERVER) for name in connector.texts):
        text = "This is a file of Debezium Server, not a connector's"
        hint = (
            f"what stands behind {_OF_DEBEZIUM_SERVER} in a connector's file, the producer's properties in a worker's"
        )
        raise ConfigurationError([Problem("file", text, None, hint, connector.file)])
    if is_worker_document(connector):
        raise ConfigurationError(
            [Problem("file", "This is a worker's file, not a connector's", None, "--worker FILE", connector.file)]
        )
    if OF_A_CONNECTOR & worker.texts.keys() and not OF_A_WORKER & worker.texts.keys():
        text = "This is a connector's file, not a worker's"
        raise ConfigurationError([Problem("file", text, None, "give it without --worker", worker.file)])


def _with_hint(problem: Problem) -> Problem:
    if "There is no provider" not in problem.problem:
        return problem
    hint = f"--worker W.json, the file that declares it ({problem.suggestion})"
    return Problem(problem.property, problem.problem, problem.value, hint, problem.file)


def connection_config(values: Mapping[str, Any]) -> ConnectionConfig:
    """The connection's part of the parsed values."""
    return ConnectionConfig.made_of(values, tls=TlsConfig.made_of(values))


def _storage_topic(prefix: str, document: Document, values: Mapping[str, Any]) -> StorageTopic:
    config = {
        name[len(prefix) + 1 :]: text
        for name, text in document.texts.items()
        if name.startswith(f"{prefix}.") and name not in WORKER_BY_NAME
    }
    partitions = values.get(f"{prefix}.partitions", 1)  # what was asked of a connector has one order
    return StorageTopic(values[f"{prefix}.topic"], partitions, values[f"{prefix}.replication.factor"], config)


def _with_families(document: Document, values: Mapping[str, Any]) -> dict[str, Any]:
    """The declared values and, as text, what the families and the Kafka clients were given."""
    others = {
        name: text if document.masked(name, is_secret(name)) == text else Secret(text)
        for name, text in document.texts.items()
        if name not in values
    }
    return {**others, **values}


def as_written(connector: Source) -> dict[str, str]:
    """A connector's properties as they may be shown, whether or not they are right."""
    return _as_written(read_document(connector, "connector"))


def _as_written(document: Document) -> dict[str, str]:
    found = {}
    for name in document.texts:
        declared = CONNECTOR.get(name)
        shown = document.masked(name, declared.secret if declared else is_secret(name))
        if shown is not None:
            found[name] = shown
    return found


def _take_no_number(worker: Document, findings: Findings) -> None:
    """Kafka Connect leaves the number of partitions to the broker; of most brokers' one, one worker would be enough."""
    for name in ("offset.storage.partitions", "status.storage.partitions"):
        if worker.texts.get(name, "").strip() == "-1":
            del worker.texts[name]
            usual = WORKER_BY_NAME[name].default
            findings.notice(worker, name, f"-1, the broker's default, is as if it were left out: {usual} is used")


def _mention_weak(document: Document, findings: Findings) -> None:
    for name, text in document.texts.items():
        declared = CONNECTOR.get(name) or WORKER_BY_NAME.get(name)
        secret = declared.secret if declared else is_secret(name) and neighbour_of(name) is None
        if secret and text.strip() and not hideable(text):
            findings.notice(document, name, "too short or too common a word to be masked in third-party messages")


def _mention_placeholders(document: Document, findings: Findings) -> None:
    """What a script was to fill in before it posted the file. A pattern of a transform may look the same."""
    refused = {problem.property for problem in findings.problems}
    for name, text in document.texts.items():
        declared = CONNECTOR.get(name) or WORKER_BY_NAME.get(name)
        # What nobody knows is ignored, not taken, and may be a secret: it is not repeated.
        if name in refused or not (declared or is_client_property(name) or family_of(name, _FAMILIES)):
            continue
        secret = declared.secret if declared else is_secret(name)
        if text == document.written[name] and not name.startswith(("transforms.", "predicates.")):
            for place, advice in unfilled(text, as_a_whole=secret):
                findings.notice(document, name, f"{place} is taken as it stands: {advice}", warn=True)


def _take_environment(worker: Document, environ: Mapping[str, str]) -> dict[str, str]:
    """Puts the environment's properties over the worker file's; gives back those that no one knows, by variable."""
    unknown = {}
    for name, (variable, text) in environment_properties(environ).items():
        if is_worker_name(name):
            worker.put(name, text, f"environment variable {variable}")
        else:
            unknown[name] = variable
    return unknown


def _mention_without_prefix(worker: Document, environ: Mapping[str, str], findings: Findings) -> None:
    """Variables of a container that was Debezium's, whose image alone takes them as they are."""
    bare = without_prefix(environ)
    missing = [variable for variable, name in bare.items() if name not in worker.texts]
    if len(bare) > 1 and missing:
        text = f"not looked at without {PREFIX}: {', '.join(PREFIX + variable for variable in missing)}"
        findings.remark(f"environment variables {', '.join(missing)}", text)
