"""Rows of a log, as pages bring them, joined to complete batches.

In: rows of one read, in the order of each stream's ``cdc$time`` (an IN read may interleave streams). Out:
batches, each as soon as it is known to be complete. Holds at most one unfinished batch per stream of the
read.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from connector.changes.batch import Batch, Row
from connector.changes.layout import LogLayout
from connector.errors import PoisonRow

_TRUE = b"\x01"


class BatchAssembler:
    """One per read. A batch is complete at ``cdc$end_of_batch``, when a later time appears, or at the read's end.

    The owner calls `feed` for each page and delivers what it returns, then `finish` when the whole paged query has
    ended; a read that failed is thrown away together with its assembler.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, Batch] = {}

    def feed(self, layout: LogLayout, rows: Iterable[Row]) -> list[Batch]:
        """The batches that these rows complete, in the order in which they became complete."""
        complete: list[Batch] = []
        open_batches = self._open
        stream_at, time_at, end_at = layout.stream_id, layout.time, layout.end_of_batch
        for row in rows:
            stream_id, time = row[stream_at], row[time_at]
            if stream_id is None or time is None or len(time) != 16:
                raise PoisonRow(f"a row of the log of {layout.description.full_name} has no stream or no time")
            batch = open_batches.pop(stream_id, None) if open_batches else None
            if batch is None:
                batch = Batch(layout, stream_id, time, [row])
            elif batch.time == time:
                if batch.layout is not layout:
                    batch = Batch(layout, stream_id, time, _moved(batch, layout))
                batch.rows.append(row)
            else:
                complete.append(_sorted(batch))
                batch = Batch(layout, stream_id, time, [row])
            # Logs of servers before 4.3 have no such column: there a later time or the window's end tells.
            if end_at >= 0 and row[end_at] == _TRUE:
                complete.append(batch if len(batch.rows) == 1 else _sorted(batch))
            else:
                open_batches[stream_id] = batch
        return complete

    @property
    def unfinished(self) -> bool:
        """Whether rows that come may belong to a batch that began before them."""
        return bool(self._open)

    def finish(self) -> list[Batch]:
        """The batches that the end of the read completes: a window's end never divides a time."""
        complete = [_sorted(batch) for batch in self._open.values()]
        self._open = {}
        return complete


def _sorted(batch: Batch) -> Batch:
    number = itemgetter(batch.layout.batch_seq_no)
    if None in map(number, batch.rows):
        raise PoisonRow(f"a row of the log of {batch.layout.description.full_name} has no cdc$batch_seq_no")
    batch.rows.sort(key=number)
    return batch


def _moved(batch: Batch, layout: LogLayout) -> list[Row]:
    """The rows of a batch whose table changed between two pages, in the columns of the later page: of a column that was
    dropped in between and added again they have nothing, as whoever reads them now is shown."""
    positions = {name: at for at, name in enumerate(batch.layout.columns)}
    sources = [positions.get(name, -1) for name in layout.columns]
    before = {dropped.name: dropped.dropped_us for dropped in batch.layout.description.dropped}
    gone = {each.name for each in layout.description.dropped if each.dropped_us > before.get(each.name, -1)}
    for place in layout.places:
        for at in (place.value, place.deleted, place.deleted_elements) if place.name in gone else ():
            if at is not None:
                sources[at] = -1
    return [tuple(None if at < 0 else row[at] for at in sources) for row in batch.rows]
