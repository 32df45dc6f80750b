"""Rules of snapshots: when one begins, who reads what, where rows are placed, what is known of them.

In: nothing. Out: `SNAPSHOTS`. As in `mutants.py`, each rule with the change that breaks it, and what notices.
"""

from __future__ import annotations

from tests.changes import test_changes_row_fold as folding
from tests.simulation.mutation import Mutant, of
from tests.source import test_source_snapshots as holding
from tests.source import test_source_snapshots_doubt as doubting
from tests.topology import test_topology_snapshots as snapshots

COMMITS = "connector/topology/commits.py"
HOLDING = "connector/source/snapshots.py"
HELD_CHUNK = "connector/source/held_chunk.py"
PLACING = "connector/topology/snapshots.py"
WISHES = "connector/topology/snapshot_wishes.py"
FOLDING = "connector/changes/row_fold.py"

HELD = [
    Mutant(
        "changes that are delivered while rows are read are in them",
        HELD_CHUNK,
        "            self.noted.setdefault(key, []).append(batch)\n",
        "            pass\n",
        holding.test_changes_since_before_the_read_are_in_the_rows,
    ),
    Mutant(
        "changes that are delivered while rows are held are in them",
        HELD_CHUNK,
        "        if not _apply(self.folded[key], batch):\n",
        "        if False:\n",
        holding.test_changes_since_before_the_read_are_in_the_rows,
    ),
    Mutant(
        "changes of a part of a partition, which is behind the last token, are in it",
        HELD_CHUNK,
        "chunk.upto + (chunk.inside is not None)\n",
        "chunk.upto\n",
        holding.test_changes_of_a_part_are_in_it,
    ),
    Mutant(
        "changes of the first token that a chunk has are in it",
        HELD_CHUNK,
        "        self.tokens = self.low + 1, ",
        "        self.tokens = self.low + 2, ",
        holding.test_changes_of_a_part_are_in_it,
    ),
    Mutant(
        "rows wait for all that is older than the end of their read",
        HOLDING,
        "            if at is None or at < held.since:\n",
        "            if at is None:\n",
        holding.test_rows_are_placed_when_all_that_is_older_than_the_end_of_their_read_is_delivered,
    ),
    Mutant(
        "changes have their turn between rows that are ripe at once",
        HOLDING,
        "        while queue and count < most:\n",
        "        while queue:\n",
        holding.test_changes_have_their_turn_between_what_is_ripe_at_once,
    ),
    Mutant(
        "what is read again waits for the end of that",
        HELD_CHUNK,
        "        if not self.renewed or at_ms < self.renewed_since:\n",
        "        if not self.renewed:\n",
        holding.test_what_cannot_be_told_is_read_again_and_placed_later,
    ),
    Mutant(
        "who goes on inside a partition begins where the last one ended",
        HOLDING,
        "start = opening.start(span[0], table_id) if before is None or before.upto != span[0] else before.stop",
        "start = None",
        holding.test_a_partition_that_is_too_large_is_placed_part_by_part,
    ),
    Mutant(
        "a partition of a table that had the name before is not gone on with",
        "connector/topology/snapshot_state.py",
        "self.inside.get((behind, table_id), unnamed)",
        "next((one for (at, _), one in self.inside.items() if at == behind), None)",
        holding.test_a_partition_of_a_table_that_had_the_name_before_is_begun_anew,
    ),
    Mutant(
        "nor is one of which it is not said, in a table that is younger than the snapshot",
        "connector/topology/snapshot_state.py",
        "made > self.since * TICKS_PER_MS",
        "made < 0",
        snapshots.test_who_takes_over_goes_on_where_the_committed_progress_ends,
    ),
    Mutant(
        "no row is shown by a description that is older than its columns",
        HOLDING,
        "self._tables[table].description != held.description or self._tables.stopped(table)\n",
        "self._tables.stopped(table)\n",
        holding.test_a_row_is_not_shown_by_a_description_that_is_older_than_its_columns,
    ),
    Mutant(
        "what is held is dropped with what is taken back",
        HOLDING,
        "            if not queue or not self._planner.is_open(queue[0].opening):\n",
        "            if not queue:\n",
        holding.test_what_is_held_is_dropped_with_what_is_taken_back,
    ),
    Mutant(
        "rows wait for the clocks of who writes",
        HOLDING,
        "latest_ms() + self._settings.clocks_apart_ms\n",
        "latest_ms()\n",
        holding.test_rows_wait_for_the_fastest_clock_of_who_may_have_written_them,
    ),
    Mutant(
        "static columns are shown once, whatever parts a partition has",
        HELD_CHUNK,
        "shape.of_partition(rows, self.start is None, ",
        "shape.of_partition(rows, True, ",
        holding.test_a_partition_that_is_too_large_is_placed_part_by_part,
    ),
    Mutant(
        "static columns are shown once, also where nobody makes objects of rows",
        HELD_CHUNK,
        "list(there.values()), statics=self.start is None, ",
        "list(there.values()), statics=True, ",
        holding.test_a_partition_that_is_too_large_is_placed_part_by_part,
    ),
    Mutant(
        "a part that shows nothing more than static values has no rows",
        HELD_CHUNK,
        "            if self.start is not None:\n",
        "            if False:\n",
        holding.test_a_part_that_shows_nothing_more_than_static_values_has_no_rows,
    ),
]

DOUBTED = [
    Mutant(
        "a partition in doubt holds up itself alone",
        HOLDING,
        "(held.holes and not self._is_left_aside(held))",
        "held.holes",
        doubting.test_what_is_in_doubt_holds_up_itself_alone,
    ),
    Mutant(
        "a partition in doubt is no part of what is done",
        HELD_CHUNK,
        "        for token in sorted(token for token in doubted if self.low < token <= last):\n",
        "        for token in ():\n",
        doubting.test_who_goes_on_reads_the_holes_alone,
    ),
    Mutant(
        "what waits is not read once more by who reads on",
        HOLDING,
        "_next_span(without(opening.left, joined(aside)), ",
        "_next_span(opening.left, ",
        doubting.test_a_part_in_doubt_holds_up_the_rest_of_its_partition_alone,
    ),
    Mutant(
        "partitions that share a token are done together",
        HELD_CHUNK,
        "token_of_key(each[0]) not in doubted)",
        "each[0] not in self.doubted)",
        doubting.test_what_shares_the_token_of_what_is_in_doubt_waits_with_it,
    ),
    Mutant(
        "the number of holes is bounded",
        HOLDING,
        "        if sum(len(each.holes) for each in (*aside, held)) > MOST_ASIDE:\n",
        "        if False:\n",
        doubting.test_no_more_than_so_many_holes_are_left,
    ),
    Mutant(
        "what a change has told is not placed once more when it is read again",
        HELD_CHUNK,
        "            if key not in self.partitions:\n",
        "            if False:\n",
        doubting.test_what_is_read_again_is_nobodys_once_a_change_has_told_what_it_is,
    ),
    Mutant(
        "the parts of a partition are placed in their order",
        HOLDING,
        "            while queue and held.holes and held.is_part and queue[0].start is not None:\n",
        "            while False:\n",
        doubting.test_a_part_in_doubt_holds_up_the_rest_of_its_partition_alone,
    ),
    Mutant(
        "what is placed is done, and nothing beside it",
        PLACING,
        "    parts = [(max(low, first), min(high, last)) for",
        "    parts = [(first, min(high, last)) for",
        snapshots.every_token_is_placed_once,
    ),
]

PLACED = [
    Mutant(
        "rows are placed only where the whole group stands",
        PLACING,
        "    if not is_open(plan, opening) or state.apart or state.failure is not None:\n",
        "    if not is_open(plan, opening) or state.failure is not None:\n",
        snapshots.test_rows_are_placed_only_where_the_whole_group_stands,
    ),
    Mutant(
        "a group of a new set begins when those before it have committed what they delivered",
        PLACING,
        "        plan.committed_to(source, gate.at) for gate",
        "        plan.reached(source, gate.at) for gate",
        snapshots.test_after_a_split_nothing_is_placed_by_the_old_group_and_the_rest_by_the_new_ones,
    ),
    Mutant(
        "a group begins when its set has begun where it stands",
        PLACING,
        "    return state.read_to >= plan.newest.timestamp and all(\n",
        "    return all(\n",
        snapshots.test_a_group_that_only_shrinks_keeps_what_is_left_of_its_range,
    ),
    Mutant(
        "groups that are far behind read changes first",
        PLACING,
        " or state.read_to < limit - NEAR_MS:\n",
        ":\n",
        snapshots.test_groups_that_are_far_behind_read_changes_first,
    ),
    Mutant(
        "progress of what has ended is removed later",
        PLACING,
        "    kept = {name for name, each in found.items() if each.ended is None or now - each.ended < KEPT_MS}\n",
        "    kept = {*found}\n",
        snapshots.test_the_end_is_noted_when_all_tokens_are_committed_and_progress_is_removed_later,
    ),
    Mutant(
        "a snapshot ends when all tokens are committed",
        PLACING,
        "        if _tokens(_committed(plan, name)) == [(MIN_TOKEN, MAX_TOKEN)]:\n",
        "        if _tokens([*_committed(plan, name), *_uncommitted(plan, name)]) == [(MIN_TOKEN, MAX_TOKEN)]:\n",
        snapshots.test_the_end_is_noted_when_all_tokens_are_committed_and_progress_is_removed_later,
    ),
    Mutant(
        "no row is shown before the changes that came late behind it",
        PLACING,
        "            if state in late:\n",
        "            if False:\n",
        snapshots.test_rows_wait_for_changes_that_came_late_into_what_has_ended,
    ),
    Mutant(
        "what no SELECT tells is remembered over another read",
        FOLDING,
        "            if row.marker is None and known.marker is not None:\n",
        "            if False:\n",
        folding.test_a_later_read_learns_what_was_known_of_markers_and_lists,
    ),
    Mutant(
        "what a group had read and not placed is dropped when its range changes",
        PLACING,
        "        if state.close is not None or not same:\n",
        "        if state.close is not None:\n",
        snapshots.test_a_group_that_only_shrinks_keeps_what_is_left_of_its_range,
    ),
    Mutant(
        "an abort takes progress back",
        PLACING,
        "    plan.snapshots.staged, plan.snapshots.produced = None, {}\n",
        "    plan.snapshots.staged = None\n",
        snapshots.every_token_is_placed_once,
    ),
    Mutant(
        "what is placed and not committed is not placed again",
        PLACING,
        "[*_committed(plan, name), *_uncommitted(plan, name)]",
        "[*_committed(plan, name)]",
        snapshots.test_a_group_that_only_shrinks_keeps_what_is_left_of_its_range,
    ),
    Mutant(
        "rows of a table are not begun before all slots are known",
        PLACING,
        "    if run is None or run[1].paused or plan.newest is None or not plan.book.all_known:\n",
        "    if run is None or run[1].paused or plan.newest is None:\n",
        snapshots.test_what_another_worker_did_is_known_before_anything_is_done,
    ),
    Mutant(
        "only a table that is started gets an initial snapshot",
        COMMITS,
        "            new = new or (slot == plan.home and claims.is_new(plan))\n",
        "            new = new or slot == plan.home\n",
        snapshots.test_a_table_that_was_started_before_gets_none,
    ),
    Mutant(
        "progress stands in front of the positions that others wait for",
        COMMITS,
        "    return [*snapshots.entries(plan, staged.snapshots), *positions], marks\n",
        "    return positions, [*marks, *snapshots.entries(plan, staged.snapshots)]\n",
        snapshots.test_progress_is_one_entry_of_an_interval_in_front_of_marks,
    ),
]

FOLDED = [
    Mutant(
        "of writes at one time a deletion wins",
        FOLDING,
        "    return value is None, until is not None, until or 0, value or b",
        "    return False, until is not None, until or 0, value or b",
        folding.test_of_two_writes_at_one_time_a_deletion_wins_then_the_greater,
    ),
    Mutant(
        "then one that ends, and of two of those the later end",
        FOLDING,
        "value is None, until is not None, until or 0, value or b",
        "value is None, False, 0, value or b",
        folding.test_of_two_writes_at_one_time_one_that_ends_wins_then_the_later_end_then_the_greater_value,
    ),
    Mutant(
        "an insert that ends wins against one at its time that does not",
        FOLDING,
        'if us > row.marked or _rank(b"", until) >= _rank(b"", row.marker_until):',
        "if until is None or us:",
        folding.test_of_two_writes_at_one_time_one_that_ends_wins_then_the_later_end_then_the_greater_value,
    ),
    Mutant(
        "a list whose elements have no keys is not guessed",
        FOLDING,
        "            cell.doubtful = True\n",
        "            pass\n",
        folding.test_what_no_select_tells_is_in_doubt,
    ),
    Mutant(
        "a row is not made of changes alone",
        FOLDING,
        "        elif clustering in self._rows:\n            row = self._rows[clustering]\n",
        "        else:\n            row = self._rows.setdefault(clustering, _Row({}, None))\n",
        folding.test_rows_that_were_not_there_have_no_row_of_the_snapshot,
    ),
    Mutant(
        "what is written at the time of a delete is deleted",
        FOLDING,
        "change.timestamp_us <= row.deleted\n",
        "change.timestamp_us < row.deleted\n",
        folding.test_deletes_end_rows_and_what_is_inserted_behind_them_lives,
    ),
    Mutant(
        "an insert at the time of a delete makes no row",
        FOLDING,
        'if change.kind == "c" and us > row.deleted:',
        'if change.kind == "c":',
        folding.test_deletes_end_rows_and_what_is_inserted_behind_them_lives,
    ),
    Mutant(
        "a partition's delete takes its static values",
        FOLDING,
        "            _delete(self._static, us)\n",
        "",
        folding.test_a_partition_that_is_deleted_has_nothing_but_what_comes_behind,
    ),
    Mutant(
        "bounds of descending columns come in the order of storage",
        FOLDING,
        "return 1 if (one > other) != descending else -1",
        "return 1 if one > other else -1",
        of(folding.test_ranges_are_in_the_order_of_storage, (5, 3), (7, 2), [4, 1]),
    ),
    Mutant(
        "values with a time to live end",
        FOLDING,
        "    return None if not change.ttl else (change.timestamp_us // _SECOND + change.ttl) * _SECOND\n",
        "    return None\n",
        folding.test_what_lives_for_a_time_is_gone_after_it,
    ),
    Mutant(
        "what a change writes was written by it",
        FOLDING,
        "    cell.value, cell.at, cell.until, cell.written = value, us, until, us\n",
        "    cell.value, cell.at, cell.until = value, us, until\n",
        folding.test_cells_tell_when_they_were_written_last,
    ),
    Mutant(
        "what a column had before it was dropped is nothing that it has now",
        FOLDING,
        "us <= self._dropped.get(place.name, _BEFORE)",
        "False",
        folding.test_what_a_column_had_before_it_was_dropped_is_nothing_that_it_has_now,
    ),
    Mutant(
        "of two writes at one time the one that ends wins",
        FOLDING,
        '    return value is None, until is not None, until or 0, value or b""\n',
        '    return value is None, False, 0, value or b""\n',
        folding.test_of_two_writes_at_one_time_one_that_ends_wins_then_the_later_end_then_the_greater_value,
    ),
    Mutant(
        "what is replaced keeps no element",
        FOLDING,
        "            cell.cells = {key: each for key, each in cell.cells.items() if each.at >= us}\n",
        "",
        folding.test_collections_are_folded_element_by_element,
    ),
    Mutant(
        "whether a row lives without values is not guessed",
        FOLDING,
        "        if row.marker is None:\n",
        "        if False:\n",
        folding.test_what_no_select_tells_is_in_doubt,
    ),
]

WISHED = [
    Mutant(
        "what is asked for is granted once",
        WISHES,
        "        if wish.number <= last:\n",
        "        if False:\n",
        snapshots.test_what_was_asked_for_is_done_once_whoever_hears_it,
    ),
    Mutant(
        "what is heard twice before it is granted is granted once",
        WISHES,
        "        if wish.number <= last:\n",
        "        if wish.number <= done:\n",
        snapshots.test_what_is_heard_twice_is_one_wish,
    ),
    Mutant(
        "up to which wish all is granted stands beside what it did",
        WISHES,
        "    if not is_named or last > done:\n",
        "    if not is_named:\n",
        snapshots.test_what_was_asked_for_is_done_once_whoever_hears_it,
    ),
    Mutant(
        "what was asked before anybody listened is nobody's wish",
        WISHES,
        "    before = -1 if state.hears_from is None else state.hears_from - 1\n",
        "    before = -1\n",
        snapshots.test_what_was_asked_for_is_done_once_whoever_hears_it,
    ),
    Mutant(
        "a snapshot of some rows is of these alone",
        WISHES,
        "asked=wish.id, where=wish.where)",
        "asked=wish.id)",
        snapshots.test_what_was_asked_for_is_done_once_whoever_hears_it,
    ),
    Mutant(
        "what is stopped has ended",
        WISHES,
        "replace(each, ended=now, stopped=True)",
        "replace(each, stopped=True)",
        snapshots.test_a_snapshot_that_pauses_goes_on_where_it_was_and_one_that_is_stopped_does_not,
    ),
    Mutant(
        "what pauses goes on when it is asked to",
        WISHES,
        'paused=wish.action == "pause")',
        "paused=True)",
        snapshots.test_a_snapshot_that_pauses_goes_on_where_it_was_and_one_that_is_stopped_does_not,
    ),
    Mutant(
        "a start of the connector begins one snapshot",
        WISHES,
        "    if state.start is not None and all(each.asked != state.start for each in known.values()):\n",
        "    if state.start is not None:\n",
        snapshots.test_each_start_of_the_connector_begins_one_and_the_start_of_a_worker_none,
    ),
    Mutant(
        "what expired unread begins one snapshot",
        WISHES,
        "        if lost >= 0 and all(each.ended is not None and each.began < lost for each in whole):\n",
        "        if lost >= 0:\n",
        snapshots.test_changes_that_expired_unread_begin_one_whoever_finds_out,
    ),
    Mutant(
        "what expired unread in another worker's slot is noted there",
        WISHES,
        "    found = plan.snapshots.needed if plan.snapshots.when_needed else ()\n",
        "    found = plan.snapshots.needed & {plan.home} if plan.snapshots.when_needed else ()\n",
        snapshots.test_changes_that_expired_unread_begin_one_whoever_finds_out,
    ),
    Mutant(
        "what is noted already begins no other snapshot",
        PLACING,
        "    if noted is None or noted.began < since:\n",
        "    if True:\n",
        snapshots.test_what_expired_unread_is_noted_once_unless_more_expires,
    ),
    Mutant(
        "what expires behind a note is noted as well",
        PLACING,
        "    if noted is None or noted.began < since:\n",
        "    if noted is None:\n",
        snapshots.test_what_expired_unread_is_noted_once_unless_more_expires,
    ),
    Mutant(
        "the last snapshot of each kind is remembered",
        WISHES,
        "    return [name for at, name in ended if at < before and name not in kept]\n",
        "    return [name for at, name in ended if at < before]\n",
        snapshots.test_snapshots_of_long_ago_are_forgotten_but_for_the_last,
    ),
]

SNAPSHOTS = [*HELD, *DOUBTED, *PLACED, *FOLDED, *WISHED]
