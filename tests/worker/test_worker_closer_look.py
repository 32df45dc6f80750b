"""What a service tells of streams, put together from what its workers say."""

from __future__ import annotations

from connector.worker.closer_look import merged
from connector.worker.messages import GroupOfStreams, StreamsMessage


def said(count: int, *slots: int) -> StreamsMessage:
    groups = [
        GroupOfStreams(slot=slot, range_start=0, range_end=slot, state="reading", streams=1, first="00", read_to=0)
        for slot in slots
    ]
    return StreamsMessage(table="ks.t", count=count, groups=tuple(groups))


def test_of_a_slot_only_the_newest_word_counts() -> None:
    """A worker that hangs does not know that another one has taken over from it."""
    count, groups = merged({0: said(4, 1, 1, 2, 3), 1: said(3, 2, 3, 4), 2: None})
    assert count == 5 and [(group["worker"], group["slot"]) for group in groups] == [
        *((0, slot) for slot in (1, 1, 2, 3)),
        (1, 4),
    ]


def test_groups_that_are_too_many_to_be_told_are_counted() -> None:
    assert merged({0: said(900, 1), 1: said(50, 2)})[0] == 950
