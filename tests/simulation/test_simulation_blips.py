"""A broker that is away for a moment changes no state; one that stays away does."""

from __future__ import annotations

import pytest

from connector.worker.state import State
from tests.simulation.service import Service
from tests.simulation.test_simulation_refusals import running, until


def states(on: Service, seconds: float) -> set[State]:
    found, end = set[State](), on.scheduler.now + seconds
    while on.scheduler.now < end:
        on.scheduler.run(on.scheduler.now + 0.2)
        status = on.workers[0].status
        assert status is not None
        found |= {status.state, *(table.state for table in status.tables.values())}
    return found


@pytest.mark.parametrize(("away", "expected"), [(1.5, {State.RUNNING}), (12.0, {State.RUNNING, State.WAITING})])
def test_an_outage_of_a_moment_is_no_state(away: float, expected: set[State]) -> None:
    with running() as on:
        until(on, lambda: on.workers[0].status is not None and not on.troubles())
        commits = on.workers[0].status.delivery.commits  # type: ignore[union-attr]
        on.broker.stop(away, forget_markers=True)
        assert states(on, 60.0) == expected
        assert on.workers[0].status.delivery.commits > commits  # type: ignore[union-attr]
