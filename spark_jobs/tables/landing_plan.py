"""Which versions a table is landed with, and what makes it impossible: checked before and while records are read.

In: the versions of the schemas topic (or of CQL files), what is already noted in the warehouse, and the settings. Out:
the ``Known`` to prepare the table with, notices for the user, or ``LandingError`` with the reason and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from connector.errors import LandingError
from connector.table_name import TableName
from connector.values import CqlType, NativeType
from spark_jobs.config import Settings
from spark_jobs.fold import check_names
from spark_jobs.model import TableDefinition
from spark_jobs.tables.landed_table import Known, same_versions

ADVANCED = (
    "{table}: the records are full row images (cdc.output.format=advanced): the landed table equals the source only "
    "without concurrent writers and without writes whose timestamps lie in the past"
)


@dataclass(frozen=True)
class Plan:
    known: Known
    changed: bool
    recreated: bool = False


def plan_table(settings: Settings, table: TableName, versions: Sequence[TableDefinition], noted: Known | None) -> Plan:
    """What to land with.

    The versions of an older table of the same name stay known, after which nothing of it exists any more: its columns
    in the warehouse may have other types than those of the same name now.
    """
    if not versions and noted is None:
        raise LandingError(
            f"{table}: no definition is known: the topic {settings.schema_topic or '(none)'} has no record of it, "
            "and table.definitions names no file with its CREATE TABLE"
        )
    history = str(table) in settings.history
    if not versions:
        assert noted is not None
        return _as_noted(noted, history)
    current = versions[-1]
    together = list(versions)
    recreated = noted is not None and noted.definitions[-1].table_id != current.table_id
    if noted is not None:
        # The warehouse may know versions that compaction has removed from the topic.
        texts = {version.text for version in together}
        together = [version for version in noted.definitions if version.text not in texts] + together
    if noted is not None and not recreated and settings.frozen(table):
        return _as_noted(noted, history)
    check_output(current)
    declared = settings.declared_types(table)
    check_declared(table, current, declared)
    if history:
        check_names(current)
    known = Known(
        definitions=tuple(together),
        declared=declared,
        buckets=noted.buckets if noted else settings.state_buckets,
        not_before=noted.not_before if noted and not recreated else None,
        sequence=noted.sequence + 1 if noted else 1,
        backfilled=noted.backfilled if noted and not recreated else None,
        history=history,
    )
    if (
        noted is not None
        and not recreated
        and same_versions(noted.definitions, together)
        and dict(noted.declared) == declared
        and noted.history == known.history
    ):
        return Plan(noted, changed=False)
    return Plan(known, changed=True, recreated=recreated)


def _as_noted(noted: Known, history: bool) -> Plan:
    if noted.history == history:
        return Plan(noted, changed=False)
    return Plan(replace(noted, history=history, sequence=noted.sequence + 1), changed=True)


def check_output(definition: TableDefinition) -> None:
    """Refuses records that cannot converge to the source, with the connector's property that would help."""
    output, name = definition.output, definition.name
    skipped = sorted({"c", "u", "d"} & set(output.skipped_operations))
    if skipped:
        raise LandingError(f"{name}: skipped.operations leaves out {', '.join(skipped)}; landing needs c, u and d")
    if output.images:
        if output.after != "full":
            raise LandingError(
                f"{name}: advanced records with cdc.include.after={output.after} do not contain whole rows; "
                "set cdc.include.after=full and postimage in the table, or use cdc.output.format=legacy"
            )
        return
    if output.collections != "delta" and (left_out := _left_out_keys(definition)):
        raise LandingError(
            f"{name}: the key columns {', '.join(left_out)} are not in the records; set cdc.include.collections=delta"
        )
    if output.collections != "delta" and (missing := _left_out(definition)):
        raise LandingError(
            f"{name}: the columns {', '.join(missing)} are not in the records; set cdc.include.collections=delta"
        )


def check_same_table(definition: TableDefinition, described: TableDefinition) -> None:
    """What the user's CQL files say must agree with what the schemas topic says."""
    ours = {column.name: (column.type.cql(), column.kind) for column in definition.columns}
    theirs = {column.name: (column.type.cql(), column.kind) for column in described.columns}
    if ours != theirs:
        names = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        raise LandingError(
            f"{definition.name}: table.definitions and the schemas topic disagree about {', '.join(names)}; "
            "take the table out of the files, or correct them"
        )


def check_declared(table: TableName, definition: TableDefinition, declared: dict[str, str]) -> None:
    """Declared types must be of columns that exist and can have them."""
    columns = {column.name: column for column in definition.columns}
    for name, kind in declared.items():
        column = columns.get(name)
        if column is None:
            raise LandingError(f"column.types.{table}.{name}: the table has no such column")
        base = column.type.name if isinstance(column.type, NativeType) else column.type.cql()
        fits = ("timestamp",) if kind == "bigint" else ("decimal", "varint")
        if base not in fits:
            raise LandingError(f"column.types.{table}.{name}: a {base} cannot be landed as {kind}")


def notices(definition: TableDefinition) -> list[str]:
    """What a user should know before the first record lands."""
    found: list[str] = []
    if definition.output.images:
        found.append(ADVANCED.format(table=definition.name))
    if definition.output.range_deletes != "topic" and definition.of_kind("clustering"):
        found.append(
            f"{definition.name}: range and partition deletes are not in the records; set cdc.range.deletes=topic"
        )
    return found


def _is_plain(type_: CqlType) -> bool:
    return isinstance(type_, NativeType)


def _left_out_keys(definition: TableDefinition) -> list[str]:
    keys = definition.of_kind("partition_key") + definition.of_kind("clustering")
    return [column.name for column in keys if not _is_plain(column.type)]


def _left_out(definition: TableDefinition) -> list[str]:
    others = definition.of_kind("static") + definition.of_kind("regular")
    return [column.name for column in others if not _is_plain(column.type)]
