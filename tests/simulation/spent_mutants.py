"""Rules for producers whose client may not begin another transaction, each with a story of `spent.py`.

In: nothing. Out: `SPENT`, a part of `MUTANTS`.
"""

from __future__ import annotations

from tests.simulation import spent
from tests.simulation.mutant_worlds import UNANSWERED, world
from tests.simulation.mutation import Mutant

TRANSACTIONAL = "connector/delivery/transactional_producer.py"

SPENT = [
    Mutant(
        "what an abort left in the log is not taken for what comes next",
        TRANSACTIONAL,
        "(self._in_doubt or self._heard.lost)",
        "self._heard.lost",
        spent.what_an_abort_left_in_the_log_is_not_taken_for_what_comes_next,
    ),
    Mutant(
        "whoever aborts what it has not heard of goes on with another producer",
        TRANSACTIONAL,
        "        if self.is_spent:\n",
        "        if self is None:\n",
        spent.nor_where_nothing_but_a_producer_is,
    ),
    Mutant(
        "no row is lost where answers are",
        TRANSACTIONAL,
        "(self._in_doubt or self._heard.lost)",
        "self._heard.lost",
        world(UNANSWERED, 5),
    ),
    Mutant(
        "an end that comes late ends no other transaction",
        TRANSACTIONAL,
        "(self._in_doubt or self._heard.lost)",
        "self._in_doubt",
        spent.an_end_that_comes_late_ends_no_other_transaction,
    ),
    Mutant(
        "nor does one that was asked for again",
        TRANSACTIONAL,
        "        self._in_doubt |= self._repeat(doing, call, deadline) > 1\n",
        "        self._repeat(doing, call, deadline)\n",
        spent.nor_does_one_that_was_asked_for_again,
    ),
]
