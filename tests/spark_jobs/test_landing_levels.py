"""What merges write of a state, over long times: in proportion to the changes, in a bounded number of runs."""

from __future__ import annotations

import pytest

from spark_jobs.tables.levels import FAN, MARK_PART, choose, runs_of

MIB = 1 << 20


class Simulated:
    """A state's parts, as merges of so many bytes make them; a row that is changed twice counts twice."""

    def __init__(self, base: int) -> None:
        self.parts = {0: base, MARK_PART: 1000}
        self.written = self.most_runs = self.through = 0

    def merge(self, new: int) -> None:
        self.through += 1
        choice = choose(self.parts, new)
        size = new + sum(self.parts.pop(run) for run in choice.runs)
        if choice.base:
            # Changes are of rows that are there.
            size = self.parts[0] = max(self.parts[0], size)
        else:
            self.parts[MARK_PART - self.through] = size
        self.written += size
        self.most_runs = max(self.most_runs, len(runs_of(self.parts)))


@pytest.mark.parametrize("new", [MIB // 10, MIB, 20 * MIB, 200 * MIB])
def test_steady_changes_are_written_less_than_ten_times(new: int) -> None:
    state = Simulated(1000 * MIB)
    merges = max(2000 * MIB // new, 50)
    for _ in range(merges):
        state.merge(new)
    assert state.written / (merges * new) < 10
    assert state.most_runs < 4 * FAN
    assert state.parts[0] == 1000 * MIB


def test_a_few_changes_touch_neither_the_base_nor_large_runs() -> None:
    parts = {0: 600 * MIB, 1: 600 * MIB, MARK_PART: 1, -5: 100 * MIB, -9: MIB}
    assert choose(parts, 4000).runs == () and not choose(parts, 4000).base
    small = {-20 - at: 5000 for at in range(FAN - 1)}
    assert choose({**parts, **small}, 4000).runs == tuple(sorted(small)), "small ones become one"
    assert choose({0: 600 * MIB, -5: 200 * MIB}, 110 * MIB).base
    assert choose({}, 10).base, "the first changes are the base"
