"""Rules of a whole worker: how it stops, takes slots over, gives them away, starts over. As in `mutants.py`.

In: nothing. Out: `PROCESS`.
"""

from __future__ import annotations

import pytest

from connector.errors import OthersToo
from connector.worker import topic_troubles
from tests.delivery import test_delivery_stranded as stranded
from tests.simulation import test_simulation_refusals as refusing
from tests.simulation.mutant_worlds import (
    ALTERS,
    DEAF,
    EXPIRES,
    NEEDED,
    OTHER_TABLES,
    ROUGH,
    SOON_OTHER_TABLES,
    STOPS,
    STRANDED,
    TWO_GROUPS,
    world,
)
from tests.simulation.mutation import Mutant, of
from tests.topology import test_topology_offsets as offsets
from tests.topology import test_topology_recreated as recreated
from tests.worker import test_worker_following as following
from tests.worker import test_worker_topic_troubles as troubles
from tests.worker import test_worker_unmade as unmade
from tests.worker import test_worker_unread as unread

CLAIMS = "connector/topology/claims.py"
LEDGER = "connector/topology/ledger.py"
LOOKOUT = "connector/delivery/lookout.py"
MEMBERSHIP = "connector/delivery/membership.py"
WORKER = "connector/worker/worker.py"
TRANSACTIONS = "connector/worker/transactions.py"
RESTORING = "connector/worker/restoring.py"
FORMER_TOPICS = "connector/worker/former_topics.py"
UNMADE = "connector/worker/unmade.py"
SCHEMAS = "connector/worker/schemas.py"
TABLE_LIST = "connector/worker/table_list.py"
UNREAD = "connector/source/unread.py"
KEPT = "connector/topology/kept.py"


def _others_too() -> None:
    error, longest = OthersToo("fenced"), topic_troubles.OTHERS_TOO[1]
    with pytest.MonkeyPatch.context() as patch:
        troubles.test_what_others_end_at_this_moment_is_looked_at_soon(patch, error, longest)


PROCESS = [
    Mutant(
        "a worker whose membership has lost its brokers ends",
        LOOKOUT,
        "elif self._outside.lasts():",
        "elif self._outside.lasts() and not self:",
        world(STRANDED, 76),
    ),
    Mutant(
        "a worker whose follower has lost its brokers ends",
        LOOKOUT,
        "elif self._deaf.lasts():",
        "elif self._deaf.lasts() and not self:",
        world(DEAF, 36),
    ),
    Mutant(
        "a worker whose producer has lost its brokers ends",
        LOOKOUT,
        "elif self._mute.lasts():",
        "elif self._mute.lasts() and not self:",
        lambda: stranded.test_a_worker_whose_transactions_fail_ends_if_its_producer_is_stranded(stranded.Watched()),
    ),
    Mutant(
        "of two groups one delivers",
        RESTORING,
        "        self._one_group.take()\n",
        "",
        world(TWO_GROUPS, 13),
    ),
    Mutant(
        "what may have expired unread is said",
        RESTORING,
        "                self.report(gone)\n",
        "                pass\n",
        world(EXPIRES, 0),
    ),
    Mutant(
        "what expired unread is noted by whoever restores a slot, however often",
        RESTORING,
        "                self._need_snapshot(gone)\n            else:\n",
        "                pass\n            else:\n",
        world(NEEDED, 13),
    ),
    Mutant(
        "what expires unread once more is said once more",
        RESTORING,
        "            if told is not None and gone.from_ms <= told.to_ms:\n",
        "            if told is not None:\n",
        unread.test_what_expired_during_another_absence_is_told_and_of_the_same_one_nothing_twice,
    ),
    Mutant(
        "what expires unread while a worker runs is said",
        UNREAD,
        "                self._report(gone)\n",
        "                pass\n",
        unread.test_one_stream_that_is_not_read_is_enough,
    ),
    Mutant(
        "what was written before an ALTER expires when it was to",
        KEPT,
        "known = ttl_of_unread(self.behind(slot, stands.get(slot, now)), ttl), now",
        "known = ttl, now",
        of(unread.test_what_was_written_before_an_alter_expires_when_it_was_to, 100 * unread.TTL_MS),
    ),
    Mutant(
        "what is not read may be from before the TTL was changed",
        KEPT,
        "    return ttl if noted is None else _shorter(noted, ttl)\n",
        "    return ttl\n",
        of(unread.test_of_what_was_written_before_an_alter_marks_tell_how_long_it_is_kept, 0),
    ),
    Mutant(
        "what is read does not expire by the TTL that it had",
        KEPT,
        "self.behind(slot, stands.get(slot, now))",
        "known[0]",
        unread.test_of_what_was_read_before_another_alter_the_ttl_counts_for_nothing_any_more,
    ),
    Mutant(
        "who restores a slot takes the TTL of what is not read from its mark",
        KEPT,
        "                known = ttl_of_unread(was, ttl), now\n            elif",
        "                known = ttl, now\n            elif",
        of(unread.test_of_what_was_written_before_an_alter_marks_tell_how_long_it_is_kept, 100 * unread.TTL_MS),
    ),
    Mutant(
        "marks tell how long what is not read is kept",
        "connector/topology/commits.py",
        "plan.kept.behind(slot, min([read_to, *(state.read_to for state in states if not state.drained)]), old.ttl)",
        "None",
        of(unread.test_of_what_was_written_before_an_alter_marks_tell_how_long_it_is_kept, 0),
    ),
    Mutant(
        "a node that has not heard of a new table does not bring the former one back",
        "connector/topology/table_reader.py",
        "        return made is not None and any(made < since for since in later)\n",
        "        return False\n",
        recreated.test_the_log_of_a_former_table_is_told_by_its_time,
    ),
    Mutant(
        "what others end at this moment is looked at soon",
        "connector/worker/topic_troubles.py",
        "        if isinstance(error, OthersToo):\n",
        "        if isinstance(error, OthersToo) and not self:\n",
        _others_too,
    ),
    Mutant(
        "a table is let go behind the end of the transaction",
        TABLE_LIST,
        "                transactions.commit(move_marks=True)\n            except CdcError as error:\n"
        "                transactions.recover(error)\n        if transactions.delivery.is_open:\n            return\n",
        "                pass\n            except CdcError as error:\n                transactions.recover(error)\n",
        world(OTHER_TABLES, 79),
    ),
    Mutant(
        "a look for new tables that failed is made again",
        TABLE_LIST,
        "            self._due |= dict.fromkeys(new, time.monotonic() + self._task.pause())\n",
        "            self._due |= dict.fromkeys(new, float('inf'))\n",
        world(SOON_OTHER_TABLES, 24),
    ),
    Mutant(
        "nothing is left to do only when all that is wanted is read",
        TABLE_LIST,
        "        self._settled = self._tables.keys() == set(wanted)\n",
        "        self._settled = True\n",
        world(SOON_OTHER_TABLES, 24),
    ),
    Mutant(
        "what others left open is ended before their table is read",
        TABLE_LIST,
        "            if found.strangers:\n",
        "            if found is None:\n",
        of(refusing.test_what_was_left_open_is_ended_before_its_table_is_read_again, {}),
    ),
    Mutant(
        "a worker whose id is kept looks where it read before",
        FORMER_TOPICS,
        "        return frozenset(then - now)\n",
        "        return frozenset(then & now)\n",
        of(refusing.test_what_was_left_open_is_ended_before_its_table_is_read_again, {"group.instance.id": "kept"}),
    ),
    Mutant(
        "what fails of a table that is let go is over",
        TABLE_LIST,
        "            self._background.dismiss(table)\n",
        "            pass\n",
        refusing.test_a_table_that_is_wanted_no_more_is_waited_for_no_more,
    ),
    Mutant(
        "a missing table that is let go is missed no more",
        TABLE_LIST,
        "            self._tables.drop(table)\n        gone",
        "            pass\n        gone",
        refusing.test_a_table_that_is_missing_and_wanted_no_more_is_no_failure,
    ),
    Mutant(
        "a slot moves on with nothing of it open",
        WORKER,
        "                self.transactions.commit()\n            except CdcError as error:\n"
        "                self.transactions.recover(error)\n        self._let_go",
        "                pass\n            except CdcError as error:\n"
        "                self.transactions.recover(error)\n        self._let_go",
        world(ROUGH, 7),
    ),
    Mutant(
        "slots that are gone are released",
        WORKER,
        "        self._slots.release(slots)\n",
        "",
        world(ROUGH, 10),
    ),
    Mutant(
        "what waits in slots that are gone is said by their next owner",
        WORKER,
        "        self.transactions.released(slots)\n",
        "",
        refusing.test_a_worker_that_lost_its_slots_does_not_say_that_their_changes_wait,
    ),
    Mutant(
        "changes wait until records of them are committed",
        UNMADE,
        "            known.made = True\n",
        "            self._forget(task, [place], Task.worked)\n",
        unmade.test_it_is_over_when_what_was_made_is_committed,
    ),
    Mutant(
        "nor by a commit of others",
        UNMADE,
        "if each.made or now - each.tried > self._patience]",
        "if each]",
        unmade.test_other_groups_that_are_delivered_say_nothing_of_one_that_waits,
    ),
    Mutant(
        "nor by one before which they were taken back",
        UNMADE,
        "                each.made = False\n",
        "                pass\n",
        unmade.test_it_is_over_when_what_was_made_is_committed,
    ),
    Mutant(
        "what was followed counts for nothing after a new beginning",
        WORKER,
        "            self._slots.follow_anew()\n",
        "",
        following.test_what_was_followed_counts_for_nothing_after_a_new_beginning,
    ),
    Mutant(
        "a stop that cannot commit drops what is open",
        WORKER,
        "            # Nothing more is tried: what is open is ended by the next owners of the slots.\n"
        "            self.delivery.close()\n",
        "",
        world(STOPS, 30),
    ),
    Mutant(
        "a definition counts as written when it is committed",
        SCHEMAS,
        "read_topic(clients, topic, 1, group, READ_COMMITTED)",
        'read_topic(clients, topic, 1, group, "read_uncommitted")',
        world(ALTERS, 347),
    ),
    Mutant(
        "starting over forgets positions",
        TRANSACTIONS,
        "        self._planner.forget()\n        self.renew",
        "        self._planner.aborted()\n        self.renew",
        world(ROUGH, 63),
    ),
    Mutant(
        "starting over restores every slot",
        TRANSACTIONS,
        "        self._claiming.begin(self._membership.owned)\n",
        "",
        world(ROUGH, 7),
    ),
    Mutant(
        "a restore that is stale is not used",
        RESTORING,
        "still = frozenset(slot for slot in slots if self._tickets.get(slot) == ticket)",
        "still = frozenset(slots)",
        world(ROUGH, 63),
    ),
    Mutant(
        "slots that are lost are given up",
        MEMBERSHIP,
        "            self._owner.lost(gone)\n",
        "            pass\n",
        world(ROUGH, 32),
    ),
    Mutant(
        "slots that are revoked are let go in good order",
        MEMBERSHIP,
        "            self._owner.revoked(gone)\n",
        "            pass\n",
        world(ROUGH, 10),
    ),
    Mutant(
        "a slot whose mark cannot be read is not claimed",
        CLAIMS,
        "    if ledger.broken:\n        return None\n",
        "",
        offsets.test_a_mark_that_cannot_be_read_holds_up_its_own_slot_only,
    ),
    Mutant(
        "a table is not started while a mark of it cannot be read",
        CLAIMS,
        "    if any(ledger.broken for ledger in plan.book.ledgers(plan.table)):\n        return None\n    starts",
        "    starts",
        offsets.test_a_table_is_not_started_anew_while_a_mark_cannot_be_read,
    ),
    Mutant(
        "a stream whose position cannot be read starts nowhere",
        LEDGER,
        "if mark is None or ledger.broken:",
        "if mark is None:",
        offsets.test_a_position_that_cannot_be_read_is_no_position,
    ),
    Mutant(
        "a table that was not there at the start is looked for",
        TABLE_LIST,
        "            self._look_at(new)\n",
        "            pass\n",
        refusing.test_a_table_that_was_not_there_at_the_start_of_a_worker_is_read_when_it_is,
    ),
]
