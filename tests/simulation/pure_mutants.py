"""Rules of the rooms that need no server: what a table is, whose changes rows are, what records are made of them.

In: nothing. Out: `PURE`. As in `mutants.py`, each rule with the change that breaks it, and what notices.
"""

from __future__ import annotations

from cassandra.cqltypes import Int32Type

from tests.changes import test_changes_lost_keys as lost
from tests.changes import test_changes_matching as matching
from tests.delivery import test_delivery_flush as flushing
from tests.formats import test_formats_encoder as encoding
from tests.simulation.mutant_worlds import AGAIN, DEAF_NODES, world
from tests.simulation.mutation import Mutant, of
from tests.simulation.snapshot_reading_mutants import patched
from tests.source import test_source_connection as connecting
from tests.source import test_source_lagging as lagging
from tests.source import test_source_limits as limits
from tests.source import test_source_retries as retries
from tests.source import test_source_tables as tables
from tests.spark_jobs import test_landing_definitions as landed
from tests.spark_jobs import test_landing_publishing as publishing
from tests.topology import test_topology_followers as following
from tests.topology import test_topology_offsets as offsets
from tests.topology import test_topology_planner as planning
from tests.topology import test_topology_starts as starts
from tests.topology import test_topology_tenure as tenures
from tests.worker import test_worker_pipeline as pipelines

MATCHING = "connector/changes/matching.py"
LOST_KEYS = "connector/changes/lost_keys.py"
ENCODER = "connector/formats/encoder.py"
TABLES = "connector/source/tables.py"
DESCRIBING = "connector/source/describing.py"
READING = "connector/source/reading.py"
LIMITS = "connector/source/limits.py"
PIPELINE = "connector/worker/pipeline.py"
BOOK = "connector/topology/book.py"
CLAIMS = "connector/topology/claims.py"
CONNECTION = "connector/source/connection.py"
COMMITS = "connector/topology/commits.py"
TABLE_STATE = "connector/topology/table_state.py"
PRODUCER = "connector/delivery/producer.py"
SHAPE = "spark_jobs/model/shape.py"
TENURE = "connector/topology/tenure.py"


FOLLOWED = [
    Mutant(
        "a reader that ends at a time reads nothing from there on",
        TABLE_STATE,
        "        return limit if self.until_ms is None else min(limit, self.until_ms)\n",
        "        return limit\n",
        planning.test_nothing_is_read_beyond_the_end_that_was_asked_for_and_all_in_front_of_it_is,
    ),
    Mutant(
        "of a slot that goes away nothing is known until it is followed",
        BOOK,
        "        self._caught_up.discard(slot)\n",
        "",
        following.test_of_a_slot_that_goes_away_nothing_is_known_until_it_is_followed,
    ),
    Mutant(
        "who has not the home slot starts no table",
        CLAIMS,
        "        start = None if home is None else home.start\n",
        "        start = newest.timestamp if home is None else home.start\n",
        starts.test_who_has_not_the_home_slot_waits_for_its_decision,
    ),
]

CHANGES = [
    Mutant(
        "every server is asked for its time before anything is read",
        CONNECTION,
        "            if told and time.monotonic() >= deadline:\n",
        "            if told:\n",
        connecting.test_every_server_is_asked_for_its_time_before_anything_is_read,
    ),
    Mutant(
        "images belong to the row with their key",
        MATCHING,
        "        change.before = before.get(key)\n",
        "        change.before = next(iter(before.values()), None)\n",
        matching.test_images_belong_to_the_row_with_their_key_not_to_their_neighbour,
    ),
    Mutant(
        "a delete shows no row after it",
        MATCHING,
        '        if change.kind != "d":\n',
        "        if True:\n",
        matching.test_a_delete_shows_no_row_after_it,
    ),
    Mutant(
        "half a range delete is poison",
        MATCHING,
        "    if start is not None:\n        raise poison",
        "    if not rows:\n        raise poison",
        of(matching.test_half_range_deletes_are_poison, (5,)),
    ),
    Mutant(
        "an operation that nobody knows is poison",
        MATCHING,
        '            raise poison(batch, row, f"unknown cdc$operation {_code(operation)}")\n',
        "            continue\n",
        of(matching.test_an_unknown_operation_is_poison_that_names_the_code, 10, "10"),
    ),
    Mutant(
        "a change that lost its partition key is poison",
        LOST_KEYS,
        '(lacks[0].column.kind == "clustering" and _may_lack(batch, row, operation))',
        '(lacks[0].column.kind != "clustering" or _may_lack(batch, row, operation))',
        of(lost.test_no_change_is_without_its_partition_key, 2, "p"),
    ),
    Mutant(
        "a row that was deleted is known by its clustering key",
        LOST_KEYS,
        "if operation in _ROWS or any(",
        "if any(",
        of(lost.test_no_change_of_a_row_is_without_its_clustering_key, lost.LOG, 3, {}, {}),
    ),
    Mutant(
        "a change of a row is never taken for one of the static row",
        LOST_KEYS,
        "    if any(_touches(row, place) for place in layout.regular):\n        return False\n",
        "",
        of(lost.test_no_change_of_a_row_is_without_its_clustering_key, lost.LOG, 1, {"v": "x"}, {}),
    ),
    Mutant(
        "a bound that may have lost something is poison",
        LOST_KEYS,
        "is_sure = batch.timestamp_us >= description.keys_lost_us",
        "is_sure = True",
        of(lost.test_what_may_have_lost_something_is_not_taken_for_what_lacks_it, lost.AT_US + 1, False),
    ),
    Mutant(
        "each row of a batch has to tell its key",
        MATCHING,
        "                require_key(batch, row)\n                break\n        if start is not None and",
        "                break\n        if start is not None and",
        of(lost.test_bounds_lack_what_they_do_not_fix_and_whole_partitions_all, 6, {}, False),
    ),
    Mutant(
        "and so has a batch's only one",
        MATCHING,
        "                    require_key(batch, row)\n                    break\n            return",
        "                    break\n            return",
        of(lost.test_no_change_of_a_row_is_without_its_clustering_key, lost.LOG, 3, {}, {}),
    ),
]

TABLE = [
    Mutant(
        "a row is not read with a description that is older than its columns",
        TABLES,
        "        known.stopped, known.answered = True, False\n",
        "        known.stopped, known.answered = False, False\n",
        tables.test_a_changed_column_goes_its_one_way,
    ),
    Mutant(
        "a page that lacks a column is not taken",
        TABLES,
        "        if (lacks := self.lacking(table, page)) is not None:\n",
        "        if (lacks := self.lacking(table, page)) is not None and False:\n",
        lagging.test_a_page_that_lacks_a_column_is_not_taken,
    ),
    Mutant(
        "a page with a column of an older type is not taken",
        "connector/source/lagging.py",
        " or _other_types(dict(columns), page)",
        "",
        lagging.test_a_page_by_the_type_that_a_column_had_before_it_was_dropped,
    ),
    Mutant(
        "who has not heard that a column was dropped is behind",
        "connector/source/lagging.py",
        "        if ended.get(dropped.name, -1) < dropped.dropped_us and",
        "        if False and",
        world(AGAIN, 22),
    ),
    Mutant(
        "who has not heard of a key column's other name is behind",
        "connector/source/lagging.py",
        "    if found.keys_lost_us < known.keys_lost_us:\n",
        "    if False:\n",
        lagging.test_a_column_of_the_key_goes_by_getting_another_name,
    ),
    Mutant(
        "rows of a table are taken from no node by another schema",
        "connector/source/lagging.py",
        "        raise OtherSchema(description.full_name, shows, page.node)\n",
        "        pass\n",
        of(
            lagging.test_rows_of_a_snapshot_are_shown_by_the_schema_by_which_they_are_read,
            (Int32Type, Int32Type, lagging.fields(2)),
            "column v of type int",
            False,
        ),
    ),
    Mutant(
        "what a node gave before it said that it knows of a column's end is asked for again",
        "connector/source/added_again.py",
        "        return asked >= since\n",
        "        return True\n",
        lagging.test_a_column_that_was_added_again_is_shown_by_nodes_that_know_the_end_of_the_former_one,
    ),
    Mutant(
        "what only a page knows is asked of its own node",
        TABLES,
        "(not anew and page.node in {None, *known.told})",
        "not anew",
        lagging.test_what_only_a_page_knows_is_asked_of_its_node,
    ),
    Mutant(
        "an older description replaces none",
        DESCRIBING,
        "        if lacks is None or said",
        "        if True or said",
        world(DEAF_NODES, 13),
    ),
    Mutant(
        "rows are not read before somebody has looked for their columns",
        READING,
        " or not self._tables.knows(read.table, read.limit)",
        "",
        patched(retries.test_nothing_is_read_before_somebody_has_looked_for_columns),
    ),
    Mutant(
        "a description is in force when its schema record is committed",
        TABLES,
        "            known.found = described\n",
        "            known.in_force = described\n",
        tables.test_a_changed_column_goes_its_one_way,
    ),
    Mutant(
        "a schema record of an aborted transaction is written again",
        TABLES,
        "                known.writing = known.compared = None\n",
        "                known.compared = None\n",
        tables.test_a_record_of_an_aborted_transaction_is_written_again,
    ),
    Mutant(
        "what others wrote of a table is looked at before a claim",
        TABLES,
        "            known.version, known.compared = versions.get(str(table)), None\n",
        "            known.compared = None\n",
        tables.test_what_others_have_written_is_not_written_again,
    ),
    Mutant(
        "an answer from before the question is none",
        TABLES,
        "                known.stopped = known.stopped and not known.answered\n",
        "                known.stopped = False\n",
        tables.test_what_was_read_without_being_asked_is_no_answer,
    ),
    Mutant(
        "what was not asked is not saved up",
        LIMITS,
        "        self._tokens = min(self._capacity, self._tokens + elapsed * self._rate)\n",
        "        self._tokens += elapsed * self._rate\n",
        limits.test_what_was_not_asked_is_not_saved_up,
    ),
    Mutant(
        "pages of a running read are paid for",
        LIMITS,
        "        with self._lock:\n            self._tokens -= 1.0\n",
        "        pass\n",
        limits.test_pages_of_a_running_read_are_paid_for_later,
    ),
]

RECORDS = [
    Mutant(
        "a cell that cannot be decoded is poison",
        ENCODER,
        "            return self._delete(change, data, tombstone, told)\n        except (CdcError, MemoryError):\n",
        "            return self._delete(change, data, tombstone, told)\n        except Exception:\n",
        of(encoding.test_a_cell_that_cannot_be_decoded_is_poison_that_names_the_column, "v"),
    ),
    Mutant(
        "a record has the plan of its row's layout",
        ENCODER,
        "        bound = self._plans.get(change.batch.layout)\n",
        "        bound = next(iter(self._plans.values()), None)\n",
        encoding.test_a_changed_table_gets_a_new_plan,
    ),
    Mutant(
        "what is left out is counted",
        ENCODER,
        '            self.skipped[change.table.full_name, f"operation_{kind}"] += 1\n',
        "            pass\n",
        encoding.test_skipped_operations_get_no_record_nor_tombstone_and_are_counted,
    ),
    Mutant(
        "a tombstone that cannot be made takes no delete with it",
        PIPELINE,
        "                records += poison.others\n",
        "                pass\n",
        pipelines.test_a_delete_is_delivered_where_a_transform_fails_at_its_tombstone,
    ),
    Mutant(
        "poison leaves what stands before it to be delivered",
        PIPELINE,
        "                if done.ends and not self._tolerates_poison:\n",
        "                if not done.ends and self._tolerates_poison:\n",
        pipelines.test_poison_stops_the_batches_before_it_from_nothing,
    ),
    Mutant(
        "a record that is too large for its topic is found out before it is sent",
        PIPELINE,
        "            if size > (self._limit(record.topic) if limit is None else limit):\n",
        "            if limit is not None and size > limit:\n",
        pipelines.test_a_record_that_its_topic_does_not_take_is_poison,
    ),
    Mutant(
        "a batch that was refused once is not tried for ever",
        PIPELINE,
        "            if remembered is not None:\n",
        "            if remembered is not None and not records:\n",
        pipelines.test_a_batch_that_was_found_out_once_is_poison_again,
    ),
]

STREAMS = [
    Mutant(
        "what was followed late counts for nothing until it is followed again",
        BOOK,
        "        self._followed = [SlotLedger(self.slots) for _ in range(self.slots)]\n"
        "        self._pending.clear()\n        self._caught_up.clear()\n",
        "        self._pending.clear()\n",
        following.test_what_was_followed_late_counts_for_nothing_until_it_is_followed_again,
    ),
    Mutant(
        "one slot decides where a table starts",
        CLAIMS,
        "    if slot == plan.home:\n",
        "    if slot >= 0:\n",
        offsets.test_only_the_home_slot_decides_where_a_table_starts,
    ),
    Mutant(
        "a table that was started before keeps its start",
        CLAIMS,
        "    if starts:\n",
        "    if not starts:\n",
        offsets.test_a_table_that_was_started_before_keeps_its_start,
    ),
    Mutant(
        "a mark of silence is worth a record when much of it has passed",
        COMMITS,
        "    if moved != old and not (silence and moved.read_to - old.read_to < idle_ms):\n",
        "    if moved != old:\n",
        starts.test_beside_a_group_that_has_a_position_silence_is_told_rarely,
    ),
    Mutant(
        "a mark of a slot without streams moves with the time",
        COMMITS,
        "        return max(old.read_to, limit)\n",
        "        return old.read_to\n",
        offsets.test_marks_of_a_worker_without_a_stream_move_with_the_time,
    ),
    Mutant(
        "of two groups one runs",
        TENURE,
        "        if members:\n            return InTheWay(group, tuple(members))\n",
        "        if members is None:\n            return InTheWay(group, tuple(members))\n",
        tenures.test_two_groups_never_run_at_a_time,
    ),
    Mutant(
        "who writes a tenure looks again",
        TENURE,
        "    way = yield from _in_the_way(mine, tenures)\n",
        "    way = None\n",
        tenures.test_two_groups_never_run_at_a_time,
    ),
]

LANDED = [
    Mutant(
        "whole segments are published",
        "spark_jobs/stream/publishing.py",
        "        return segment + 1\n",
        "        return segment\n",
        publishing.test_what_is_published_is_a_whole_segment_with_the_positions_it_stands_for,
    ),
    Mutant(
        "no segment that is published is filled any more",
        "spark_jobs/tables/published_table.py",
        "    return max(restored.segment, stand.segment + 1)\n",
        "    return restored.segment\n",
        publishing.test_a_start_fills_no_segment_that_is_published_already,
    ),
    Mutant(
        "a record says by which version of which table it was made",
        "connector/formats/table_schemas.py",
        "    if not options.metadata:\n",
        "    if options.metadata:\n",
        of(encoding.test_records_with_metadata_say_which_version_of_which_table_they_were_made_by, {}),
    ),
    Mutant(
        "a record is read by the version that it was made by",
        SHAPE,
        "        if not _reads(layout, reading, version):\n",
        "        if False:\n",
        landed.test_keys_that_swapped_their_names_are_read_by_the_names_they_had,
    ),
    Mutant(
        "a field of a user type is found by its place",
        SHAPE,
        "            if place not in self._part_names:\n",
        "            if True:\n",
        landed.test_renamed_fields_stay_where_they_are_and_records_are_read_by_their_own_names,
    ),
    Mutant(
        "a merge keeps what an older version of the table does not know",
        SHAPE,
        "    columns = [*current.columns, *_not_dropped(definitions, source or current)]\n",
        "    columns = [*current.columns]\n",
        landed.test_merges_keep_columns_that_an_older_version_published_again_does_not_know,
    ),
    Mutant(
        "a table that a rebuild has emptied is not landed on",
        "spark_jobs/tables/landing_plan.py",
        "    if noted is not None and noted.rebuilding:\n",
        "    if False:\n",
        landed.test_what_topics_lost_before_it_landed_is_noted_until_the_source_was_read,
    ),
]

PACED = [
    Mutant(
        "a client whose requests are under way is left alone",
        PRODUCER,
        "        moves = self._keep_pace(1, deadline, watch)\n",
        "        moves = True\n",
        flushing.test_a_client_whose_requests_are_under_way_is_left_alone,
    ),
    Mutant(
        "a client for whom there is no news is hurried for moments",
        PRODUCER,
        "WATCH_SECONDS if moves else HURRY_SECONDS, deadline",
        "WATCH_SECONDS, deadline",
        flushing.test_a_client_without_news_is_hurried_for_moments,
    ),
    Mutant(
        "between two moments the client is waited for",
        PRODUCER,
        "            if not moves:\n                self._served(self._producer.poll, STILL_SECONDS)\n",
        "",
        flushing.test_who_stands_still_while_requests_are_under_way_is_not_waited_for,
    ),
    Mutant(
        "a client with news is flushed to the end",
        PRODUCER,
        "            moves, before = left < before, left\n",
        "            moves, before = False, left\n",
        flushing.test_a_client_with_news_is_flushed_to_the_end,
    ),
]

PURE = [*PACED, *CHANGES, *FOLLOWED, *TABLE, *RECORDS, *STREAMS, *LANDED]
