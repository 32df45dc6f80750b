"""Hundreds of random runs: complete, exactly once, in order, with workers killed at every step."""

from __future__ import annotations

import pytest

from tests.topology.simulation import simulate

# As many runs as suffice to notice every safety rule that is taken out (`test_topology_mutants`), on any machine the
# same; ``python -m tests.topology.simulation FIRST LAST`` runs any number.
SEEDS = 500
SHARES = 4


@pytest.mark.parametrize("share", range(SHARES))
def test_every_row_once_and_in_order(share: int) -> None:
    for seed in range(share, SEEDS, SHARES):
        outcome = simulate(seed)
        assert not outcome.faults, f"seed {seed}: {outcome.faults[:5]}"
