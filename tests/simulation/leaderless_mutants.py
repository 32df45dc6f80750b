"""Rules for partitions that nobody leads when a transaction ends, each with a story of `leaderless.py`.

In: nothing. Out: `LEADERLESS`, a part of `MUTANTS`.
"""

from __future__ import annotations

from tests.simulation import leaderless
from tests.simulation.mutation import Mutant

TRANSACTION = "connector/delivery/transaction.py"
HANGING = "connector/delivery/hanging_transactions.py"
SECOND_END = "connector/delivery/second_end.py"
STANDING = "connector/delivery/standing.py"
PRODUCER = "connector/delivery/producer.py"

LEADERLESS = [
    Mutant(
        "a leader that is lost costs nothing where all markers are written",
        TRANSACTION,
        "        if not ended_everywhere(self._clients",
        "        if ended_everywhere(self._clients",
        leaderless.a_leader_that_is_lost_costs_nothing_where_all_markers_are_written,
    ),
    Mutant(
        "nothing is written behind a partition that missed its marker",
        TRANSACTION,
        "            self._ended_everywhere(self._producer)\n",
        "",
        leaderless.nothing_is_written_behind_a_partition_that_missed_its_marker,
    ),
    Mutant(
        "a topic with a commit that has no end is left alone",
        HANGING,
        "            unseen(place[0], where.stood.blocked(place, offset), owners)\n",
        "            pass\n",
        leaderless.nothing_is_written_behind_a_partition_that_missed_its_marker,
    ),
    Mutant(
        "what is certainly left is committed again",
        HANGING,
        "            ended = _end_lost_commits(again, producers, where, found)\n",
        "            pass\n",
        leaderless.what_is_certainly_left_is_committed_again,
    ),
    Mutant(
        "a record that is repeated says so",
        SECOND_END,
        "headers=(*each.headers, header)",
        "headers=each.headers",
        leaderless.what_is_certainly_left_is_committed_again,
    ),
    Mutant(
        "what may be another worker's is not committed yet",
        STANDING,
        "time.monotonic() - known.at >= self.longest + more",
        "time.monotonic() - known.at >= 0",
        leaderless.what_is_certainly_left_is_committed_again,
    ),
    Mutant(
        "a leader that is lost while the last commit ends stops what is on its way",
        TRANSACTION,
        "        if self._producer.has_lost:\n",
        "        if not self._producer:\n",
        leaderless.a_leader_that_is_lost_while_the_last_commit_ends_stops_what_is_on_its_way,
    ),
    Mutant(
        "a topic that nobody leads ends a transaction soon",
        PRODUCER,
        "                self._blame_a_topic()\n            if self._failed or (",
        "                pass\n            if self._failed or (",
        leaderless.a_topic_that_nobody_leads_ends_a_transaction_soon,
    ),
]
