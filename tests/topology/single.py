"""One worker without Kafka, for tests that drive a planner by hand."""

from __future__ import annotations

from collections.abc import Iterable

from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.timeuuid import lowest_uuid
from connector.topology import Observed, Planner, Read, StreamSet, View, tablet_set
from connector.topology.commits import Commit
from connector.topology.table_reader import TableReader
from tests.topology.ring import make_stream, token_at

TABLE = TableName("ks", "t")
CONFIDENCE = 40
GRACE = 60


def stream(place: int, number: int = 1) -> bytes:
    """The stream of the tablet that ends at a place (1 .. 128) of the ring."""
    return make_stream(token_at(place), number)


def tablets(at: int, *streams: bytes) -> StreamSet:
    return tablet_set(at, streams)


WHOLE = stream(128)


class Single:
    """A planner with all of its slots claimed, or some of them."""

    def __init__(
        self,
        *sets: StreamSet,
        now: int = 10_000,
        slots: int = 1,
        own: Iterable[int] | None = None,
        claim: bool = True,
        lookback_ms: int = 0,
        records: Iterable[OffsetsEntry] = (),
        owner: str = "me",
        initial_snapshot: bool = False,
        until_ms: int | None = None,
    ) -> None:
        self.now = now
        self.planner = Planner(
            [TABLE],
            slots=slots,
            owner=owner,
            confidence_ms=CONFIDENCE,
            lookback_ms=lookback_ms,
            grace_ms=GRACE,
            initial_snapshot=initial_snapshot,
            until_ms=until_ms,
        )
        self.plan = self.planner.tables[TABLE]
        self.sets: dict[int, StreamSet] = {}
        self.topic: list[OffsetsEntry] = list(records)
        own = list(range(slots)) if own is None else list(own)
        self.planner.follow(self.topic, [slot for slot in range(slots) if slot not in own])
        if sets:
            self.poll(*sets)
        for slot in own:
            self.planner.restore(slot, [entry for entry in self.topic if entry.slot == slot])
        if claim:
            self.commit()
            self.commit()

    def poll(self, *sets: StreamSet, at: int | None = None) -> Observed:
        """All nodes know ``sets`` from now on, and one has answered."""
        self.sets.update({one.timestamp: one for one in sets})
        return self.answer(sorted(self.sets), at)

    def answer_of(self, *sets: StreamSet) -> Observed:
        """All nodes know ``sets`` alone."""
        self.sets = {one.timestamp: one for one in sets}
        return self.answer(sorted(self.sets))

    def answer(self, timestamps: list[int], at: int | None = None) -> Observed:
        wanted = self.plan.wanted(timestamps, self.now)
        return self.plan.observe(
            View(tuple(timestamps), {t: self.sets[t] for t in wanted}), self.now if at is None else at
        )

    def commit(self, move_marks: bool = False, idle_ms: int = 0) -> Commit:
        commit = self.planner.commit_entries(self.now, move_marks, idle_ms)
        self.topic += commit.entries
        self.planner.committed()
        return commit

    def to(self, now: int) -> None:
        """Time passes, and a poll has just found nothing new."""
        self.now = now
        if self.sets:
            self.answer(sorted(self.sets))

    def reads(self) -> dict[bytes, Read]:
        """Everything that may be read now, by first stream."""
        return {read.streams[0]: read for read in self.planner.plan(self.now, 10_000)}

    def read_all(self) -> None:
        """Read until nothing may be read any more, and find nothing."""
        while reads := self.reads():
            for read in reads.values():
                self.planner.finish(read)

    def look_all(self) -> None:
        """Look beyond the ends of all closed streams, in time, and find nothing."""
        self.to(self.now + CONFIDENCE + self.plan.last_look * GRACE + self.plan.search_ms)
        self.read_all()
        for look in self.planner.looks(self.now, 10_000):
            self.planner.finish_look(look, False, self.now)

    def at(self, wanted: bytes) -> int:
        """Where a stream stands."""
        return next(state.position(wanted).read_to for state in self.plan.states() if wanted in state.group.streams)


def row(ms: int, number: int = 0) -> bytes:
    """A time UUID inside a millisecond."""
    return lowest_uuid(ms)[:8] + number.to_bytes(8, "big")


__all__ = ["CONFIDENCE", "GRACE", "TABLE", "WHOLE", "Single", "TableReader", "row", "stream", "tablets"]
