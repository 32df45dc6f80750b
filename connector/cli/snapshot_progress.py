"""How far the snapshots of a `run` are that ends with them: a bar at a terminal, elsewhere a log line now and then.

In: the workers of this process, as they report. Out: text on stderr. What other processes have committed counts, too;
rows are those that this one's workers delivered.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connector.cli.output import Output, columns_of
from connector.cli.snapshot import pace_text

if TYPE_CHECKING:
    from connector.worker.status_document import WorkerStatus

log = logging.getLogger(__name__)

_BAR = 24
_DRAWN_SECONDS = 0.5
_TOLD_SECONDS = 30.0


@dataclass(frozen=True)
class Standing:
    """``done``: the part of all tables' tokens whose rows are committed, 0 to 1."""

    done: float
    rows: int
    tables: int
    undecided: int
    refused: int = 0
    rows_per_second: float = 0.0
    seconds_left: int | None = None

    def text(self) -> str:
        waits = f", {self.undecided} partitions read again" if self.undecided else ""
        waits += f", rows of {self.refused} ranges are refused" if self.refused else ""
        goes = pace_text(self.rows_per_second, self.seconds_left)
        return f"{self.done:4.0%} of {self.tables} table{'s' * (self.tables != 1)}, {self.rows:,} rows{goes}{waits}"

    def bar(self, columns: int) -> str:
        """In so many columns at most: shorter, then without its end, where they are few."""
        text = self.text()
        width = max(min(_BAR, columns - len("snapshot  ") - len(text)), 0)
        full = round(width * self.done)
        return f"snapshot {'━' * full}{'─' * (width - full)} {text}"[:columns]


def standing(reports: Iterable[WorkerStatus]) -> Standing | None:
    """None while no worker knows of a snapshot."""
    from connector.worker.status_document import last_to_end

    done: dict[str, float] = {}
    rows = undecided = refused = 0
    pace, left = 0.0, list[int | None]()
    for report in reports:
        for name, table in report.tables.items():
            if (shot := table.snapshot) is not None:
                done[name] = max(done.get(name, 0.0), shot.done)
                rows, undecided = rows + shot.rows, undecided + shot.undecided
                pace += shot.rows_per_second
                refused += shot.refused
                left.append(shot.seconds_left)
    if not done:
        return None
    share, ends = sum(done.values()) / len(done), last_to_end(refused, left)
    return Standing(share, rows, len(done), undecided, refused, pace, ends)


class SnapshotProgress:
    """A context manager: it tells while the body runs."""

    def __init__(self, output: Output, reports: Callable[[], Iterable[WorkerStatus]]) -> None:
        self._terminal = output.stderr if output.shows_progress else None
        self._reports = reports
        self._end = threading.Event()

    def __enter__(self) -> SnapshotProgress:
        self._thread = threading.Thread(target=self._run, daemon=True, name="snapshot-progress")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(_TOLD_SECONDS if self._terminal is None else _DRAWN_SECONDS):
            if (now := standing(self._reports())) is None:
                continue
            if self._terminal is None:
                log.info("snapshot: %s", now.text().lstrip())
            else:
                self._draw(f"{now.bar(columns_of(self._terminal))}\r")
        if self._terminal is not None:
            self._draw("")

    def _draw(self, text: str) -> None:
        """The cursor stays in front of it: whatever workers log stands at the beginning of a line."""
        assert self._terminal is not None
        self._terminal.write(f"\r\x1b[K{text}")
        self._terminal.flush()
