"""What a worker believes of what others have delivered: what it follows of their slots, since it last began anew."""

from __future__ import annotations

from types import SimpleNamespace

from connector.topology import Mark, MarkKey, Position, PositionKey, mark_entry, position_entry
from connector.worker.worker import Worker
from tests.topology.single import TABLE, Single, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
LEFT, RIGHT = stream(48, 2), stream(64, 2)


def test_what_was_followed_counts_for_nothing_after_a_new_beginning() -> None:
    """The end of a stream that is no more is not told again to who begins: it is unknown, and not as it was."""
    before, after = tablets(1_000, A, B, C, D), tablets(1_500, A, LEFT, RIGHT, C, D)
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_900, 1_500, 1_000, "x"))
    low = position_entry(0, PositionKey(TABLE, B), Position(1_100))
    single = Single(before, after, now=2_000, own=[], claim=False, records=[mark, low])
    (parent,) = [state for state in single.plan.states() if state.group.streams == (B,)]
    gone = [position_entry(0, PositionKey(TABLE, B), None)]
    follower = SimpleNamespace(
        poll=lambda but: [gone.pop()] if gone else [],
        caught_up=frozenset({0}),
        beginnings=0,
        last_error=None,
        fell_back=False,
    )
    worker = SimpleNamespace(
        follower=follower,
        _beginnings=0,
        _followed=frozenset(),
        _slots=single.planner,
        _following=SimpleNamespace(is_now=lambda error: None),
    )
    Worker._follow(worker)  # type: ignore[arg-type]
    assert single.plan.reached(parent, 1_500)
    follower.beginnings, follower.caught_up = 1, frozenset()
    Worker._follow(worker)  # type: ignore[arg-type]
    assert not single.plan.reached(parent, 1_500)
