"""What `verify` found: per table, and as text for people or JSON for machines.

In: counts, and the first differences. Out: lines and documents. Values are shown as CQL would write them where that
is short: dates and timestamps by the calendar, blobs in hexadecimal digits.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from connector.values import CqlType, NativeType, UserType
from spark_jobs.verify.sql import CELL, EXTRA, MISSING

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Difference:
    """One cell, or a whole row, that the two sides do not agree about; times are write times in microseconds."""

    table: str
    what: str
    key: dict[str, Any]
    column: str
    source: Any
    landed: Any
    source_us: int | None
    landed_us: int | None

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "key": self.key,
            "column": self.column or None,
            "source": self.source,
            "landed": self.landed,
            "source_us": self.source_us,
            "landed_us": self.landed_us,
        }

    def text(self) -> str:
        key = ", ".join(f"{name}={_spelled(value)}" for name, value in self.key.items())
        if self.what == MISSING:
            return f"{self.table} ({key}): not landed: {_spelled(self.source)}{_written(self.source_us)}"
        if self.what == EXTRA:
            return f"{self.table} ({key}): not in the source: {_spelled(self.landed)}{_written(self.landed_us)}"
        if not self.key:
            return f"{self.table}, column {self.column}: source {_spelled(self.source)}, landed {_spelled(self.landed)}"
        return (
            f"{self.table} ({key}) {self.column}: source {_spelled(self.source)}{_written(self.source_us)}, "
            f"landed {_spelled(self.landed)}{_written(self.landed_us)}"
        )


REMEDY = "  scylla-cdc backfill lands what is missing or older here, land --rebuild {table} all of the table anew"
"""Where rows differ and nothing is on its way."""
TRUNCATED = " (after a TRUNCATE with --truncated-at: the topics have those rows)"


@dataclass
class Verdict:
    """One table. ``problem`` is why it could not be compared, which counts as a difference."""

    table: str
    source_rows: int = 0
    landed_rows: int = 0
    differences: int = 0
    moving: int = 0
    rounds: int = 0
    read_twice: int = 0
    behind: int | None = None
    skipped: tuple[str, ...] = ()
    dead_letters: int = 0
    first: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "differences": self.differences,
            "source_rows": self.source_rows,
            "landed_rows": self.landed_rows,
            "moving": self.moving,
            "rounds": self.rounds,
            "read_twice": self.read_twice,
            "behind": self.behind,
            "skipped": list(self.skipped),
            "dead_letters": self.dead_letters,
            "problem": self.problem,
            "notes": self.notes,
            "first": [each.as_json() for each in self.first],
        }

    def lines(self) -> list[str]:
        if self.problem is not None:
            return [f"{self.table}: cannot be compared: {self.problem}"]
        said = [f"{self.source_rows:,} rows, {self.differences:,} differences"]
        if self.read_twice:
            said.append(f"{self.read_twice:,} partitions read twice")
        if self.moving:
            said.append(f"{self.moving:,} rows still moving")
        if self.skipped:
            said.append(f"skipped {', '.join(self.skipped)}")
        if self.dead_letters:
            said.append(f"{self.dead_letters:,} dead letters")
        if self.behind:
            said.append(f"landing is behind by {self.behind:,} records")
        lines = [f"{self.table}: {', '.join(said)}", *(f"  {note}" for note in self.notes)]
        lines += [f"  {each.text()}" for each in self.first]
        if len(self.first) < self.differences:
            lines.append(f"  … and {self.differences - len(self.first):,} more")
        if any(each.key for each in self.first) and self.behind == 0:
            truncated = TRUNCATED if any(each.what == EXTRA for each in self.first) else ""
            lines.append(REMEDY.format(table=self.table) + truncated)
        return lines


def total(verdicts: list[Verdict]) -> int:
    return sum(each.differences for each in verdicts)


def as_json(verdicts: list[Verdict]) -> dict[str, Any]:
    return {
        "differences": total(verdicts),
        "moving": sum(each.moving for each in verdicts),
        "skipped": sum(len(each.skipped) for each in verdicts),
        "dead_letters": sum(each.dead_letters for each in verdicts),
        "tables": {each.table: each.as_json() for each in verdicts},
    }


def as_text(verdicts: list[Verdict]) -> str:
    lines = [line for each in verdicts for line in each.lines()]
    return "\n".join([*lines, f"{total(verdicts):,} differences"])


def shown(text: str | None, type_: CqlType | None) -> Any:
    """A value from the JSON that Spark wrote of the stored one."""
    if text is None:
        return None
    return _native(json.loads(text)["v"], type_)


def _native(value: Any, type_: CqlType | None) -> Any:
    name = type_.name if isinstance(type_, NativeType) else ""
    if name == "blob":
        return "0x" + base64.b64decode(value).hex()
    try:
        if name == "date":
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if name == "timestamp":
            return (_EPOCH + timedelta(milliseconds=value)).isoformat(timespec="milliseconds")
    except OverflowError:
        return value
    return value


def shown_difference(table: str, row: Mapping[str, Any], types: Mapping[str, CqlType]) -> Difference:
    """A row of the comparison: the key and both values are JSON that Spark wrote."""
    column = row["column"]
    type_ = types.get(column)
    if type_ is None and "." in column:
        whole = types.get(column.partition(".")[0])
        fields = dict(whole.fields) if isinstance(whole, UserType) else {}
        type_ = fields.get(column.partition(".")[2])
    if row["what"] == CELL:
        source, landed = (shown(row[side], type_) for side in ("source", "landed"))
    else:
        source, landed = (None if row[side] is None else json.loads(row[side]) for side in ("source", "landed"))
    key = {name: _native(value, types.get(name)) for name, value in json.loads(row["key"]).items()}
    return Difference(table, row["what"], key, column, source, landed, row["source_us"], row["landed_us"])


def _spelled(value: Any) -> str:
    return "null" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _written(us: int | None) -> str:
    return "" if us is None else f" (written {us})"
