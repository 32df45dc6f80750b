"""Rules of what was left open where nobody could look, and of how what stands somewhere is judged.

In: nothing. Out: `LEFT_OPEN`, a part of `MUTANTS`: each rule with the change that breaks it, and what notices.
"""

from __future__ import annotations

from tests.delivery import test_delivery_hanging_transactions as hanging
from tests.delivery import test_delivery_slot_reader as slots
from tests.simulation import leaderless, outages, scenarios
from tests.simulation.mutation import Mutant
from tests.simulation.scenarios import again

TRANSACTION = "connector/delivery/transaction.py"
HANGING = "connector/delivery/hanging_transactions.py"
RESTORE = "connector/delivery/restore.py"
STANDING = "connector/delivery/standing.py"
WORDS = "connector/delivery/committed_words.py"
BOUNDED = "connector/delivery/bounded.py"

LEFT_OPEN = [
    Mutant(
        "what a worker could not look at is told to its heirs",
        TRANSACTION,
        ", *left_header(self._field.stood.left()))",
        ",)",
        leaderless.what_the_first_one_left_is_known_to_the_third,
    ),
    Mutant(
        "heirs look for what those before the last owner left",
        RESTORE,
        "        owners |= _left_behind(result.values(), where, present)\n",
        "",
        leaderless.what_the_first_one_left_is_known_to_the_third,
    ),
    Mutant(
        "while something has no end, those count as well whose claims were aborted",
        RESTORE,
        "        if stands_somewhere(clients, where, waited.deadline, cancelled):\n",
        "        if not where:\n",
        again(hanging.test_an_abort_that_was_forgotten_beside_the_claim_that_it_took_back_is_made_up_for),
    ),
    Mutant(
        "what may stand behind others is looked for when they have ended",
        HANGING,
        "if where.unseen is not None and _may_end(",
        "if where.unseen is None and _may_end(",
        leaderless.nothing_is_written_behind_a_partition_that_missed_its_marker,
    ),
    Mutant(
        "what has the time of a broker is not aborted by it",
        HANGING,
        "return where.stood.longest * 1000 if first.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME else 0",
        "return 0",
        leaderless.what_has_the_time_of_a_broker_is_not_judged_by_it,
    ),
    Mutant(
        "what may be a worker's own is waited for until somebody ends it",
        STANDING,
        "return self._since[place].own or not self.certain(",
        "return not self.certain(",
        leaderless.nothing_is_ever_written_behind_what_may_be_its_own,
    ),
    Mutant(
        "nor is its topic taken for one that takes records",
        STANDING,
        "elif known.own or not self.certain(",
        "elif not self.certain(",
        leaderless.nothing_is_ever_written_behind_what_may_be_its_own,
    ),
    Mutant(
        "what is older than a worker is not its own",
        HANGING,
        "where.since is None or first.timestamp()[1] < where.since - _doubt_ms(where, first):",
        "where.since is None:",
        leaderless.what_was_there_before_a_worker_is_not_waited_for_for_ever,
    ),
    Mutant(
        "what is older than a worker may be its own where its id outlives it",
        TRANSACTION,
        "since = 0.0 if outlived else time.time() * 1000",
        "since = time.time() * 1000",
        leaderless.what_is_older_than_a_worker_may_be_its_own_where_its_id_is,
    ),
    Mutant(
        "nothing in data topics is its own that writes there without transactions",
        TRANSACTION,
        "since if settings.exactly_once else None",
        "since",
        leaderless.what_is_open_is_no_own_of_who_writes_without_transactions,
    ),
    Mutant(
        "what a worker has committed is not waited for",
        HANGING,
        " and not _committed(words, owner, first)",
        "",
        leaderless.what_it_has_ended_in_vain_is_not_waited_for_for_ever,
    ),
    Mutant(
        "what has the time of a broker is not committed by it",
        HANGING,
        "kind != TIMESTAMP_LOG_APPEND_TIME and words.committed_at(",
        "words.committed_at(",
        leaderless.what_has_the_time_of_a_broker_is_not_taken_for_committed,
    ),
    Mutant(
        "a record is repeated as it was last",
        STANDING,
        "                newest = message\n",
        "                pass\n",
        leaderless.a_record_is_repeated_as_it_was_last,
    ),
    Mutant(
        "whoever committed what still stands in vain is not tried again",
        STANDING,
        "        self._not_of.add(((topic, number), offset, owner))\n",
        "        pass\n",
        leaderless.what_either_of_two_may_have_committed_is_committed_by_both_in_turn,
    ),
    Mutant(
        "others are tried in his place",
        HANGING,
        "            if where.stood.may_be(topic, number, offset, producer.transactional_id)\n",
        "",
        leaderless.what_either_of_two_may_have_committed_is_committed_by_both_in_turn,
    ),
    Mutant(
        "what is older than an owner's last word is not aborted",
        WORDS,
        "            self._words.heard(self._owner, time_ms)\n",
        "            pass\n",
        leaderless.nothing_is_written_behind_a_partition_that_missed_its_marker,
    ),
    Mutant(
        "what others write into a slot is no word of its last owner",
        WORDS,
        "        elif not message.value() or _OF_A_TABLE not in key:\n",
        "        elif False:\n",
        slots.test_what_others_write_into_a_slot_is_no_word_of_its_last_owner,
    ),
    Mutant(
        "who wrote an entry is told by the name of its transaction",
        WORDS,
        "self._owners.of(message) or (owner_of(name) if name else None)",
        "self._owners.of(message)",
        slots.test_what_others_write_into_a_slot_is_no_word_of_its_last_owner,
    ),
    Mutant(
        "what is of another time than a transaction does not belong to it",
        WORDS,
        "any(began <= timestamp <= ended for",
        "any(began and timestamp and ended for",
        leaderless.what_is_of_another_time_is_not_committed_again,
    ),
    Mutant(
        "a word that has the time of a broker tells nothing of what is older",
        WORDS,
        "return NEVER if stamped else written_at(headers, timestamp)",
        "return written_at(headers, timestamp)",
        leaderless.words_that_have_the_time_of_a_broker_abort_nothing,
    ),
    Mutant(
        "entries that are committed again keep their time",
        WORDS,
        "return NEVER if stamped else written_at(headers, timestamp)",
        "return NEVER if stamped else timestamp",
        leaderless.entries_that_are_committed_again_keep_their_time,
    ),
    Mutant(
        "a worker whose clock is set back writes nothing more",
        TRANSACTION,
        "        if self._wall_clock.was_set_back:\n",
        "        if self._wall_clock is None:\n",
        leaderless.a_clock_that_is_set_back_ends_a_worker,
    ),
    Mutant(
        "the group knows which transactions are committed",
        WORDS,
        "words.commits.update(place.metadata for place in told if place.error is None and place.metadata)",
        "pass",
        again(hanging.test_a_commit_that_was_forgotten_in_a_slot_is_made_up_for),
    ),
    Mutant(
        "a call that does not come back is not waited for",
        BOUNDED,
        "wait([answer], hang)",
        "wait([answer])",
        outages.a_call_that_does_not_come_back_is_an_unknown_outcome,
    ),
    Mutant(
        "restoring reads to the high watermark",
        RESTORE,
        "behind = {slot for slot in wanted if result[slot].end < ends[slot]}",
        "behind = {slot for slot in wanted if result[slot].end < 0}",
        scenarios.restoring_reads_to_the_high_watermark,
    ),
]
