"""The demo's answer: what was written, delivered and landed, whether they are the same, and one key's story.

In: what the demo found. Out: `text` for people, at most 60 columns wide, and `value` for machines.
"""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedded.demo.workload import Told

WIDTH = 60
_SHOWN_DIFFERENCES = 10


@dataclass
class Findings:
    seed: int
    kinds: dict[str, int]
    write_seconds: float
    source_rows: dict[str, int]
    landed_rows: dict[str, int]
    differences: int
    details: list[str]
    logged: int
    records: int
    missing: int
    doubled: int
    old_rows: int
    snapshots: int
    breaches: list[str]
    latencies_ms: list[int]
    confidence_ms: int
    dead_letters: list[dict[str, str]]
    landing_seconds: float
    story: list[Told]
    story_source: dict[str, Any]
    story_landed: dict[str, Any]
    story_records: list[dict[str, Any]]
    seconds: float = 0.0
    folder: str = ""
    commands: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.differences or self.missing or self.doubled or self.breaches)

    @property
    def throughput(self) -> float:
        return self.records / max(self.write_seconds, 0.001)


def percentile(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0


def value(found: Findings) -> dict[str, Any]:
    return {
        "differences": found.differences,
        "seed": found.seed,
        "seconds": round(found.seconds, 1),
        "writes": found.kinds,
        "tables": {
            name: {"source": rows, "landed": found.landed_rows.get(name, 0)} for name, rows in found.source_rows.items()
        },
        "log_rows": found.logged,
        "records": found.records,
        "missing": found.missing,
        "doubled": found.doubled,
        "snapshot": {
            "before": found.old_rows,
            "records": found.snapshots,
            "breaches": found.breaches[:_SHOWN_DIFFERENCES],
        },
        "dead_letters": [_why(letter) for letter in found.dead_letters],
        "records_per_second": round(found.throughput),
        "latency_ms": {
            "p50": percentile(found.latencies_ms, 0.5),
            "p99": percentile(found.latencies_ms, 0.99),
            "confidence_window": found.confidence_ms,
        },
        "landing_seconds": round(found.landing_seconds, 1),
        "details": found.details[:_SHOWN_DIFFERENCES],
        "folder": found.folder,
    }


def text(found: Findings) -> str:
    parts = [
        *_story(found),
        "",
        *_special(found),
        "",
        *_figures(found),
        "",
        *_tables(found),
        *(f"  {each}" for each in [*found.breaches, *found.details][:_SHOWN_DIFFERENCES]),
        "",
        f"{found.differences} differences",
    ]
    if found.folder:
        parts += ["", f"The data lies in {found.folder}. To try next:", *(f"  {each}" for each in found.commands)]
    return "\n".join(parts)


def _tables(found: Findings) -> list[str]:
    lines = [f"{'table':<14}{'rows in source':>16}{'rows landed':>14}"]
    return lines + [
        f"{name:<14}{rows:>16,}{found.landed_rows.get(name, 0):>14,}" for name, rows in found.source_rows.items()
    ]


def _story(found: Findings) -> list[str]:
    lines = ["The story of customer 'ada', number 1, in shop.orders:"]
    start = min(told.at_us for told in found.story)
    for name in ("tier", "status", "total", "placed", "note", "tags", "address"):
        lines.append(f"  {name}")
        for told in found.story:
            if name in told.columns:
                remark = f"  ({told.remark})" if told.remark else ""
                shown = f"{(told.at_us - start) / 1e6:+.3f} s {_about(told.statement, name)}{remark}"
                lines += _wrapped("CQL     ", shown)
        said = [cell for record in found.story_records if (cell := _cell(record, name)) is not None]
        lines += _wrapped("records ", "; ".join(said) or "(static: in the partition's own records)")
        lines += _wrapped("landed  ", _landed(found, name))
    return lines


def _landed(found: Findings, name: str) -> str:
    shown = json.dumps(found.story_landed.get(name), ensure_ascii=False)
    return shown if found.story_source.get(name) == found.story_landed.get(name) else f"{shown}, NOT AS IN THE SOURCE"


def _wrapped(label: str, shown: str) -> list[str]:
    return textwrap.wrap(shown, WIDTH, initial_indent=f"    {label}", subsequent_indent=" " * 12) or [f"    {label}"]


def _about(statement: str, column: str) -> str:
    """What a statement says about one column."""
    if statement.startswith("INSERT"):
        columns = re.search(r"\((.*?)\) VALUES \((.*)\) USING", statement)
        assert columns is not None
        values = re.findall(r"\{[^}]*\}|'[^']*'|[^,\s][^,]*", columns[2])
        return f"INSERT {values[columns[1].split(', ').index(column)]}"
    match = re.search(rf"SET .*?\b({column}\b[^=]* = (?:{column} [+-] )?(?:\{{[^}}]*\}}|'[^']*'|\w+))", statement)
    return f"UPDATE {match[1]}" if match is not None else statement


def _cell(record: dict[str, Any], column: str) -> str | None:
    """A column in a record: None where the record says nothing about it."""
    image = record.get("after") or {}
    if image.get(column) is None:
        return None
    return f"{record['op']} {json.dumps(_short(image[column]), ensure_ascii=False)}"


def _short(cell: Any) -> Any:
    """A cell of a record without the wrapping that says the same of every cell."""
    if isinstance(cell, dict):
        return _short(cell["value"]) if set(cell) == {"value"} else {name: _short(each) for name, each in cell.items()}
    if isinstance(cell, list):
        pairs = [(each["key"], _short(each["value"])) for each in cell if isinstance(each, dict) and "key" in each]
        return dict(pairs) if len(pairs) == len(cell) else cell
    return cell


def _special(found: Findings) -> list[str]:
    kinds = found.kinds
    lines = [
        f"late       {kinds.get('late write', 0)} writes behind a newer one: none won",
        f"tied       {kinds.get('tied write', 0)} writes of one time: the greater value won",
        f"doubled    {kinds.get('repeated write', 0)} writes repeated at the source: landed once",
        f"malformed  {len(found.dead_letters)} batch in the dead-letter topic:",
    ]
    for letter in found.dead_letters:
        lines += textwrap.wrap(_why(letter), WIDTH, initial_indent="           ", subsequent_indent="           ")
    return lines


def _why(letter: dict[str, str]) -> str:
    table = letter.get("scylla.cdc.table", "?")
    return f"{table}: {letter.get('__connect.errors.exception.message', 'no reason given')}"


def _folded(found: Findings) -> str:
    if found.breaches:
        return f"{len(found.breaches)} BREACHES of what is promised of it"
    return "each key folded in its order is the source's row"


def _figures(found: Findings) -> list[str]:
    return [
        f"log rows   {found.logged:,}",
        f"records    {found.records:,}, missing {found.missing}, doubled {found.doubled}",
        f"snapshot   {found.old_rows:,} rows from before the log, {found.snapshots:,} records",
        f"           {_folded(found)}",
        f"throughput {found.throughput:,.0f} records/s while writing",
        f"latency    p50 {percentile(found.latencies_ms, 0.5):,} ms, p99 {percentile(found.latencies_ms, 0.99):,} ms",
        f"           ({found.confidence_ms:,} ms of it are the confidence window)",
        f"landing    {found.landing_seconds:.1f} s",
        f"all in all {found.seconds:.0f} s",
    ]
