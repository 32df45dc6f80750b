"""Rules that hold between properties: what each alone allows and both together contradict.

In: both documents and their parsed values. Out: problems, added to the findings. A value that was wrong by itself
has kept its default here, so that one mistake is not told twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.names import MAX_TOPIC_LENGTH, Names
from connector.config.properties import (
    DEFAULT_PLACEMENT,
    OTHER_SNAPSHOT_MODES,
    WORKER_BY_NAME,
    OutputFormat,
    of_deltas,
)
from connector.config.tls import KeystoreError, TlsConfig, read_certificates, read_identity, read_pem_identity
from connector.config.topic_creation import TopicCreation, misspelt_setting

Values = Mapping[str, Any]


def check(connector: Document, worker: Document, values: Values, worker_values: Values, findings: Findings) -> None:
    """Every rule, over both documents."""
    check_connection(connector, values, findings)
    if values["worker.maximum.backoff"] < values["worker.retry.backoff.base"]:
        findings.problem(connector, "worker.maximum.backoff", "Must be at least worker.retry.backoff.base")
    _format(connector, values, findings)
    _queues(connector, values, findings)
    _errors(connector, values, findings)
    _storage(connector, worker, values, worker_values, findings)
    _snapshots(connector, values, findings)


def _snapshots(connector: Document, values: Values, findings: Findings) -> None:
    if "sink" in values["notification.enabled.channels"] and not values["notification.sink.topic.name"]:
        name = "notification.sink.topic.name"
        findings.problem(connector, name, "Is needed for the sink channel of notifications", "the name of a topic")
    for name, works in (("signal.enabled.channels", {"kafka"}), ("notification.enabled.channels", {"log", "sink"})):
        if others := sorted(values[name] - works):
            instead = " or ".join(sorted(works))
            findings.notice(connector, name, f"{', '.join(others)}: has no effect here: use {instead}")
    if values["scylla.compatibility"] == "strict" and values["snapshot.mode"] == "initial_only":
        text = "There is no snapshot with scylla.compatibility=strict: nothing would be left to do"
        findings.problem(connector, "snapshot.mode", text, "no_data")
    elif values["scylla.compatibility"] == "strict" and values["snapshot.mode"] not in ("no_data", "never"):
        text = "has no effect here: with scylla.compatibility=strict there is no snapshot, as in the Java connector"
        findings.notice(connector, "snapshot.mode", text)
    given = connector.texts.get("snapshot.mode")
    if given is not None and (other := given.strip().lower()) in OTHER_SNAPSHOT_MODES:
        meant = OTHER_SNAPSHOT_MODES[other]
        rows = f"; for rows from before the log: {meant}" if meant else ""
        said = f"{other}, a mode of Debezium's other connectors, is taken as no_data: the Java connector ignores it"
        text = said if other else "is empty: no_data is used"
        findings.notice(connector, "snapshot.mode", f"{text}{rows}")


def check_connection(document: Document, values: Values, findings: Findings) -> None:
    """The rules between the properties that tell how ScyllaDB is reached."""
    _pairs(document, values, findings)
    _stores(document, values, findings)


def _pairs(document: Document, values: Values, findings: Findings) -> None:
    if values["scylla.user"] and not values["scylla.password"] and "scylla.password" not in document.broken:
        findings.problem(document, "scylla.password", "Password is not set while username was set.")
    if values["scylla.password"] and not values["scylla.user"] and "scylla.user" not in document.broken:
        findings.problem(document, "scylla.user", "Username is not set while password was set.")
    chain, key = "scylla.ssl.openssl.keyCertChain", "scylla.ssl.openssl.privateKey"
    for present, missing in ((chain, key), (key, chain)):
        if values[present] and not values[missing]:
            findings.problem(
                document,
                missing,
                f"{present} cannot be set without {missing} and vice-versa: {missing} is not set",
            )


def _stores(document: Document, values: Values, findings: Findings) -> None:
    """Stores are opened now: a wrong password should not be found out by a worker at night."""
    if not values["scylla.ssl.enabled"]:
        for name in document.texts:
            if name.startswith("scylla.ssl.") and name not in ("scylla.ssl.enabled", "scylla.ssl.provider"):
                findings.notice(document, name, "has no effect here: scylla.ssl.enabled is false")
        return
    if warning := TlsConfig.made_of(values).warning:
        findings.notice(document, "scylla.ssl.enabled", warning)
    for which, read in (("truststore", read_certificates), ("keystore", read_identity)):
        path, password = values[f"scylla.ssl.{which}.path"], values[f"scylla.ssl.{which}.password"]
        if path:
            try:
                read(path, password)
            except KeystoreError as error:
                about = "password" if error.about == "password" else "path"
                findings.problem(document, f"scylla.ssl.{which}.{about}", str(error), error.remedy)
    chain, key = values["scylla.ssl.openssl.keyCertChain"], values["scylla.ssl.openssl.privateKey"]
    if chain and key:
        if values["scylla.ssl.keystore.path"]:
            findings.problem(
                document,
                "scylla.ssl.keystore.path",
                "The client's certificate is given twice, here and in scylla.ssl.openssl.keyCertChain",
                "leave one of them out",
            )
        try:
            read_pem_identity(chain, key)
        except KeystoreError as error:
            missing = not Path(chain).is_file()
            findings.problem(
                document, f"scylla.ssl.openssl.{'keyCertChain' if missing else 'privateKey'}", str(error), error.remedy
            )


def _format(document: Document, values: Values, findings: Findings) -> None:
    form: OutputFormat = values["cdc.output.format"]
    match form:
        case "legacy":
            _legacy(document, values, findings)
        case "advanced":
            _advanced(document, values, findings)
        case _:
            assert_never(form)


def _legacy(document: Document, values: Values, findings: Findings) -> None:
    for which, more in (("before", ""), ("after", " Legacy mode does not support postimages.")):
        name = f"cdc.include.{which}"
        if values[name] != "none":
            findings.problem(
                document,
                name,
                f"{name} must be 'none' (default) when using cdc.output.format=legacy.{more}",
                "set cdc.output.format=advanced, or leave it out",
            )
    name = "cdc.include.primary-key.placement"
    if values[name] != DEFAULT_PLACEMENT:
        findings.problem(
            document,
            name,
            f"{name} must be at default value when using cdc.output.format=legacy",
            "set cdc.output.format=advanced, or leave it out",
        )


def _advanced(document: Document, values: Values, findings: Findings) -> None:
    if values["experimental.preimages.enabled"]:
        findings.problem(
            document,
            "experimental.preimages.enabled",
            "experimental.preimages.enabled=true is not compatible with cdc.output.format=advanced.",
            "cdc.include.before=full",
        )
    if values["cdc.include.collections"] == "delta":
        findings.problem(
            document,
            "cdc.include.collections",
            "delta is for cdc.output.format=legacy: the advanced format has whole images, not deltas",
            "leave it out, or set cdc.output.format=legacy",
        )
    placement = values["cdc.include.primary-key.placement"]
    if "kafka-key" not in placement:
        findings.problem(
            document,
            "cdc.include.primary-key.placement",
            "Without kafka-key records have no key: their order and the compaction of topics would be lost",
            "add kafka-key",
        )
    name = "cdc.include.primary-key.payload-key-name"
    taken = ("source", "before", "after", "op", "ts_ms", "transaction", "ts_us", "ts_ns")
    if "payload-key" in placement and values[name] in taken:
        findings.problem(document, name, "The envelope has a member of that name already", "key")


def _queues(document: Document, values: Values, findings: Findings) -> None:
    names = ("max.queue.size", "max.batch.size")
    if values[names[0]] > values[names[1]] or set(names) & _wrong(document, findings):
        return
    queue, batch = values[names[0]], values[names[1]]
    if "max.queue.size" in document.texts:
        findings.problem(
            document, names[0], "Must be larger than the maximum batch size", f"more than max.batch.size ({batch})"
        )
    else:
        findings.problem(document, names[1], f"Must be less than max.queue.size ({queue})", f"1 to {queue - 1}")


def _wrong(document: Document, findings: Findings) -> set[str]:
    return {problem.property for problem in findings.problems if problem.file == document.file}


def _errors(document: Document, values: Values, findings: Findings) -> None:
    operations = values["skipped.operations"]
    if "none" in operations and len(operations) > 1:
        findings.problem(document, "skipped.operations", "`none` cannot be combined with operations", "none")
    topic = "errors.deadletterqueue.topic.name"
    if values["errors.tolerance"] == "none" and values[topic]:
        findings.notice(document, topic, "has no effect here: errors.tolerance is none")


def require_topics_of_their_own(document: Document, values: Values, names: Names, findings: Findings) -> None:
    """Names that are too long for Kafka are cut, as Debezium cuts them, and a delimiter may stand in names as well."""
    taken: dict[str, str] = {}
    for table in values["scylla.table.names"]:
        wanted = [(names.data_topic(*table), f"changes of {table}")]
        if values["cdc.range.deletes"] == "topic":
            wanted.append((names.range_deletes_topic(*table), f"range deletes of {table}"))
        for topic, what in wanted:
            other = taken.setdefault(topic, what)
            if other is not what:
                cut = len(topic) == MAX_TOPIC_LENGTH
                findings.problem(
                    document,
                    "topic.prefix" if cut else "topic.delimiter",
                    f"The {other} and the {what} would have one topic, {topic}",
                    f"a shorter one: Kafka takes {MAX_TOPIC_LENGTH} characters" if cut else "another one",
                )


def mention_compaction(
    document: Document, values: Values, names: Names, creation: TopicCreation, findings: Findings
) -> None:
    """Deltas of one key build on each other: compaction would keep the last alone."""
    for table in values["scylla.table.names"]:
        topics = (
            [names.range_deletes_topic(table.keyspace, table.name)] if values["cdc.range.deletes"] == "topic" else []
        )
        if of_deltas(values["cdc.output.format"]):
            topics.append(names.data_topic(table.keyspace, table.name))
        for topic in topics:
            group = creation.settings_for(topic)
            if "compact" in group.config.get("cleanup.policy", ""):
                findings.notice(
                    document,
                    f"topic.creation.{group.name}.cleanup.policy",
                    "a compacted topic loses changes: its records are deltas, and only the last of a key is kept",
                )


def _storage(connector: Document, worker: Document, values: Values, worker_values: Values, findings: Findings) -> None:
    for prefix in ("offset.storage", "status.storage"):
        policy = worker.texts.get(f"{prefix}.cleanup.policy")
        if policy is not None and policy.strip() != "compact":
            findings.problem(worker, f"{prefix}.cleanup.policy", "The topic must be compacted", "compact")
        for name in worker.texts:
            setting = name.removeprefix(f"{prefix}.")
            if name.startswith(f"{prefix}.") and name not in WORKER_BY_NAME and name != f"{prefix}.file.filename":
                meant = misspelt_setting(setting, ("topic", "partitions", "replication.factor"))
                if meant:
                    findings.problem(worker, name, "Is not a topic setting", f"did you mean {prefix}.{meant}?")
    offsets = values["offsets.storage.topic"] or worker_values["offset.storage.topic"]
    if offsets == worker_values["status.storage.topic"]:
        document, name = (
            (connector, "offsets.storage.topic")
            if values["offsets.storage.topic"]
            else (worker, "offset.storage.topic")
        )
        findings.problem(document, name, "Must differ from status.storage.topic", "scylla-cdc-offsets")
