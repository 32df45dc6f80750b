"""Rules of streams: who waits for whom, where each starts, what is read together, what is looked for beyond an end.

In: nothing. Out: `STREAMS`. As in `mutants.py`, each rule with the change that breaks it, and what notices.
"""

from __future__ import annotations

from tests.simulation.mutation import Mutant
from tests.topology import test_topology_followers as following
from tests.topology import test_topology_looks as looking
from tests.topology import test_topology_offsets as offsets
from tests.topology import test_topology_planner as planning

TRANSITIONS = "connector/topology/transitions.py"
STATE = "connector/topology/table_state.py"
GATES = "connector/topology/gates.py"
LEDGER = "connector/topology/ledger.py"
PLANNER = "connector/topology/planner.py"
COMMITS = "connector/topology/commits.py"
READER = "connector/topology/table_reader.py"
GROUPS = "connector/topology/groups.py"
CLAIMS = "connector/topology/claims.py"
LINEAGE = "connector/topology/lineage.py"
LOOKS = "connector/topology/looks.py"

WAITING = [
    Mutant(
        "whose range grew waits for those that had it before",
        TRANSITIONS,
        "    return tuple((target, tuple(sources)) for target, sources in waits.items())\n",
        "    return ()\n",
        looking.test_heirs_stand_still_while_a_look_delivers,
    ),
    Mutant(
        "streams that stay and shrink are waited for",
        TRANSITIONS,
        "        if source != target:\n",
        "        if source != target and source not in {group for _, group in becomes}:\n",
        planning.test_a_stream_opened_inside_a_kept_one_waits_for_it_to_pass,
    ),
    Mutant(
        "streams that stay and grow wait",
        TRANSITIONS,
        "        if source != target:\n",
        "        if source != target and target not in {group for _, group in was}:\n",
        planning.test_a_growing_stream_stops_at_the_change,
    ),
    Mutant(
        "a merged stream waits for all that it was",
        TRANSITIONS,
        "    return tuple((target, tuple(sources)) for target, sources in waits.items())\n",
        "    return tuple((target, tuple(sources)[:1]) for target, sources in waits.items())\n",
        planning.test_a_merge_waits_for_the_slower_parent,
    ),
    Mutant(
        "reading stays behind by the confidence window",
        STATE,
        "min(now - self.confidence_ms, self.polled_at - self.confidence_ms // 4)",
        "min(now, self.polled_at - self.confidence_ms // 4)",
        looking.test_a_closed_stream_is_looked_at_when_no_node_should_be_behind_any_more_and_once_more_later,
    ),
    Mutant(
        "of a slot that nobody knows nothing is delivered",
        STATE,
        "        if ledger is None:\n            return -1\n",
        "        if ledger is None:\n            return 1 << 62\n",
        following.test_a_slot_is_not_believed_before_its_end_was_reached,
    ),
    Mutant(
        "a position below its mark counts",
        STATE,
        "        streams = source.group.streams if ledger.positions else source.group.streams[:1]\n        starts = [",
        "        streams = source.group.streams if ledger.positions else source.group.streams[:1]\n"
        "        if ledger.mark is not None:\n"
        "            return ledger.mark.read_to\n"
        "        starts = [",
        following.test_a_torn_group_is_drained_with_its_last_stream,
    ),
    Mutant(
        "a commit that did not happen shuts the gates again that it opened",
        "connector/topology/planner.py",
        "            plan.doubt()\n",
        "            pass\n",
        planning.test_a_commit_that_did_not_happen_shuts_the_gate_again,
    ),
    Mutant(
        "a gate that an abort may shut again stays",
        GATES,
        "            elif all(committed(source, gate.at) for source in gate.before):\n",
        "            elif all(reached(source, gate.at) for source in gate.before):\n",
        planning.test_an_abort_shuts_the_gate_again,
    ),
]

STARTING = [
    Mutant(
        "streams that a mark's writer did not know start where they opened",
        LEDGER,
        "        if opened > mark.stream_set:\n",
        "        if opened > mark.stream_set + (1 << 60):\n",
        offsets.test_where_a_stream_starts,
    ),
    Mutant(
        "streams that a mark's writer knew start at the mark",
        LEDGER,
        "            read_to = max(opened, mark.read_to) if opened_known else mark.read_to\n",
        "            read_to = opened\n",
        following.test_a_slot_is_not_believed_before_its_end_was_reached,
    ),
    Mutant(
        "no stream starts before its table",
        LEDGER,
        "            read_to = max(opened, mark.start)\n",
        "            read_to = opened\n",
        offsets.test_where_a_stream_starts,
    ),
    Mutant(
        "a stream inside a read goes on behind what it delivered",
        LEDGER,
        "        return Position(closed)\n    return position\n",
        "        return Position(closed)\n    return Position(position.read_to)\n",
        offsets.test_after_a_restart_every_stream_goes_on_where_it_stood,
    ),
    Mutant(
        "positions stand in front of marks",
        PLANNER,
        "Commit((*positions, *marks), ",
        "Commit((*marks, *positions), ",
        following.test_every_prefix_of_a_commit_is_conservative,
    ),
    Mutant(
        "positions are written",
        COMMITS,
        " for slot, _, stream, position in staged.positions\n    ]\n",
        " for slot, _, stream, position in staged.positions if position is None\n    ]\n",
        offsets.test_a_stream_that_delivered_gets_a_position_until_the_mark_has_passed_it,
    ),
    Mutant(
        "positions that say nothing any more are removed",
        COMMITS,
        " for slot, _, stream, position in staged.positions\n    ]\n",
        " for slot, _, stream, position in staged.positions if position is not None\n    ]\n",
        offsets.test_positions_of_forgotten_streams_are_cleaned_up,
    ),
    Mutant(
        "a stream below the mark has a position",
        COMMITS,
        "    if state.level < usual.read_to or hidden:\n",
        "    if hidden:\n",
        offsets.test_positions_go_in_front_of_marks,
    ),
    Mutant(
        "a mark says which set its writer knew",
        COMMITS,
        "        plan.newest.timestamp,\n        old.start,\n",
        "        old.stream_set,\n        old.start,\n",
        offsets.test_a_worker_with_an_older_view_reads_nothing_and_says_so,
    ),
    Mutant(
        "a slot is read when its claim is committed",
        STATE,
        "        return [slot for slot in sorted(self.book.own) if slot not in self.active]\n",
        "        ready = [slot for slot in sorted(self.book.own) if slot not in self.active and self.mark_of(slot)]\n"
        "        if ready and self._staged is None:\n"
        "            self._activate(ready)\n"
        "        return [slot for slot in sorted(self.book.own) if slot not in self.active]\n",
        offsets.test_a_claim_repeats_what_was_restored_under_a_new_owner,
    ),
]

READ = [
    Mutant(
        "an abort takes positions back",
        READER,
        "                state.put_back(saved)\n                state.cap_at_close()\n",
        "                state.cap_at_close()\n",
        planning.test_an_abort_shuts_the_gate_again,
    ),
    Mutant(
        "a batch is not its whole millisecond",
        GROUPS,
        "Position(ms if ms > read_to else read_to, time)\n",
        "Position((ms if ms > read_to else read_to) + 1)\n",
        planning.test_an_interrupted_read_goes_on_behind_its_last_batch,
    ),
    Mutant(
        "streams of a group that came apart are not read from the lowest",
        GROUPS,
        "        if not self.apart:\n            return streams, Position(self.level), cap\n",
        "        if streams:\n            return streams, Position(self.read_to), cap\n",
        planning.test_a_torn_group_is_read_stream_by_stream_until_it_is_level_again,
    ),
    Mutant(
        "streams of a group that came apart are not read from the highest",
        GROUPS,
        "        if not self.apart:\n            return streams, Position(self.level), cap\n",
        "        if streams:\n"
        "            return streams, Position(min(cap, max(self.position(each).read_to for each in streams))), cap\n",
        planning.test_a_torn_group_is_read_stream_by_stream_until_it_is_level_again,
    ),
    Mutant(
        "a read of some streams counts for them alone",
        GROUPS,
        "        if len(streams) == len(self.group.streams):\n            self.level",
        "        if streams:\n            self.level",
        planning.test_a_torn_group_is_read_stream_by_stream_until_it_is_level_again,
    ),
    Mutant(
        "sets are fetched from the one on that the slowest needs",
        CLAIMS,
        "    bounds = [min(mark.read_to, mark.stream_set, mark.rechecked) for mark in marks]\n"
        "    bounds += [at.read_to for ledger in ledgers for at in ledger.positions.values()]\n",
        "    bounds = [max(mark.read_to for mark in marks)]\n",
        following.test_old_generations_are_not_fetched_again,
    ),
    Mutant(
        "streams that are learnt late start where they opened",
        LINEAGE,
        "        state = GroupState(group, slot, opened, opened_known)\n",
        "        state = GroupState(group, slot, opened + 300 * opened_known, opened_known)\n",
        planning.test_children_follow_as_soon_as_the_parent_is_produced,
    ),
]

LATE = [
    Mutant(
        "ends of streams are looked beyond",
        LOOKS,
        "    limit = plan.limit(now)\n    if limit is None or not",
        "    limit = None\n    if limit is None or not",
        looking.test_a_look_is_owed_by_whoever_comes_next,
    ),
    Mutant(
        "a look is owed by the next owner",
        LOOKS,
        "if state.close is not None and not state.looked]\n"
        "    return max(before, min(owed) - 1 if owed else plan.newest.timestamp)\n",
        "if state.close is not None and not state.looked]\n    return max(before, plan.newest.timestamp)\n",
        looking.test_a_look_is_owed_by_whoever_comes_next,
    ),
    Mutant(
        "a look begins at an end that only the mark's writer knew of",
        READER,
        "        unread = {slot for slot in self.active if not self.knows_enough(slot)} if news else set()\n",
        "        unread: set[int] = set()\n",
        looking.test_what_only_the_writer_of_a_mark_knew_the_end_of_is_looked_at,
    ),
    Mutant(
        "heirs stand still while a look delivers",
        LOOKS,
        "        heir.holds += 1\n    plan.holding[read] = heirs\n",
        "    plan.holding[read] = []\n",
        looking.test_heirs_stand_still_while_a_look_delivers,
    ),
    Mutant(
        "heirs of other workers are searched",
        LOOKS,
        "        if state.slot not in plan.active or state.reaches > read.read_to\n",
        "        if state.slot in plan.active and state.reaches > read.read_to\n",
        looking.test_heirs_of_other_workers_are_searched_for_anything_later_and_only_just_after_a_poll,
    ),
    Mutant(
        "heirs are in front of a look",
        LOOKS,
        "            limit = min(limit, at)\n",
        "            pass\n",
        looking.test_a_look_goes_as_far_as_heirs_of_other_workers_have_committed,
    ),
    Mutant(
        "a look goes on behind the last one",
        GROUPS,
        "        self.late[stream] = Position(self.close, time)\n",
        "        pass\n",
        looking.test_what_was_found_is_noted_and_another_look_follows,
    ),
    Mutant(
        "what a look delivered is taken over",
        LOOKS,
        "                state.late[stream] = at\n",
        "                pass\n",
        looking.test_what_was_found_is_noted_and_another_look_follows,
    ),
]

STREAMS = [*WAITING, *STARTING, *READ, *LATE]
