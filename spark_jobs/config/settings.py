"""The landing configuration: what its file says, typed, or all problems in one answer.

In: a JSON file or a mapping. Out: ``Settings``, or ``ConfigurationError`` with everything that is wrong. Properties of
Kafka's Java client (``kafka.*``) and of Spark (``spark.*``) are passed on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import InstanceOf

from connector.config import (
    Document,
    Findings,
    Names,
    OutputFormat,
    Part,
    learn,
    of,
    parse,
    provider_names,
    read_json,
    report_repeated,
    resolve_references,
)
from connector.errors import ConfigurationError, Problem
from connector.suggestions import did_you_mean, nearest
from connector.table_name import TableName
from spark_jobs.config.file_systems import has_one_writer, place_problems
from spark_jobs.config.properties import BY_NAME, PREFIXES, REGISTRY
from spark_jobs.config.source_settings import source_problems
from spark_jobs.config.spark_connect import connect_problems
from spark_jobs.sinks import DEFAULT, FORMATS

BESIDE = "~backfill"
"""Behind the name of the job beside which a backfill reads: a lease of its own, that of no table."""
_TRIGGER_MS, _TRIGGER_MS_PER_TABLE = 2_000, 33


class Settings(Part):
    """A checked landing configuration. ``values`` holds the value of every property by its name."""

    name: str = of("name")
    bootstrap_servers: str = of("bootstrap.servers")
    topic_prefix: str = of("topic.prefix")
    tables: tuple[InstanceOf[TableName], ...] = of("tables")
    sink: str = of("sink")
    value_converter: str = of("value.converter")
    schemas_enable: bool = of("value.converter.schemas.enable")
    registry_urls: tuple[str, ...] = of("schema.registry.url")
    definitions: tuple[str, ...] = of("table.definitions")
    definitions_format: OutputFormat = of("table.definitions.format")
    column_types: Mapping[str, str] = of("column.types")
    merge_every_rows: int = of("merge.every.rows")
    merge_every_ms: int = of("merge.every.ms")
    max_offsets_per_trigger: int = of("max.offsets.per.trigger")
    state_buckets: int = of("state.buckets")
    publish_interval_ms: int = of("publish.interval.ms")
    publish_catalog: str | None = of("publish.catalog")
    publish_retention_ms: int = of("publish.retention.ms")
    reader_grace_ms: int = of("reader.grace.ms")
    history: tuple[str, ...] = of("history")
    history_retention_ms: int | None = of("history.retention.ms")
    tombstone_retention_ms: int = of("tombstone.retention.ms")
    evolution: Literal["evolve", "freeze"] = of("schema.evolution")
    frozen_tables: tuple[str, ...] = of("schema.evolution.freeze")
    lease_timeout_ms: int = of("lease.timeout.ms")
    source_tasks: int = of("source.tasks")
    retry_backoff_max_ms: int = of("retry.backoff.max.ms")
    log_level: str = of("log.level")
    confidence_ms: int = of("scylla.confidence.window.size")
    values: Mapping[str, Any]
    passed_on: Mapping[str, str]
    file: str

    @property
    def names(self) -> Names:
        return Names(topic_prefix=self.topic_prefix)

    @property
    def schema_topic(self) -> str:
        given = self.values["schema.topic"]
        return f"{self.topic_prefix}.schemas" if given is None else str(given)

    @property
    def trigger_interval_ms(self) -> int:
        """Each table asks for what is new by itself, which takes a few milliseconds of the processor's time."""
        given = self.values["trigger.interval.ms"]
        return max(_TRIGGER_MS, _TRIGGER_MS_PER_TABLE * len(self.tables)) if given is None else int(given)

    @property
    def warehouse(self) -> str:
        return folder(str(self.values["warehouse"]))

    @property
    def has_one_writer(self) -> bool:
        """Whether commits of two processes could overwrite each other, as the user has chosen."""
        return self.sink == "delta" and has_one_writer(self.warehouse, self.passed_on)

    @property
    def checkpoint(self) -> str:
        return folder(str(self.values["checkpoint"] or f"{self.warehouse}/_checkpoint"))

    @property
    def lease_folder(self) -> str:
        return folder(str(self.values["lease.folder"] or f"{self.warehouse}/_leases"))

    @property
    def avro(self) -> bool:
        return "avro" in self.value_converter.lower()

    def declared_types(self, table: TableName) -> dict[str, str]:
        """The user's types of a table's columns."""
        prefix = f"{table}."
        types = self.column_types.items()
        return {name.removeprefix(prefix): kind for name, kind in types if name.startswith(prefix)}

    def topics_of(self, table: TableName) -> list[str]:
        """The topics that the table's records are in: its data, its range deletes."""
        make = (self.names.data_topic, self.names.range_deletes_topic)
        return [topic(table.keyspace, table.name) for topic in make]

    def frozen(self, table: TableName) -> bool:
        """Whether the landed table keeps the columns it began with."""
        return self.evolution == "freeze" or str(table) in self.frozen_tables

    def kafka(self) -> dict[str, str]:
        """Properties of Kafka's Java client."""
        given = {n.removeprefix("kafka."): v for n, v in self.passed_on.items() if n.startswith("kafka.")}
        return {**given, "bootstrap.servers": self.bootstrap_servers}

    def session_config(self) -> dict[str, Any]:
        """What ``open_session`` needs."""
        spark = {name: value for name, value in self.passed_on.items() if name.startswith("spark.")}
        parts = {"warehouse": self.warehouse, "sink": self.sink, "log.level": self.log_level}
        if self.publish_catalog:
            parts["publish.catalog"] = self.publish_catalog
        return {**spark, **parts, "tables": [str(table) for table in self.tables]}


def folder(text: str) -> str:
    """A folder's path or URL; a relative path is one of this process's working folder, not of Spark's."""
    return (text if "://" in text or text.startswith("file:") else os.path.abspath(text)).rstrip("/")


def load_settings(source: str | os.PathLike[str] | Mapping[str, Any]) -> Settings:
    """The settings of a file or mapping; everything that is wrong is told at once."""
    file = "landing configuration" if isinstance(source, Mapping) else os.fspath(source)
    content: Any = source
    if not isinstance(source, Mapping):
        content, problems = read_json(source)
        if problems:
            raise ConfigurationError(problems)
    if not isinstance(content, Mapping):
        raise ConfigurationError([Problem("JSON", "Must be an object of properties", file=file)])
    if isinstance(content.get("config"), Mapping) or "connector.class" in content:
        learn("config", dict(content))
        text = "This is a connector's file, for `run`; landing needs its own file"
        raise ConfigurationError([Problem("connector.class", text, suggestion="see docs/landing.md", file=file)])
    document, findings = _document(content, file), Findings()
    findings.problems += document.problems
    values = parse(document, BY_NAME, findings)
    if "column.types" in content and "column.types" not in document.broken:
        values["column.types"] = _column_types(content["column.types"], document, findings)
    passed_on = {name: text for name, text in document.texts.items() if name not in BY_NAME}
    _unknown(document, findings)
    if not findings.problems:
        findings.problems += [*_contradictions(values, file), *place_problems(values, passed_on, file)]
        findings.problems += source_problems(document, values)
        findings.problems += connect_problems(passed_on, os.environ, file)
    if findings.problems:
        raise ConfigurationError(findings.problems)
    return Settings.made_of(values, values=values, passed_on=passed_on, file=file)


def _document(content: Mapping[str, Any], file: str) -> Document:
    document = Document(file)
    for given in (content, content.get("column.types", {})):
        report_repeated(document, given)
    for name, value in content.items():
        learn(name, value)
        if isinstance(value, list):
            document.put(name, ",".join(str(item) for item in value))
        elif isinstance(value, Mapping) or not isinstance(value, str):
            document.put(name, json.dumps(value))
        else:
            document.put(name, value)
    resolve_references(document, os.environ, provider_names(document, os.environ))
    return document


def _column_types(given: Any, document: Document, findings: Findings) -> dict[str, str]:
    if not isinstance(given, Mapping):
        findings.problem(document, "column.types", "Must be an object", '{"ks.table.column": "decimal(10,2)"}')
        return {}
    found: dict[str, str] = {}
    for column, kind in given.items():
        spelled = str(kind).replace(" ", "").lower()
        name = f"column.types.{column}"
        if column.count(".") < 2:
            findings.problem(document, name, "Must be ks.table.column")
        elif spelled != "bigint" and not _is_decimal(spelled):
            value = kind if isinstance(kind, str) else None
            wrong = Problem(name, "Must be decimal(p,s) with p up to 38, or bigint", value, file=document.file)
            findings.problems.append(wrong)
        found[column] = spelled
    return found


def _is_decimal(spelled: str) -> bool:
    if not (spelled.startswith("decimal(") and spelled.endswith(")")):
        return False
    parts = spelled[len("decimal(") : -1].split(",")
    numbers = [int(part) for part in parts if re.fullmatch("[0-9]{1,3}", part)]
    return len(parts) == len(numbers) == 2 and 0 <= numbers[1] <= numbers[0] <= 38 and numbers[0] > 0


def _unknown(document: Document, findings: Findings) -> None:
    for name in document.texts:
        if name in BY_NAME or name in REGISTRY or name.startswith(PREFIXES):
            continue
        if name.startswith("schema.registry.ssl."):
            text = "Is not supported: landing trusts the certificates of its machine"
            remedy = "add the registry's to them (SSL_CERT_FILE), and leave this out"
            findings.problems.append(Problem(name, text, None, remedy, document.file))
            continue
        meant = nearest(name, (*BY_NAME, *REGISTRY))
        secret = meant is not None and BY_NAME[meant].secret
        if secret:
            learn(name, document.texts[name], secret=True)
        hint = f"did you mean {meant}?" if meant else None
        findings.problem(document, name, "Is not a property of landing", hint, secret=secret, known=False)


def _contradictions(values: Mapping[str, Any], file: str) -> list[Problem]:
    problems: list[Problem] = []
    known = {str(table) for table in values["tables"]}
    if "/" in values["name"]:
        problems.append(Problem("name", "Cannot have a slash: files are named by it", values["name"], file=file))
    if values["name"].endswith(BESIDE):
        text = f"Cannot end with {BESIDE}: the lease of a backfill beside another job is named so"
        problems.append(Problem("name", text, values["name"], file=file))
    for name in ("schema.evolution.freeze", "history"):
        for table in values[name]:
            if table not in known:
                problems.append(Problem(name, "Is not one of the tables", table, did_you_mean(table, known), file))
    taken = {f"{table}__{part}": table for table in known for part in FORMATS[values["sink"]].beside}
    for name in sorted(known & taken.keys()):
        text = f"With {values['sink']} this is what landing keeps for {taken[name]}: both would be one table"
        problems.append(Problem("tables", text, name, "land one of them into another warehouse", file))
    if values["publish.catalog"] and values["sink"] != DEFAULT:
        text = "Has no effect on Iceberg's tables: they are in the catalog scylla_cdc"
        problems.append(Problem("publish.catalog", text, file=file))
    if values["history.retention.ms"] is not None and not values["history"]:
        problems.append(Problem("history.retention.ms", "Has no effect without history", file=file))
    for column in values["column.types"]:
        # A dot can be in a column's name, but in none of a keyspace or table.
        if ".".join(column.split(".", 2)[:2]) not in known:
            problems.append(Problem(f"column.types.{column}", "Is not a column of one of the tables", file=file))
    if "avro" in values["value.converter"].lower() and not values["schema.registry.url"]:
        problems.append(Problem("schema.registry.url", "Is needed for Avro", file=file))
    problems += [
        Problem("table.definitions", "There is no such file", path, file=file)
        for path in values["table.definitions"]
        if not Path(path).is_file()
    ]
    return problems
