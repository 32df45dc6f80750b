"""Thousands of random runs: complete, exactly once, in order, with workers killed at every step."""

from __future__ import annotations

import time

import pytest

from tests.topology.simulation import simulate

# What fits into the room's budget on one core; ``python -m tests.topology.simulation FIRST LAST`` runs any number.
SECONDS = 40
SEEDS = 3_000
SHARES = 4


@pytest.mark.parametrize("share", range(SHARES))
def test_every_row_once_and_in_order(share: int) -> None:
    deadline = time.monotonic() + SECONDS / SHARES
    done = 0
    for seed in range(share, SEEDS, SHARES):
        outcome = simulate(seed)
        assert not outcome.faults, f"seed {seed}: {outcome.faults[:5]}"
        done += 1
        if time.monotonic() > deadline:
            break
    assert done > 50, "too slow to mean anything"
