"""What landing reports while it runs and when it ends.

In: the counts of each batch. Out: a line on a terminal, JSON lines for machines, a summary. It decides nothing.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TextIO

from connector.secrets import scrub, scrubbed
from spark_jobs.model import HINTS

log = logging.getLogger(__name__)

# Where there is no terminal, a line for the log so often.
NOTE_SECONDS = 30.0


@dataclass
class TableProgress:
    """The counts of one table since the job began. Letters that landed since are rows, and no letters any more.

    ``lag_ms`` is how old the newest change of a batch was when that had landed: where nothing comes, nothing grows old.
    """

    rows: int = 0
    dead: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    merges: int = 0
    unmerged: int = 0
    newest_us: int | None = None
    lag_ms: int | None = None
    failures: int = 0
    last_error: str | None = None
    beside: dict[str, str] = field(default_factory=dict)
    """What is done beside landing and failed the last time, with why."""
    incomplete: str | None = None

    @property
    def error(self) -> str | None:
        """What is wrong with it now."""
        return self.last_error or next((f"{what} failed: {why}" for what, why in self.beside.items()), None)

    def lag(self) -> int | None:
        """A table that fails is left behind meanwhile."""
        return self.lag_ms if self.last_error is None or self.newest_us is None else _age_ms(self.newest_us)

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "dead": sum(self.dead.values()),
            "reasons": dict(self.dead),
            "batches": self.batches,
            "merges": self.merges,
            "unmerged": self.unmerged,
            "lag_ms": self.lag(),
            "failures": self.failures,
            "error": self.error,
            "incomplete": self.incomplete,
        }


def _age_ms(written_us: int) -> int:
    return max(int(time.time() * 1000 - written_us / 1000), 0)


class Progress:
    """Shared by the tables of a job; ``as_json`` chooses JSON lines instead of a terminal's line."""

    def __init__(self, err: TextIO | None = None, as_json: bool = False) -> None:
        self.err = err or sys.stderr
        self.as_json_lines = as_json
        self.tables: dict[str, TableProgress] = {}
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._terminal = self.err.isatty() and not as_json
        self._due = self._began + NOTE_SECONDS

    def of(self, table: str) -> TableProgress:
        with self._lock:
            return self.tables.setdefault(table, TableProgress())

    def batch(self, table: str, rows: int, dead: dict[str, int], newest_us: int | None) -> None:
        progress = self.of(table)
        with self._lock:
            news = dead.keys() - progress.dead.keys()
            progress.rows += rows
            progress.dead.update(dead)
            progress.batches += 1
            # It goes on: what was wrong before is over.
            progress.last_error = None
            if newest_us is not None:
                progress.lag_ms = _age_ms(newest_us)
                progress.newest_us = max(progress.newest_us or 0, newest_us)
        for reason in sorted(news):
            if reason in HINTS:
                log.warning("%s: dead letters with %s: %s", table, reason, HINTS[reason])
        self._show()

    def letters_landed(self, table: str, rows: int, left: dict[str, int]) -> None:
        """Letters became rows; ``left`` are those of the records that came since the job began."""
        progress = self.of(table)
        with self._lock:
            progress.rows += rows
            progress.dead = Counter(left)

    def note(self, text: str) -> None:
        """A line about how it goes."""
        with self._lock:
            if self._terminal:
                self.err.write("\r\x1b[K")
            self.err.write(scrub(text) + "\n")
            self.err.flush()

    def _show(self) -> None:
        if self.as_json_lines:
            self.note(json.dumps({"progress": self.summary()}))
        elif self._terminal:
            total = sum(table.rows for table in self.tables.values())
            dead = sum(sum(table.dead.values()) for table in self.tables.values())
            seconds = max(time.monotonic() - self._began, 0.001)
            with self._lock:
                self.err.write(f"\r\x1b[K{total:,} changes, {total / seconds:,.0f}/s, {dead:,} dead letters")
                self.err.flush()
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + NOTE_SECONDS
            log.info("%s", self.text().replace("\n", "; "))

    def done(self) -> None:
        if self._terminal:
            self.err.write("\r\x1b[K")
            self.err.flush()

    def summary(self) -> dict[str, Any]:
        with self._lock:
            tables = {name: table.as_json() for name, table in sorted(self.tables.items())}
        return {"seconds": round(time.monotonic() - self._began, 3), "tables": scrubbed(tables)}

    def text(self) -> str:
        """The summary for people: one line per table."""
        lines = []
        for name, table in sorted(self.tables.items()):
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(table.dead.items()))
            dead = f", {sum(table.dead.values())} dead letters ({reasons})" if reasons else ""
            lacks = f", INCOMPLETE: {table.incomplete}" if table.incomplete else ""
            failed = f", FAILED: {table.error}" if table.error else ""
            lines.append(f"{name}: {table.rows:,} changes, {table.merges} merges{dead}{lacks}{failed}")
        return scrub("\n".join(lines))
