"""``ks.t`` for everybody: a table with the rows of the source and nothing else, kept up with what has landed.

In: a landed table and a ``Publisher``. Out: commits to the published table, each with the positions of the source's
topics that it stands for. What to do follows from the table itself: its last commit names the segment of the changelog
up to which it holds everything, and when that was. Only partitions that changes speak of, or of which something has
ended since, are looked at; only rows that differ are written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from connector.values import CqlType, NativeType
from spark_jobs.fold import visible_rows
from spark_jobs.model import (
    Key,
    Layout,
    identities,
    literal,
    partition_keys,
    present,
    quoted,
)
from spark_jobs.sinks import Publisher, new_columns, other_types
from spark_jobs.tables.affected import affected
from spark_jobs.tables.checkpoints import checkpointed
from spark_jobs.tables.landed_table import SESSION_CATALOG, LandedTable, Restored
from spark_jobs.tables.notes import Known, Offsets
from spark_jobs.tables.others_instead import others_instead
from spark_jobs.tables.shown_values import comparable, same, same_key
from spark_jobs.tables.small_plans import planned_once

_PARTS = 250
"""A table of many rows has about so many files: who looks for few keys reads few of them."""
_LEAST_ROWS, _MOST_ROWS = 10_000, 1_000_000
_SPANS, _MOST_NEAR = 32, 10_000
"""Of so many partitions at most, files are skipped by their keys, and each task is told of all of them."""
_LITTLE = 16 << 20
"""A state of so many bytes is worth a look whether it has few rows."""
_TIDIED_EVERY = 16
"""So many publications leave few small files."""
_DECIMAL = NativeType("decimal")
_INDEXED = frozenset(("ascii", "bigint", "int", "smallint", "text", "tinyint", "uuid", "timeuuid"))


@dataclass(frozen=True)
class Stand:
    """How far a published table goes: all of a lineage's segments up to this one, as they were at a second. Another
    lineage is another state."""

    lineage: int
    segment: int
    dropped: tuple[tuple[str, int], ...]
    at_s: int = 0
    own: bool = False
    """Whether it is who asks that has published it."""
    positions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def is_of(self, known: Known) -> bool:
        """Whether what is known now is still the same state, without a column that was dropped since."""
        return (self.lineage, self.dropped) == (known.lineage, _dropped(known.layout()))

    def covers(self, positions: Offsets) -> bool:
        """Whether all records before these positions are in it."""
        return all(
            offset <= self.positions.get(topic, {}).get(str(number), 0) for (topic, number), offset in positions.items()
        )


def free_segment(restored: Restored, stand: Stand | None) -> int:
    """The next segment to append to: none that is published already, where nobody would look for what is added."""
    known = restored.known
    if stand is None or known is None or stand.lineage != known.lineage:
        return restored.segment
    return max(restored.segment, stand.segment + 1)


class PublishedTable:
    """The published double of one landed table."""

    def __init__(
        self, publisher: Publisher, landed: LandedTable, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self.publisher = publisher
        self._say = say
        self._token = uuid.uuid4().hex
        self._turn: int | None = None
        self._untidied = _TIDIED_EVERY
        self._stored: tuple[Known, StructType] | None = None
        self._there = StructType()
        #: How many columns it had as it was published; 0 where nobody noted that.
        self._width = 0
        self.landed = LandedTable(publisher.session, landed.sink, landed.keyspace, landed.table)
        self.name = landed.folder

    def stand(self) -> Stand | None:
        """None where nothing is published, or nobody can tell how far.

        From here on this is who publishes the table: if somebody else does, what is published here is refused.
        """
        # Before anything else is looked at: what comes between the two is then somebody else's.
        self._turn = self.publisher.turn(self.name)
        if self._schema() is None:
            return None
        noted = self.publisher.note(self.name)
        if noted is None:
            return None
        try:
            self._width = int(noted.get("columns", 0))
            return Stand(
                lineage=int(noted["lineage"]),
                segment=int(noted["segment"]),
                dropped=tuple((str(name), int(time)) for name, time in noted["dropped"]),
                at_s=int(noted.get("at", 0)),
                own=noted.get("by") == self._token,
                positions={
                    topic: {number: int(offset) for number, offset in offsets.items()}
                    for topic, offsets in noted.get("positions", {}).items()
                },
            )
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None

    def is_behind(self, known: Known, stand: Stand) -> bool:
        """Whether rows that have landed, or columns, are still to come."""
        new = self._lacked(known, stand)
        # Asked of the rows themselves: a segment may have ended without any.
        return new is None or bool(new.fields) or self.landed.has_changes_beyond(stand.segment)

    def is_changed_by_others(self, known: Known) -> bool:
        """Whether it is not what was published of the same columns: somebody has restored other rows, written some, or
        added or dropped a column."""
        done = self.publisher.changed_by_others(self.name) or self._added_or_dropped(known)
        if done is not None:
            self._say(
                f"the published table {self.landed.name} is not as it was published: somebody else did {done}; it is "
                "made what the source has"
            )
        return done is not None

    def is_changed_meanwhile(self, known: Known) -> bool:
        """The same of a table that was not looked at for a while, and may be gone."""
        return self._schema() is None or self.is_changed_by_others(known)

    def _schema(self) -> StructType | None:
        """Its columns, which are those that others' changes are looked for in."""
        there = self.publisher.schema(self.name)
        self._there = StructType() if there is None else there
        return there

    def _added_or_dropped(self, known: Known) -> str | None:
        """Of columns that the source has got since none is missed."""
        names = {name for definition in known.definitions for name in definition.names}
        if more := [name for name in self._there.names if name not in names]:
            return f"ADD COLUMN {', '.join(more)}"
        there = set(self._there.names)
        if len(there) >= self._width:
            return None
        lacking = [column.name for column in known.layout().definition.columns if column.name not in there]
        return f"DROP COLUMN {', '.join(lacking)}" if lacking else None

    def publish(self, known: Known, stand: Stand | None, through: int, positions: Offsets) -> Stand:
        """Brings the table to everything landed up to the segment ``through``; ``LostRaceError`` if somebody else has
        published it since ``stand`` was asked for."""
        if self._turn is None:
            self._turn = self.publisher.turn(self.name)
        layout = known.layout()
        dropped, at_s, places = _dropped(layout), int(time.time()), _by_topic(positions)
        now = Stand(known.lineage, through, dropped, at_s, True, places)
        note = {"lineage": now.lineage, "segment": through, "dropped": dropped, "at": at_s, "positions": places}
        width = len(self._wanted(known).names)
        note |= {"by": self._token, "columns": width}
        new, same_columns = self._lacked(known, stand), stand is not None and stand.is_of(known)
        # A table that is gone is made again, whatever came before that.
        others = same_columns and bool(self._there.names) and self.is_changed_by_others(known)
        if same_columns and new is None and not others:
            self._tell_types(known)
        if stand is not None and new is not None and not others:
            if new.fields:
                self.publisher.widen(self.name, new)
            self._merge(layout, self._wanted(known), stand, now, note)
        elif not self.publisher.is_own(self.name) or not self._has_mended(layout, self._wanted(known), now, note):
            self._replace(layout, now, note)
        if self._untidied >= _TIDIED_EVERY:
            self.publisher.tidy(self.name)
            self._untidied = 0
        self._width = width
        return now

    def _lacked(self, known: Known, stand: Stand | None) -> StructType | None:
        """The columns that are still to come; None where all of the table is to be made anew."""
        if stand is None or not stand.is_of(known):
            return None
        there = self._schema()
        return None if there is None else new_columns(there, self._wanted(known))

    def _tell_types(self, known: Known) -> None:
        """Why all of it is written anew: the source, or somebody else, has given columns other types."""
        if types := other_types(self._there, self._wanted(known)):
            found = ", ".join(f"{name} is {there} in it, and {wanted} in the source" for name, there, wanted in types)
            self._say(f"the published table {self.landed.name} is written anew as a whole: {found}")

    def _wanted(self, known: Known) -> StructType:
        """The columns that it shall have. They follow from what is known; only to ask Spark for them takes long."""
        if self._stored is None or self._stored[0] != known:
            shown = self.landed.session.sql(self.landed.view_text(known.layout()))
            self._stored = known, self.publisher.stored(shown.schema)
        return self._stored[1]

    def _commit(self, commit: Callable[[int], None]) -> None:
        """Only what succeeded counts: a number that was not used must not let a late commit pass for a newer one."""
        assert self._turn is not None
        commit(self._turn + 1)
        self._turn += 1

    def enroll(self, catalog: str, known: Known) -> None:
        """Registers the table in a catalog, for those who look for it there. In the session's own catalog it takes the
        name that the live view had."""
        if catalog == SESSION_CATALOG:
            self.landed.make_way()
        self.publisher.enroll(self.name, quoted(catalog, self.landed.keyspace, self.landed.table))
        if catalog == SESSION_CATALOG:
            self.landed.register(known.layout())

    def differences(self, known: Known, stand: Stand) -> int:
        """In how many rows the table is not what the landed state shows, or showed when it was published."""
        layout = known.layout()
        shown = self.landed.session.sql(self.landed.view_text(layout, f"{stand.at_s}L"))
        types = {column.name: column.type for column in layout.definition.columns}
        columns = [f"{comparable(types[name], quoted(name))} AS c{at}" for at, name in enumerate(shown.columns)]
        # Each side is read once: of a row there are as many in both where these come to nothing.
        landed = shown.selectExpr(*columns, "1 AS surplus")
        published = self._rows().select(*map(quoted, shown.columns)).selectExpr(*columns, "-1 AS surplus")
        each = landed.unionAll(published).groupBy(*(f"c{at}" for at in range(len(columns)))).sum("surplus")
        found = each.selectExpr("sum(abs(`sum(surplus)`)) AS number").first()
        return 0 if found is None or found["number"] is None else int(found["number"])

    def compact(self) -> None:
        """Fewer files."""
        self.publisher.compact(self.name)

    def vacuum(self, older_than_ms: int) -> None:
        """No files that only readers of the past need."""
        self.publisher.vacuum(self.name, older_than_ms)

    def _rows(self) -> DataFrame:
        return self.publisher.session.table(self.publisher.relation(self.name))

    def _replace(self, layout: Layout, now: Stand, note: Mapping[str, Any]) -> None:
        state, size = self.landed.state, _LEAST_ROWS
        # A key takes more than a byte, so that what is small need not be counted.
        if self.landed.sink.files(state.table)[1] > _PARTS * _LEAST_ROWS:
            count = self.landed.session.table(state.relation).count()
            size = min(max(count // _PARTS, _LEAST_ROWS), _MOST_ROWS)
        indexed = [*map(_is_indexed, layout.keys), False].index(False)
        frame = self.landed.session.sql(self.landed.view_text(layout, f"{now.at_s}L"))
        self._commit(lambda turn: self.publisher.replace(self.name, frame, note, indexed, size, turn))
        self._untidied = _TIDIED_EVERY

    def _merge(self, layout: Layout, wanted: StructType, before: Stand, now: Stand, note: Mapping[str, Any]) -> None:
        if self._has_merged(layout, wanted, before, now, note):
            self._untidied += 1
        elif now.segment != before.segment:
            # What has landed was there already: its positions are told all the same.
            self._commit(lambda turn: self.publisher.stay(self.name, note, turn))

    def _has_mended(self, layout: Layout, wanted: StructType, now: Stand, note: Mapping[str, Any]) -> bool:
        """Makes it what has landed by the rows that differ, all of them looked at, so that who follows its changes is
        told no others; False where it has other columns, or rows that their keys do not tell apart."""
        there = self.publisher.schema(self.name)
        added = None if there is None else new_columns(there, wanted)
        if added is None or added.fields or self._has_twins(layout):
            return False
        # What comes between this look and the commit is found by the next one.
        self.publisher.changed_by_others(self.name)
        relation, self._untidied = self.publisher.relation(self.name), _TIDIED_EVERY
        fresh, old = self.landed.view_text(layout, f"{now.at_s}L"), f"SELECT * FROM {relation}"
        keys = ", ".join(comparable(key.type, quoted(key.name)) for key in layout.keys)
        twice = f"SELECT 1 FROM ({old}) AS rows GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
        with ExitStack() as stack:
            if self.landed.sink.files(self.landed.state.table)[1] <= _LITTLE:
                rows = others_instead(stack, self.landed.session, layout, fresh, relation)
                if rows is not None:
                    self._commit(lambda turn: self.publisher.overwrite(self.name, rows, note, turn))
                    return True
            if self.landed.session.sql(twice).collect():
                return False
            if not self._has_changed(stack, layout, wanted, fresh, old, _near([]), note):
                self._commit(lambda turn: self.publisher.stay(self.name, note, turn))
        return True

    def _has_merged(
        self, layout: Layout, wanted: StructType, before: Stand, now: Stand, note: Mapping[str, Any]
    ) -> bool:
        """Whether any row is another one now."""
        session = self.landed.session
        first = layout.partition[0]
        with ExitStack() as stack:
            with planned_once(session):
                segments, span = (before.segment, now.segment), (before.at_s, now.at_s)
                found = affected(stack, self.landed, layout, segments, span)
                some = found.parts(layout, _MOST_NEAR + 1)
            if not some:
                return False
            if self._has_twins(layout):
                self._replace(layout, now, note)
                return True
            few = some if len(some) <= _MOST_NEAR else []
            buckets = sorted({row[0] for row in few})
            near = _near([row[1] for row in few] if _is_indexed(first) else [])
            those = found.picked(stack, layout, few)
            if few:
                stack.enter_context(planned_once(session))
            # Most of many changes after the mark are the very ones that are to be published.
            whole = None if few else segments
            among = [each.among() for each in those]
            patches = self.landed.folded_text(layout, among, buckets, near(quoted(first.value)), whole)
            fresh = visible_rows(layout, patches, f"{now.at_s}L")
            there = f"SELECT * FROM {self.publisher.relation(self.name)} WHERE {near(quoted(first.name))}"
            old = " UNION ALL ".join(each.shown(there) for each in those)
            return self._has_changed(stack, layout, wanted, fresh, old, near, note)

    def _has_changed(
        self,
        stack: ExitStack,
        layout: Layout,
        wanted: StructType,
        fresh: str,
        old: str,
        near: Callable[[str], str],
        note: Mapping[str, Any],
    ) -> bool:
        """Makes ``fresh`` rows of ``old`` ones, which are ``near``, by those that differ; False if none does."""
        keys, columns = [key.name for key in layout.keys], wanted.names
        taken = {name.lower() for name in columns}
        gone = next(text for text in (f"gone{'_' * at}" for at in range(len(columns) + 1)) if text not in taken)
        marked = quoted(gone)
        shown = [
            f"CASE WHEN n.{marked} IS NULL THEN o.{quoted(each)} ELSE n.{quoted(each)} END AS {quoted(each)}"
            if each in keys
            else f"n.{quoted(each)}"
            for each in columns
        ]
        differ = " OR ".join(
            f"NOT ({same(_type_of(layout, each), f'n.{quoted(each)}', f'o.{quoted(each)}')})"
            for each in columns
            if each not in keys
        )
        differing = self.landed.session.sql(
            f"SELECT {', '.join(shown)}, n.{marked} IS NULL AS {marked} "
            f"FROM (SELECT *, false AS {marked} FROM ({fresh}) AS fresh) AS n "
            f"FULL OUTER JOIN (SELECT *, false AS {marked} FROM ({old}) AS old) AS o ON {same_key(layout, 'n', 'o')} "
            f"WHERE n.{marked} IS NULL OR o.{marked} IS NULL OR {differ or 'false'}"
        )
        changes = stack.enter_context(checkpointed(differing))
        count = changes.limit(_MOST_NEAR + 1).count()
        if not count:
            return False
        if count <= _MOST_NEAR:
            changes = F.broadcast(changes)
        matched = f"{same_key(layout, 't', 's')} AND ({near(f't.{quoted(layout.partition[0].name)}')})"
        self._commit(lambda turn: self.publisher.merge(self.name, changes, matched, columns, gone, note, turn))
        return True

    def _has_twins(self, layout: Layout) -> bool:
        """Whether partitions are shown with one key that are two, as 1.0 and 1.00 are with a declared decimal: by what
        is shown, no row of the one can be told from the other's."""
        if not any(key.name in layout.declared and key.type == _DECIMAL for key in layout.partition):
            return False
        names = ", ".join(map(quoted, identities(layout, partition_only=True)))
        shown = [present(key.type, quoted(key.value), layout.declared.get(key.name)) for key in layout.partition]
        columns = ", ".join(map(quoted, dict.fromkeys(partition_keys(layout))))
        there = (self.landed.state.rows(layout), f"{self.landed.tail_text()} AND bucket IS NOT NULL")
        rows = " UNION ALL ".join(f"SELECT {columns} FROM ({source}) AS source" for source in there)
        twins = f"SELECT 1 FROM ({rows}) AS rows GROUP BY {', '.join(shown)} HAVING count(DISTINCT {names}) > 1 LIMIT 1"
        return bool(self.landed.session.sql(twins).collect())


def _near(values: Sequence[Any]) -> Callable[[str], str]:
    """Of a column by its name: that it has one of these values, told in few words; of no values, that it has any.

    Files that have no such row are neither read nor looked for rows to replace.
    """
    spans = _spans(sorted(set(values)))
    return lambda name: " OR ".join(_within(name, *map(_spelled, span)) for span in spans) or "true"


def _spans(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Spans that hold all of the sorted values: each of few, one of many: long conditions are dear.

    >>> _spans([1, 4]), _spans(range(100))
    ([(1, 1), (4, 4)], [(0, 99)])
    """
    return [(value, value) for value in values] if len(values) <= _SPANS else [(values[0], values[-1])]


def _within(name: str, least: str, most: str) -> str:
    return f"{name} = {least}" if least == most else f"{name} BETWEEN {least} AND {most}"


def _spelled(value: str | int) -> str:
    return literal(value) if isinstance(value, str) else f"CAST('{value}' AS bigint)"


def _is_indexed(key: Key) -> bool:
    return isinstance(key.type, NativeType) and key.type.name in _INDEXED


def _type_of(layout: Layout, name: str) -> CqlType:
    return next(column.type for column in layout.definition.columns if column.name == name)


def _dropped(layout: Layout) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(layout.definition.dropped))


def _by_topic(positions: Offsets) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(positions.items()):
        found.setdefault(topic, {})[str(number)] = offset
    return found
