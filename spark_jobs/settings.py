"""The landing configuration: every property declared once, and loading that reports all problems in one answer.

In: a JSON file or a mapping. Out: ``Settings``, or ``ConfigurationError`` with everything that is wrong. Properties of
Kafka's Java client (``kafka.*``) and of Spark (``spark.*``) are passed on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connector.config.address import TABLE_NAMES, TableName
from connector.config.document import Document, provider_names, read_json, resolve_references
from connector.config.kind import BOOLEAN, LIST, LONG_MAX, STRING, Invalid, Kind, integer, nearest, one_of
from connector.config.names import Names
from connector.config.property import Property
from connector.config.secret import MASK, is_secret_name
from connector.errors import ConfigurationError, Problem
from spark_jobs.source_settings import SOURCE_PROPERTIES, source_problems
from spark_jobs.table_formats import DEFAULT, FORMATS

_MS = integer(0, LONG_MAX)


def _required(what: str) -> str:
    return f"A value is required: {what}"


# fmt: off
PROPERTIES: tuple[Property, ...] = (
    Property("name", STRING, "Names the job: its lease, its checkpoints.", required=_required("the job's name")),
    Property("bootstrap.servers", STRING, "Kafka's brokers.", required=_required("host:port of Kafka")),
    Property("topic.prefix", STRING, "The connector's `topic.prefix`.", required=_required("the connector's prefix")),
    Property("tables", TABLE_NAMES, "The tables to land.", required=_required("a list of keyspace.table")),
    Property("warehouse", STRING, "Folder of the landed tables, on any Hadoop file system.",
             required=_required("a folder")),
    Property("checkpoint", STRING, "Folder for Spark's own bookkeeping; may be deleted at any time.",
             default_text="`_checkpoint` in the warehouse"),
    Property("sink", one_of(*FORMATS), "The landed tables' format.", DEFAULT),
    Property("value.converter", STRING, "The connector's `value.converter`.", "JsonConverter"),
    Property("value.converter.schemas.enable", BOOLEAN, "The connector's setting of the same name.", True),
    Property("schema.registry.url", LIST, "The Schema Registry, for Avro.", (),
             aliases=("value.converter.schema.registry.url",)),
    Property("schema.topic", STRING, "Topic of the table definitions; empty if there is none.",
             default_text="`<topic.prefix>.schemas`"),
    Property("table.definitions", LIST, "CQL files with CREATE TYPE and CREATE TABLE, where the schemas topic has "
             "nothing (records of the Java connector).", ()),
    Property("table.definitions.format", one_of("legacy", "advanced"), "The `cdc.output.format` of those tables' "
             "records.", "legacy"),
    Property("column.types", STRING, "Declared types of columns: an object of `ks.table.column` to "
             "`decimal(p,s)` or, for timestamps, `bigint`.", {}),
    Property("merge.every.rows", integer(1, LONG_MAX), "Merge when so many changes are unmerged.", 1_000_000),
    Property("merge.every.ms", _MS, "Merge when the oldest unmerged change has waited so long; 0 = never by time.",
             600_000),
    Property("trigger.interval.ms", _MS, "How often new records are looked for.", 1000),
    Property("max.offsets.per.trigger", integer(1, LONG_MAX), "Records of a table in one micro-batch.", 500_000),
    Property("state.buckets", integer(1, 1_000_000), "Parts of a landed table, by hash of the partition key; "
             "fixed when the table is created. About one per 1-10 million rows, at least one per core.", 4),
    Property("reader.grace.ms", _MS, "How long merged changes stay for readers that began before (`maintain`).",
             3_600_000),
    Property("history", LIST, "Tables whose rows' versions are kept, as `ks.t__history`.", ()),
    Property("history.retention.ms", integer(1, LONG_MAX), "How far back these versions go (`maintain`).",
             default_text="for ever"),
    Property("tombstone.retention.ms", integer(1, LONG_MAX), "How long deletes are remembered at least: what is older "
             "than a delete that `maintain` has forgotten would appear again if it came late.", 864_000_000),
    Property("schema.evolution", one_of("evolve", "freeze"), "Whether landed tables follow the source's columns.",
             "evolve"),
    Property("schema.evolution.freeze", LIST, "Tables that do not follow, whatever schema.evolution says.", ()),
    Property("lease.timeout.ms", integer(1000, LONG_MAX), "A holder that is silent for so long has lost its lease.",
             60_000),
    Property("source.tasks", integer(0), "How many tasks of `verify` and `backfill` read the source at once; 0 means "
             "two per core.", 0),
    Property("retry.backoff.max.ms", integer(1, LONG_MAX), "Longest pause before a failed table is tried again.",
             30_000),
    Property("log.level", one_of("OFF", "ERROR", "WARN", "INFO"), "Spark's own log.", "OFF"),
)
# fmt: on
PREFIXES = ("kafka.", "spark.", "schema.registry.")
ALL_PROPERTIES = (*PROPERTIES, *SOURCE_PROPERTIES)
_BY_NAME = {name: declared for declared in ALL_PROPERTIES for name in (declared.name, *declared.aliases)}


@dataclass(frozen=True)
class Settings:
    """A checked landing configuration."""

    values: Mapping[str, Any]
    passed_on: Mapping[str, str] = field(default_factory=dict)
    file: str = "landing configuration"

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def name(self) -> str:
        return str(self.values["name"])

    @property
    def tables(self) -> tuple[TableName, ...]:
        return tuple(self.values["tables"])

    @property
    def names(self) -> Names:
        return Names(topic_prefix=self.values["topic.prefix"])

    @property
    def schema_topic(self) -> str:
        given = self.values["schema.topic"]
        return f"{self.values['topic.prefix']}.schemas" if given is None else str(given)

    @property
    def warehouse(self) -> str:
        return folder(str(self.values["warehouse"]))

    @property
    def checkpoint(self) -> str:
        return folder(str(self.values["checkpoint"] or f"{self.warehouse}/_checkpoint"))

    @property
    def avro(self) -> bool:
        return "avro" in str(self.values["value.converter"]).lower()

    def declared_types(self, table: TableName) -> dict[str, str]:
        """The user's types of a table's columns."""
        prefix = f"{table}."
        types: Mapping[str, str] = self.values["column.types"]
        return {name.removeprefix(prefix): kind for name, kind in types.items() if name.startswith(prefix)}

    def topics_of(self, table: TableName) -> list[str]:
        """The topics that the table's records are in: its data, its range deletes."""
        make = (self.names.data_topic, self.names.range_deletes_topic)
        return [topic(table.keyspace, table.table) for topic in make]

    def frozen(self, table: TableName) -> bool:
        """Whether the landed table keeps the columns it began with."""
        return self["schema.evolution"] == "freeze" or str(table) in self["schema.evolution.freeze"]

    def kafka(self) -> dict[str, str]:
        """Properties of Kafka's Java client."""
        given = {n.removeprefix("kafka."): v for n, v in self.passed_on.items() if n.startswith("kafka.")}
        return {**given, "bootstrap.servers": str(self.values["bootstrap.servers"])}

    def session_config(self) -> dict[str, Any]:
        """What ``open_session`` needs."""
        spark = {name: value for name, value in self.passed_on.items() if name.startswith("spark.")}
        parts = {"warehouse": self.warehouse, "sink": self["sink"], "log.level": self["log.level"]}
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
    document = _document(content, file)
    values: dict[str, Any] = {}
    for declared in ALL_PROPERTIES:
        values[declared.name] = _value(declared, content, document)
    passed_on = {name: text for name, text in document.texts.items() if name not in _BY_NAME}
    _unknown(document)
    if not document.problems:
        document.problems += [*_contradictions(values, file), *source_problems(document, values)]
    if document.problems:
        raise ConfigurationError(document.problems)
    return Settings(values, passed_on, file)


def _document(content: Mapping[str, Any], file: str) -> Document:
    document = Document(file)
    for name, value in content.items():
        if isinstance(value, list):
            document.put(name, ",".join(str(item) for item in value))
        elif isinstance(value, Mapping) or not isinstance(value, str):
            document.put(name, json.dumps(value))
        else:
            document.put(name, value)
    resolve_references(document, os.environ, provider_names(document))
    return document


def _value(declared: Property, content: Mapping[str, Any], document: Document) -> Any:
    given = [name for name in (declared.name, *declared.aliases) if name in document.texts]
    if not given:
        if declared.required:
            document.problems.append(Problem(declared.name, declared.required, file=document.file))
        return declared.default
    name = given[0]
    if name in document.broken:
        return declared.default
    if declared.name == "column.types":
        return _column_types(content[name], document)
    return _parsed(declared.kind, name, document.texts[name], document)


def _parsed(kind: Kind, name: str, text: str, document: Document) -> Any:
    try:
        return kind.parse(text)
    except Invalid as invalid:
        shown = document.masked(name, kind.secret)
        document.problems.append(Problem(name, invalid.problem, shown, invalid.suggestion, document.file))
        return None


def _column_types(given: Any, document: Document) -> dict[str, str]:
    if not isinstance(given, Mapping):
        expected = '{"ks.table.column": "decimal(10,2)"}'
        document.problems.append(Problem("column.types", "Must be an object", str(given), expected, document.file))
        return {}
    found: dict[str, str] = {}
    for column, kind in given.items():
        spelled = str(kind).replace(" ", "").lower()
        name = f"column.types.{column}"
        if column.count(".") < 2:
            document.problems.append(Problem(name, "Must be ks.table.column", file=document.file))
        elif spelled != "bigint" and not _is_decimal(spelled):
            document.problems.append(
                Problem(name, "Must be decimal(p,s) with p up to 38, or bigint", str(kind), file=document.file)
            )
        found[column] = spelled
    return found


def _is_decimal(spelled: str) -> bool:
    if not (spelled.startswith("decimal(") and spelled.endswith(")")):
        return False
    parts = spelled[len("decimal(") : -1].split(",")
    numbers = [int(part) for part in parts if part.isdecimal()]
    return len(parts) == len(numbers) == 2 and 0 <= numbers[1] <= numbers[0] <= 38 and numbers[0] > 0


def _unknown(document: Document) -> None:
    for name in document.texts:
        if name in _BY_NAME or name.startswith(PREFIXES):
            continue
        meant = nearest(name, _BY_NAME)
        value = MASK if is_secret_name(name) else document.written[name]
        hint = f"did you mean {meant}?" if meant else None
        document.problems.append(Problem(name, "Is not a property of landing", value, hint, document.file))


def _contradictions(values: Mapping[str, Any], file: str) -> list[Problem]:
    problems: list[Problem] = []
    known = {str(table) for table in values["tables"]}
    for name in ("schema.evolution.freeze", "history"):
        for table in values[name]:
            if table not in known:
                hint = nearest(table, known)
                meant = f"did you mean {hint}?" if hint else None
                problems.append(Problem(name, "Is not one of the tables", table, meant, file))
    if values["history.retention.ms"] is not None and not values["history"]:
        problems.append(Problem("history.retention.ms", "Has no effect without history", file=file))
    for column in values["column.types"]:
        if column.rsplit(".", 1)[0] not in known:
            problems.append(Problem(f"column.types.{column}", "Is not a column of one of the tables", file=file))
    if "avro" in values["value.converter"].lower() and not values["schema.registry.url"]:
        problems.append(Problem("schema.registry.url", "Is needed for Avro", file=file))
    problems += [
        Problem("table.definitions", "There is no such file", path, file=file)
        for path in values["table.definitions"]
        if not Path(path).is_file()
    ]
    return problems
