"""Programs that read without Kafka and are killed, or end at a time: the next one goes on from the checkpoint."""

from __future__ import annotations

import pytest

from tests.simulation.readers import read_by_programs
from tests.simulation.source_world import Kind


@pytest.mark.parametrize("seed", range(1, 4))
def test_programs_that_end_at_a_time_leave_nothing_out_and_repeat_nothing(seed: int) -> None:
    assert not read_by_programs(seed, Kind(tables=1, shards=3, late=False), follow=False)


@pytest.mark.parametrize("seed", range(1, 3))
def test_programs_that_follow_and_are_killed_leave_nothing_out_and_repeat_nothing(seed: int) -> None:
    assert not read_by_programs(seed, Kind(tables=1, shards=3), follow=True)
