"""The product's rules, each as the change that breaks it and the story or world that then fails.

In: nothing. Out: `MUTANTS`. A rule whose text moved is moved here with it: the test says which text is not found.
"""

from __future__ import annotations

from tests.changes import test_changes_assembler as assembling
from tests.delivery import test_delivery_hanging_transactions as hanging
from tests.delivery import test_delivery_restore as restoring
from tests.delivery import test_delivery_transaction as transacting
from tests.simulation import outages, scenarios
from tests.simulation.ahead_mutants import AHEAD
from tests.simulation.leaderless_mutants import LEADERLESS
from tests.simulation.mutant_worlds import LATE_LEADERS, MANY_STREAMS, READS_TIME_OUT, ROUGH, SMALL_PAGES, world
from tests.simulation.mutation import Mutant, of
from tests.simulation.node_mutants import NODES
from tests.simulation.process_mutants import PROCESS
from tests.simulation.pure_mutants import PURE
from tests.simulation.scenarios import again
from tests.simulation.snapshot_mutants import SNAPSHOTS
from tests.simulation.snapshot_reading_mutants import CHUNK_READS
from tests.simulation.spent_mutants import SPENT
from tests.simulation.standing_mutants import LEFT_OPEN
from tests.simulation.stream_mutants import STREAMS

TRANSACTION = "connector/delivery/transaction.py"
PRODUCER = "connector/delivery/producer.py"
TRANSACTIONAL = "connector/delivery/transactional_producer.py"
TOPIC_CREATION = "connector/delivery/topic_creation.py"
RESTORE = "connector/delivery/restore.py"
HANGING = "connector/delivery/hanging_transactions.py"
FOLLOW = "connector/delivery/follow.py"
READING = "connector/source/reading.py"
LOG_READER = "connector/source/log_reader.py"
LATE_CHANGES = "connector/source/late_changes.py"
ASSEMBLER = "connector/changes/assembler.py"

fenced = again(restoring.test_a_dead_owners_open_transaction_is_ended_instead_of_awaited)

DELIVERY = [
    Mutant(
        "every slot that a transaction touches is named to the group",
        TRANSACTION,
        "            if named:\n",
        "            if not named:\n",
        again(transacting.test_every_named_slot_is_protected_from_a_member_that_was_thrown_out),
    ),
    Mutant(
        "a membership that changed since begin commits nothing",
        TRANSACTION,
        "if self._membership.member_id != self._member_at_begin or not self._member_at_begin:",
        "if not self._membership:",
        again(transacting.test_a_membership_that_changed_since_begin_is_never_committed),
    ),
    Mutant(
        "who was thrown out during the flush commits nothing",
        TRANSACTION,
        "                self._still_member()\n                producer.send_offsets",
        "                producer.send_offsets",
        scenarios.a_member_that_is_thrown_out_during_the_flush_does_not_commit,
    ),
    Mutant(
        "a plain producer is flushed before its positions are committed",
        TRANSACTION,
        "                self._plain.flush(deadline)\n",
        "                pass\n",
        scenarios.a_plain_producer_is_flushed_before_its_positions,
    ),
    Mutant(
        "a producer that starts again ends what it left",
        TRANSACTION,
        "            if again:\n",
        "            if not again:\n",
        again(hanging.test_a_producer_that_starts_again_ends_what_it_left_itself),
    ),
    Mutant(
        "a transaction that was aborted is smaller the next time",
        TRANSACTION,
        "max(self.bytes, 2)) // 2",
        "max(self.bytes, 2 << 40)) // 1",
        scenarios.a_record_that_is_refused_is_never_left_out,
    ),
    Mutant(
        "a transaction is cut by its bytes",
        TRANSACTION,
        "or self.bytes >= self.byte_limit",
        "or self.bytes < 0",
        again(transacting.test_a_transaction_is_cut_by_time_and_by_bytes),
    ),
    Mutant(
        "a transaction is cut by its age",
        TRANSACTION,
        "self.age >= oldest or",
        "self.age >= 3_600 or",
        again(transacting.test_a_transaction_is_cut_by_time_and_by_bytes),
    ),
    Mutant(
        "a commit that nobody answers is an unknown outcome",
        TRANSACTIONAL,
        "        except (RetriableDeliveryError, FatalDeliveryError) as error:\n"
        "            raise UnknownOutcome(str(error)) from None\n",
        "        except (RetriableDeliveryError, FatalDeliveryError) as error:\n"
        "            raise TransactionAborted(str(error)) from None\n",
        again(transacting.test_a_commit_that_nobody_answers_is_an_unknown_outcome),
    ),
    Mutant(
        "an abort counts when it is confirmed",
        TRANSACTIONAL,
        "        except DeliveryError as error:\n            raise UnknownOutcome(str(error)) from None\n"
        "        self.failure",
        "        except DeliveryError:\n            pass\n        self.failure",
        scenarios.an_abort_that_nobody_confirms_is_an_unknown_outcome,
    ),
    Mutant(
        "a record that failed aborts the transaction",
        PRODUCER,
        "        raise TransactionAborted(str(self.failure))\n",
        "        return\n",
        again(transacting.test_a_missing_topic_is_the_cause_where_a_report_says_that_time_was_up),
    ),
    Mutant(
        "a record that counts as delivered and stands nowhere is not committed",
        PRODUCER,
        "            if message.offset() is not None:\n",
        "            if message is not None:\n",
        scenarios.a_record_that_stands_nowhere_is_not_committed,
    ),
    Mutant(
        "who starts while leaders learn that they are it loses nothing",
        PRODUCER,
        "            error = of_report(SKIPPED)\n",
        "            return\n",
        world(LATE_LEADERS, 4),
    ),
    Mutant(
        "nobody writes to new partitions before those who lead them know it",
        TOPIC_CREATION,
        "            end_offsets(admin, places, seconds=LED_SECONDS)\n",
        "",
        scenarios.new_partitions_are_waited_for,
    ),
    Mutant(
        "an owner is fenced by taking its id over",
        TRANSACTIONAL,
        "        producer.start(deadline)\n    except ProducerFenced:",
        "        producer.poll()\n    except ProducerFenced:",
        fenced,
    ),
    Mutant(
        "restoring ends what former owners left open",
        RESTORE,
        "clients, where, owners - present, waited.deadline, cancelled)",
        "clients, where, set(), waited.deadline, cancelled)",
        fenced,
    ),
    Mutant(
        "restoring fences no present member",
        RESTORE,
        "clients, where, owners - present, waited.deadline, cancelled)",
        "clients, where, owners, waited.deadline, cancelled)",
        again(restoring.test_a_present_member_is_not_fenced),
    ),
    Mutant(
        "nor while every claim is suspected",
        RESTORE,
        "where, aborted - owners - present, waited.deadline, cancelled)",
        "where, aborted - owners, waited.deadline, cancelled)",
        again(restoring.test_nor_while_what_stands_somewhere_makes_every_claim_a_suspect),
    ),
    Mutant(
        "owners of claims that never committed count",
        RESTORE,
        "        owners |= _uncommitted_owners(clients, connector, topic, group, committed, waited, cancelled)\n",
        "",
        scenarios.an_owner_whose_claim_was_never_committed_is_fenced,
    ),
    Mutant(
        "restoring waits for commits that are pending",
        RESTORE,
        "        _wait_for_pending_commits(clients, topic, group, wanted, waited.deadline, cancelled)\n",
        "",
        scenarios.restoring_waits_for_offsets_that_are_pending,
    ),
    Mutant(
        "restoring takes what is committed alone",
        RESTORE,
        "READ_COMMITTED, Sought(topic, connector))\n    try:\n        reader.assign(dict.fromkeys(wanted, 0))",
        "READ_UNCOMMITTED, Sought(topic, connector))\n    try:\n        reader.assign(dict.fromkeys(wanted, 0))",
        scenarios.restoring_takes_nothing_that_is_not_committed,
    ),
    Mutant(
        "what was left open is aborted again",
        HANGING,
        "        if aborted:\n",
        "        if not aborted:\n",
        again(hanging.test_an_abort_that_was_forgotten_is_made_up_for),
    ),
    Mutant(
        "a commit that was forgotten in a slot is committed again",
        HANGING,
        "        if owner in lost_commits:\n",
        "        if owner not in lost_commits and False:\n",
        again(hanging.test_a_commit_that_was_forgotten_in_a_slot_is_made_up_for),
    ),
    Mutant(
        "only what is known to be committed is committed again",
        HANGING,
        "        if topic == where.offsets_topic and name in found.words.commits:\n",
        "        if topic == where.offsets_topic and name:\n",
        again(hanging.test_an_abort_that_was_forgotten_in_a_slot_stays_one),
    ),
    Mutant(
        "the group is told the transaction's name",
        TRANSACTION,
        "offsets = [TopicPartition(topic, slot, 0, metadata=name) for slot in sorted(named)]",
        "offsets = [TopicPartition(topic, slot, 0) for slot in sorted(named)]",
        again(hanging.test_a_commit_that_was_forgotten_in_a_slot_is_made_up_for),
    ),
    Mutant(
        "nothing is produced behind an outage",
        TRANSACTION,
        "            self._never_away(self._producer)\n            self._ended",
        "            self._ended",
        outages.nothing_is_produced_behind_an_outage,
    ),
    Mutant(
        "nothing is committed behind an outage",
        TRANSACTION,
        "            self._never_away(producer)\n            self._settle()",
        "            self._settle()",
        outages.nothing_is_committed_behind_an_outage,
    ),
    Mutant(
        "nothing that waits is sent behind an outage",
        TRANSACTION,
        "        self._never_away(self._producer)\n        if self._producer.has_lost",
        "        self._producer.poll()\n        if self._producer.has_lost",
        outages.nothing_that_waits_is_sent_behind_an_outage,
    ),
    Mutant(
        "a commit that an outage interrupts is an unknown outcome",
        TRANSACTION,
        "            producer.commit()\n            self._never_away(producer)\n",
        "            producer.commit()\n",
        outages.a_commit_that_an_outage_interrupts_is_an_unknown_outcome,
    ),
    Mutant(
        "what the client says of its connections is heard before it counts",
        TRANSACTION,
        "        producer.poll()\n        if self._clients.health",
        "        if self._clients.health",
        outages.nothing_is_produced_behind_an_outage,
    ),
    Mutant(
        "offsets that stay pending alone are aborted again",
        HANGING,
        "        _end_pending_offsets(again, where, producers)\n",
        "",
        outages.offsets_that_stay_pending_alone_hold_up_no_restore,
    ),
    Mutant(
        "a follower believes no prefix",
        FOLLOW,
        "        if not run.messages or run.messages[-1].error() is None:\n            self._errors.pop(slot, None)\n",
        "        if run.messages and run.messages[-1].offset() + 1 >= self._awaited[slot]:\n"
        "            reached.add(slot)\n",
        scenarios.a_follower_believes_no_prefix,
    ),
    Mutant(
        "a follower reads to what was there at its start",
        FOLLOW,
        "if (event.offset() or 0) >= self._awaited.get(slot, 0):",
        "if (event.offset() or 0) >= 0:",
        again(restoring.test_a_follower_knows_a_slot_only_behind_everything_that_was_in_it),
    ),
    Mutant(
        "a follower sees what is committed alone",
        FOLLOW,
        "group, READ_COMMITTED, Sought",
        "group, 'read_uncommitted', Sought",
        scenarios.a_follower_sees_what_is_committed_alone,
    ),
    Mutant(
        "what a follower was not asked for is told later",
        FOLLOW,
        "        self._changed -= told\n",
        "        self._changed.clear()\n",
        scenarios.a_follower_keeps_what_it_is_not_asked_for,
    ),
    Mutant(
        "a follower does not keep much",
        FOLLOW,
        "slot not in but or self._records[slot].keys >",
        "slot not in but or self._records[slot].keys < 0 >",
        scenarios.a_follower_does_not_keep_much,
    ),
]

SOURCE = [
    Mutant(
        "a read ends with the last of its queries",
        READING,
        "            if not active.outstanding:\n",
        "            if active.outstanding >= 0:\n",
        world(MANY_STREAMS, 1),
    ),
    Mutant(
        "a read that failed is begun again",
        READING,
        "        self._drop(active)\n        self._planner.interrupt(read)\n\n    def _fail",
        "        self._drop(active)\n\n    def _fail",
        world(READS_TIME_OUT, 2),
    ),
    Mutant(
        "every stream of a group is asked for",
        READING,
        "for at in range(0, len(read.streams), width_of_query)]",
        "for at in range(0, len(read.streams) - 1 or 1, width_of_query)]",
        world(MANY_STREAMS, 1),
    ),
    Mutant(
        "a read continues behind what it delivered",
        LOG_READER,
        'lower = ">" if request.after is not None else ">="',
        'lower = ">="',
        world(ROUGH, 10),
    ),
    Mutant(
        "pages of a read that was taken back are nobody's",
        READING,
        "        if active is None or not self._planner.is_current(active.read):\n            # An abort",
        "        if active is None:\n            # An abort",
        world(ROUGH, 71),
    ),
    Mutant(
        "a change that came late is not behind later ones of its partition",
        LATE_CHANGES,
        "in_order = newest is not None and all(newest.get(key, 0) <= at for key in _partitions(batch))",
        "in_order = newest is not None",
        world(ROUGH, 7),
    ),
    Mutant(
        "a read has all of its pages",
        LOG_READER,
        "            running.ended = not state\n",
        "            running.ended = True\n",
        world(SMALL_PAGES, 1),
    ),
    Mutant(
        "a batch goes on over pages",
        ASSEMBLER,
        "            batch = open_batches.pop(stream_id, None) if open_batches else None\n",
        "            batch = None\n",
        assembling.test_rows_come_in_order_of_their_numbers,
    ),
    Mutant(
        "a batch is complete at its last row",
        ASSEMBLER,
        "if end_at >= 0 and row[end_at] == _TRUE:",
        "if end_at >= 0:",
        assembling.test_a_later_time_completes_a_batch_without_the_mark,
    ),
    Mutant(
        "rows of two times are two batches",
        ASSEMBLER,
        "            elif batch.time == time:\n",
        "            elif batch.time:\n",
        assembling.test_a_later_time_completes_a_batch_without_the_mark,
    ),
    Mutant(
        "a batch that goes on with a column that came back has nothing of the former one",
        ASSEMBLER,
        "if each.dropped_us > before.get(each.name, -1)}",
        "if each.dropped_us < 0}",
        of(
            assembling.test_a_batch_that_goes_on_with_a_column_that_was_dropped_and_added_again_has_nothing_of_the_former_one,
            "int",
        ),
    ),
    Mutant(
        "the end of a read completes what is open",
        ASSEMBLER,
        "complete = [_sorted(batch) for batch in self._open.values()]",
        "complete: list[Batch] = []",
        assembling.test_servers_without_the_mark,
    ),
]

MUTANTS = [
    *(
        *DELIVERY,
        *LEADERLESS,
        *LEFT_OPEN,
        *SPENT,
        *SOURCE,
        *AHEAD,
        *NODES,
        *PROCESS,
        *STREAMS,
        *SNAPSHOTS,
        *CHUNK_READS,
    ),
    *PURE,
]
