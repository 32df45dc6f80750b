"""Histograms of a worker: how long changes take from the log to their commit, how large batches and transactions are.

In: what is put into the open transaction, and how it ended. Out: counts for the status. A batch counts when its
transaction is committed, once, however often it was tried.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from connector.changes import Batch, WriteTimes
from connector.timeuuid import micros_of
from connector.worker.status_document import HistogramStatus

#: Seconds: from a short confidence window to a day, after which the log forgets.
LATENCY_BOUNDS = (
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    20.0,
    30.0,
    35.0,
    45.0,
    60.0,
    120.0,
    300.0,
    900.0,
    3600.0,
    21_600.0,
    86_400.0,
)
ROW_BOUNDS = (1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 1_000.0, 10_000.0)
RECORD_BOUNDS = (1.0, 10.0, 100.0, 1_000.0, 5_000.0, 10_000.0, 50_000.0)


class Histogram:
    """``counts`` by upper bound, and behind all bounds; not cumulative."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, values: Mapping[float, int]) -> None:
        """How often each was there."""
        for value, count in values.items():
            self._counts[bisect_left(self._bounds, value)] += count
            self._sum += value * count

    def observe_ages(self, now: int, times: WriteTimes) -> None:
        """How long ago these were; bounds count seconds. Each is looked at only where a bound is between them."""
        place = bisect_left(self._bounds, (now - times.earliest) / 1_000_000)
        if times.latest > now or place != bisect_left(self._bounds, (now - times.latest) / 1_000_000):
            return self._observe_each_age(now, times.each)
        count = len(times.each)
        self._counts[place] += count
        self._sum += ((now - times.earliest) * count - times.total) / 1_000_000

    def _observe_each_age(self, now: int, times: Sequence[int]) -> None:
        """Times mostly come in order."""
        ordered = sorted(times)
        # Clocks of clients may be ahead of the servers'.
        future = bisect_left(ordered, now)
        end = len(ordered)
        for at, bound in enumerate(self._bounds):
            begin = bisect_left(ordered, now - bound * 1_000_000, 0, end)
            self._counts[at] += end - begin
            end = begin
        self._counts[-1] += end
        self._sum += (now * future - sum(ordered[:future])) / 1_000_000

    def status(self) -> HistogramStatus:
        return HistogramStatus(bounds=self._bounds, counts=tuple(self._counts), sum=round(self._sum, 3))


class Measures:
    """Of one worker."""

    def __init__(self) -> None:
        self.latency: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(LATENCY_BOUNDS))
        self.rows: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(ROW_BOUNDS))
        self.records = Histogram(RECORD_BOUNDS)
        self._open: list[tuple[str, WriteTimes, Mapping[float, int]]] = []
        self._open_records = 0

    def added(self, batches: Sequence[Batch], records: int) -> None:
        """Batches of one table went into the open transaction, as so many records."""
        if batches:
            times = WriteTimes.of([micros_of(batch.time) for batch in batches])
            rows = Counter[float](len(batch.rows) for batch in batches)
            self.added_at(batches[0].layout.description.full_name, times, rows, records)

    def added_at(self, table: str, times: WriteTimes, rows: Mapping[float, int], records: int) -> None:
        """Batches that were written at these times; ``rows``: how many of them have so many rows."""
        self._open.append((table, times, rows))
        self._open_records += records

    def committed(self, now_ms: int) -> None:
        now = now_ms * 1000
        for table, times, rows in self._open:
            self.latency[table].observe_ages(now, times)
            self.rows[table].observe(rows)
        if self._open:
            self.records.observe({self._open_records: 1})
        self.forget()

    def forget(self) -> None:
        """The transaction did not happen."""
        self._open.clear()
        self._open_records = 0
