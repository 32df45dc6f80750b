"""Which versions a table is landed with, and what makes it impossible: checked before and while records are read.

In: the versions of the schemas topic (or of CQL files), what is already noted in the warehouse, and the settings. Out:
the ``Known`` to prepare the table with, notices for the user, or ``LandingError`` with the reason and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from connector.errors import LandingError
from connector.table_name import TableName
from connector.values import CqlType, NativeType
from spark_jobs.config import Settings
from spark_jobs.fold import check_names
from spark_jobs.model import TableDefinition, has_fields, immovable, moved, same_table
from spark_jobs.tables.frozen_columns import frozen
from spark_jobs.tables.landed_table import Restored, same_versions
from spark_jobs.tables.notes import Known, Offsets, together

ADVANCED = (
    "{table}: the records are full row images (cdc.output.format=advanced): the landed table equals the source only "
    "without concurrent writers and without writes whose timestamps lie in the past"
)
NOT_TOLD = (
    "{table}: the schemas topic {topic} tells nothing of it, so it is landed by the definition that is noted, with the "
    "table's id; table.definitions has nothing new"
)
KEYS_ONLY = "records that were made with 'delta': 'keys' have no values"
DROPPED_TYPE = "{table}: {column} is dropped, so column.types has no effect on it"


@dataclass(frozen=True)
class Plan:
    """``told`` is what a user should know of it."""

    known: Known
    changed: bool
    recreated: bool = False
    told: tuple[str, ...] = ()


def plan_table(
    settings: Settings,
    table: TableName,
    versions: Sequence[TableDefinition],
    noted: Known | None,
    lacking: str | None = None,
    topic_ids: Mapping[str, str] | None = None,
) -> Plan:
    """What to land with. ``lacking`` is what has turned out to be missing, ``topic_ids`` are those of the topics now.

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
        return _as_noted(noted, history, lacking, topic_ids)
    told: tuple[str, ...] = ()
    if noted is not None and _says_less(versions[-1], noted):
        # What was told before was told by a topic that may just be misspelt now.
        told = (NOT_TOLD.format(table=table, topic=settings.schema_topic or "(none)"),)
        versions = noted.definitions if noted.source is None else (*noted.definitions, noted.source)
    current = _current(versions)
    # One without an id is of any table with as many keys: what a CQL file described, a connector publishes with its id.
    recreated = noted is not None and not same_table(_with_id(noted), current)
    going_on = None if recreated else noted
    check_output(current)
    keyed = _without_values(versions, going_on, current)
    lacking = lacking or (KEYS_ONLY if keyed else None)
    declared = settings.declared_types(table)
    if going_on is not None and settings.frozen(table):
        kept, more = frozen(table, going_on, versions, current, declared)
        kept = replace(kept, keyed=(*kept.keyed, *keyed))
        return _as_noted(going_on, history, lacking, topic_ids, kept, (*told, *more))
    told += check_declared(table, current, declared)
    if history:
        check_names(current)
    definitions = together(noted, versions, current)
    if going_on is None:
        known = _anew(settings, noted, definitions, declared, history, lacking, topic_ids)
        return Plan(known, changed=True, recreated=recreated, told=told)
    lacking = lacking or going_on.incomplete or _not_carried(going_on.definitions[-1], current)
    known = replace(
        going_on,
        definitions=definitions,
        declared=declared,
        sequence=going_on.sequence + 1,
        history=history,
        incomplete=lacking,
        filled_to=_filled_to(going_on, lacking),
        source=None,
        lineage=going_on.lineage + _shows_again(going_on, current),
        topic_ids=_ids(going_on, topic_ids),
    )
    same = same_versions(going_on.definitions, definitions) and dict(going_on.declared) == declared
    if same and _beside(going_on) == _beside(known):
        return Plan(going_on, changed=False, told=told)
    return Plan(known, changed=True, told=told)


def _anew(
    settings: Settings,
    older: Known | None,
    definitions: tuple[TableDefinition, ...],
    declared: dict[str, str],
    history: bool,
    lacking: str | None,
    topic_ids: Mapping[str, str] | None,
) -> Known:
    """A table of which nothing has landed. It is stored as an older one of its name, and goes on counting."""
    first = Known(
        definitions,
        declared,
        settings.state_buckets,
        sequence=1,
        history=history,
        incomplete=lacking,
        topic_ids=_ids(older, topic_ids),
    )
    if older is None:
        return first
    return replace(
        first,
        buckets=older.buckets,
        sequence=older.sequence + 1,
        lineage=older.lineage + 1,
        expiring=older.expiring,
    )


def _without_values(
    versions: Sequence[TableDefinition], noted: Known | None, current: TableDefinition
) -> tuple[str, ...]:
    """Versions of which nobody has noted anything yet, and whose records lack values: the log had keys only then."""
    seen = {version.text for version in noted.definitions} | {*noted.keyed} if noted else set[str]()
    new = [each for each in versions if each.text not in seen and same_table(each, current)]
    return tuple(each.text for each in new if each.lacks_values)


def _with_id(noted: Known) -> TableDefinition:
    """The current definition, with the id that was told last if it has none."""
    told = (version.table_id for version in reversed(noted.definitions) if version.table_id is not None)
    return replace(noted.definitions[-1], table_id=next(told, None))


def _says_less(described: TableDefinition, noted: Known) -> bool:
    """Whether a CQL file has no column that a definition with an id, which it has not, does not know."""
    current = noted.definitions[-1]
    if current.table_id is None or described.table_id is not None:
        return False
    known = {(column.name, column.type) for version in noted.definitions for column in version.columns}
    new = {(column.name, column.type) for column in described.columns} - known
    return not new or not same_table(current, described)


def _not_carried(noted: TableDefinition, current: TableDefinition) -> str | None:
    """What was left out of a table as long as only a CQL file described it."""
    if noted.table_id is not None or current.table_id is None or noted.output.images:
        return None
    missing = [each.name for each in current.columns if each.name not in noted.names and not _is_plain(each.type)]
    return f"records that landed with table.definitions had no {', '.join(missing)}" if missing else None


def _shows_again(noted: Known, current: TableDefinition) -> bool:
    """Whether columns come back that were never dropped: they have values in rows that were published without them."""
    before = [version for version in noted.definitions if same_table(version, current)]
    hidden = {column.name for version in before for column in version.columns} - noted.definitions[-1].names
    back = {column.name for column in current.columns if column.kind in ("static", "regular")}
    return bool(hidden & back - dict(current.dropped).keys())


def _as_noted(
    noted: Known,
    history: bool,
    lacking: str | None,
    topic_ids: Mapping[str, str] | None,
    going_on: Known | None = None,
    told: tuple[str, ...] = (),
) -> Plan:
    """``going_on``: also what is not noted of the source, while what is shown stays."""
    lacking = lacking or noted.incomplete
    known = replace(
        going_on or noted,
        history=history,
        incomplete=lacking,
        filled_to=_filled_to(noted, lacking),
        topic_ids=_ids(noted, topic_ids),
    )
    if same_versions(noted.definitions, known.definitions) and _beside(noted) == _beside(known):
        return Plan(noted, changed=False, told=told)
    return Plan(replace(known, sequence=noted.sequence + 1), changed=True, told=told)


def _filled_to(noted: Known, lacking: str | None) -> int | None:
    """How far an unfinished backfill has read the source. It did so before more was known to be missing."""
    return noted.filled_to if lacking == noted.incomplete else None


def _beside(known: Known) -> tuple[bool, str | None, dict[str, str], TableDefinition | None, tuple[str, ...]]:
    """What is noted beside the versions and changes without them."""
    return known.history, known.incomplete, dict(known.topic_ids), known.source, known.keyed


def _ids(noted: Known | None, now: Mapping[str, str] | None) -> Mapping[str, str]:
    """Those of a topic that is away for a while stay."""
    return {**(noted.topic_ids if noted else {}), **(now or {})}


def _current(versions: Sequence[TableDefinition]) -> TableDefinition:
    """The last version of the youngest table: a worker that was slow may publish what an older one was once more."""
    youngest = max((version.created_ms or 0 for version in versions), default=0)
    if versions[-1].created_ms is None:
        return versions[-1]
    return next(version for version in reversed(versions) if (version.created_ms or 0) == youngest)


def lacking(restored: Restored, begins: Offsets) -> str | None:
    """What the topics have lost before any of it was landed; None if nothing."""
    if restored.known is not None and restored.known.backfilled is not None:
        return None
    for (topic, number), begin in sorted(begins.items()):
        if begin > 0 and (topic, number) not in restored.positions:
            return f"the first {begin} records of {topic}, partition {number}, expired before they were landed"
    return None


def check_rebuilt(table: TableName, noted: Known | None) -> None:
    """Refuses to land on what a rebuild has emptied and not filled."""
    if noted is not None and noted.rebuilding:
        raise LandingError(
            f"{table}: a rebuild ended before it had read the source ({noted.incomplete}), so rows are missing; "
            f"run scylla-cdc land --rebuild {table} again, or scylla-cdc backfill"
        )


def check_landed(table: TableName, noted: Known | None, known: Known) -> bool:
    """Refuses to go on with rows that the new definitions could not be told of. Returns whether their keys move."""
    if noted is None:
        return False
    remedy = f"scylla-cdc land --rebuild {table} lands the table anew"
    before, after = noted.layout(), known.layout()
    moving = moved(before, after)
    stuck = (moving[0] if noted.history else immovable(before, after)) if moving else None
    if stuck is not None:
        old, new = stuck
        raise LandingError(
            f"{table}: the key column {new.name} was changed from {old.type.cql()} to {new.type.cql()}, and landed "
            f"rows{' of a table with a history' if noted.history else ''} cannot be found by that; {remedy}"
        )
    parts = [key.type for key in after.clustering] + [part.key_type for part in after.elements]
    if noted.form < 1 and any(has_fields(type_) for type_ in parts):
        raise LandingError(
            f"{table}: it was landed by an earlier version, which compared tuples in another way; {remedy}"
        )
    return bool(moving)


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
    if definition.lacks_values:
        raise LandingError(
            f"{name}: its log has keys only ('delta': 'keys' in the table's cdc options), so that the records have no "
            "values; set 'delta': 'full', or both images and cdc.output.format=advanced, and backfill what was written"
        )
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


def check_declared(table: TableName, definition: TableDefinition, declared: dict[str, str]) -> tuple[str, ...]:
    """Declared types must be of columns that exist and can have them. Returns what is said of those that were dropped:
    a change of the source must not stop its table until somebody has changed a file."""
    columns, dropped = {column.name: column for column in definition.columns}, dict(definition.dropped)
    told: list[str] = []
    for name, kind in declared.items():
        column = columns.get(name)
        if column is None and name in dropped:
            told.append(DROPPED_TYPE.format(table=table, column=name))
            continue
        if column is None:
            raise LandingError(f"column.types.{table}.{name}: the table has no such column")
        base = column.type.name if isinstance(column.type, NativeType) else column.type.cql()
        fits = ("timestamp",) if kind == "bigint" else ("decimal", "varint")
        if base not in fits:
            raise LandingError(f"column.types.{table}.{name}: a {base} cannot be landed as {kind}")
    return tuple(told)


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
