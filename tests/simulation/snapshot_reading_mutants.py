"""Rules of how a snapshot reads: what may lie in memory, what is asked of the servers, what an answer counts for.

In: nothing. Out: `CHUNK_READS`. As in `mutants.py`, each rule with the change that breaks it, and what notices.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.mutant_worlds import SNAPSHOTS as ROWS_FROM_BEFORE
from tests.simulation.mutant_worlds import world
from tests.simulation.mutation import Mutant
from tests.source import test_source_snapshots as holding
from tests.source import test_source_snapshots_bounds as bounds
from tests.source import test_source_snapshots_doubt as doubting
from tests.topology import test_topology_snapshots as snapshots

HOLDING = "connector/source/snapshots.py"
HELD_CHUNK = "connector/source/held_chunk.py"
CHUNKS = "connector/source/chunks.py"
LIMITS = "connector/source/limits.py"
PLACING = "connector/topology/snapshots.py"


def patched(test: Callable[[pytest.MonkeyPatch], None]) -> Callable[[], None]:
    def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            test(patch)

    run.__name__ = test.__name__
    return run


CHUNK_READS = [
    Mutant(
        "no more rows are read than may be held",
        HOLDING,
        " >= CHUNKS_AT_ONCE or room <= 0 or ",
        " >= CHUNKS_AT_ONCE or ",
        bounds.test_what_is_held_is_bounded_by_its_bytes,
    ),
    Mutant(
        "chunks that are being read have their part of what may be held",
        HOLDING,
        "self.held_bytes - reading * self._settings.chunk.bytes",
        "self.held_bytes",
        bounds.test_what_is_being_read_has_its_part_of_what_may_be_held,
    ),
    Mutant(
        "a server is asked for its time behind each read",
        HOLDING,
        "        found = call()\n        *_, refused = self._connection.ask_a_clock().values()\n",
        "        *_, refused = self._connection.ask_a_clock().values()\n        found = call()\n",
        patched(holding.test_a_server_is_asked_for_its_time_behind_each_read),
    ),
    Mutant(
        "reads slow down while answers do",
        LIMITS,
        "        if slowest > SLOW_FACTOR * self._usual + SLOW_SECONDS:\n",
        "        if False:\n",
        bounds.test_reads_slow_down_while_answers_do,
    ),
    Mutant(
        "a partition of which there may be more is in no chunk",
        CHUNKS,
        "            for key in open_:\n                del partitions[key]\n",
        "",
        world(ROWS_FROM_BEFORE, 1),
    ),
    Mutant(
        "a change that cannot be read leaves its partition in doubt",
        HELD_CHUNK,
        "            self.broken.add(key)\n",
        "            pass\n",
        doubting.test_a_change_that_nobody_understands_leaves_its_partition_in_doubt,
    ),
    Mutant(
        "what ended since it was read is not there",
        HELD_CHUNK,
        "        if not self.shape.timed:\n            return\n",
        "        return\n",
        doubting.test_where_a_value_has_ended_since_it_was_read_another_read_tells_what_is_left,
    ),
    Mutant(
        "what pauses places nothing",
        PLACING,
        "    if run is None or run[1].paused or ",
        "    if run is None or ",
        snapshots.test_a_snapshot_that_pauses_goes_on_where_it_was_and_one_that_is_stopped_does_not,
    ),
    Mutant(
        "who takes over goes on where the committed progress ends",
        PLACING,
        "[*_committed(plan, name), *_uncommitted(plan, name)]",
        "[*_uncommitted(plan, name)]",
        snapshots.test_who_takes_over_goes_on_where_the_committed_progress_ends,
    ),
    Mutant(
        "what was read is nobody's once its slot is another worker's",
        PLACING,
        "    for state in [state for state in openings if state.slot in gone]:\n",
        "    for state in ():\n",
        snapshots.test_who_takes_over_goes_on_where_the_committed_progress_ends,
    ),
    Mutant(
        "a group whose record cannot be delivered places no rows",
        PLACING,
        "    if not is_open(plan, opening) or state.apart or state.failure is not None:\n",
        "    if not is_open(plan, opening) or state.apart:\n",
        snapshots.test_rows_are_placed_only_where_the_whole_group_stands,
    ),
]
